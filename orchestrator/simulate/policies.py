"""Known retry policies, as rows, and the player that plays a row.

The constants are what each system does by default, read in its sources or documentation.  A policy
retries a whole call: it knows no recovery, so what an agent has lost stays lost; it tells its user
nothing meanwhile; and its wait ends only with the wait, or with the user's Stop.

`orchestrator compare --baseline NAME` plays one in the same world as the real machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from attrs import define, frozen

from orchestrator.failure.kinds import Kind, Recovery
from orchestrator.failure.verdict import Verdict
from orchestrator.simulate.fleet import Fleet, PlayerOf, Playing
from orchestrator.simulate.scenario import Fault
from orchestrator.simulate.tally import Result, Sign
from orchestrator.simulate.world import Use, chance

_INF: Final = math.inf


class On(StrEnum):
    """What a policy retries."""

    ANY = "any exception"
    """A decorator around a function: whatever it raises."""
    HTTP = "what an HTTP client retries"
    """Connection errors, 408, 409, 429 and 5xx, before the stream was handed over."""


class Beyond(StrEnum):
    """What a policy does with a hint that is longer than it accepts."""

    OWN_WAIT = "its own wait"
    GIVE_UP = "gives up"


@frozen
class Policy:
    """One known policy.  Wait n is `first_s` times `factor` to the (n-1), capped, then jitter."""

    name: str
    title: str
    first_s: float = 0.0
    factor: float = 2.0
    cap_s: float = _INF
    times: tuple[float, float] = (1.0, 1.0)
    """Jitter: the wait is multiplied by a number between these."""
    plus_s: float = 0.0
    """Jitter: up to this much is added."""
    ceiling_s: float = _INF
    """No wait is longer, jitter included."""
    retries: int | None = 0
    """None: until the scenario ends."""
    within_s: float = _INF
    """No retry once this much time has passed since the call began."""
    on: On = On.HTTP
    hint_most_s: float = 0.0
    """Longest hint of the server that is waited for; 0 where hints are not read."""
    beyond: Beyond = Beyond.OWN_WAIT

    def base(self, number: int) -> float:
        """Seconds before retry `number` (from 1), without jitter."""
        return min(self.cap_s, self.first_s * self.factor ** min(number - 1, 60))

    def wait(self, number: int, luck: float, hint_s: float | None = None) -> float | None:
        """Seconds before retry `number`; None to give up."""
        if hint_s is not None and self.hint_most_s:
            if hint_s <= self.hint_most_s:
                return hint_s
            if self.beyond is Beyond.GIVE_UP:
                return None
        low, high = self.times
        jittered = self.base(number) * (low + luck * (high - low)) + luck * self.plus_s
        return min(jittered, self.ceiling_s)


_P = Policy
_ROWS: Final = (
    _P("none", "no retry at all"),
    _P(
        "tenacity-default",
        "tenacity, wait_exponential, 3 attempts",
        first_s=1,
        retries=2,
        on=On.ANY,
    ),
    _P(
        "tenacity-jitter",
        "tenacity, wait_exponential_jitter, 5 attempts",
        first_s=1,
        plus_s=1,
        retries=4,
        on=On.ANY,
    ),
    _P(
        "stamina-default",
        "stamina: 10 attempts within 45 s",
        first_s=0.1,
        cap_s=5,
        plus_s=1,
        ceiling_s=5,
        retries=9,
        within_s=45,
        on=On.ANY,
    ),
    _P("backoff-expo", "backoff.expo, 5 tries", first_s=1, times=(0, 1), retries=4, on=On.ANY),
    _P("hyx", "hyx @retry", first_s=0.5, factor=1, retries=3, on=On.ANY),
    _P("resilience4j", "resilience4j: 3 attempts", first_s=0.5, factor=1, retries=2, on=On.ANY),
    _P("polly", "Polly v8: 3 retries, 2 s each", first_s=2, factor=1, retries=3, on=On.ANY),
    _P(
        "cockatiel",
        "cockatiel ExponentialBackoff, maxAttempts 3",
        first_s=0.128,
        cap_s=30,
        times=(0.5, 2),
        retries=3,
        on=On.ANY,
    ),
    _P(
        "botocore-transient",
        "botocore standard, transient errors",
        first_s=0.05,
        cap_s=20,
        times=(0, 1),
        retries=2,
    ),
    _P(
        "botocore-throttling",
        "botocore standard, throttling errors",
        first_s=1,
        cap_s=20,
        times=(0, 1),
        retries=2,
    ),
    _P("grpc", "gRPC A6, its example", first_s=0.1, cap_s=1, times=(0, 1), retries=3),
    _P("envoy", "Envoy", first_s=0.025, cap_s=0.25, times=(0, 1), retries=1),
    _P(
        "openai-sdk",
        "OpenAI's Python SDK: 2 retries",
        first_s=0.5,
        cap_s=8,
        times=(0.75, 1),
        retries=2,
        hint_most_s=120,
        beyond=Beyond.GIVE_UP,
    ),
    _P(
        "anthropic-sdk",
        "Anthropic's Python SDK: 2 retries",
        first_s=0.5,
        cap_s=8,
        times=(0.75, 1),
        retries=2,
        hint_most_s=4_294_967,
    ),
    _P("vercel-ai-sdk", "Vercel's AI SDK: 2 retries", first_s=2, retries=2, hint_most_s=60),
    _P(
        "langgraph",
        "LangGraph RetryPolicy: 3 attempts",
        first_s=0.5,
        cap_s=128,
        plus_s=1,
        retries=2,
        on=On.ANY,
    ),
    _P("langchain", "LangChain with_retry", first_s=1, plus_s=1, retries=2, on=On.ANY),
    _P(
        "litellm",
        "litellm Router: 2 retries",
        first_s=0.5,
        cap_s=8,
        plus_s=0.75,
        retries=2,
        hint_most_s=60,
    ),
    _P("dbos", "DBOS step: 3 attempts", first_s=1, cap_s=3600, retries=2, on=On.ANY),
    _P("restate", "Restate: 70 attempts", first_s=0.05, cap_s=60, retries=69, on=On.ANY),
    _P("zed-throttle", "Zed on a 429", first_s=5, retries=4, hint_most_s=_INF),
    _P("zed-overloaded", "Zed on an overload", first_s=5, factor=1, retries=4, hint_most_s=_INF),
    _P("codex-stream", "codex, a stream", first_s=0.2, times=(0.9, 1.1), retries=5),
    _P("codex-request", "codex, a request", first_s=0.2, times=(0.9, 1.1), retries=4),
    _P(
        "claude-code",
        "Claude Code: 10 retries",
        first_s=0.5,
        cap_s=32,
        times=(1, 1.25),
        retries=10,
        hint_most_s=60,
    ),
    _P("goose", "goose: 3 retries", first_s=1, cap_s=30, times=(0.8, 1.2), retries=3),
    _P(
        "gemini-cli",
        "gemini-cli: 10 attempts",
        first_s=5,
        cap_s=30,
        times=(0.7, 1.3),
        retries=9,
        hint_most_s=300,
        beyond=Beyond.GIVE_UP,
    ),
    _P("cline", "Cline: 3 attempts", first_s=1, cap_s=10, retries=2, hint_most_s=_INF),
    _P("roo", "Roo: without end", first_s=5, cap_s=600, retries=None, hint_most_s=_INF),
    _P(
        "opencode",
        "opencode 1.x: without end",
        first_s=2,
        cap_s=30,
        retries=None,
        hint_most_s=2_147_483,
    ),
)

POLICIES: Final[Mapping[str, Policy]] = MappingProxyType({row.name: row for row in _ROWS})
"""Every known policy, by the name that `--baseline` takes."""


def envelope(policy: Policy, retries: int | None = None) -> tuple[float, float]:
    """The least and the most seconds that a policy waits before it gives up, without any hint.

    That is how long an outage it survives.  `retries` bounds one that has no end.
    """
    count = policy.retries if retries is None else retries
    numbers = range(1, (count or 0) + 1)
    low, high = (sum(policy.wait(number, luck) or 0.0 for number in numbers) for luck in (0.0, 1.0))
    return low, high


@define(eq=False)
class PolicyTurn(Playing):
    broken: Any = None
    """The fault of what nobody rebuilt: every later attempt meets it again."""


class Policies:
    """Plays one policy."""

    make: type[Playing] = PolicyTurn

    def __init__(self, fleet: Fleet, policy: Policy) -> None:
        self._fleet = fleet
        self._policy = policy

    def begin(self, turn: Any, now: float) -> None:
        if turn.conversation is not None:
            turn.broken = turn.conversation.kept  # what nobody rebuilt is still broken
        self._fleet.send(turn, now)

    def attempt_ended(self, turn: Any, fault: Fault | None, now: float) -> None:
        fleet = self._fleet
        fault = turn.broken or fault
        if fault is None:
            fleet.landed(turn, now)
            return
        verdict = fleet.world.verdict(fault, now)
        lost = verdict.recovery not in {None, Recovery.BUSY}
        if verdict.structural or lost:
            turn.broken = fault
        if lost and turn.conversation is not None:
            turn.conversation.kept = fault
        wait_s = self._wait(turn, fault, verdict, now)
        if wait_s is None:
            fleet.end(turn, Result.FAILED, now)
            return
        if fault.after_output:
            fleet.tally.shown_twice += 1
        turn.mark(now, Sign.WAITS, f"{wait_s:.1f} s")
        fleet.loop.at(now + wait_s, self._again, turn)

    def user_acts(self, turn: Any, now: float, *, stops: bool) -> None:
        if stops:
            self._fleet.end(turn, Result.STOPPED, now)

    def _again(self, turn: PolicyTurn, _: None, now: float) -> None:
        if not turn.over:
            self._fleet.send(turn, now)

    def _wait(self, turn: PolicyTurn, fault: Fault, verdict: Verdict, now: float) -> float | None:
        policy = self._policy
        if not _RETRIES[policy.on](fault, verdict) or now - turn.at >= policy.within_s:
            return None
        if policy.retries is not None and turn.sends > policy.retries:
            return None
        luck = chance(turn.seed, Use.LUCK, turn.sends)
        wait_s = policy.wait(turn.sends, luck, verdict.retry_after_s)
        endless = policy.retries is None
        if wait_s is not None and endless and now + wait_s > self._fleet.scenario.duration_s:
            return None
        return wait_s


_RETRIES: Final[Mapping[On, Callable[[Fault, Verdict], bool]]] = {
    On.ANY: lambda _, __: True,
    On.HTTP: lambda fault, verdict: (
        not fault.after_output and (verdict.transient or verdict.kind is Kind.USAGE_LIMIT)
    ),
}


def policy(name: str) -> PlayerOf:
    """A player of a known policy."""
    row = POLICIES[name]
    return lambda fleet: Policies(fleet, row)
