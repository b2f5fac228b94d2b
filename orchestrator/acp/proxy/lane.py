"""The way to one agent: lines leave in the order in which they were handed in.

What is relayed is posted and nobody waits for it; a request of our own waits until it has left,
because how much of it left decides what may be sent again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, Protocol, runtime_checkable

import anyio
import anyio.lowlevel
from attrs import define, evolve, field

from orchestrator.acp.connection import Wire
from orchestrator.acp.framing import Frame, FrameReader
from orchestrator.acp.process import Exit, WireError
from orchestrator.acp.proxy.stream import Stream
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Delivery

_FULL_BYTES: Final = 64 * 1024 * 1024
_END_S: Final = 1.0
"""From a broken input of an agent to its own end."""
_PATIENCE_S: Final = 1.0
"""How long a cancelled writer may wait to see its line leave."""


@runtime_checkable
class LineWire(Protocol):
    """A wire that hands out lines before they are read, and writes without waiting."""

    frames: FrameReader

    async def receive_lines(self) -> list[bytes] | None: ...
    def write_now(self, line: bytes) -> bytes | memoryview: ...


@define(eq=False)
class _Line:
    data: bytes | memoryview
    left: anyio.Event | None = None
    """Set once it has left, or cannot."""
    error: WireError | None = None


@define(eq=False, repr=False)
class Lane:
    """A wire whose writers stand in line."""

    wire: Wire
    before_read: Callable[[], Awaitable[None]]
    """Awaited before each read: what the last one brought has been dealt with."""
    after_read: Callable[[], None] = field(default=lambda: None)
    """Told when a read has brought something."""
    stream: Stream | None = None
    """The text that is being streamed; any other frame ends it."""
    _waiting: deque[_Line] = field(factory=deque)
    _bytes: int = 0
    """Of the lines that have not left."""
    _wake: anyio.Event = field(factory=anyio.Event)
    _broken: WireError | None = None
    _line_wire: LineWire | None = field(init=False)
    _room: anyio.Event = field(factory=anyio.Event)

    def __attrs_post_init__(self) -> None:
        self._line_wire = self.wire if isinstance(self.wire, LineWire) else None

    async def start(self) -> None:
        await self.wire.start()

    async def tend(self) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._write)
                await self.wire.tend()
                tasks.cancel_scope.cancel()
        finally:  # whoever still waits has to be told, also when this is cancelled
            self._break(WireError(self.wire.failure(delivery=Delivery.NOT_SENT)))

    async def receive(self) -> Iterable[Frame] | None:
        await self.before_read()
        wire = self._line_wire
        if wire is None:
            frames = await self.wire.receive()
            if frames:
                self.after_read()
            return frames
        lines = await wire.receive_lines()
        if lines is None:
            return None
        self.after_read()
        return self._frames(wire.frames, lines)

    def _frames(self, reader: FrameReader, lines: list[bytes]) -> Iterator[Frame]:
        """Read each line in its place, unless it is the same again."""
        place = 0
        while place < len(lines):
            if self.stream is not None:
                place = self.stream.run(lines, place)
                if place == len(lines):
                    return
                self.stream = None
            frame = reader.read_one(lines[place])
            place += 1
            if frame is not None:
                yield frame

    def post(self, data: bytes) -> None:
        """Send a line some time, now if none stands in line; one that finds no agent is lost."""
        if self._broken is not None:
            return
        left: bytes | memoryview = data
        if self._line_wire is not None and not self._bytes:
            left = self._line_wire.write_now(data)
        if left:
            self._put(_Line(left))

    async def send(self, line: bytes) -> None:
        """Send a line and wait until it has left.  Raises WireError."""
        if self._broken is not None:
            raise self._broken
        mine = _Line(line, anyio.Event())
        self._put(mine)
        assert mine.left is not None  # noqa: S101 - given two lines above
        while not mine.left.is_set():
            with anyio.move_on_after(_PATIENCE_S, shield=True):
                await mine.left.wait()
            if not mine.left.is_set():
                await self._unless_cancelled(mine)
        if mine.error is not None:
            raise mine.error

    async def _unless_cancelled(self, line: _Line) -> None:
        """An agent that does not read keeps nobody from being cancelled."""
        try:
            await anyio.lowlevel.checkpoint_if_cancelled()
        except anyio.get_cancelled_exc_class():
            if line in self._waiting:
                self._waiting.remove(line)
                self._bytes -= len(line.data)
            raise

    @property
    def full(self) -> bool:
        """The agent has not read what it was sent."""
        return self._bytes > _FULL_BYTES and self._broken is None

    async def drained(self) -> None:
        """Wait until the agent has read enough, or never will."""
        while self.full:
            self._room = anyio.Event()
            await self._room.wait()

    async def ended(self) -> Exit:
        return await self.wire.ended()

    def failure(self, *, delivery: Delivery | None = None) -> RawFailure:
        return self.wire.failure(delivery=delivery)

    async def close(self, grace_s: float) -> None:
        await self.wire.close(grace_s)

    async def kill(self) -> None:
        await self.wire.kill()

    def _put(self, line: _Line) -> None:
        self._waiting.append(line)
        self._bytes += len(line.data)
        self._wake.set()

    async def _write(self) -> None:
        while self._broken is None:
            if self._waiting:
                await self._send(self._waiting.popleft())
            else:
                self._wake = anyio.Event()
                await self._wake.wait()
        # An agent that can't be written to is no agent: whatever needs it next starts another one.
        await self.wire.close(_END_S)

    async def _send(self, line: _Line) -> None:
        try:
            await self.wire.send(bytes(line.data))
        except WireError as error:
            line.error = error
            self._break(error)
        except BaseException:  # cancelled: nobody can say how much of it left
            line.error = WireError(self.wire.failure(delivery=Delivery.AMBIGUOUS))
            raise
        finally:
            self._bytes -= len(line.data)
            self._room.set()
            if line.left is not None:
                line.left.set()

    def _break(self, error: WireError) -> None:
        """Nothing goes through any more: whoever waits is told so."""
        self._broken = self._broken or error
        self._room.set()
        gone = WireError(evolve(error.raw, delivery=Delivery.NOT_SENT))
        while self._waiting:
            line = self._waiting.popleft()
            line.error = gone
            if line.left is not None:
                line.left.set()
        self._wake.set()
