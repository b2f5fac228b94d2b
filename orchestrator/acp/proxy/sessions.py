"""The client's sessions: opened, loaded, set and closed by its own requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from anyio.abc import TaskStatus
from attrs import define, field

from orchestrator.acp.connection import Call, Connection, Reply
from orchestrator.acp.framing import Frame
from orchestrator.acp.memory import Memory
from orchestrator.acp.options import Options
from orchestrator.acp.process import WireError
from orchestrator.acp.proxy.conversation import DIALS, Conversation
from orchestrator.acp.proxy.ending import failure_line, mistake_line
from orchestrator.acp.proxy.frames import moved, readdressed, reframed, renumbered
from orchestrator.acp.proxy.once import Once
from orchestrator.acp.proxy.peer import Peer
from orchestrator.acp.proxy.reload import Reload
from orchestrator.acp.proxy.store import Kept, Store
from orchestrator.acp.proxy.upstream import Upstream
from orchestrator.acp.runtime import StartFailedError
from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Phase, Verdict

_HISTORY: Final = "session/load"
"""Opens a session and tells its history; `session/resume` does not."""


@define(eq=False, repr=False)
class Sessions:
    """All sessions of one client, by the id it knows them by."""

    peer: Peer
    upstream: Upstream
    store: Store
    on_options: Callable[[Conversation, Options], None] = field(default=lambda _, __: None)
    on_closed: Callable[[Conversation], None] = field(default=lambda _: None)
    say: Callable[[str], None] = field(default=lambda _: None)
    """Writes a line of the log."""
    known: dict[str, Conversation] = field(factory=dict)

    def find(self, message: Mapping[str, Any]) -> Conversation | None:
        """The session that a message of the client names."""
        params = message.get("params")
        session_id = params.get("sessionId") if isinstance(params, dict) else None
        return self.known.get(session_id) if isinstance(session_id, str) else None

    # --- opening ---------------------------------------------------------------------------------

    async def open(self, frame: Frame, *, task_status: TaskStatus[None]) -> None:
        """`session/new`, or a fork of a session: the answer names the new one."""
        source = self.find(frame.message)
        addressed = frame if source is None else _addressed(frame, source.session_id)
        await self._ask(addressed, partial(self._opened, frame), task_status)

    async def load(self, frame: Frame, *, task_status: TaskStatus[None]) -> None:
        """`session/load` or `session/resume`: the client names a session it knows."""
        client_id = frame.message["params"]["sessionId"]
        conversation = self.known.get(client_id)
        is_new = conversation is None
        if conversation is None:
            conversation = self._conversation(client_id, frame, self.store.load(client_id))
            self.upstream.attach(conversation.session_id, conversation)
        conversation.place = _place(frame)
        if frame.message["method"] == _HISTORY:
            conversation.memory = Memory()
            conversation.reload = self._reload(conversation)
        addressed = _addressed(frame, conversation.session_id)
        answered = partial(self._loaded, frame, conversation, is_new=is_new)
        try:
            await self._ask(addressed, answered, task_status)
        finally:
            conversation.reload = None

    async def _ask(
        self, frame: Frame, on_reply: Callable[[Reply], None], task_status: TaskStatus[None]
    ) -> None:
        """Ask the agent on the client's behalf, within the budget of a session's opening.

        The task has started, for the client's next frame, as soon as the request stands in line.
        """
        number, method = frame.message.get("id"), str(frame.message["method"])
        sent = Once(task_status.started)
        if not self.upstream.alive:
            sent()

        def line(own: int | str) -> bytes:
            sent()
            return renumbered(frame, own)

        try:
            connection = await self.upstream.ready()
            call = await connection.call(method, {}, line=line, on_reply=on_reply)
            if not await self._in_time(call):
                call.on_reply = partial(self._too_late, connection)
                self.peer.post(failure_line(number, self._overdue()))
        except StartFailedError as error:
            self.peer.post(failure_line(number, error.verdict))
        except WireError as error:
            verdict = self.upstream.understand(error.raw, Phase.LOAD)
            self.peer.post(failure_line(number, verdict))
        except Exception as error:  # noqa: BLE001 - told to the client and to the log
            self.peer.post(mistake_line(number, error))
        finally:
            sent()

    async def _in_time(self, call: Call) -> bool:
        try:
            await call.within(self.upstream.watchdogs.session_s)
        except TimeoutError:
            return call.done
        return True

    def _overdue(self) -> Verdict:
        budget_s = self.upstream.watchdogs.session_s
        text = f"{self.upstream.name} did not open a session within {budget_s:g} s."
        return Verdict.of(Kind.AGENT_START_TIMEOUT, text)

    def _too_late(self, connection: Connection, reply: Reply) -> None:
        self.say("a session was opened too late and is closed again")
        self.upstream.close_late(connection, reply.fields.get("sessionId"))

    def _opened(self, asked: Frame, reply: Reply) -> None:
        session_id = reply.fields.get("sessionId")
        if reply.error is None and isinstance(session_id, str) and session_id:
            conversation = self.known.get(session_id)
            if conversation is None or not conversation.prompts:
                conversation = self._conversation(session_id, asked, Kept())
            # else the agent gave an id twice: what runs under it still gets its answer
            conversation.opened_by_client(reply)
        self._answer(asked, reply)

    def _loaded(
        self,
        asked: Frame,
        conversation: Conversation,
        reply: Reply,
        *,
        is_new: bool,
    ) -> None:
        conversation.reload = None
        if reply.error is None:
            conversation.opened_by_client(reply, loaded=True)
        elif is_new:
            self._forget(conversation)
        self._answer(asked, reply, conversation)

    def _answer(self, asked: Frame, reply: Reply, conversation: Conversation | None = None) -> None:
        assert reply.frame is not None  # noqa: S101 - it came over a wire
        frame = reply.frame
        if conversation is not None:
            frame = Frame(
                conversation.to_client(frame), moved(frame.message, conversation.client_id)
            )
        self.peer.post(renumbered(frame, asked.message.get("id")))

    def _conversation(self, client_id: str, frame: Frame, kept: Kept) -> Conversation:
        conversation = Conversation(
            runtime=self.upstream,
            session_id=kept.native or client_id,
            client_id=client_id,
            send=self.peer.post,
            capable=lambda: self.peer.capable,
            kept=kept,
            place=_place(frame),
        )
        conversation.on_options = partial(self.on_options, conversation)
        conversation.on_moved = partial(self._moved, conversation)
        self.known[client_id] = conversation
        return conversation

    def _reload(self, conversation: Conversation) -> Reload:
        return Reload(
            conversation.client_id,
            self.peer.capable,
            self.upstream.speaker,
            conversation.kept.incidents,
            conversation.memory,
        )

    # --- what becomes of them --------------------------------------------------------------------

    def hook(self, frame: Frame) -> Callable[[Reply], None] | None:
        """What to keep in mind when this request of the client's has worked."""
        conversation, method = self.find(frame.message), frame.message["method"]
        params = frame.message.get("params")
        if not isinstance(params, dict):
            return None
        if method == "authenticate":
            return partial(self._signed_in, params)
        if conversation is None:
            return None
        remember = _REMEMBER.get(method)
        return None if remember is None else partial(remember, self, conversation, params)

    def save(self, conversation: Conversation) -> None:
        """Keep what a reload will need."""
        kept = conversation.kept
        native = conversation.session_id if conversation.translated else ""
        if native == kept.native and not kept.incidents.changed:
            return
        kept.native = native
        if not self.store.save(conversation.client_id, kept):
            self.say("the state folder can't be written: a reload will tell incidents anew")

    def _moved(self, conversation: Conversation) -> None:
        self.say(f"[{conversation.client_id[:8]}] goes on in a new session of the agent")
        self.save(conversation)

    def _signed_in(self, params: dict[str, Any], _: Reply) -> None:
        self.upstream.credentials = params

    def _dialled(self, conversation: Conversation, params: dict[str, Any], method: str) -> None:
        conversation.dials[method] = params.get(DIALS[method].param)

    def _mode(self, conversation: Conversation, params: dict[str, Any], _: Reply) -> None:
        self._dialled(conversation, params, "session/set_mode")

    def _model(self, conversation: Conversation, params: dict[str, Any], _: Reply) -> None:
        self._dialled(conversation, params, "session/set_model")

    def _option(self, conversation: Conversation, params: dict[str, Any], reply: Reply) -> None:
        option_id = params.get("configId")
        if isinstance(option_id, str):
            conversation.options.chosen[option_id] = params.get("value")
        conversation.learn(reply.fields)

    def _closed(self, conversation: Conversation, _: dict[str, Any], __: Reply) -> None:
        self._forget(conversation)
        self.on_closed(conversation)

    def _forget(self, conversation: Conversation) -> None:
        self.known.pop(conversation.client_id, None)
        self.upstream.detach(conversation.session_id)


_REMEMBER: Final[Mapping[str, Callable[[Sessions, Conversation, dict[str, Any], Reply], None]]] = {
    "session/set_mode": Sessions._mode,  # noqa: SLF001 - the table of this class
    "session/set_model": Sessions._model,  # noqa: SLF001
    "session/set_config_option": Sessions._option,  # noqa: SLF001
    "session/close": Sessions._closed,  # noqa: SLF001
    "session/delete": Sessions._closed,  # noqa: SLF001
}


def _addressed(frame: Frame, session_id: str) -> Frame:
    if frame.message["params"].get("sessionId") == session_id:
        return frame
    return reframed(readdressed(frame, session_id), moved(frame.message, session_id))


def _place(frame: Frame) -> dict[str, Any]:
    """What says where a session lives: all that opened it but its id."""
    params = frame.message.get("params")
    params = params if isinstance(params, dict) else {}
    return {name: value for name, value in params.items() if name != "sessionId"}
