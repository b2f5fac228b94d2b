"""What a turn tells while it runs, and how it ended.

`Progress` is a closed union: `match` on it, and a type checker says what is missing.  An error
never carries retry counters; those are in `RetryScheduled`, and nowhere else.
"""

from __future__ import annotations

from typing import TypeAlias

from attrs import define, frozen

from orchestrator.errors import Error, error_for
from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Refusal, Verdict
from orchestrator.incident.record import Record
from orchestrator.turn.effects import Drop, Family, How, Note
from orchestrator.turn.events import Step


@frozen
class RetryScheduled:
    """A wait began; the prompt is sent again when it is over."""

    family: Family
    number: int
    """The retry this wait is for, from 1."""
    limit: int | None
    """How many the family allows; None for a window of time."""
    delay_s: float
    kind: Kind
    """What went wrong."""


@frozen
class RecoveryStarted:
    """A step of a recovery began."""

    step: Step
    family: Family | None
    target: str = ""
    """Model to set, for a swap."""


@frozen
class RecordRevised:
    """A record was delivered: a new incident, or the next revision of one."""

    record: Record


@frozen
class NoteDelivered:
    """A short advisory line was delivered."""

    note: Note


@frozen
class TextShown:
    """The agent showed text."""

    attempt: int
    text: str


@define(frozen=False)
class Outcome:
    """How a turn ended, and what became of it on the way.  Not changed once it is handed out."""

    # Not frozen, because a turn that lands at once builds nothing else: freezing triples the cost.

    turn_id: str
    how: How
    stop_reason: str = ""
    """The agent's own word for the end, where it gave one."""
    text: str = ""
    """All that was shown, also when the turn failed."""
    record: Record | None = None
    """The last revision that was delivered for this turn."""
    verdict: Verdict | None = None
    """What ended the turn; None when it landed."""
    attempts: int = 0
    waited_s: float = 0.0
    """Seconds spent waiting before retries."""
    dropped: tuple[Drop, ...] = ()
    """Retries and recoveries that were decided and not sent.  Nothing was counted for them."""
    unconsumed: tuple[str, ...] = ()
    """Steers and follow-ups that no attempt is known to have read, in order: queue them again."""
    notes: tuple[Note, ...] = ()
    """Why nothing more was tried, where the failure itself does not say: `retry_budget`, ..."""

    @property
    def landed(self) -> bool:
        return self.how is How.LANDED

    @property
    def refusal(self) -> Refusal | None:
        """Why the model declined, when it did and said so."""
        return None if self.verdict is None else self.verdict.refusal

    @property
    def structural(self) -> bool:
        """The identical message in the identical conversation can't succeed: do not loop on it."""
        return self.verdict is not None and self.verdict.structural

    def error(self) -> Error | None:
        """The exception that says this, or None when the turn landed."""
        if self.how is How.LANDED:
            return None
        # What was going wrong when a turn was stopped is not why it ended.
        title = _NO_FAILURE.get(self.how)
        verdict = self.verdict if title is None else Verdict.of(Kind.CANCELLED, title)
        if verdict is None:
            verdict = Verdict.of(Kind.UNKNOWN, "The turn ended and nothing said why. Try again.")
        return error_for(verdict, outcome=self, partial_output=self.text)


_NO_FAILURE = {
    How.STOPPED: "The turn was stopped.",
    How.SUPERSEDED: "The turn made way before its message was sent again.",
}


@frozen
class Ended:
    """The turn is over; nothing follows."""

    outcome: Outcome


Progress: TypeAlias = (
    RetryScheduled | RecoveryStarted | RecordRevised | NoteDelivered | TextShown | Ended
)
