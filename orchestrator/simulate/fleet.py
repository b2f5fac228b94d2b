"""A fleet of turns in virtual time: arrivals, attempts and what they add up to.

A `Player` decides what follows a failure; the fleet knows the world, keeps the time and counts.
`ours.Machines` plays the real turn machine, `policies.Players` a known policy.  Nothing grows with
the number of turns that have ended.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Protocol

from attrs import define

from orchestrator.simulate.loop import Loop
from orchestrator.simulate.scenario import Fault, Scenario
from orchestrator.simulate.tally import (
    AFTER_S,
    BINS,
    LANDED,
    MARKS,
    Counted,
    Load,
    Mark,
    Result,
    Sign,
    Strip,
    Tally,
)
from orchestrator.simulate.world import Arrival, Conversation, Use, World, arrivals, chance, scaled

_LATE: Final = 0.75
"""From this share of a scenario on it is asked whether an outage has been got over."""
_SEEDS_APART: Final = 1_000_003
"""Between the seeds of two repetitions, so that those of neighbouring runs do not meet."""


@define(eq=False)
class Playing(Arrival):
    """One turn while it is being played."""

    sends: int = 0
    sent_at: float = 0.0
    first_failure_at: float | None = None
    told_at: float = 0.0
    """When the user was last told something, once something has failed."""
    recovered: bool = False
    """An agent rebuilt something for it."""
    over: bool = False
    marks: list[Mark] | None = None
    """Recorded for a few turns only."""

    def mark(self, now: float, sign: Sign, words: str = "") -> None:
        if self.marks is not None and len(self.marks) < MARKS:
            self.marks.append((now, sign, words))


class Player(Protocol):
    """Who decides what follows a failure."""

    make: type[Playing]
    """What its turns are."""

    def begin(self, turn: Playing, now: float) -> None:
        """Start a turn that just arrived."""

    def attempt_ended(self, turn: Playing, fault: Fault | None, now: float) -> None:
        """Go on behind the turn's current attempt."""

    def user_acts(self, turn: Playing, now: float, *, stops: bool) -> None:
        """The user pressed Stop, or wrote something new."""


@define(eq=False)
class Ended:
    """How one turn ended, for those who want to know of each."""

    turn: Playing
    result: Result
    at: float


PlayerOf = Callable[["Fleet"], Player]


