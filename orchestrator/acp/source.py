"""What comes out of a pipe, as it comes.

asyncio and trio can both wait for a descriptor.  But on asyncio each such wait puts it into the
selector, takes it out again and wakes a task that only then reads: half of what a relay pays for a
small frame.  So there a `Source` stays in the selector while somebody reads from it, and is read as
soon as the loop knows that something came.  Of what nobody has asked for yet one piece is held;
then it leaves the selector, and the writer has to wait.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import termios
from array import array
from typing import Final

import anyio
from anyio.lowlevel import checkpoint
from attrs import define, field

_READ_BYTES: Final = 256 * 1024
_FLOOD_BYTES: Final = 32 * 1024
"""A writer that is so far ahead may never let a read wait; everybody else gets a turn first."""


@define(eq=False)
class Source:
    """The reading end of a pipe that does not block.  Read by one task at a time."""

    fd: int = -1
    """-1 before there is one, and once closed."""
    _left: int | None = field(default=None, init=False)
    """Once the writer is gone, what it left: a stray child of it may go on writing without end."""
    _held: bytes | None = field(default=None, init=False)
    """What was read and not handed out yet; empty is the end."""
    _loop: asyncio.AbstractEventLoop | None = field(default=None, init=False)
    """The loop whose selector it is in."""
    _waiter: asyncio.Future[None] | None = field(default=None, init=False)

    async def read(self) -> bytes:
        """Read what is there, or wait for it; empty at the end and on a closed pipe."""
        if self._held is None and (self._loop is None or self._left is not None):
            self._held = self._take()
            if self._held is not None and len(self._held) >= _FLOOD_BYTES:
                await checkpoint()  # what is held stays, should this be cancelled
        while self._held is None:
            await self._wait()
        data, self._held = self._held, None
        return data

    def rest(self) -> bytes:
        """Read all that a writer left that is gone, without waiting."""
        self.finish()
        parts, self._held = [self._held or b""], None
        while data := self._take():
            parts.append(data)
        return b"".join(parts)

    def finish(self) -> None:
        """Tell that the writer is gone: what is there is all."""
        if self.fd >= 0 and self._left is None:
            self._left = _in_pipe(self.fd)
            anyio.notify_closing(self.fd)
        if self._waiter is not None:
            self._arrived()

    def let_go(self) -> None:
        """Leave the descriptor alone; it belongs to somebody else too."""
        if self._loop is not None:
            self._loop.remove_reader(self.fd)
            self._loop = None

    def close(self) -> None:
        """Close once; whoever reads is at the end."""
        if self.fd < 0:
            return
        self.let_go()
        anyio.notify_closing(self.fd)
        os.close(self.fd)
        self.fd = -1
        if self._waiter is not None:
            self._arrived()

    def _take(self) -> bytes | None:
        """What is there; empty at the end, None when nothing is there yet."""
        if self.fd < 0:
            return b""
        wanted = _READ_BYTES if self._left is None else min(_READ_BYTES, self._left)
        try:
            data = os.read(self.fd, wanted)
        except BlockingIOError:
            return b"" if self._left is not None else None
        except OSError:
            return b""
        if self._left is not None:
            self._left -= len(data)
        return data

    async def _wait(self) -> None:
        """Wait until something may be held."""
        loop = _asyncio_loop()
        if loop is None:
            try:
                await anyio.wait_readable(self.fd)
            except anyio.ClosedResourceError:
                pass  # closed, or finished
            except OSError:
                self._held = b""
                return
            self._held = self._take()
            return
        if self._loop is None:
            loop.add_reader(self.fd, self._arrived)
            self._loop = loop
        self._waiter = loop.create_future()
        try:
            await self._waiter
        except asyncio.CancelledError:
            self.let_go()
            raise
        finally:
            self._waiter = None

    def _arrived(self) -> None:
        """Hold what came and wake who reads; let go when nobody does, or when it was the end."""
        if self._held is None:
            self._held = self._take()
            if self._held is None:
                return
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)
            if self._held:
                return
        self.let_go()


def _in_pipe(fd: int) -> int:
    """How many bytes can be read at once."""
    count = array("i", [0])
    try:
        fcntl.ioctl(fd, termios.FIONREAD, count)
    except OSError:
        return 0
    return count[0]


def _asyncio_loop() -> asyncio.AbstractEventLoop | None:
    """The running loop, where it is asyncio's and this task is one of its own."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return None
    return None if task is None else task.get_loop()
