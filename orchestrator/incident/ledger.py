"""The incidents of one session: their ids, their revisions, and which of them are active.

Pure.  Delivery comes first: `restamp` proposes the next revision, the host delivers it, and only
`delivered` writes it down; so a delivery that fails leaves revision and active state untouched.
An incident stops being active by its kind's `clears` policy and by nothing else.  Clearing
publishes nothing: the record stays in the transcript as history.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from attrs import define, evolve, field, frozen

from orchestrator.failure.kinds import KINDS, Clears, Kind
from orchestrator.incident.record import Record

_REMEMBERED: Final = 256
"""Ended incidents whose revisions are still known; an older one is revised by nobody."""
_BY_NEXT_ATTEMPT: Final = frozenset({Clears.NEXT_ATTEMPT})
_BY_REAL_ANSWER: Final = frozenset({Clears.NEXT_ATTEMPT, Clears.REAL_ANSWER, Clears.SIGN_IN})


def turn_error_id(turn_id: str, epoch: str = "", occurrence: int = 0) -> str:
    """Name an occurrence of a turn: the first has the plain id, later ones count from 1."""
    plain = f"{turn_id}:error"
    return f"{plain}:{epoch}:{occurrence}" if occurrence else plain


def session_error_id(session_id: str, epoch: str, number: int) -> str:
    """Name a failure that belongs to no turn."""
    return f"{session_id}:session-error:{epoch}:{number}"


def notice_id(session_id: str, epoch: str, number: int) -> str:
    """Name an advisory; its ids never meet those of failures."""
    return f"{session_id}:notice:{epoch}:{number}"


@frozen
class Active:
    """One incident that still holds."""

    record: Record
    """Its last delivered revision."""
    kind: Kind

    @property
    def clears(self) -> Clears:
        return KINDS[self.kind].clears


Mark = Mapping[str, int]
"""What was active when an attempt began: revisions by incident id."""

NOTHING_ACTIVE: Final[Mark] = MappingProxyType({})


@define(eq=False)
class Ledger:
    """The incidents of one session."""

    session_id: str
    epoch: str
    """Drawn anew for each runtime of the session, so that its counters may restart at 1."""
    _revisions: dict[str, int] = field(factory=dict, init=False)
    _active: dict[str, Active] = field(factory=dict, init=False)
    _session_errors: int = field(default=0, init=False)

    @classmethod
    def restore(cls, session_id: str, epoch: str, records: Iterable[tuple[Record, Kind]]) -> Ledger:
        """Start from records that were delivered before, oldest first; each was still active.

        A record whose kind is not a failure's (an advisory) counts as delivered only.
        """
        ledger = cls(session_id, epoch)
        for record, kind in records:
            ledger.delivered(record, kind)
        return ledger

    @property
    def active(self) -> tuple[Active, ...]:
        """What still holds, in the order in which it was raised."""
        return tuple(self._active.values())

    def next_session_error_id(self) -> str:
        """Name the next failure outside a turn.  Counted when it is delivered."""
        return session_error_id(self.session_id, self.epoch, self._session_errors + 1)

    def restamp(self, record: Record) -> Record:
        """Return the record with the next revision of its id.  Writes nothing down."""
        revision = self._revisions.get(record.id, 0) + 1
        return record if record.revision == revision else evolve(record, revision=revision)

    def delivered(self, record: Record, kind: Kind) -> None:
        """Write down that a revision reached the user.

        A revision that is not higher than the last one changes nothing.
        """
        if record.revision <= self._revisions.get(record.id, 0):
            return
        if record.id == self.next_session_error_id():
            self._session_errors += 1
        self._remember(record.id, record.revision)
        if KINDS[kind].is_failure:
            self._active[record.id] = Active(record, kind)

    def mark(self) -> Mark:
        """Remember what is active, at the moment an attempt begins."""
        if not self._active:
            return NOTHING_ACTIVE
        revisions = {id_: active.record.revision for id_, active in self._active.items()}
        return MappingProxyType(revisions)

    def next_attempt(self, mark: Mark, turn_id: str) -> None:
        """An attempt of `turn_id` was confirmed: the agent answered it, with whatever outcome.

        Clears, of other turns and of the session, what held only until then.
        """
        self._clear(_BY_NEXT_ATTEMPT, mark, turn_id)

    def landed(self, mark: Mark, turn_id: str, *, real_answer: bool = True) -> None:
        """`turn_id` landed: its own incidents are over, at whatever revision.

        Of incidents raised by others only the revision that was active when the attempt began is
        cleared.  `real_answer` says that a real model wrote the message, not a local command.
        """
        if not self._active:
            return
        for id_ in [id_ for id_ in self._active if _is_of(id_, turn_id)]:
            del self._active[id_]
        self._clear(_BY_REAL_ANSWER if real_answer else _BY_NEXT_ATTEMPT, mark, turn_id)

    def real_answer(self, mark: Mark, turn_id: str) -> None:
        """`turn_id` landed with a real model's message."""
        self.landed(mark, turn_id, real_answer=True)

    def sign_in(self) -> None:
        """The user signed in (event `SignedIn`)."""
        self._clear(frozenset({Clears.SIGN_IN}))

    def new_runtime(self) -> None:
        """The process or the native session was replaced (event `RuntimeReplaced`)."""
        self._clear(frozenset({Clears.NEW_RUNTIME}))

    def _clear(self, policies: frozenset[Clears], mark: Mark | None = None, own: str = "") -> None:
        """Drop what these policies end: without a mark all of it, else what the mark saw."""
        for id_, active in list(self._active.items()):
            seen = mark is None or mark.get(id_) == active.record.revision
            if active.clears in policies and seen and not (own and _is_of(id_, own)):
                del self._active[id_]

    def _remember(self, id_: str, revision: int) -> None:
        """Keep a revision; of what is not active only the newest ones."""
        self._revisions.pop(id_, None)
        self._revisions[id_] = revision
        if len(self._revisions) - len(self._active) > _REMEMBERED:
            del self._revisions[next(old for old in self._revisions if old not in self._active)]


def _is_of(incident_id: str, turn_id: str) -> bool:
    plain = turn_error_id(turn_id)
    return incident_id == plain or incident_id.startswith(f"{plain}:")
