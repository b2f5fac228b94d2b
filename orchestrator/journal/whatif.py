"""What would have become of a recorded turn under other settings.

Its events no longer fit, since nobody can fail at a moment at which nothing was sent.  So what the
world did is kept (how each attempt ended and how long it took, how each recovery went, what the
user did and when), and the machine decides the rest.  Where it would have gone on beyond what is
recorded, the answer says so and ends there.
"""

from __future__ import annotations

import math
from typing import Any, Final, cast

from attrs import define, evolve, field, frozen

from orchestrator.journal import codec
from orchestrator.journal.reader import RecordedTurn
from orchestrator.journal.replay import machine_of
from orchestrator.settings.model import Settings
from orchestrator.turn.effects import Dispatch, Effect, End, Family, Recover, Send, Wait
from orchestrator.turn.events import (
    Began,
    Due,
    Event,
    Failed,
    Finished,
    Recovered,
    Refused,
    Saw,
    Started,
)
from orchestrator.turn.machine import IllegalEvent

OPEN: Final = "open"
_TICK_S: Final = 0.001
_MOST_SENDS: Final = 10_000


@frozen
class Story:
    """How a turn went, or would have gone."""

    sends: int
    families: tuple[Family, ...]
    """Of each send but the first."""
    waited_s: float
    outcome: str
    """How it ended; `open` when what would have happened next is not in the journal."""
    ends_at_s: float
    """Seconds since its start."""

    def same_as(self, other: Story) -> bool:
        """Whether nobody could tell the two apart."""
        return (
            self.outcome == other.outcome
            and self.sends == other.sends
            and abs(self.waited_s - other.waited_s) < _TICK_S
        )


@frozen
class _Attempt:
    """How one attempt went."""

    seen: tuple[Saw, ...]
    end: Failed | Refused | Finished
    took_s: float


@define
class _World:
    """What the world did in a recorded turn, sorted by what the machine had asked for."""

    start: Started | None = None
    attempts: list[_Attempt] = field(factory=list)
    recoveries: list[tuple[Recovered, float]] = field(factory=list)
    others: list[tuple[float, Any]] = field(factory=list)
    """What came from outside, and when."""
    _now: float = 0.0
    _sent_at: float = 0.0
    _asked_at: float = 0.0
    _seen: list[Saw] = field(factory=list)

    @classmethod
    def of(cls, turn: RecordedTurn) -> _World:
        """Take a record apart.  Raises ValueError."""
        world = cls()
        for step in turn.steps:
            world._take(codec.event_of(step.event))
            for effect in step.effects:
                world._note(effect.get("type"))
        return world

    def _take(self, event: Event) -> None:
        self._now = getattr(event, "now", self._now)
        if isinstance(event, Started):
            self.start = event
        elif isinstance(event, Saw):
            self._seen.append(event)
        elif isinstance(event, Recovered):
            self.recoveries.append((event, self._now - self._asked_at))
        elif isinstance(event, Failed | Refused | Finished):
            if len(self.attempts) + 1 == event.attempt:
                took_s = self._now - self._sent_at
                self.attempts.append(_Attempt(tuple(self._seen), event, took_s))
        elif not isinstance(event, Began | Due):
            self.others.append((self._now, event))

    def _note(self, effect: object) -> None:
        if effect == "Send":
            self._sent_at, self._seen = self._now, []
        elif effect == "Recover":
            self._asked_at = self._now


def recorded_story(turn: RecordedTurn) -> Story:
    """How a turn went.  Raises ValueError when a line cannot be read."""
    start: float | None = None
    last = waited = 0.0
    asked: float | None = None
    families: list[Family] = []
    sends, outcome = 0, OPEN
    for step in turn.steps:
        now = step.event.get("now")
        last = last if now is None else float(now)
        start = last if start is None else start
        if asked is not None and step.effects:
            waited += max(0.0, last - asked)
            asked = None
        for effect in step.effects:
            kind = effect.get("type")
            if kind == "Send":
                sends += 1
                families += [Family(effect["family"])] if "family" in effect else []
            elif kind == "Wait":
                asked = last
            elif kind == "End":
                outcome = str(effect["outcome"])
    return Story(sends, tuple(families), waited, outcome, last - (start or 0.0))


