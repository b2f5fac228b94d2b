"""The receiving side: an ordered transcript that is updated in place.

Whoever shows records reads them through this: a terminal, a proxy's intake, a page.  A record's id
is one occurrence, so entries are told apart by id alone and never by their text; an entry stays
where it first appeared, whatever arrives later.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from enum import StrEnum

from attrs import frozen

from orchestrator.failure.kinds import Action
from orchestrator.incident.record import Record

ALL_ACTIONS = frozenset(Action)


class Change(StrEnum):
    """What a delivered record did to the transcript."""

    ADDED = "added"
    UPDATED = "updated"
    IGNORED = "ignored"


@frozen
class Entry:
    """One place in the transcript."""

    position: int
    """From 0; never changes."""
    record: Record
    """The highest revision delivered so far."""
    actions: tuple[Action, ...] = ()
    """What to offer: the record's, known, each once, runnable here."""


@frozen
class Applied:
    """What became of one delivery."""

    change: Change
    entry: Entry
    """The entry as it stands now."""
    defect: str = ""
    """Why the sender is at fault: one revision of one incident was told in two ways."""


_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks that reorder what a terminal or page shows."""
_STEERING = frozenset(("Cc", "Cs", "Zl", "Zp"))
"""Unicode categories of controls, lone surrogates and line separators."""


def one_line(text: str) -> str:
    """The text on one line, with nothing in it that steers a terminal or forges a log line."""
    return "".join(
        " " if char in _BIDI or unicodedata.category(char) in _STEERING else char for char in text
    )


def offered(actions: Iterable[object], runnable: frozenset[Action]) -> tuple[Action, ...]:
    """The actions to offer, in the record's order; nothing is inferred, least of all from text."""
    known = {str(action): action for action in runnable}
    return tuple(dict.fromkeys(known[str(action)] for action in actions if str(action) in known))


class Transcript:
    """Records in the order of their first arrival, each at its highest revision.

    `runnable` is what this surface can execute; other actions are not offered.
    """

    __slots__ = ("_entries", "_places", "_runnable")

    def __init__(self, runnable: frozenset[Action] = ALL_ACTIONS) -> None:
        self._runnable = runnable
        self._entries: list[Entry] = []
        self._places: dict[str, int] = {}

    @property
    def entries(self) -> tuple[Entry, ...]:
        return tuple(self._entries)

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(entry.record for entry in self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, incident_id: str) -> Entry | None:
        place = self._places.get(incident_id)
        return None if place is None else self._entries[place]

    def apply(self, record: Record) -> Applied:
        """Take one delivery in: add an entry, update one in place, or ignore it."""
        place = self._places.get(record.id)
        if place is None:
            place = len(self._entries)
            self._places[record.id] = place
            self._entries.append(self._entry(place, record))
            return Applied(Change.ADDED, self._entries[place])
        shown = self._entries[place]
        if record.revision <= shown.record.revision:
            return Applied(Change.IGNORED, shown, _defect(shown.record, record))
        self._entries[place] = self._entry(place, record)
        return Applied(Change.UPDATED, self._entries[place])

    def _entry(self, place: int, record: Record) -> Entry:
        return Entry(place, record, offered(record.actions, self._runnable))


def _defect(shown: Record, other: Record) -> str:
    """Name the fault of a sender that re-uses a revision; a plain repetition is none."""
    if other.revision != shown.revision or other.title == shown.title:
        return ""
    return f"{shown.id}: revision {shown.revision} came with two titles; the first is kept"


__all__ = ["ALL_ACTIONS", "Applied", "Change", "Entry", "Transcript", "offered", "one_line"]
