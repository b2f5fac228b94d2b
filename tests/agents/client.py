"""A small client that drives an agent over stdio and writes down everything it sees."""

import asyncio
import contextlib
import json
import os
import signal
import time
import uuid
from collections import Counter

import psutil
from attrs import define, field, frozen

from orchestrator.incident import extension

_MARK = "TURN_ORCHESTRATOR_TEST"
_LINE_BYTES = 64 * 1024 * 1024
_LEAVE_S = 30
"""How long an agent, or the proxy and its agent, may take to leave after the end of its input; both
are quick, a busy machine is not."""


@frozen
class Seen:
    """One frame from the agent's side."""

    at: float
    """Monotonic seconds."""
    frame: dict


@frozen
class Shown:
    """One revision of an incident, as the client got it."""

    id: str
    revision: int
    severity: str
    title: str
    category: str
    actions: tuple
    on_answer: bool


@define(eq=False)
class Client:
    """One connection.  Use as an async context manager."""

    command: list
    env: dict
    folder: str
    capable: bool = False
    """Reads failures as records."""
    choose: object = None
    """Given the options of a permission request, the id of the chosen one; None declines."""
    seen: list = field(factory=list)
    answers: Counter = field(factory=Counter)
    """Request id to how often it was answered."""
    questions: list = field(factory=list)
    """Requests of the agent."""
    not_json: int = 0
    log: list = field(factory=list)
    """Lines of standard error."""
    process: asyncio.subprocess.Process | None = None
    mark: str = field(factory=lambda: uuid.uuid4().hex)
    _arrived: asyncio.Condition = field(factory=asyncio.Condition)
    _over: bool = False
    """The agent's output has ended."""
    _next: int = 0
    _waiting: dict = field(factory=dict)
    _tasks: list = field(factory=list)

    async def __aenter__(self):
        self.process = await asyncio.create_subprocess_exec(
            *self.command,
            env={**self.env, _MARK: self.mark},
            cwd=self.folder,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=_LINE_BYTES,
        )
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._read_log())]
        return self

    async def __aexit__(self, *_):
        await self.close()

    # --- asking ----------------------------------------------------------------------------------

    def ask(self, method, params):
        """Send a request; the future gives its answer, or None when the agent is gone."""
        self._next += 1
        future = asyncio.get_running_loop().create_future()
        self._waiting[self._next] = future
        if self._over:
            future.set_result(None)
        self._send({"id": self._next, "method": method, "params": params})
        return future

    def tell(self, method, params):
        self._send({"method": method, "params": params})

    async def initialize(self):
        capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        if self.capable:
            capabilities = extension.declare(capabilities)
        info = {"name": "recording-client", "version": "1"}
        params = {
            "protocolVersion": 1,
            "clientCapabilities": capabilities,
            "clientInfo": info,
        }
        return await self.ask("initialize", params)

    async def new_session(self):
        reply = await self.ask("session/new", {"cwd": self.folder, "mcpServers": []})
        assert "result" in (reply or {}), (reply, self.log[-20:])
        return reply["result"]["sessionId"]

    def prompt(self, session, text):
        content = [{"type": "text", "text": text}]
        return self.ask("session/prompt", {"sessionId": session, "prompt": content})

    # --- what was seen ---------------------------------------------------------------------------

    @property
    def asked(self):
        """Requests sent; their ids are 1 up to this."""
        return self._next

    async def until(self, seen):
        """Wait for the frame, or the line of the log, that makes this true."""
        async with self._arrived:
            await self._arrived.wait_for(seen)

    @property
    def texts(self):
        """Every chunk of the agent's message, in order."""
        return texts_in(seen.frame for seen in self.seen)

    @property
    def text(self):
        return "".join(self.texts)

    @property
    def records(self):
        """Every revision of every incident, in order."""
        shown = []
        for seen in self.seen:
            found = extension.find_in_frame(seen.frame)
            if found is None:
                continue
            record = found.content.record
            shown.append(
                Shown(
                    record.id,
                    record.revision,
                    str(record.severity),
                    record.title,
                    str(record.category),
                    tuple(str(action) for action in record.actions),
                    found.carrier == "response",
                )
            )
        return shown

    # --- processes -------------------------------------------------------------------------------

    def running(self):
        """Every process that came from this connection, whoever its parent is by now."""
        return [process for process in psutil.process_iter() if self._is_ours(process)]

    def _is_ours(self, process):
        with contextlib.suppress(psutil.Error, OSError):
            ours = process.environ().get(_MARK) == self.mark
            return ours and process.status() != psutil.STATUS_ZOMBIE
        return False

    async def close(self):
        """End the input and wait; whoever stays is killed, and counted by `running` before."""
        if not self.process.stdin.is_closing():
            self.process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), _LEAVE_S)

    async def clear(self):
        """Kill whoever is left; returns how many there were."""
        left = self.running()
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), _LEAVE_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return [process.pid for process in left]

    # --- the wire --------------------------------------------------------------------------------

    def _send(self, message):
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        with contextlib.suppress(ConnectionError, RuntimeError):
            self.process.stdin.write(line)

    async def _read(self):
        while line := await self.process.stdout.readline():
            try:
                frame = json.loads(line)
            except ValueError:
                self.not_json += 1
                continue
            self.seen.append(Seen(time.monotonic(), frame))
            self._take(frame)
            async with self._arrived:
                self._arrived.notify_all()
        self._over = True
        for future in self._waiting.values():
            if not future.done():
                future.set_result(None)

    def _take(self, frame):
        if "method" not in frame:
            self.answers[frame.get("id")] += 1
            future = self._waiting.get(frame.get("id"))
            if future is not None and not future.done():
                future.set_result(frame)
        elif "id" in frame:
            self.questions.append(frame)
            self._reply(frame)

    def _reply(self, frame):
        if frame["method"] != "session/request_permission":
            error = {"code": -32601, "message": "Method not found"}
            self._send({"id": frame["id"], "error": error})
            return
        chosen = self.choose and self.choose(frame["params"]["options"])
        outcome = {"outcome": "selected", "optionId": chosen} if chosen else None
        self._send({"id": frame["id"], "result": {"outcome": outcome or {"outcome": "cancelled"}}})

    async def _read_log(self):
        while line := await self.process.stderr.readline():
            self.log.append(line.decode(errors="replace").rstrip("\n"))
            async with self._arrived:
                self._arrived.notify_all()


def texts_in(frames):
    """The chunks of an agent's message in these frames."""
    updates = [frame.get("params", {}).get("update", {}) for frame in frames]
    chunks = [u for u in updates if u.get("sessionUpdate") == "agent_message_chunk"]
    return [chunk["content"].get("text", "") for chunk in chunks]


def kill(process):
    """kill -9, as an out-of-memory killer does it."""
    os.kill(process.pid, signal.SIGKILL)
