"""The proxy's log: one line for each decision, the raw frame redacted on a line of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from attrs import define

from orchestrator.failure.redact import one_line, terminal_line
from orchestrator.turn.effects import (
    Cancel,
    Drop,
    Effect,
    End,
    Note,
    Recover,
    Send,
    Wait,
)
from orchestrator.turn.events import Event, Failed, Recovered, Refused, Retrying
from orchestrator.turn.machine import TurnMachine

_SHORT: Final = 8


@define(eq=False)
class Decisions:
    """An observer that writes what was decided and why."""

    write: Callable[[str], None]
    clock: Callable[[], float] = time.time

    def __call__(self, turn: TurnMachine, event: Event, effects: tuple[Effect, ...]) -> None:
        """Write down one event of one turn."""
        where = f"{turn.ids.session_id[:_SHORT]}/{turn.ids.turn_id[:_SHORT]}"
        for text in _lines(turn, event, effects):
            self.say(f"[{where}] {text}")

    def say(self, text: str) -> None:
        """One line, with the time."""
        stamp = time.strftime("%H:%M:%S", time.localtime(self.clock()))
        self.write(f"{stamp} {terminal_line(text)}")

    def frame(self, value: object) -> None:
        """A frame of somebody else's, redacted, on a line of its own."""
        self.say(f"    frame {one_line(value)}")


def _lines(turn: TurnMachine, event: Event, effects: tuple[Effect, ...]) -> Iterator[str]:
    yield from _heard(event)
    if isinstance(event, Failed) and event.verdict.raw_detail:
        yield f"    frame {one_line(event.verdict.raw_detail)}"
    for effect in effects:
        told = _decided(effect)
        if told:
            inner = 0 if turn.incidents is None else turn.incidents.inner
            extra = f", {inner} retries inside the agent" if inner else ""
            yield told + (extra if isinstance(effect, End) else "")


def _heard(event: Event) -> Iterator[str]:
    match event:
        case Failed(verdict=verdict):
            cause = f" ({verdict.cause})" if verdict.cause else ""
            yield f"attempt {event.attempt} failed: {verdict.kind}{cause}: {verdict.title}"
        case Refused():
            yield f"attempt {event.attempt} was refused"
        case Recovered(ok=False):
            yield f"recovery {event.step} failed: {event.detail}"
        case Recovered():
            yield f"recovery {event.step} worked"
        case Retrying():
            yield f"the agent retries by itself: {event.title}"
        case _:
            return


def _sent(send: Send) -> str:
    if send.family is None:
        return ""
    return f"attempt {send.number} by {send.family}, {send.payload}"


def _waiting(wait: Wait) -> str:
    of = "" if wait.limit is None else f" of {wait.limit}"
    return f"{wait.family} {wait.number}{of}: waiting {wait.delay:.1f} s"


_DECIDED: Final[dict[type[Effect], Callable[[Any], str]]] = {
    Send: _sent,
    Wait: _waiting,
    Recover: lambda recover: f"recovery {recover.step} {recover.target}".rstrip(),
    Cancel: lambda cancel: "the agent is killed" if cancel.hard else "cancelled at the agent",
    Drop: lambda drop: f"{drop.family} {drop.number} dropped: {drop.reason}",
    Note: lambda note: f"note: {note.text}",
    End: lambda end: f"turn {end.outcome}",
}


def _decided(effect: Effect) -> str:
    words = _DECIDED.get(type(effect))
    return "" if words is None else words(effect)
