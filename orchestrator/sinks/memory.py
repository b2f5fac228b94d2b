"""A sink that remembers: for tests, and for a page that shows what happened lately."""

from __future__ import annotations

from collections import deque

from orchestrator.failure.kinds import Action
from orchestrator.incident.record import Record
from orchestrator.incident.view import ALL_ACTIONS, Transcript
from orchestrator.sinks import Item, Noted


class MemorySink:
    """Keeps the newest `limit` deliveries, in order of arrival.

    Raises ValueError when the limit is not 1 or more.
    """

    name = "memory"

    def __init__(self, limit: int = 10_000) -> None:
        if limit < 1:
            raise ValueError(f"limit: {limit!r} is not allowed; a whole number of 1 or more is")
        self._items: deque[Item] = deque(maxlen=limit)

    async def deliver(self, item: Item, /) -> None:
        self._items.append(item)

    @property
    def items(self) -> tuple[Item, ...]:
        return tuple(self._items)

    @property
    def records(self) -> tuple[Record, ...]:
        """Every revision that was delivered."""
        return tuple(item for item in self._items if isinstance(item, Record))

    @property
    def notes(self) -> tuple[Noted, ...]:
        return tuple(item for item in self._items if not isinstance(item, Record))

    def transcript(self, runnable: frozenset[Action] = ALL_ACTIONS) -> Transcript:
        """What a user sees: each incident once, at its newest revision."""
        transcript = Transcript(runnable)
        for record in self.records:
            transcript.apply(record)
        return transcript

    def clear(self) -> None:
        self._items.clear()
