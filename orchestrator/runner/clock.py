"""Where a running turn takes the time from.

A clock is an interface, so that a host's tests can replace it; see `orchestrator.testing`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

import anyio

from orchestrator.runner.cancellation import this_task


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
        # `anyio.current_time` finds the backend at each call, which costs more than a whole turn of
        # the machine; asyncio's loop can be asked directly.
        loop = _asyncio_loop()
        self.now = anyio.current_time if loop is None else loop.time


class Sleep(Protocol):
    """One sleep that anybody may end."""

    def wait(self) -> Awaitable[None]: ...

    def cancel(self) -> None: ...


class ScopedSleep:
    """A sleep on any clock."""

    __slots__ = ("_clock", "_scope", "_seconds")

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._scope = anyio.CancelScope()

    async def wait(self) -> None:
        with self._scope:
            await self._clock.sleep(self._seconds)

    def cancel(self) -> None:
        self._scope.cancel()


class TimerSleep:
    """A sleep on asyncio's own clock.

    A scope, and the three coroutines that sleep inside it, are half of the memory that a turn
    holds while it waits; a timer and a future do the same.
    """

    __slots__ = ("_timer", "_woken")

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._woken: asyncio.Future[None] = loop.create_future()
        self._timer = loop.call_later(seconds, _wake, self._woken)

    def wait(self) -> Awaitable[None]:
        return self._woken

    def cancel(self) -> None:
        self._timer.cancel()
        _wake(self._woken)


def sleeper(clock: Clock) -> Callable[[float], Sleep]:
    """What makes sleeps of so many seconds on this clock.  Asked inside the loop they are for."""
    loop = _asyncio_loop()
    if loop is None or not isinstance(clock, LoopClock):
        return partial(ScopedSleep, clock)
    return partial(TimerSleep, loop)


def _wake(woken: asyncio.Future[None]) -> None:
    if not woken.done():
        woken.set_result(None)


def _asyncio_loop() -> asyncio.AbstractEventLoop | None:
    """The running loop, where it is asyncio's and this task is one of its own."""
    task = this_task()
    return None if task is None else task.get_loop()
