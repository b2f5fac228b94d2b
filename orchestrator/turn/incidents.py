"""What one turn tells the user: occurrences that open, are revised, and are settled exactly once.

An occurrence opens with a warning or an error.  It is over with its error, with its last revision,
or with the first text or tool after a warning; what fails later is another occurrence with another
id.  Nothing is published on an id that is over.

Whether something is published never depends on a provider's wording: `said` names what the reader
can tell apart (cause, n of m, a standing notice), and an equal `said` is silence.
"""

from __future__ import annotations

from typing import Final

from attrs import define, evolve

from orchestrator.failure.kinds import Action, Category
from orchestrator.failure.verdict import Verdict
from orchestrator.incident.ledger import notice_id, turn_error_id
from orchestrator.incident.record import Carrier, Record, Severity
from orchestrator.turn import wording
from orchestrator.turn.case import Case, Plan, reset_of
from orchestrator.turn.effects import Family, NoteCode, Publish
from orchestrator.turn.events import DropReason
from orchestrator.turn.match import window_s
from orchestrator.turn.table import Row
from orchestrator.turn.value import value


@value
class TurnIds:
    """Who a turn is."""

    turn_id: str
    """The host's persisted id of the user's message, where it has one."""
    session_id: str
    epoch: str
    """The session ledger's epoch."""
    provider: str = "other"
    """For labels only; policy never reads it."""

    def __attrs_post_init__(self) -> None:
        # One look at all three: a validator for each costs as much as a step of the machine.
        for name in _IDS:
            id_: object = getattr(self, name)
            if not isinstance(id_, str) or not id_.strip():
                raise ValueError(f"{name}: {id_!r} is not allowed; a non-empty string is")


_IDS: Final = ("turn_id", "session_id", "epoch")


@value
class Said:
    """What a reader of the title can tell apart, without its words."""

    cause: str
    family: str
    number: int = 0
    limit: int | None = None


@value
class Warned:
    """What an open warning says; nothing here depends on a provider's wording but `cause`."""

    said: Said
    cause: str
    """The title without the progress."""
    category: Category
    standing: bool = False
    """It stands for all retries of a family."""
    owes_back: bool = False
    """Somewhere in it a connection was counted as gone, so its return is told."""


