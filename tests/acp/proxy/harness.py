"""A proxy between a client and an agent that live in the test, in virtual time.

The client's side are real pipes, the agent's side a wire in memory: a recording, or a script.
"""

import contextlib
import json
import os
from contextlib import asynccontextmanager

import anyio
import trio
import trio.testing
from attrs import define, field

from orchestrator.acp.framing import FrameReader, encode
from orchestrator.acp.process import Command, Exit, WireError
from orchestrator.acp.proxy.serve import Setup
from orchestrator.acp.source import Source
from orchestrator.failure.raw import RawFailure
from orchestrator.settings.model import Settings

AIR = {"_meta": {"jetbrains": {"air": {"version": 1, "capabilities": ["sessionFailure"]}}}}
COMMAND = Command(("/bin/agent",), "/project")


@define(eq=False)
class Script:
    """An agent in memory: `play(agent)` is what it does, its end is the end of the process."""

    play: object
    exit: Exit = field(factory=lambda: Exit(0))
    reader: FrameReader = field(factory=FrameReader)
    spoken: FrameReader = field(factory=FrameReader)
    sent: list = field(factory=list)
    """What the proxy sent, as messages."""
    raw: list = field(factory=list)
    """What the proxy sent, as bytes."""
    keeps: bool = True
    """What it was sent is kept for the test to look at."""
    killed: bool = False
    _inbox: list = field(factory=list)
    _heard: anyio.Event = field(factory=anyio.Event)
    _outbox: bytearray = field(factory=bytearray)
    _spoke: anyio.Event = field(factory=anyio.Event)
    _over: anyio.Event = field(factory=anyio.Event)
    _scope: anyio.CancelScope | None = None

    # What a script uses.

    async def next(self, method=None):
        """The next message, or the next of this method."""
        while True:
            while self._inbox:
                message = self._inbox.pop(0)
                if method is None or message.get("method") == method:
                    return message
            self._heard = anyio.Event()
            await self._heard.wait()

    def write(self, data):
        self._outbox += data
        self._spoke.set()

    def say(self, message):
        self.write(encode({"jsonrpc": "2.0", **message}))

    def reply(self, request, result):
        self.say({"id": request["id"], "result": result})

    def fail(self, request, code, message, data=None):
        error = {"code": code, "message": message} | ({"data": data} if data else {})
        self.say({"id": request["id"], "error": error})

    def update(self, session_id, **update):
        params = {"sessionId": session_id, "update": update}
        self.say({"method": "session/update", "params": params})

    def text(self, session_id, text, message_id="m1"):
        chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        if message_id:
            chunk["messageId"] = message_id
        self.update(session_id, **chunk)

    def die(self, code=-9):
        self.exit = Exit(code)
        self._scope.cancel()

    # What the proxy uses.

    async def start(self):
        self._scope = anyio.CancelScope()

    async def tend(self):
        with self._scope:
            await self.play(self)
        self._over.set()
        self._spoke.set()
        self._heard.set()

    async def receive(self):
        while not self._outbox and not self._over.is_set():
            self._spoke = anyio.Event()
            await self._spoke.wait()
        if not self._outbox:
            return None
        data, self._outbox = bytes(self._outbox), bytearray()
        return self.spoken.feed(data)

    async def send(self, line):
        if self._over.is_set():
            raise WireError(RawFailure.exception(BrokenPipeError("gone"), delivery="not_sent"))
        for frame in self.reader.feed(line):
            if self.keeps:
                self.raw.append(frame.raw)
                self.sent.append(frame.value)
            self._inbox.append(frame.value)
        self._heard.set()

    async def ended(self):
        await self._over.wait()
        return self.exit

    def failure(self, *, delivery=None):
        return RawFailure.exit(-9 if self.killed else self.exit.code, delivery=delivery)

    async def close(self, grace_s):
        if not self._over.is_set():
            await self.kill()

    async def kill(self):
        self.killed = self.killed or not self._over.is_set()
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            await self._over.wait()

    def methods(self):
        return [message.get("method") for message in self.sent if message.get("method")]


