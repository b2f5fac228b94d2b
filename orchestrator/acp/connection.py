"""A JSON-RPC peer over one agent's wire: requests out, answers, notifications and questions in.

Frames are handled in the order of their arrival, in the read loop itself, so that everything an
agent sent before its answer has been seen when the answer is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Protocol

import anyio
from anyio.abc import TaskGroup
from attrs import define, field, frozen

from orchestrator.acp.framing import Frame, encode
from orchestrator.acp.process import Exit, WireError
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Delivery

METHOD_NOT_FOUND: Final = -32601
_END_S: Final = 1.0
"""From the end of an agent's output to its own end."""


class Wire(Protocol):
    """What carries frames to and from one agent: its process, or a test's stand-in."""

    async def start(self) -> None: ...
    async def tend(self) -> None: ...
    async def receive(self) -> Iterable[Frame] | None: ...
    async def send(self, line: bytes) -> None: ...
    async def ended(self) -> Exit: ...
    def failure(self, *, delivery: Delivery | None = None) -> RawFailure: ...
    async def close(self, grace_s: float) -> None: ...
    async def kill(self) -> None: ...


@frozen
class Reply:
    """How a request was answered: with a result, or with a JSON-RPC error."""

    result: Any = None
    error: dict[str, Any] | None = None
    frame: Frame | None = field(default=None, eq=False)
    """The answer as it came, for whoever relays it."""

    @property
    def fields(self) -> dict[str, Any]:
        """The result, where it is an object."""
        return self.result if isinstance(self.result, dict) else {}

    def raw(self) -> RawFailure:
        """The error, for the classifier."""
        error = self.error or {}
        return RawFailure.acp_error(error.get("code"), error.get("message"), error.get("data"))


@define(eq=False)
class Call:
    """One request in flight."""

    method: str
    reply: Reply | None = None
    lost: RawFailure | None = None
    """The wire ended before an answer came."""
    on_reply: Callable[[Reply], None] | None = None
    """Told of the answer in its place among the other frames, also when nobody waits any more."""
    _answered: anyio.Event = field(factory=anyio.Event)

    async def wait(self) -> Reply:
        """Wait for the answer.  Raises WireError when the agent is gone."""
        await self._answered.wait()
        if self.reply is None:
            raise WireError(self.lost or RawFailure.exit())
        return self.reply

    async def within(self, seconds: float) -> Reply:
        """Wait for the answer for so long (0: for ever).  Raises TimeoutError too."""
        with anyio.fail_after(seconds or None):
            return await self.wait()

    @property
    def done(self) -> bool:
        return self._answered.is_set()

    def settle(self, reply: Reply | None, lost: RawFailure | None = None) -> None:
        self.reply, self.lost = reply, lost
        self._answered.set()
        if reply is not None and self.on_reply is not None:
            self.on_reply(reply)


def _id(message: dict[str, Any]) -> int | str | None:
    """The id of a request or an answer, spelled one way; None for what can be no id."""
    number = message.get("id")
    if isinstance(number, float) and number.is_integer():
        return int(number)
    if isinstance(number, int | str) and not isinstance(number, bool):
        return number
    return None


class Unanswered:
    """What a handler returns for a method it does not know."""


UNANSWERED: Final = Unanswered()
Answerer = Callable[[str, dict[str, Any]], Awaitable[Any]]


