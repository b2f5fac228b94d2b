"""The client's side of the wire: our own stdin and stdout."""

from __future__ import annotations

import os
from collections import deque
from typing import Final

import anyio
from attrs import define, field

from orchestrator.acp.framing import Frame, FrameReader
from orchestrator.acp.process import widen
from orchestrator.acp.source import Source

_PIECE_BYTES: Final = 64 * 1024
"""Lines are joined up to this size before they are written; a longer one goes by itself."""
_FULL_BYTES: Final = 4 * 1024 * 1024
"""A client that reads slowly makes the agent wait from here on."""
_KEPT_BYTES: Final = 8 * 1024 * 1024
"""Free memory that the allocator may hold for the next large frames."""


@define(eq=False)
class ClientWire:
    """Frames from and to the client.  Writing never waits: `drained` is for whoever has to."""

    stdin: int
    stdout: int
    frames: FrameReader = field(factory=FrameReader)
    left: anyio.Event = field(factory=anyio.Event)
    """Set when the client has closed either end."""
    _source: Source = field(init=False)
    _lines: deque[bytes | memoryview] = field(factory=deque)
    _bytes: int = 0
    _held: int = 0
    """Nesting of `hold`."""
    _wake: anyio.Event = field(factory=anyio.Event)
    _room: anyio.Event = field(factory=anyio.Event)

    def __attrs_post_init__(self) -> None:
        for fd in (self.stdin, self.stdout):
            os.set_blocking(fd, False)
            widen(fd)
        self._source = Source(self.stdin)
        _keep_buffers()

    async def receive(self) -> list[Frame] | None:
        """The next frames; None at the end of the stream."""
        data = await self._source.read()
        if data:
            return self.frames.feed(data)
        return self.frames.end() or None

    def post(self, line: bytes) -> None:
        """Send one line.  What one read of the agent brought is written in one go, by `let_go`."""
        if self.left.is_set():
            return
        self._lines.append(line)
        self._bytes += len(line)
        if not self._held:
            self._write()

    def hold(self) -> None:
        """Collect lines instead of writing each."""
        self._held = 1

    def let_go(self) -> None:
        """Write what was collected."""
        self._held = 0
        if self._lines:
            self._write()

    @property
    def full(self) -> bool:
        """The client has not read what it was sent."""
        return self._bytes > _FULL_BYTES and not self.left.is_set()

    async def drained(self) -> None:
        """Wait until the client has read enough."""
        while self.full:
            self._room = anyio.Event()
            await self._room.wait()

    async def tend(self) -> None:
        """Write what a full pipe left, until cancelled."""
        while True:
            while self._lines:
                try:
                    await anyio.wait_writable(self.stdout)
                except (OSError, anyio.ClosedResourceError):
                    self.leave()
                self._write()
            self._wake = anyio.Event()
            await self._wake.wait()

    def leave(self) -> None:
        """The client is gone, or nobody writes to it any more: whoever waits for it goes on."""
        self.left.set()
        self._lines.clear()
        self._bytes = 0
        self._room.set()

    def restore(self) -> None:
        """Leave the descriptors as they are found by others who share them."""
        self._source.let_go()
        for fd in (self.stdin, self.stdout):
            os.set_blocking(fd, True)

    def _write(self) -> None:
        while self._lines:
            piece = self._next_piece()
            try:
                written = os.write(self.stdout, piece)
            except BlockingIOError:
                written = 0
            except OSError:
                self.leave()
                return
            self._bytes -= written
            if written < len(piece):
                self._lines.appendleft(memoryview(piece)[written:])
                self._wake.set()
                return
            if not self.full:
                self._room.set()

    def _next_piece(self) -> bytes | memoryview:
        piece = self._lines.popleft()
        if not self._lines or len(piece) + len(self._lines[0]) > _PIECE_BYTES:
            return piece
        parts, size = [piece], len(piece)
        while self._lines and size + len(self._lines[0]) <= _PIECE_BYTES:
            parts.append(self._lines.popleft())
            size += len(parts[-1])
        return b"".join(parts)


def _keep_buffers() -> None:
    """Let the allocator keep the memory of large frames from one read to the next.

    The C library of most Linux systems hands freed memory back above a threshold, and gets it
    again page by page: half of what a frame of 100 kB costs.  The largest block that was ever
    freed sets the threshold.  Elsewhere this does nothing.
    """
    bytes(_KEPT_BYTES)