@define
class Incidents:
    """The incidents and notices of one turn."""

    ids: TurnIds
    open: Warned | None = None
    """The warning that is not settled yet."""
    used: int = 0
    """Occurrences so far; the last of them is the open one."""
    revision: int = 0
    """Last revision of the last occurrence."""
    advised: str = ""
    """Key of the notice that stands last."""
    notice: Record | None = None
    """That notice; any other record makes it a thing of the past."""
    last: Record | None = None
    """The last record of a failure."""
    inner: int = 0
    """Retries inside the agent, as far as it told of them."""
    progress: str = ""
    """What it last told of them; the same again is no other retry."""

    def go_on(self, row: Row, plan: Plan, case: Case) -> tuple[Publish, ...]:
        """Warn that the turn goes on after a failure, and how."""
        verdict = case.verdict
        if row.standing:
            said = Said("", row.family)
            title = wording.standing(row.family, verdict, window_s(row, case.settings))
        else:
            said = Said(f"{verdict.kind}:{verdict.cause}", row.family, plan.number, plan.limit)
            title = self._counted(row, plan, verdict)
        warned = Warned(
            said,
            wording.cause_of(row.family, verdict),
            verdict.category,
            standing=row.standing,
            owes_back=row.family is Family.CONNECTION,
        )
        self.progress = ""
        return self._warn(warned, title, verdict.details)

    def _counted(self, row: Row, plan: Plan, verdict: Verdict) -> str:
        """Go on counting where the agent's own retries stopped; a recovery is none of those."""
        inner = self.inner if row.budgeted else 0
        limit = None if plan.limit is None else plan.limit + inner
        return wording.retrying(row.family, verdict, plan.number + inner, limit)

    def agent_retries(self, title: str, category: Category, resent: int = 0) -> tuple[Publish, ...]:
        """Pass on the agent's own progress, unless our standing warning tells more.

        `resent` is how often we sent the message again.  Since an agent counts anew each time, the
        title then says how many retries there were in all: no number a user sees goes down.
        """
        if title != self.progress:
            self.inner += 1
            self.progress = title
        if self.open is not None and (self.open.standing or self.open.owes_back):
            return ()
        told = wording.in_all(title, self.inner + resent) if resent else title
        return self._warn(Warned(Said(title, category), title, category), told)

    def fail(self, case: Case) -> tuple[Publish, ...]:
        """Publish the error of the failure that ends the turn."""
        verdict = case.verdict
        waits = verdict.transient and case.hint_is_long
        title = wording.ended(verdict, reset_of(verdict) if waits else None)
        return self._error(title, verdict.category, _offered(verdict), verdict.details)

    def give_up(
        self, verdict: Verdict | None, reason: DropReason, code: NoteCode, *, moved: bool
    ) -> tuple[Publish, ...]:
        """Settle an open warning whose retry will not be sent; the title keeps the cause.

        `moved` says that another message or another conversation took over: nothing is offered.
        """
        if self.open is None:
            return ()
        offered = _offered(verdict)
        if moved or reason in _TAKEN_OVER:
            offered = ()
        elif reason is DropReason.STOPPED and not (verdict is not None and verdict.structural):
            offered = (Action.RETRY, *(action for action in offered if action is not Action.RETRY))
        return self._error(wording.dropped(self.open.cause, code), self.open.category, offered)

    def output_arrived(self) -> tuple[Publish, ...]:
        """Text or a tool followed a warning: that occurrence is over."""
        back = self.connection_back()
        self.open = None
        return back

    def connection_back(self) -> tuple[Publish, ...]:
        """Give a connection's standing warning its one last revision, still a warning."""
        was, self.open = self.open, None
        if was is None or not was.owes_back:
            self.open = was
            return ()
        self.revision += 1
        return self._publish(Severity.WARNING, wording.CONNECTION_BACK, was.category)

    def advise(self, key: str, title: str, category: Category, number: int) -> tuple[Publish, ...]:
        """Publish a notice; an equal key in a row revises the one before.

        `number` is the one a new notice would take.
        """
        if self.notice is None or self.advised != key:
            id_ = notice_id(self.ids.session_id, self.ids.epoch, number)
            self.notice = Record(id_, 1, category, Severity.WARNING, title)
        elif self.notice.title != title:
            self.notice = self.notice.revised(title=title)
        else:
            return ()
        self.advised = key
        return (Publish(self.notice),)

    def _warn(self, warned: Warned, title: str, details: str = "") -> tuple[Publish, ...]:
        """Open an occurrence or revise the open one; be silent when nothing reads differently."""
        was = self.open
        if was is not None and was.said == warned.said:
            return ()
        self._step()
        owed = was is not None and was.owes_back and not warned.owes_back
        self.open = evolve(warned, owes_back=True) if owed else warned
        return self._publish(Severity.WARNING, title, warned.category, details=details)

    def _error(
        self, title: str, category: Category, actions: tuple[Action, ...], details: str = ""
    ) -> tuple[Publish, ...]:
        self._step()
        self.open = None
        return self._publish(Severity.ERROR, title, category, actions, details)

    def _step(self) -> None:
        """Move to the next revision of the open occurrence, or to a new one."""
        if self.open is None:
            self.used += 1
            self.revision = 0
        self.revision += 1

    def _publish(
        self,
        severity: Severity,
        title: str,
        category: Category,
        actions: tuple[Action, ...] = (),
        details: str = "",
    ) -> tuple[Publish, ...]:
        id_ = turn_error_id(self.ids.turn_id, self.ids.epoch, self.used - 1)
        self.last = Record(id_, self.revision, category, severity, title, actions, details)
        self.notice = None
        return (Publish(self.last, _CARRIER[severity]),)


_TAKEN_OVER = frozenset({DropReason.SUPERSEDED, DropReason.REBOUND})
"""Reasons of a host that say the same as `moved`."""

_CARRIER = {Severity.WARNING: Carrier.UPDATE, Severity.ERROR: Carrier.RESPONSE}


def _offered(verdict: Verdict | None) -> tuple[Action, ...]:
    """The kind's actions; what can't succeed again is never offered again."""
    if verdict is None:
        return ()
    if not verdict.structural:
        return verdict.actions
    return tuple(action for action in verdict.actions if action is not Action.RETRY)
