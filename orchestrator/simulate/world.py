"""What chance and the provider decide in a scenario: when turns start, how attempts are answered.

Everything comes from one seed, and nothing depends on who plays: the same turns arrive at the same
moments, and attempt n of a turn has the same luck under every policy (common random numbers).  The
first attempt's luck is drawn with the arrival; any later number is a function of the turn's seed
and of what it is for.  Only a provider that feels its load answers differently to different
players: that is what is being asked.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import deque
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any, Final, TypeVar

from attrs import define, evolve, field

from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Verdict
from orchestrator.simulate.scenario import Fault, Scenario

Answer = tuple[float, Fault | None]
"""Seconds from the send to the end of an attempt, and how it fails; None when it lands."""

T = TypeVar("T", bound="Arrival")


class Use(IntEnum):
    """What a number is drawn for."""

    LATENCY = 1
    FATE = 2
    LUCK = 3
    STEP = 4
    MOOD = 5
    PATIENCE = 6


_WORD: Final = (1 << 64) - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15
_USES: Final = 8


def chance(seed: int, use: Use, number: int = 0) -> float:
    """Return a number in [0, 1) that depends on nothing else (the mixer of SplitMix64)."""
    x = (seed + (number * _USES + use) * _GOLDEN) & _WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _WORD
    return ((x ^ (x >> 31)) >> 11) * 2.0**-53


@define(eq=False)
class Conversation:
    """What outlives a turn."""

    poison: Fault | None = None
    """What every attempt fails with, until something makes a new native session."""
    model: str = ""
    """What a fallback swapped to; empty for the scenario's own."""
    kept: Any = None
    """What the player keeps of it."""
    running: bool = False
    later: deque[Any] = field(factory=deque)
    """Turns that start when the one before them has ended."""


@define(eq=False)
class Arrival:
    """One turn that starts, and its luck."""

    index: int
    at: float
    """Seconds from the scenario's start."""
    latency: float
    fate: float
    """Draws in [0, 1) for the first attempt."""
    seed: int
    """Of everything else that chance decides about it."""
    conversation: Conversation | None = None
    """None where nothing outlives a turn."""


def arrivals(
    scenario: Scenario, seed: int, make: Callable[[int, float, float, float, int], T]
) -> Iterator[T]:
    """Yield the turns in the order they start: a Poisson process, thinned to the rate."""
    rng = random.Random(seed)
    draw, bits, log = rng.random, rng.getrandbits, math.log
    peak, duration, surges = scenario.peak_per_s, scenario.duration_s, bool(scenario.surges)
    now, index = 0.0, 0
    while True:
        now -= log(1.0 - draw()) / peak
        if now >= duration:
            return
        if surges and draw() * peak >= scenario.rate(now):
            continue
        yield make(index, now, draw(), draw(), bits(64))
        index += 1


def scaled(scenario: Scenario, factor: float) -> Scenario:
    """Return the same world with so many times the turns."""
    surges = tuple(
        evolve(
            surge,
            rate_per_s=surge.rate_per_s * factor,
            until_per_s=None if surge.until_per_s is None else surge.until_per_s * factor,
        )
        for surge in scenario.surges
    )
    return evolve(scenario, rate_per_s=scenario.rate_per_s * factor, surges=surges)


