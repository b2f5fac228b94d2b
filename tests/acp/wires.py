"""Wires in memory: an agent is a function from a message to the frames that follow it."""

from collections.abc import Callable

import anyio
from attrs import define, field

from orchestrator.acp.framing import Frame, FrameReader, encode
from orchestrator.acp.process import Exit
from orchestrator.failure.raw import RawFailure

END = None
"""In place of a frame: the agent's process ends."""


@define(eq=False)
class MemoryWire:
    """The wire of an agent that answers by `take(message) -> [(seconds, frame or END), ...]`."""

    take: Callable
    exit: Exit = field(factory=lambda: Exit(None))
    sent: list = field(factory=list)
    """Messages of the client."""
    killed: bool = False
    write_error: Exception | None = None
    """Raised by the next write."""
    reader: FrameReader = field(factory=FrameReader)
    _out: list = field(factory=list)
    _due: list = field(factory=list)
    _ready: anyio.Event = field(factory=anyio.Event)
    _wake: anyio.Event = field(factory=anyio.Event)
    _heard: anyio.Event = field(factory=anyio.Event)
    _over: anyio.Event = field(factory=anyio.Event)

    async def start(self):
        """Nothing to start."""

    async def tend(self):
        """Let time pass."""
        while not self._over.is_set():
            self._due.sort(key=lambda due: due[0])
            if self._due:
                with anyio.CancelScope(deadline=self._due[0][0]):
                    await self._wake.wait()
            else:
                await self._wake.wait()
            self._wake = anyio.Event()
            while self._due and self._due[0][0] <= anyio.current_time():
                self.push(self._due.pop(0)[1])

    def push(self, frame):
        """Let the agent send a frame, or end."""
        self._out.append(frame)
        self._ready.set()
        if frame is END:
            self._over.set()
            self._wake.set()

    async def receive(self):
        while not self._out:
            self._ready = anyio.Event()
            await self._ready.wait()
        if self._out[0] is END:
            return None
        count = self._out.index(END) if END in self._out else len(self._out)
        frames, self._out = self._out[:count], self._out[count:]
        return [Frame(encode(frame), frame) for frame in frames]

    async def send(self, line):
        if self.write_error is not None:
            error, self.write_error = self.write_error, None
            raise error
        for frame in self.reader.feed(line):
            self.sent.append(frame.value)
            self._heard.set()
            self._heard = anyio.Event()
            now = anyio.current_time()
            self._due += [(now + after, answer) for after, answer in self.take(frame.value)]
            self._wake.set()

    def methods(self):
        """Methods of the client's messages, in order; its own answers are left out."""
        return [message["method"] for message in self.sent if "method" in message]

    async def heard(self, method):
        """Wait until the client has sent a message of this method."""
        while method not in self.methods():
            await self._heard.wait()

    async def ended(self):
        await self._over.wait()
        return self.exit

    def failure(self, *, delivery=None):
        return RawFailure.exit(-9 if self.killed else self.exit.code, delivery=delivery)

    async def close(self, grace_s):
        await self.kill()

    async def kill(self):
        if not self._over.is_set():
            self.killed = True
            self.push(END)
