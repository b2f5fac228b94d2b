"""Every recording of a real agent leads to the outcome that it shows.

What the agents did is in the recordings; what each of those endings has to be is this table.
"""

import pytest
import trio
import trio.testing
from attrs import define, field, frozen

from orchestrator import Orchestrator
from orchestrator.acp.agent import AcpAgent
from orchestrator.acp.process import Command
from orchestrator.acp.runtime import Runtime
from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Cause
from orchestrator.incident.record import Record, Severity
from orchestrator.settings.model import Choices, Ladders, Recoveries, Settings, Watchdogs
from orchestrator.turn.effects import How
from tests.acp.replay_agent import AGENTS, recordings, replay_wire

BOUND_S = 44.0
"""The recordings cancel a silent turn after 45 s; so do we, before."""
ONE_TRY = Settings(
    ladders=Ladders(
        transient_retries=0,
        registration_retries=0,
        connection_window_s=0,
        busy_retries=0,
    ),
    recoveries=Recoveries(
        deaths=0, lost_session=0, discard=0, fresh_session=0, continue_after_output=0
    ),
    choices=Choices(),
    watchdogs=Watchdogs(first_sign_s=BOUND_S, silence_s=BOUND_S),
)

LANDED, REFUSED, STOPPED = How.LANDED, How.REFUSED, How.STOPPED
STALLED = (Kind.CONNECTION_LOST, Cause.STALLED)
KILLED = (Kind.AGENT_DIED, Cause.SIGNAL)

EXPECTED = {
    "ok": {"*": LANDED},
    "ok_notices": {"*": LANDED},
    "r429": {"*": Kind.RATE_LIMITED},
    "r429_then_ok": {"*": LANDED},
    # Claude fails at once; the others would wait for the hour in silence.
    "r429_long": {"claude": Kind.RATE_LIMITED, "*": STALLED},
    "r429_oauth": {"*": Kind.RATE_LIMITED},
    "r529": {"opencode": STALLED, "*": Kind.OVERLOADED},
    "r529_default": {"codex": Kind.OVERLOADED, "*": STALLED},
    # Codex words it as high demand.
    "r500": {"claude": Kind.SERVER_ERROR, "codex": Kind.OVERLOADED, "opencode": STALLED},
    "r503_then_ok": {"*": LANDED},
    "r400": {"*": Kind.INVALID_REQUEST},
    "r401": {"*": Kind.AUTH_REQUIRED},
    "r401_oauth": {"*": Kind.AUTH_REQUIRED},
    # Claude asks for a sign-in on a 403, and its word is what the client gets.
    "r403": {"claude": Kind.AUTH_REQUIRED, "*": Kind.ACCESS_DENIED},
    "r404": {"*": Kind.MODEL_NOT_FOUND},
    # Under an API key Claude reports a spent allowance as a throttle.
    "usage_limit": {
        "claude": Kind.RATE_LIMITED,
        "codex": Kind.USAGE_LIMIT,
        "opencode": STALLED,
    },
    "usage_limit_oauth": {"*": Kind.USAGE_LIMIT},
    "usage_limit_oauth_replay": {"*": Kind.USAGE_LIMIT},
    "billing": {"*": Kind.BILLING},
    "ctx_exceeded": {"*": Kind.CONTEXT_OVERFLOW},
    "refused": {"claude": (Kind.CONNECTION_LOST, Cause.REFUSED), "*": STALLED},
    # Claude falls back to a request without a stream.
    "reset_midstream": {
        "claude": LANDED,
        "codex": (Kind.CONNECTION_LOST, Cause.STREAM_CUT),
        "opencode": STALLED,
    },
    "reset_hard": {
        "claude": (Kind.CONNECTION_LOST, Cause.RESET),
        "codex": (Kind.CONNECTION_LOST, Cause.STREAM_CUT),
        "opencode": STALLED,
    },
    "reset_nofb": {"*": (Kind.CONNECTION_LOST, Cause.RESET)},
    "reset_then_ok": {"*": LANDED},
    "eof_midstream": {
        "claude": LANDED,
        "codex": (Kind.CONNECTION_LOST, Cause.STREAM_CUT),
        "opencode": STALLED,
    },
    # Codex has an idle timeout of its own.
    "stall": {"*": STALLED},
    "stall_wd": {"*": STALLED},
    "hang": {"*": STALLED},
    "sse_error": {"claude": LANDED, "codex": Kind.OVERLOADED, "opencode": STALLED},
    "sse_error_then_ok": {"codex": Kind.OVERLOADED, "*": LANDED},
    "sse_error_nofb": {"*": Kind.OVERLOADED},
    "sse_ctx": {"*": Kind.CONTEXT_OVERFLOW},
    "sse_quota": {"*": Kind.USAGE_LIMIT},
    "sse_rate_limit": {"*": Kind.RATE_LIMITED},
    "sse_invalid": {"*": REFUSED},
    "garbage": {
        "claude": LANDED,
        "codex": (Kind.CONNECTION_LOST, Cause.STREAM_CUT),
        "opencode": Kind.PARSE_ERROR,
    },
    # Codex words the filter as a cut stream; the verdict reads the reason in it.
    "refusal": {"*": REFUSED},
    # An answer cut at its length is an answer; two of the three tell it as a failure.
    "max_tokens": {"opencode": LANDED, "*": Kind.MAX_OUTPUT_TOKENS},
    "kill9": {"*": KILLED},
    "kill9_resume": {"*": KILLED},
    # The adapter lives and says that its inner process is gone; opencode is a single process.
    "kill9_inner": {"opencode": KILLED, "*": Kind.INNER_LOST},
    "cancel_retry": {"*": STOPPED},
    "cancel_stream": {"*": STOPPED},
}
"""Scenario to agent to ending; `*` is every other agent.  The same with and without records."""