@define(eq=False)
class Client:
    """The client's ends of the pipes."""

    stdin: int
    stdout: int
    lines: list = field(factory=list)
    """What the proxy sent, as bytes."""
    frames: list = field(factory=list)
    """What the proxy sent, as messages."""
    answers: dict = field(factory=dict)
    """By the JSON of the id; a second answer is an error."""
    _changed: anyio.Event = field(factory=anyio.Event)
    _next: int = 0

    def write(self, data):
        view = memoryview(data)
        while view:
            view = view[os.write(self.stdin, view[:60_000]) :]

    def send(self, message):
        self.write(encode({"jsonrpc": "2.0", **message}))

    def ask(self, method, params=None, number=None):
        """Send a request and give its id."""
        if number is None:
            self._next += 1
            number = self._next
        self.send({"id": number, "method": method, "params": params or {}})
        return number

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    reading: list = field(factory=lambda: [True])
    """Empty: it does not read until `resume`."""
    _resumed: anyio.Event = field(factory=anyio.Event)
    _left: anyio.CancelScope | None = None
    _source: Source = field(init=False)

    def __attrs_post_init__(self):
        self._source = Source(self.stdout)

    def resume(self):
        self._resumed.set()

    def stop_reading(self):
        """Close the end it reads from."""
        self._left.cancel()

    async def read(self):
        with anyio.CancelScope() as self._left:
            await self._read()
        self._source.close()

    async def _read(self):
        reader = FrameReader()
        while data := await self._source.read():
            if not self.reading:
                await self._resumed.wait()
            for frame in reader.feed(data):
                self.lines.append(frame.raw)
                self.frames.append(frame.value)
                message = frame.value
                if isinstance(message, dict) and "method" not in message and "id" in message:
                    key = json.dumps(message["id"])
                    assert key not in self.answers, f"{key} was answered twice"
                    self.answers[key] = message
            self._changed.set()
            self._changed = anyio.Event()

    async def answer(self, number):
        """The answer to a request."""
        key = json.dumps(number)
        await self.until(lambda: key in self.answers)
        return self.answers[key]

    async def until(self, condition):
        while not condition():
            await self._changed.wait()

    async def request(self, method, params=None):
        return await self.answer(self.ask(method, params))

    def prompt(self, session_id, text="hello", **more):
        block = {"type": "text", "text": text}
        return self.ask("session/prompt", {"sessionId": session_id, "prompt": [block], **more})

    async def hello(self, capabilities=None, version=1):
        params = {"protocolVersion": version, "clientCapabilities": capabilities or {}}
        return await self.request("initialize", params)

    async def new(self):
        answer = await self.request("session/new", {"cwd": "/project", "mcpServers": []})
        return answer["result"]["sessionId"]

    def records(self):
        """Every record, with what it travelled on."""
        seen = []
        for message in self.frames:
            for carrier, part in _parts(message):
                air = part.get("_meta", {}).get("jetbrains", {}).get("air", {})
                if "sessionFailure" in air:
                    seen.append((carrier, air["sessionFailure"]))
        return seen

    def texts(self):
        """The text of each chunk of the agent."""
        updates = [u for m in self.frames for c, u in _parts(m) if c == "update"]
        chunks = [u for u in updates if u.get("sessionUpdate") == "agent_message_chunk"]
        return [chunk["content"]["text"] for chunk in chunks]


def _parts(message):
    if isinstance(message.get("result"), dict):
        yield "response", message["result"]
    if message.get("method") == "session/update":
        yield "update", message["params"]["update"]


@define(eq=False)
class Stage:
    """The proxy, its client, and its agents in the order of their starts."""

    client: Client
    proxy: object
    orchestrator: object
    agents: list


@asynccontextmanager
async def staged(*wires, settings=None, log=None, agents=None, ended=None, **setup):
    """A proxy that runs beside the test; each start of the agent takes the next wire."""
    in_r, in_w = os.pipe()
    out_r, out_w = os.pipe()
    os.set_blocking(out_r, False)
    left = list(wires) if agents is None else agents
    made = Setup(
        COMMAND,
        settings or Settings(),
        stdin=in_r,
        stdout=out_w,
        spawn=lambda _: left.pop(0),
        seed=1,
        write=(lambda _: None) if log is None else log.append,
        **setup,
    )
    proxy, orchestrator = made.build()
    client = Client(in_w, out_r)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.read)
            async with proxy.upstream, orchestrator:

                async def serve():
                    await proxy.serve()
                    if ended is not None:
                        ended.set()

                tasks.start_soon(serve)
                yield Stage(client, proxy, orchestrator, list(wires))
            tasks.cancel_scope.cancel()
    finally:
        for fd in (in_r, in_w, out_w):
            with contextlib.suppress(OSError):
                os.close(fd)


def play(test, *arguments):
    """Run a test in virtual time."""
    return trio.run(test, *arguments, clock=trio.testing.MockClock(autojump_threshold=0))


async def greet(agent, *, session_id="s1", capabilities=None, typed=False, name="agent"):
    """What every script begins with: a handshake and a new session."""
    hello = await agent.next("initialize")
    result = {
        "protocolVersion": 1,
        "agentInfo": {"name": name, "version": "1"},
        "agentCapabilities": {"loadSession": True, **(capabilities or {})},
    }
    agent.reply(hello, {**result, **(AIR if typed else {})})
    new = await agent.next("session/new")
    agent.reply(new, {"sessionId": session_id})
