"""Destinations for what the user is told, one file each; import the one you use.

A sink is any object with `async def deliver(self, item, /)`.  It gets each revision of each
incident, and notes.  It may raise: then it is switched off, counted and logged, and no turn is
touched.  A `name` is what metrics and logs call it; a `flush`, if it has one, is awaited at the
end.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from orchestrator.incident.record import Record


class Noted(Protocol):
    """A note, by its shape: a short advisory line with a code from a fixed list."""

    @property
    def code(self) -> str: ...

    @property
    def text(self) -> str: ...


Item: TypeAlias = Record | Noted


class Sink(Protocol):
    """A destination for records and notes."""

    async def deliver(self, item: Item, /) -> None: ...


__all__ = ["Item", "Noted", "Sink"]
