"""A model provider on loopback that fails as it is told to, and counts what it was asked.

It answers the three APIs of `shapes`.  A script maps the number of a turn's own model request
(from 1) to what happens to it; side requests of the agents, such as titles and token counts, are
always answered and counted apart.
"""

import asyncio
import json
import socket
import struct
import time
from collections.abc import Callable, Mapping

from attrs import define, field, frozen

from tests.agents.shapes import APIS, ToolCall, words_of

_LINGER_NOT = struct.pack("ii", 1, 0)
_MODELS = {
    "object": "list",
    "data": [{"id": "test-model", "object": "model", "type": "model", "display_name": "Test"}],
    "has_more": False,
}


@frozen
class Answer:
    """All well.  Each answer differs, so that one shown twice is found."""

    text: str = "Answer number {n} of the model, spoken to its end."
    pause_s: float = 0.01
    """Between two words."""


@frozen
class Fault:
    """An HTTP answer that says no."""

    name: str
    """One of `shapes.FAULTS`."""
    status: int
    headers: Mapping = field(factory=dict)
    wide: bool = False
    """Side requests to the model fail likewise."""


@frozen
class Cut:
    """Some words, then a reset of the connection."""

    text: str = "Part number {n} of an answer"


@frozen
class Hang:
    """No answer at all."""


@frozen
class Call:
    """The model calls a tool."""

    tool: ToolCall


def always(action):
    return lambda _: action


def first(count, *actions):
    """The actions in turn for the first requests, then answers."""
    return lambda n: actions[(n - 1) % len(actions)] if n <= count else Answer()


@frozen
class Request:
    """One request as it came in."""

    at: float
    """Monotonic seconds."""
    path: str
    number: int
    """Of the turn's own requests, from 1; 0 for a side request."""
    action: object
    body: Mapping = field(factory=dict, repr=False)


@define(eq=False)
class Provider:
    """The server, from `start` to `stop`."""

    script: Callable
    requests: list = field(factory=list)
    spoken: list = field(factory=list)
    """Texts of which at least one word was sent for a turn's own request."""
    stopping: asyncio.Event = field(factory=asyncio.Event)
    port: int = 0
    _base: int = 0
    _asked: asyncio.Condition = field(factory=asyncio.Condition)
    _server: asyncio.Server | None = None
    _writers: set = field(factory=set)
    _serving: set = field(factory=set)

    @property
    def own(self):
        """The turns' own requests."""
        return [request for request in self.requests if request.number]

    def begin(self, script):
        """From here on count for another script."""
        self.script, self._base = script, len(self.own)
        self.spoken.clear()

    @property
    def counted(self):
        """The turns' own requests since `begin`."""
        return self.own[self._base :]

    async def start(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self):
        self.stopping.set()
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _next_action(self, *, own, asked):
        if own:
            return self.script(asked)
        now = self.script(len(self.counted) + 1)
        return now if isinstance(now, Fault) and now.wide else Answer()

    async def until_asked(self, count):
        """Wait until this many of the turns' own requests have come."""
        async with self._asked:
            await self._asked.wait_for(lambda: len(self.counted) >= count)

    async def _serve(self, reader, writer):
        self._writers.add(writer)
        self._serving.add(asyncio.current_task())
        try:
            while await self._serve_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the agent went away, as it may
        finally:
            self._writers.discard(writer)
            self._serving.discard(asyncio.current_task())
            writer.close()

    async def _serve_one(self, reader, writer):
        """Answer one request; False when the connection is over."""
        head = await _head(reader)
        if head is None:
            return False
        method, path, headers = head
        body = _json(await _body(reader, headers))
        api = next((api for api in APIS if path.endswith(api.path)), None)
        own = method == "POST" and api is not None and _is_own(body)
        number = len(self.own) + 1 if own else 0
        action = self._next_action(own=own, asked=number - self._base)
        self.requests.append(Request(time.monotonic(), path, number, action, body))
        async with self._asked:
            self._asked.notify_all()
        if api is not None and method == "POST":
            return await _Reply(self, writer, api, body, number, action).send()
        await _send_whole(writer, *_aside(method, path))
        return True


