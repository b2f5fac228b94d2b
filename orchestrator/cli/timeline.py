"""What happened in a session, as rows in the order in which they first appeared.

It reads turns as an observer and records as a sink.  A row stays where it is; an attempt that ends,
a wait that is over or a record that is revised changes its row in place.  Whoever draws is told of
each change.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from attrs import define, field

from orchestrator.incident.record import Record, Severity
from orchestrator.incident.view import Change, Transcript
from orchestrator.sinks import Item
from orchestrator.turn.effects import (
    CancelWait,
    Drop,
    Effect,
    End,
    Payload,
    Publish,
    Recover,
    Send,
    Wait,
)
from orchestrator.turn.events import (
    Event,
    Evidence,
    Failed,
    Finished,
    Recovered,
    Refused,
    Retrying,
    Saw,
    Started,
    Step,
    Stopped,
    StopReason,
)
from orchestrator.turn.machine import TurnMachine


class Mark(StrEnum):
    """What a row is about, and how it stands."""

    TURN = "turn"
    ATTEMPT = "attempt"
    LANDED = "landed"
    FAILED = "failed"
    STOPPED = "stopped"
    WAIT = "wait"
    WAITED = "waited"
    RECOVERY = "recovery"
    RECOVERED = "recovered"
    WARNING = "warning"
    ERROR = "error"
    DROPPED = "dropped"
    NOTE = "note"


@define
class Row:
    """One thing that happened."""

    mark: Mark
    at_s: float
    """Seconds since the timeline began."""
    label: str
    text: str = ""
    revision: int = 0
    """Of a record; 0 for anything else."""
    until_s: float = 0.0
    """When a wait is over, in seconds since the timeline began."""
    length_s: float = 0.0
    """Of a wait."""


_STEPS: Final = {
    Step.RESPAWN: ("starting a new process", "new process, session loaded"),
    Step.RESET: ("loading the session again", "session loaded again"),
    Step.DISCARD: ("opening a new session", "new session, told what was said"),
    Step.DEDICATED: ("starting a process of its own", "a process of its own"),
    Step.SWAP: ("setting another model", "another model is set"),
    Step.CANARY: ("asking a fresh session for one word", "a fresh session answers"),
}
"""What a row says during each step, and after it."""


@define(eq=False)
class Timeline:
    """The rows of all turns so far.  An observer, and a sink."""

    now: Callable[[], float]
    """Seconds on the clock of the turns."""
    on_change: Callable[[Row], None] = field(default=lambda _: None)
    """Told of each row that is new or changed."""
    rows: list[Row] = field(factory=list)
    transcript: Transcript = field(factory=Transcript)
    answer: str = ""
    """Text of the running turn."""
    _began: float = 0.0
    _records: dict[str, Row] = field(factory=dict)
    _attempt: Row | None = None
    _speaks: bool = False
    _wait: Row | None = None
    _recovery: Row | None = None

    def begin(self) -> None:
        """Start the clock."""
        self._began = self.now()

    @property
    def elapsed_s(self) -> float:
        return self.now() - self._began

    def turn(self, prompt: str) -> None:
        """A turn begins: rows from here on are its own."""
        self.answer = ""
        self._add(Row(Mark.TURN, self.elapsed_s, "turn", prompt))

    def text(self, chunk: str) -> None:
        """Text that was shown."""
        self.answer += chunk

    # --- observer ---------------------------------------------------------------------------------

    def __call__(self, _: TurnMachine, event: Event, effects: tuple[Effect, ...]) -> None:
        """Take in what a machine was told and what it answered."""
        self._heard(event)
        for effect in effects:
            self._asked(effect)

    def _heard(self, event: Event) -> None:
        match event:
            case Failed(verdict=verdict):
                self._ends(Mark.FAILED, verdict.kind.replace("_", " "))
            case Refused(refusal=refusal):
                self._ends(Mark.FAILED, refusal.explanation or "the model declined")
            case Finished(stop_reason=StopReason.CANCELLED):
                self._ends(Mark.STOPPED, "cancelled")
            case Finished():
                self._ends(Mark.LANDED, "landed")
            case Saw(evidence=Evidence.TEXT) if self._attempt and not self._speaks:
                self._speaks = True
                self._change(self._attempt, text="answering")
            case Retrying(title=title) if self._attempt:
                self._change(self._attempt, text=f"the agent retries by itself: {title}")
            case Recovered(step=step, ok=ok, detail=detail) if self._recovery:
                mark = Mark.RECOVERED if ok else Mark.FAILED
                text = _STEPS[step][1] if ok else detail
                self._change(self._recovery, mark=mark, text=text)
                self._recovery = None
            case Stopped():
                self._add(Row(Mark.STOPPED, self.elapsed_s, "stop", "the user pressed Stop"))
            case Started():
                self._attempt = self._wait = self._recovery = None
            case _:
                return

    def _asked(self, effect: Effect) -> None:
        match effect:
            case Send(number=number, payload=payload):
                self._over()
                asks = "sent: please continue" if payload is Payload.CONTINUE else "sent"
                self._speaks = False
                row = Row(Mark.ATTEMPT, self.elapsed_s, f"attempt {number}", asks)
                self._attempt = self._add(row)
            case Publish(record=record) if record.id not in self._records:
                # Its place is here; what it says comes with the delivery.
                self._records[record.id] = self._add(self._row_of(record))
            case Wait(delay=delay, number=number, limit=limit):
                of = f" of {limit}" if limit else ""
                row = Row(Mark.WAIT, self.elapsed_s, "wait", f"retry {number}{of}")
                row.length_s, row.until_s = delay, self.elapsed_s + delay
                self._wait = self._add(row)
            case CancelWait():
                self._over()
            case Recover(step=step, target=target):
                self._over()
                text = _STEPS[step][0] + (f": {target}" if target else "")
                self._recovery = self._add(Row(Mark.RECOVERY, self.elapsed_s, str(step), text))
            case Drop(family=family, reason=reason):
                text = f"the {family} retry was not sent ({reason}), so nothing was counted"
                self._add(Row(Mark.DROPPED, self.elapsed_s, "refund", text))
            case End():
                self._over()
            case _:
                return

    def _ends(self, mark: Mark, text: str) -> None:
        if self._attempt is not None:
            self._change(self._attempt, mark=mark, text=text)
            self._attempt = None

    def _over(self) -> None:
        if self._wait is not None:
            waited_s = self._wait.length_s - max(0.0, self._wait.until_s - self.elapsed_s)
            self._change(self._wait, mark=Mark.WAITED, length_s=waited_s)
            self._wait = None

    # --- sink -------------------------------------------------------------------------------------

    async def deliver(self, item: Item, /) -> None:
        """Show a record, or revise the one that is shown."""
        if not isinstance(item, Record):
            self._add(Row(Mark.NOTE, self.elapsed_s, "note", item.text))
            return
        applied = self.transcript.apply(item)
        if applied.change is Change.IGNORED:
            return
        told = self._row_of(applied.entry.record)
        row = self._records.get(item.id)
        if row is None:
            self._records[item.id] = self._add(told)
        else:
            self._change(
                row, mark=told.mark, label=told.label, text=told.text, revision=told.revision
            )

    def _row_of(self, record: Record) -> Row:
        mark = Mark.ERROR if record.severity is Severity.ERROR else Mark.WARNING
        return Row(mark, self.elapsed_s, str(mark), record.title, record.revision)

    def _add(self, row: Row) -> Row:
        self.rows.append(row)
        self.on_change(row)
        return row

    def _change(self, row: Row, **fields: object) -> None:
        for name, value in fields.items():
            setattr(row, name, value)
        self.on_change(row)