def otherwise(turn: RecordedTurn, settings: Settings) -> Story:
    """How a turn would have gone under other settings, as far as the journal knows.

    Raises ValueError when a line cannot be read.
    """
    return _Otherwise(turn, settings).play()


class _Otherwise:
    """Plays one recorded world through a machine with other settings."""

    def __init__(self, turn: RecordedTurn, settings: Settings) -> None:
        self._machine = machine_of(turn, settings)
        self._world = _World.of(turn)
        if self._world.start is None:
            raise ValueError(f"{turn.name}: its beginning is missing")
        self._start = self._world.start
        self._now = self._start.now
        self._live = self._start.live
        self._families: list[Family] = []
        self._waited_s = 0.0
        self._sends = 0

    def play(self) -> Story:
        effect: Effect | None = self._last(self._start)
        while effect is not None and not isinstance(effect, End) and self._sends < _MOST_SENDS:
            effect = self._go_on(effect)
        outcome = str(effect.outcome.value) if isinstance(effect, End) else OPEN
        lasted_s = self._now - self._start.now
        return Story(self._sends, tuple(self._families), self._waited_s, outcome, lasted_s)

    def _go_on(self, effect: Effect) -> Effect | None:
        if isinstance(effect, Dispatch):
            return self._last(Began(self._now, self._live))
        if isinstance(effect, Send):
            return self._attempt(effect)
        if isinstance(effect, Wait):
            return self._wait(effect)
        if isinstance(effect, Recover):
            return self._recover(effect)
        return None

    def _attempt(self, send: Send) -> Effect | None:
        self._sends += 1
        if send.family is not None:
            self._families.append(send.family)
        if self._sends > len(self._world.attempts):
            # It never ended by itself; a Stop may have ended the turn.
            return self._until(math.inf, attempting=True)
        attempt = self._world.attempts[self._sends - 1]
        for saw in attempt.seen:
            self._machine.handle(evolve(saw, attempt=send.number))
        ended = self._until(self._now + attempt.took_s, attempting=True)
        if ended is not None:
            return ended
        event = evolve(attempt.end, now=self._now, live=self._live, attempt=send.number)
        return self._last(event)

    def _wait(self, wait: Wait) -> Effect | None:
        before = self._now
        other = self._until(wait.until)
        self._waited_s += self._now - before
        if other is not None:
            return other
        return self._last(Due(max(self._now, wait.until), self._live))

    def _recover(self, recover: Recover) -> Effect | None:
        if not self._world.recoveries:
            return None
        event, took_s = self._world.recoveries.pop(0)
        other = self._until(self._now + took_s)
        if other is not None:
            return other
        swapped = event.detail in {"", recover.target} or not recover.target
        told = evolve(
            event,
            now=self._now,
            live=self._live,
            step=recover.step,
            detail=event.detail if swapped else recover.target,
        )
        return self._last(told)

    def _until(self, moment: float, *, attempting: bool = False) -> Effect | None:
        """Let time pass; stop at what changes what is pending.

        While an attempt runs, the one timer that may be open is that of a Stop.
        """
        others = self._world.others
        while True:
            timer = self._machine.next_deadline() if attempting else None
            tick = math.inf if timer is None else timer
            other = others[0][0] if others else math.inf
            if min(tick, other) > moment or min(tick, other) == math.inf:
                break
            event = Due(tick, self._live) if tick < other else self._outside(*others.pop(0))
            self._now = max(self._now, min(tick, other))
            effect = self._last(event)
            if isinstance(effect, End | Dispatch | Wait | Recover):
                return effect
        if moment != math.inf:
            self._now = max(self._now, moment)
        return None

    def _outside(self, when: float, event: Any) -> Event:
        """Return what the host or the user did, in the world as it was then."""
        if not hasattr(event, "live"):
            return cast("Event", event)
        self._live = event.live
        return cast("Event", evolve(event, now=max(self._now, when)))

    def _last(self, event: Event) -> Effect | None:
        """Hand in an event; what counts is the last effect of the answer."""
        try:
            effects = self._machine.handle(event)
        except IllegalEvent:
            return None
        return effects[-1] if effects else None