@define(eq=False)
class _Reply:
    """The answer to one model request."""

    provider: Provider
    writer: asyncio.StreamWriter
    api: object
    body: dict
    number: int
    action: object

    async def send(self):
        return await _SENDERS[type(self.action)](self)

    @property
    def _serial(self):
        return f"{len(self.provider.requests):03d}"

    @property
    def _model(self):
        return self.body.get("model") or "test-model"

    async def answer(self):
        text = self.action.text.format(n=self.number)
        if not self.body.get("stream"):
            self._told(text)
            await _send_whole(self.writer, 200, self.api.whole(self._serial, self._model, text))
            return True
        spoken = await self._open(text)
        for part in spoken.closing:
            await _send_chunk(self.writer, part)
        await _send_chunk(self.writer, b"")
        return True

    async def fault(self):
        body, headers = self.api.failure(self.action.name)
        headers = {**headers, **self.action.headers}
        await _send_whole(self.writer, self.action.status, body, headers)
        return True

    async def cut(self):
        if self.body.get("stream"):
            await self._open(self.action.text.format(n=self.number))
            await asyncio.sleep(0.3)  # what was sent is to be read before the reset comes
        connection = self.writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        self.writer.transport.abort()
        return False

    async def hang(self):
        await self.provider.stopping.wait()
        return False

    async def call(self):
        await _send_stream_head(self.writer)
        for part in self.api.call(self._serial, self._model, self.action.tool):
            await _send_chunk(self.writer, part)
        await _send_chunk(self.writer, b"")
        return True

    async def _open(self, text):
        """Send all words of an answer that is not closed yet."""
        spoken = self.api.stream(self._serial, self._model, words_of(text))
        await _send_stream_head(self.writer)
        for part in spoken.opening:
            await _send_chunk(self.writer, part)
        for part in spoken.words:
            await _send_chunk(self.writer, part)
            self._told(text)
            await asyncio.sleep(getattr(self.action, "pause_s", 0.01))
        return spoken

    def _told(self, text):
        if self.number and text not in self.provider.spoken:
            self.provider.spoken.append(text)


_SENDERS = {
    Answer: _Reply.answer,
    Fault: _Reply.fault,
    Cut: _Reply.cut,
    Hang: _Reply.hang,
    Call: _Reply.call,
}


_SUGGESTING = ("[SUGGESTION MODE", "This is an app-generated")
"""How claude and codex ask, behind a turn, what the user might say next."""


def _is_own(body):
    """Whether this is a turn's own request: titles come without tools, suggestions with."""
    asked = body.get("messages") or body.get("input") or [{}]
    last = json.dumps(asked[-1])
    return bool(body.get("tools")) and not any(mark in last for mark in _SUGGESTING)


def _aside(method, path):
    """What is asked beside the model itself."""
    if path.endswith("/models"):
        return 200, _MODELS
    if path.endswith("count_tokens"):
        return 200, {"input_tokens": 10}
    if method == "HEAD" or path == "/":
        return 200, None
    return 404, {"error": {"message": "no such address"}}


# --- HTTP/1.1, as much of it as the agents use ---------------------------------------------------


async def _head(reader):
    """Method, path and headers; None at the end of the connection."""
    line = await reader.readline()
    if not line:
        return None
    method, target, _ = line.decode("latin1").split(" ", 2)
    headers = {}
    while (line := await reader.readline()) not in (b"\r\n", b"\n", b""):
        name, _, value = line.decode("latin1").partition(":")
        headers[name.strip().lower()] = value.strip()
    return method, target.partition("?")[0], headers


async def _body(reader, headers):
    if headers.get("transfer-encoding", "").lower() != "chunked":
        return await reader.readexactly(int(headers.get("content-length", 0)))
    body = b""
    while size := int((await reader.readline()).partition(b";")[0], 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readline()
    return body


def _json(body):
    try:
        read = json.loads(body) if body else {}
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


async def _send_whole(writer, status, document, headers=None):
    body = b"" if document is None else json.dumps(document).encode()
    fields = {"content-type": "application/json", "content-length": len(body), **(headers or {})}
    lines = [f"HTTP/1.1 {status} -", *(f"{name}: {value}" for name, value in fields.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode() + body)
    await writer.drain()


async def _send_stream_head(writer):
    writer.write(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
        b"transfer-encoding: chunked\r\n\r\n"
    )
    await writer.drain()


async def _send_chunk(writer, data):
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    await writer.drain()
