"""Where a running turn takes the time from.

A clock is an interface, so that a host's tests can replace it; see `orchestrator.testing`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import anyio


class Clock(Protocol):
    """Seconds on a monotonic clock, and a sleep on the same clock."""

    def now(self) -> float: ...

    async def sleep(self, seconds: float, /) -> None: ...


class LoopClock:
    """The clock of the running event loop, virtual ones included.  Made inside that loop."""

    __slots__ = ("now",)

    now: Callable[[], float]
    sleep = staticmethod(anyio.sleep)

    def __init__(self) -> None:
        self.now = _loop_time()


def _loop_time() -> Callable[[], float]:
    # `anyio.current_time` finds the backend at each call, which costs more than a whole turn of
    # the machine; asyncio's loop can be asked directly.
    try:
        return asyncio.get_running_loop().time
    except RuntimeError:
        return anyio.current_time