@define(eq=False)
class Connection:
    """One agent's wire in use.  Keep `serve` running beside the requests."""

    wire: Wire
    on_notification: Callable[[str, dict[str, Any]], None]
    answer: Answerer
    """Answers the agent's own requests; `UNANSWERED` means that the method is not known here."""
    on_question: Callable[[dict[str, Any]], None] = field(default=lambda _: None)
    """Told of each of the agent's requests as it arrives, before it is answered."""
    relay: Callable[[Frame], bool] = field(default=lambda _: False)
    """Offered every frame that answers none of our requests; True means that it dealt with it."""
    id_prefix: str = ""
    """Makes our ids text that starts with this, on a wire where somebody else asks too."""
    lost: bool = False
    on_lost: Callable[[], None] = field(default=lambda: None)
    """Told when nothing more can come."""
    over: anyio.Event = field(factory=anyio.Event)
    """Set when `serve` has ended."""
    _next_id: int = 1
    _calls: dict[int | str, Call] = field(factory=dict)
    _tasks: TaskGroup | None = None

    async def serve(self) -> None:
        """Read until the agent is gone; then every open request is lost."""
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                tasks.start_soon(self.wire.tend)
                while (frames := await self.wire.receive()) is not None:
                    for frame in frames:
                        self._take(frame)
                # An agent that closed its output will never answer: the rest of it goes too, once
                # it had the time to end by itself and so to say how.
                await self.wire.close(_END_S)
                await self.wire.ended()
                tasks.cancel_scope.cancel()
        finally:
            self._lose_all()
            self.over.set()

    def _take(self, frame: Frame) -> None:
        message = frame.message
        method = message.get("method")
        if not isinstance(method, str):
            if not self._take_answer(frame):
                self.relay(frame)
            return
        if self.relay(frame):
            return
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        number = _id(message)
        if number is not None:
            self.on_question(message)
            assert self._tasks is not None  # noqa: S101 - only `serve` calls this
            self._tasks.start_soon(self._answer, number, method, params)
        elif "id" not in message:  # else nobody could tell what was answered
            self.on_notification(method, params)

    def _take_answer(self, frame: Frame) -> bool:
        """Settle the request that this answers; False when it was answered already, or not ours."""
        message = frame.message
        number = _id(message)
        call = None if number is None else self._calls.pop(number, None)
        if call is None:
            return False
        error = message.get("error")
        if error is None:
            call.settle(Reply(message.get("result"), frame=frame))
        else:
            told = error if isinstance(error, dict) else {"message": str(error)}
            call.settle(Reply(error=told, frame=frame))
        return True

    async def _answer(self, number: int | str, method: str, params: dict[str, Any]) -> None:
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": number}
        result = await self.answer(method, params)
        if result is UNANSWERED:
            text = f"{method} is not offered by this client"
            answer["error"] = {"code": METHOD_NOT_FOUND, "message": text}
        else:
            answer["result"] = result
        try:
            await self.wire.send(encode(answer))
        except WireError:
            return  # the agent died with its question open; its end is told elsewhere

    def _lose_all(self) -> None:
        self.lost = True
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.settle(None, self.wire.failure(delivery=Delivery.SENT))
        self.on_lost()

    async def call(
        self,
        method: str,
        params: dict[str, Any],
        *,
        line: Callable[[int | str], bytes] | None = None,
        on_reply: Callable[[Reply], None] | None = None,
    ) -> Call:
        """Send a request.  Raises WireError when it could not be written.

        `line` writes the request as bytes of its own, under the id it is given.
        """
        if self.lost:
            raise WireError(self.wire.failure(delivery=Delivery.NOT_SENT))
        number: int | str = self._next_id
        if self.id_prefix:
            number = f"{self.id_prefix}{number}"
        self._next_id += 1
        call = self._calls[number] = Call(method, on_reply=on_reply)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        try:
            await self.wire.send(encode(message) if line is None else line(number))
        except WireError:
            self._calls.pop(number, None)
            raise
        return call

    async def request(
        self,
        method: str,
        params: dict[str, Any],
        *,
        timeout_s: float = 0,
        on_late: Callable[[Reply], None] | None = None,
        line: Callable[[int | str], bytes] | None = None,
        on_reply: Callable[[Reply], None] | None = None,
    ) -> Reply:
        """Send a request and wait.  Raises WireError, or TimeoutError after `timeout_s` (0: never).

        An answer in time also goes to `on_reply`, in its place among the frames; one that misses
        its budget goes to `on_late`.
        """
        call = await self.call(method, params, line=line, on_reply=on_reply)
        try:
            return await call.within(timeout_s)
        finally:
            if not call.done:
                call.on_reply = on_late

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification.  Raises WireError when it could not be written."""
        await self.wire.send(encode({"jsonrpc": "2.0", "method": method, "params": params}))
