"""Those who watch a turn that somebody else runs."""

from __future__ import annotations

from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from attrs import define, field

from orchestrator.runner.progress import Ended, Outcome, Progress

_ANY_BACKLOG: Final = float("inf")
"""A turn tells a few dozen things; it never waits for whoever iterates."""


@define(eq=False)
class Audience:
    """One who iterates, if the turn was entered, and any number who wait for its end."""

    ended: anyio.Event = field(factory=anyio.Event, init=False)
    crash: Exception | None = field(default=None, init=False)
    """What ended a turn that ran beside its `async with`, other than its outcome."""
    _told: MemoryObjectSendStream[Progress] | None = field(default=None, init=False)
    _heard: MemoryObjectReceiveStream[Progress] | None = field(default=None, init=False)

    def take_seat(self) -> None:
        """Let somebody iterate."""
        self._told, self._heard = anyio.create_memory_object_stream(_ANY_BACKLOG)

    def leave(self) -> None:
        """Nobody listens any more, even where the turn has not ended yet."""
        self._close_told()
        if self._heard is not None:
            self._heard.close()

    def tell(self, progress: Progress) -> None:
        if self._told is not None:
            self._told.send_nowait(progress)

    def dismiss(self, outcome: Outcome | None) -> None:
        """Tell of the end; nothing follows."""
        if outcome is not None:
            self.tell(Ended(outcome))
        self._close_told()
        self.ended.set()

    async def next(self) -> Progress:
        """Return what is told next.  Raises StopAsyncIteration after the end."""
        try:
            if self._heard is not None:
                return await self._heard.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            raise StopAsyncIteration from None
        raise RuntimeError("iterate over a turn inside `async with session.turn(...) as turn:`")

    def _close_told(self) -> None:
        told, self._told = self._told, None
        if told is not None:
            told.close()
