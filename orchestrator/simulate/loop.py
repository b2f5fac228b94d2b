"""Virtual time: what happens next is whatever is due first."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, TypeAlias

Deed: TypeAlias = Callable[[Any, Any, float], object]
"""Called with whom it is about, something it needs, and the time."""


class Loop:
    """A queue of deeds.  Those due at the same moment come in the order they were asked for."""

    __slots__ = ("_asked", "_queue", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._queue: list[tuple[float, int, Deed, Any, Any]] = []
        self._asked = 0

    def at(self, when: float, do: Deed, who: Any, what: Any = None) -> None:
        """Do something at a moment."""
        self._asked += 1
        heapq.heappush(self._queue, (when, self._asked, do, who, what))

    def run(self, until: float = float("inf")) -> None:
        """Do everything that is due up to a moment."""
        queue, pop = self._queue, heapq.heappop
        while queue and queue[0][0] <= until:
            now, _, do, who, what = pop(queue)
            self.now = now
            do(who, what, now)
