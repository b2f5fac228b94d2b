"""The proxy itself: every frame of either side to where it belongs.

Frames are dealt with in the order of their arrival.  Whatever the proxy does not have to decide
passes as it came; what takes time is a task of its own, and the reader goes on once the frame has
its place in the agent's line.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from orchestrator.acp.agent import SessionFailedError
from orchestrator.acp.connection import Connection, Reply
from orchestrator.acp.framing import Frame, encode
from orchestrator.acp.proxy.conversation import Conversation
from orchestrator.acp.proxy.ending import failure_line, mistake_line
from orchestrator.acp.proxy.frames import line_of, renumbered, session_of
from orchestrator.acp.proxy.once import Once
from orchestrator.acp.proxy.peer import Peer
from orchestrator.acp.proxy.questions import Questions
from orchestrator.acp.proxy.requests import Pending, Requests
from orchestrator.acp.proxy.sessions import Sessions
from orchestrator.acp.proxy.turns import Turns
from orchestrator.acp.proxy.upstream import Upstream
from orchestrator.acp.runtime import StartFailedError
from orchestrator.failure.verdict import Phase
from orchestrator.incident import extension


@define(eq=False, repr=False)
class Proxy:
    """One client and one agent."""

    peer: Peer
    upstream: Upstream
    sessions: Sessions
    turns: Turns
    say: Callable[[str], None] = field(default=lambda _: None)
    requests: Requests = field(factory=Requests)
    questions: Questions = field(init=False)
    _waiting: deque[Frame] = field(factory=deque)
    """Requests that need the agent back first, in order."""
    _tasks: TaskGroup = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.questions = Questions(self.upstream.id_prefix)
        self.upstream.relay = self.from_agent
        self.upstream.on_lost = self._lost
        self.upstream.before_read = self._before_read
        self.upstream.after_read = self.peer.wire.hold

    async def serve(self) -> None:
        """Relay until the client is gone."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self.peer.wire.tend)
            tasks.start_soon(self._read)
            try:
                await self.peer.wire.left.wait()
            finally:  # an agent's reader that waits for a slow client would never see its end
                self.peer.wire.leave()
            tasks.cancel_scope.cancel()

    async def _read(self) -> None:
        while (frames := await self.peer.wire.receive()) is not None:
            for frame in frames:
                await self.from_client(frame)
        self.peer.wire.leave()

    # --- from the client -------------------------------------------------------------------------

    async def from_client(self, frame: Frame) -> None:
        """One frame of the client, in its place."""
        message = frame.message
        method = message.get("method")
        if not isinstance(method, str):
            self._answer_of_client(frame)
            return
        handle = _FROM_CLIENT.get((method, "id" in message))
        if handle is None or not (self.upstream.drives and await handle(self, frame)):
            await self._pass(frame)

    def _answer_of_client(self, frame: Frame) -> None:
        lane = self.upstream.lane
        if "id" not in frame.message:
            line: bytes | None = line_of(frame)
        else:
            line = self.questions.answer(frame)
        if lane is not None and line is not None:
            lane.post(line)

    async def _pass(self, frame: Frame) -> None:
        """Hand a frame on, in order; a request that finds no agent waits until there is one."""
        conversation = self.sessions.find(frame.message)
        is_up = self.upstream.alive if conversation is None else conversation.is_open
        if is_up and not self._waiting:
            await self._hand_on(frame, conversation)
        elif "id" in frame.message:
            self._waiting.append(frame)
            if len(self._waiting) == 1:
                self._tasks.start_soon(self._revive)

    async def _hand_on(self, frame: Frame, conversation: Conversation | None) -> None:
        lane = self.upstream.lane
        if lane is None:
            return
        if "id" in frame.message:
            show = line_of if conversation is None else conversation.to_client
            hook = self.sessions.hook(frame)
            number, method = frame.message["id"], str(frame.message["method"])
            self.requests.add(Pending(number, method, show, hook))
        lane.post(line_of(frame) if conversation is None else conversation.to_agent(frame))
        if lane.full:
            await lane.drained()

    async def _revive(self) -> None:
        """Bring the agent back for the requests that wait for it."""
        while self._waiting:
            frame = self._waiting[0]
            conversation = self.sessions.find(frame.message)
            try:
                opened = self.upstream.ready() if conversation is None else conversation.open()
                connection = await opened
                if connection.lost:
                    self._answer_for_the_dead(frame.message.get("id"), connection)
                else:
                    await self._hand_on(frame, conversation)
            except (StartFailedError, SessionFailedError) as error:
                self.peer.post(failure_line(frame.message.get("id"), error.verdict))
            except Exception as error:  # noqa: BLE001 - told to the client and to the log
                self.peer.post(mistake_line(frame.message.get("id"), error))
            self._waiting.popleft()

    # --- what is decided -------------------------------------------------------------------------

    async def _initialize(self, frame: Frame) -> bool:
        self.peer.greeted(frame)
        self.upstream.hello = frame
        if self.upstream.alive:
            return False
        answer = Once(self.peer.post)

        def greet(reply: Reply) -> None:
            answer(self._greeting(frame, reply))

        # Set before anything else can start the agent: whoever does, the answer is this one's.
        self.upstream.on_hello = greet
        self._tasks.start_soon(self._start, frame, answer, greet)
        return True

    async def _start(
        self, frame: Frame, answer: Once[bytes], greet: Callable[[Reply], None]
    ) -> None:
        failed: StartFailedError | None = None
        try:
            await self.upstream.ready()
        except StartFailedError as error:
            failed = error
        if self.upstream.on_hello is greet:
            self.upstream.on_hello = None  # it is answered below, and by no later start
        if failed is not None:
            self.say(f"the agent did not start: {failed.verdict.title}")
            answer(failure_line(frame.message.get("id"), failed.verdict))
        elif not answer.done:
            # Another one was greeted with meanwhile: the agent answers this one too.
            await self._pass(frame)

    def _greeting(self, asked: Frame, reply: Reply) -> bytes:
        """The agent's answer to `initialize`, naming what we add for a client that reads it."""
        frame, number = reply.frame, asked.message.get("id")
        assert frame is not None  # noqa: S101 - it came over a wire
        adds = self.peer.capable and extension.whole(reply.fields.get("protocolVersion")) == 1
        if not adds or extension.negotiated(reply.fields):
            return renumbered(frame, number)
        result = extension.advertise(self.peer.declared, reply.fields)
        return encode({**frame.message, "id": number, "result": result})

    async def _open(self, frame: Frame) -> bool:
        await self._tasks.start(self.sessions.open, frame)
        return True

    async def _load(self, frame: Frame) -> bool:
        params = frame.message.get("params")
        session_id = params.get("sessionId") if isinstance(params, dict) else None
        if not isinstance(session_id, str) or not session_id.strip():
            return False
        await self._tasks.start(self.sessions.load, frame)
        return True

    async def _prompt(self, frame: Frame) -> bool:
        conversation = self.sessions.find(frame.message)
        if conversation is None or not _is_prompt(frame.message["params"].get("prompt")):
            return False
        await self._tasks.start(self.turns.prompt, conversation, frame)
        return True

    async def _cancel(self, frame: Frame) -> bool:
        conversation = self.sessions.find(frame.message)
        return conversation is not None and self.turns.stop(conversation)

    async def _cancel_request(self, frame: Frame) -> bool:
        params = frame.message.get("params")
        number = params.get("requestId") if isinstance(params, dict) else None
        return number is not None and self.turns.stop_prompt(number)

    # --- from the agent --------------------------------------------------------------------------

    def from_agent(self, frame: Frame) -> bool:
        """One frame that answers no request of ours; False leaves it to the runtime."""
        message = frame.message
        if not isinstance(message.get("method"), str):
            self._answer_of_agent(frame)
            return True
        session_id = session_of(message)
        ear = self.upstream.ear(session_id) if session_id else None
        if isinstance(ear, Conversation):
            if "id" in message:
                self._ask(frame, ear)
            else:
                ear.hear(frame)
            return True
        if ear is not None or self.upstream.is_disowned(session_id):
            return False
        if "id" in message:
            self._ask(frame, None)
        elif not (session_id and self.upstream.park(frame)):
            self.peer.post(line_of(frame))
        return True

    def _ask(self, frame: Frame, conversation: Conversation | None) -> None:
        watch = None if conversation is None else conversation.watch
        asked = self.questions.ask(frame, watch)
        self.peer.post(line_of(asked) if conversation is None else conversation.to_client(asked))

    def _answer_of_agent(self, frame: Frame) -> None:
        # What has an id and no method is an answer, however malformed.
        line = self.requests.answer(frame) if "id" in frame.message else line_of(frame)
        if line is not None:
            self.peer.post(line)

    def _lost(self) -> None:
        """A process of the agent is gone: what it was asked, and what it asked, is void."""
        self.peer.wire.let_go()
        self.questions.void()
        connection = self.upstream.connection
        if connection is None:
            return
        if not self.upstream.parting:
            self.say("the agent has ended by itself; what needs it next starts it again")
        for request in self.requests.take_all():
            self._answer_for_the_dead(request.number, connection)

    def _answer_for_the_dead(self, number: object, connection: Connection) -> None:
        verdict = self.upstream.understand(connection.wire.failure(), Phase.IDLE)
        self.peer.post(failure_line(number, verdict))

    async def _before_read(self) -> None:
        """What the last read brought is written; a client that reads slowly stops the clocks."""
        wire = self.peer.wire
        wire.let_go()
        if wire.full:
            watches = [c.watch for c in self.sessions.known.values() if c.watch is not None]
            for watch in watches:
                watch.question(is_open=True)
            await wire.drained()
            for watch in watches:
                watch.question(is_open=False)


def _is_prompt(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(block, dict) for block in value)


_FROM_CLIENT: Final[Mapping[tuple[str, bool], Callable[[Proxy, Frame], Awaitable[bool]]]] = {
    ("initialize", True): Proxy._initialize,  # noqa: SLF001 - the table of this class
    ("session/new", True): Proxy._open,  # noqa: SLF001
    ("session/fork", True): Proxy._open,  # noqa: SLF001
    ("session/load", True): Proxy._load,  # noqa: SLF001
    ("session/resume", True): Proxy._load,  # noqa: SLF001
    ("session/prompt", True): Proxy._prompt,  # noqa: SLF001
    ("session/cancel", False): Proxy._cancel,  # noqa: SLF001
    ("$/cancel_request", False): Proxy._cancel_request,  # noqa: SLF001
}
"""Method, and whether it is a request, to what decides about it; False lets the frame pass."""
