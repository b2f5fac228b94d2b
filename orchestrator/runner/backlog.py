"""What a turn still owes its sinks, and what arrived meanwhile."""

from __future__ import annotations

from collections import deque

import anyio
from attrs import define, field

from orchestrator.failure.kinds import Kind
from orchestrator.incident.record import Record
from orchestrator.turn.effects import Note
from orchestrator.turn.events import Event


@define(eq=False)
class Backlog:
    """Exists only while something has to be waited for: a turn that lands at once has none."""

    owed: deque[tuple[Record | Note, Kind]] = field(factory=deque)
    """Deliveries, in order, with the kind of failure each tells of."""
    arrived: deque[Event] = field(factory=deque)
    """Events to hand in once the deliveries are done."""
    settled: anyio.Event | None = None
    """Set when the task that works on it has finished; None while there is no such task."""