def stop_after_s(agent, name):
    """When the recording's client cancelled, in seconds after its prompt; None if it never did."""
    if not scenario(name).startswith("cancel_"):
        return None
    sent = {f[2]["method"]: f[0] for f in reversed(recordings(agent)[name]) if f[1] == "out"}
    return sent["session/cancel"] - sent["session/prompt"]


@define
class Deliveries:
    records: list = field(factory=list)

    async def deliver(self, item):
        if isinstance(item, Record):
            self.records.append(item)


@frozen
class Seen:
    """What became of the recording's turns."""

    first: object
    again: object
    records: tuple
    requests: tuple


def play(agent_name, names, settings=ONE_TRY, *, stop_after_s=None, again=False, load=""):
    """Run the recording's turn, and its second one, through the runner."""
    wires = [replay_wire(agent_name, name) for name in names]
    to_spawn = iter(wires)

    async def main():
        sink = Deliveries()
        command = Command((f"/bin/{agent_name}",), "/project")
        runtime = Runtime(command, settings.watchdogs, spawn=lambda _: next(to_spawn))
        async with runtime, Orchestrator(settings, sinks=[sink], seed=1) as orchestrator:
            session = orchestrator.session("chat", AcpAgent(runtime, session_id=load))
            async with session.turn("hello", turn_id="turn-1") as turn:
                if stop_after_s is not None:
                    await wires[0].heard("session/prompt")
                    await trio.sleep(stop_after_s)
                    turn.stop()
                first = await turn
            second = await session.turn("again", turn_id="turn-2") if again else None
            requests = tuple(method for wire in wires for method in wire.methods())
            return Seen(first, second, tuple(sink.records), requests)

    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def scenario(name):
    return name.removesuffix(".air")


NAMES = [(agent, name) for agent in AGENTS for name in recordings(agent) if not name.endswith(".2")]