@define(eq=False)
class World:
    """The provider's side of a scenario while it is being played."""

    scenario: Scenario
    conversations: list[Conversation] = field(factory=list, init=False)
    works_until: list[float] = field(factory=list, init=False)
    """When each call that a provider with limited capacity works on is done: a heap."""
    _tokens: float = field(default=0.0, init=False)
    _tokens_at: float = field(default=0.0, init=False)
    _timeout: Fault | None = field(default=None, init=False)
    _refused: Fault | None = field(default=None, init=False)
    _verdicts: dict[int, Verdict] = field(factory=dict, init=False)
    _troubled: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        scenario = self.scenario
        self.conversations = [Conversation() for _ in range(scenario.conversations)]
        self._troubled = bool(scenario.phases or scenario.throttle or scenario.capacity)
        if scenario.capacity is not None:
            timeout_s = scenario.capacity.timeout_s
            self._timeout = Fault(scenario.capacity.kind, delay_s=timeout_s)
        if scenario.throttle is not None:
            self._tokens = scenario.throttle.burst
            self._refused = Fault(Kind.RATE_LIMITED, hint_s=scenario.throttle.hint_s)

    def join(self, turn: Arrival) -> Conversation:
        """Let a turn be its conversation's next one, where there are any: one after another."""
        turn.conversation = known = self.conversations[turn.index % len(self.conversations)]
        return known

    def answer(self, turn: Arrival, number: int, now: float, model: str = "") -> Answer:
        """How attempt `number` (from 1), sent at `now`, will end."""
        if self._troubled:
            troubled = self._trouble(turn, number, now, model)
            if troubled is not None:
                return troubled
        latency = turn.latency if number == 1 else chance(turn.seed, Use.LATENCY, number)
        scenario = self.scenario
        return scenario.first_text_s - math.log(1.0 - latency) * scenario.latency_s, None

    def canary(self, turn: Arrival, number: int, now: float, model: str = "") -> Answer:
        """How a short prompt in a fresh session of the same model will end."""
        known, turn.conversation = turn.conversation, None
        answer = self.answer(turn, -number, now, model)
        turn.conversation = known
        return answer

    def verdict(self, fault: Fault, now: float) -> Verdict:
        """What a classifier would say of the fault; one object for each, where time is no part."""
        if fault.resets_at_s is not None:
            left = max(0.0, fault.resets_at_s - now)
            return Verdict.of(fault.kind, _title(fault), resets_in_s=left)
        known = self._verdicts.get(id(fault))
        if known is None:
            known = Verdict.of(fault.kind, _title(fault), retry_after_s=fault.hint_s)
            self._verdicts[id(fault)] = known
        return known

    def busy(self, now: float) -> int:
        """Calls that a provider with limited capacity is working on."""
        while self.works_until and self.works_until[0] <= now:
            heapq.heappop(self.works_until)
        return len(self.works_until)

    def _trouble(self, turn: Arrival, number: int, now: float, model: str) -> Answer | None:
        conversation = turn.conversation
        if conversation is not None and conversation.poison is not None:
            return conversation.poison.delay_s, conversation.poison
        if self.scenario.phases and model not in self.scenario.healthy_models:
            fate = turn.fate if number == 1 else chance(turn.seed, Use.FATE, number)
            fault = self._fault(fate, now)
            if fault is not None:
                if fault.poisons and conversation is not None:
                    conversation.poison = fault
                return fault.delay_s, fault
        if self._refused is not None and not self._lets_through(now):
            return self._refused.delay_s, self._refused
        return None if self._timeout is None else self._served(now)

    def _fault(self, fate: float, now: float) -> Fault | None:
        phase = self.scenario.phase(now)
        if phase is None:
            return None
        for fault in phase.faults:
            fate -= fault.share
            if fate < 0:
                return fault
        return None

    def _lets_through(self, now: float) -> bool:
        throttle: Any = self.scenario.throttle
        past, self._tokens_at = now - self._tokens_at, now
        self._tokens = min(throttle.burst, self._tokens + past * throttle.calls_per_s)
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _served(self, now: float) -> Answer:
        """An answer that takes longer the more calls are open; nobody waits for a late one."""
        capacity: Any = self.scenario.capacity
        works_s = capacity.base_s + capacity.slope_s * (self.busy(now) + 1)
        heapq.heappush(self.works_until, now + works_s)
        if works_s <= capacity.timeout_s:
            return works_s, None
        return capacity.timeout_s, self._timeout


def _title(fault: Fault) -> str:
    return f"{fault.kind.value.replace('_', ' ').capitalize()}, in this simulation."
