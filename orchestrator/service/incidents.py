"""What the service knows of incidents: a bounded view of the records that went by.

It is a sink.  The newest `capacity` incidents are kept, each with all its revisions; which of them
are active is the ledgers' to say and is asked for, never derived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from attrs import define, field

from orchestrator.incident.record import Record
from orchestrator.incident.view import Change, Transcript

CAPACITY: Final = 1_000
REVISIONS: Final = 100
"""Revisions kept of one incident; the first stays, then the newest."""


@define
class Kept:
    """One incident."""

    position: int
    """Place in the order of arrival over the whole life of the view; never re-used."""
    transcript: Transcript = field(factory=Transcript)
    """Its one entry, which applies the rule of revisions."""
    revisions: list[Record] = field(factory=list)

    @property
    def record(self) -> Record:
        return self.revisions[-1]


class Incidents:
    """Records by incident, in the order in which the incidents first appeared."""

    def __init__(
        self, active: Callable[[], Iterable[Record]] = tuple, *, capacity: int = CAPACITY
    ) -> None:
        self.active = active
        """What the ledgers hold as active; whoever owns them sets it."""
        self._capacity = capacity
        self._kept: dict[str, Kept] = {}
        self._arrived = 0

    def apply(self, record: Record) -> Change:
        """Take one delivery in; the same or a lower revision changes nothing."""
        kept = self._kept.get(record.id)
        if kept is None:
            self._arrived += 1
            kept = self._kept[record.id] = Kept(self._arrived)
        change = kept.transcript.apply(record).change
        if change is not Change.IGNORED:
            kept.revisions.append(record)
            if len(kept.revisions) > REVISIONS:
                del kept.revisions[1]
        if len(self._kept) > self._capacity:
            self._drop_one()
        return change

    def _drop_one(self) -> None:
        """Forget the oldest that is over; the oldest of all when none is."""
        active = {record.id for record in self.active()}
        over = (incident_id for incident_id in self._kept if incident_id not in active)
        del self._kept[next(over, next(iter(self._kept)))]

    async def deliver(self, item: object) -> None:
        """Be a sink: records are kept, notes are not incidents."""
        if isinstance(item, Record):
            self.apply(item)

    def active_ids(self) -> frozenset[str]:
        """Ids of what is active now; records that never went by (restored ones) are taken in."""
        active = tuple(self.active())
        for record in active:
            self.apply(record)
        return frozenset(record.id for record in active)

    def get(self, incident_id: str) -> Kept | None:
        return self._kept.get(incident_id)

    def after(self, position: int) -> Iterator[Kept]:
        """Walk through the incidents that came after a position, oldest first."""
        return (kept for kept in self._kept.values() if kept.position > position)