@pytest.mark.parametrize(("agent", "name"), NAMES, ids=[f"{a}-{n}" for a, n in NAMES])
def test_a_recording_leads_to_its_outcome(agent, name):
    row = EXPECTED[scenario(name)]
    expected = row.get(agent, row.get("*"))
    seen = play(agent, [name], stop_after_s=stop_after_s(agent, name))
    outcome = seen.first
    if isinstance(expected, How):
        assert outcome.how is expected, outcome.verdict
        if expected is not STOPPED:  # a Stop settles a standing warning as an error
            assert not [r for r in seen.records if r.severity is Severity.ERROR]
        return
    kind, cause = expected if isinstance(expected, tuple) else (expected, None)
    assert (outcome.how, outcome.verdict.kind) == (How.FAILED, kind), outcome.verdict
    assert cause in (None, outcome.verdict.cause)
    error = seen.records[-1]
    # A failure behind text that followed a warning is another occurrence.
    assert error.id == "turn-1:error" or error.id.startswith("turn-1:error:")
    assert error.severity is Severity.ERROR
    assert error.title == outcome.verdict.title
    assert error.actions == outcome.verdict.actions


def test_the_table_names_every_scenario_and_no_other():
    assert {scenario(name) for _, name in NAMES} == set(EXPECTED)


AGAIN = [
    (agent, name)
    for agent, name in NAMES
    if sum(
        frame[1] == "out" and frame[2].get("method") == "session/prompt"
        for frame in recordings(agent)[name]
    )
    > 1
]


@pytest.mark.parametrize(("agent", "name"), AGAIN, ids=[f"{a}-{n}" for a, n in AGAIN])
def test_the_same_session_takes_the_next_prompt_as_it_did(agent, name):
    again = play(agent, [name], stop_after_s=stop_after_s(agent, name), again=True).again
    if (agent, scenario(name)) == ("claude", "kill9_inner"):
        assert again.verdict.kind is Kind.SESSION_NOT_FOUND
    else:
        assert (again.how, again.text.strip()) == (How.LANDED, "Hello from the lab provider.")


@pytest.mark.parametrize("suffix", ["", ".air"])
@pytest.mark.parametrize("agent", AGENTS)
def test_a_killed_agent_is_replaced_and_the_turn_goes_on(agent, suffix):
    names = [f"kill9_resume{suffix}", f"kill9_resume{suffix}.2"]
    settings = Settings(watchdogs=Watchdogs(first_sign_s=BOUND_S, silence_s=BOUND_S))
    seen = play(agent, names, settings)
    assert seen.first.how is How.LANDED
    # The partial answer stays, what the agent replays of the history is not shown again.
    assert seen.first.text.startswith("word0 word1 ")
    assert seen.first.text.count("Hello from") == 1
    assert "hello" not in seen.first.text
    assert seen.requests == (
        "initialize",
        "session/new",
        "session/prompt",
        "initialize",
        "session/load",
        "session/prompt",
    )
    told = [(r.id, r.revision, r.severity) for r in seen.records if ":notice:" not in r.id]
    assert told == [("turn-1:error", 1, Severity.WARNING)]


@pytest.mark.parametrize("suffix", ["", ".air"])
def test_what_a_loaded_session_replays_belongs_to_no_turn(suffix):
    name = f"usage_limit_oauth_replay{suffix}.2"
    sessions = [
        f[2]["params"]["sessionId"]
        for f in recordings("claude")[name]
        if f[2].get("method") == "session/update"
    ]
    seen = play("claude", [name], load=sessions[0])
    assert (seen.first.how, seen.first.text) == (How.LANDED, "Hello from the lab provider. ")
    assert [r for r in seen.records if ":notice:" not in r.id] == []


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agents_own_retries_are_one_warning_under_the_turns_id(agent):
    seen = play(agent, ["r429_then_ok.air"])
    assert seen.first.how is How.LANDED
    assert {r.id for r in seen.records if ":notice:" not in r.id} <= {"turn-1:error"}