class Fleet:
    """Plays one scenario once."""

    def __init__(
        self,
        scenario: Scenario,
        player_of: PlayerOf,
        *,
        seed: int,
        sampled: bool = False,
        watch: Callable[[Ended], None] | None = None,
    ) -> None:
        self.scenario = scenario
        self.seed = seed
        self.loop = Loop()
        self.world = World(scenario)
        self.tally = Tally(Load(scenario.duration_s / BINS), plays=1)
        self._sampled = sampled
        self._watch = watch
        outage = scenario.outage
        self._outage = None if outage is None else (outage.from_s, outage.to_s)
        self._late_from = math.inf
        if outage is not None:
            self._late_from = max(outage.to_s, _LATE * scenario.duration_s)
        self._moody = scenario.users.stop + scenario.users.steer
        self._attempt_ends = self._attempt_over  # bound once, pushed for every attempt
        self.player = player_of(self)

    def play(self) -> Tally:
        """Play all turns to their end."""
        loop, world, begin = self.loop, self.world, self._begin
        several = bool(world.conversations)
        for turn in arrivals(self.scenario, self.seed, self.player.make):
            loop.run(turn.at)
            if several:
                conversation = world.join(turn)
                if conversation.running:
                    conversation.later.append(turn)
                    continue
                conversation.running = True
            begin(turn, None, turn.at)
        loop.run()
        return self.tally

    # For players ----------------------------------------------------------------------------------

    def send(self, turn: Playing, now: float, model: str = "") -> None:
        """Let the provider have the turn's next attempt."""
        turn.sends = number = turn.sends + 1
        turn.sent_at = now
        self._called(now)
        turn.mark(now, Sign.SENT, str(number))
        after_s, fault = self.world.answer(turn, number, now, model)
        self.loop.at(now + after_s, self._attempt_ends, turn, fault)

    def canary(self, turn: Playing, number: int, now: float, model: str) -> tuple[float, bool]:
        """Let the provider have a short prompt in a fresh session: its time, and if it lands."""
        self._called(now)
        after_s, fault = self.world.canary(turn, number, now, model)
        return after_s, fault is None

    def told(self, turn: Playing, now: float) -> None:
        """The user of a failing turn reads something new."""
        if turn.first_failure_at is not None:
            self.tally.longest_silence_s = max(self.tally.longest_silence_s, now - turn.told_at)
            turn.told_at = now

    def end(self, turn: Playing, result: Result, now: float) -> None:
        """Count a turn that is over."""
        turn.over = True
        tally = self.tally
        tally.results[result] += 1
        if turn.at >= self._late_from:
            tally.late.turns += 1
            tally.late.landed += result in LANDED
        if self._watch is not None:
            self._watch(Ended(turn, result, now))
        if turn.conversation is not None:
            self._go_on(turn.conversation, now)
        if turn.first_failure_at is None:
            if result is Result.LANDED_CLEAN:
                tally.load.landed[tally.load.bin(now)] += 1
            return
        self._end_of_trouble(turn, result, now)

    def landed(self, turn: Playing, now: float) -> None:
        """Count a turn that landed."""
        if turn.sends == 1:
            result = Result.LANDED_CLEAN
        elif turn.recovered:
            result = Result.LANDED_AFTER_RECOVERY
        else:
            result = Result.LANDED_AFTER_RETRY
        self.end(turn, result, now)

    # The fleet's own ------------------------------------------------------------------------------

    def _begin(self, turn: Playing, _: None, now: float) -> None:
        turn.at = now
        tally = self.tally
        tally.whole.turns += 1
        tally.load.turns[tally.load.bin(now)] += 1
        if self._outage is not None:
            stretch = self._stretch(now)
            if stretch is not None:
                stretch.turns += 1
        self.player.begin(turn, now)

    def _called(self, now: float) -> None:
        tally = self.tally
        tally.whole.calls += 1
        tally.load.calls[tally.load.bin(now)] += 1
        if self._outage is not None:
            stretch = self._stretch(now)
            if stretch is not None:
                stretch.calls += 1

    def _go_on(self, conversation: Conversation, now: float) -> None:
        """Begin the turn that waited for this conversation's last one."""
        conversation.running = bool(conversation.later)
        if conversation.running:
            self.loop.at(now, self._begin, conversation.later.popleft())

    def _attempt_over(self, turn: Playing, fault: Fault | None, now: float) -> None:
        if turn.over:
            return
        if fault is not None:
            if turn.first_failure_at is None:
                self._first_failure(turn, now)
            turn.mark(now, Sign.FAILED, fault.kind)
        self.player.attempt_ended(turn, fault, now)

    def _first_failure(self, turn: Playing, now: float) -> None:
        turn.first_failure_at = turn.told_at = now
        if self._sampled:
            turn.marks = [(turn.sent_at, Sign.SENT, "1")]
        if self._moody:
            mood = chance(turn.seed, Use.MOOD)
            if mood < self._moody:
                patience = -math.log(1.0 - chance(turn.seed, Use.PATIENCE))
                stops = mood < self.scenario.users.stop
                acts_at = now + patience * self.scenario.users.patience_s
                self.loop.at(acts_at, self._user_acts, turn, stops)

    def _user_acts(self, turn: Playing, stops: bool, now: float) -> None:  # noqa: FBT001 - a deed
        if not turn.over:
            turn.mark(now, Sign.ACTED, "Stop" if stops else "writes")
            self.player.user_acts(turn, now, stops=stops)

    def _end_of_trouble(self, turn: Playing, result: Result, now: float) -> None:
        tally = self.tally
        landed = result in (Result.LANDED_AFTER_RETRY, Result.LANDED_AFTER_RECOVERY)
        if landed:
            tally.load.landed[tally.load.bin(now)] += 1
            tally.recovery.add(now - (turn.first_failure_at or 0.0))
        # An answer is read from its first text on.
        text_at = turn.sent_at + self.scenario.first_text_s
        self.told(turn, max(turn.told_at, min(now, text_at) if landed else now))
        if turn.marks is not None:
            turn.mark(now, Sign.LANDED if landed else Sign.ENDED, result)
            tally.samples.keep(Strip(turn.index, result, turn.marks))

    def _stretch(self, now: float) -> Counted | None:
        """The outage, or the minute behind it, if it is either."""
        if self._outage is None:
            return None
        start, end = self._outage
        if now < start or now >= end + AFTER_S:
            return None
        return self.tally.outage if now < end else self.tally.after


def play(
    scenario: Scenario,
    player_of: PlayerOf,
    *,
    seed: int = 1,
    turns: int | None = None,
    sampled: bool = False,
    watch: Callable[[Ended], None] | None = None,
) -> Tally:
    """Play a scenario, with about so many turns; as many as it has by itself, if not said.

    More turns than it has by itself play it several times, one behind another and each with luck
    of its own, so that the load stays what it is.  Fewer thin it out, unless its load matters.
    """
    repeats, factor = sizes(scenario, turns)
    world = scenario if factor == 1.0 else scaled(scenario, factor)
    whole: Tally | None = None
    for repeat in range(repeats):
        fleet = Fleet(
            world,
            player_of,
            seed=seed + repeat * _SEEDS_APART,
            sampled=sampled,
            watch=watch,
        )
        tally = fleet.play()
        if whole is None:
            whole = tally
        else:
            whole.merge(tally)
    return whole or Tally(Load(scenario.duration_s / BINS))


def sizes(scenario: Scenario, turns: int | None) -> tuple[int, float]:
    """How often a scenario is played for so many turns, and what its rate is multiplied by."""
    if turns is None:
        return 1, 1.0
    expected = scenario.expected_turns()
    repeats = max(1, round(turns / expected))
    return repeats, 1.0 if scenario.load_matters else turns / (repeats * expected)
