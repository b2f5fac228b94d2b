"""One agent's process and what is known about it, for as many sessions as it serves.

The process is started at the first need and again after it died.  Each start has a `generation`:
a session that was opened in an older one has to be loaded again before it is of use.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Final, Protocol, Self

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from orchestrator.acp.connection import (
    METHOD_NOT_FOUND,
    UNANSWERED,
    Connection,
    Reply,
    Wire,
)
from orchestrator.acp.intake import Voice
from orchestrator.acp.permission import answer_permission
from orchestrator.acp.process import AgentProcess, Command, WireError
from orchestrator.acp.starts import StartRefusals
from orchestrator.failure.classify import classify
from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Context, Phase, Verdict
from orchestrator.incident import extension
from orchestrator.settings.model import Watchdogs
from orchestrator.version import __version__

PROTOCOL_VERSION: Final = 1
WRITE_STALL_S: Final = 30.0
"""A write without progress for this long means that the agent no longer reads."""
_GOODBYE_S: Final = 3.0
"""What an agent gets to end by itself; codex takes two seconds."""


class StartFailedError(Exception):
    """The agent could not be started, or not be spoken to."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.title)
        self.verdict = verdict


class SessionEar(Protocol):
    """Who listens to one session of the agent."""

    def on_update(self, update: dict[str, Any]) -> None: ...
    def on_notification(self, method: str, params: dict[str, Any]) -> None: ...
    def on_question(self, *, is_open: bool) -> None:
        """The agent asked the user something, or got its answer."""
        ...


@define(eq=False)
class Runtime:
    """An agent's process, as an async context manager: at its end the whole tree is gone."""

    command: Command
    watchdogs: Watchdogs = field(factory=Watchdogs)
    allow_tools: bool = False
    """Answer permission requests with yes; otherwise with no."""
    refusals: StartRefusals = field(factory=StartRefusals)
    spawn: Callable[[Command], Wire] = field(
        default=lambda command: AgentProcess(command, WRITE_STALL_S)
    )
    wall: Callable[[], float] = time.time
    generation: int = 0
    late_answers: int = 0
    """Answers that came after their budget: each was closed again and never used."""
    about: dict[str, Any] = field(factory=dict)
    """The agent's answer to `initialize`."""
    _connection: Connection | None = None
    _ears: dict[str, SessionEar] = field(factory=dict)
    _starting: anyio.Lock = field(factory=anyio.Lock)
    _tasks: TaskGroup | None = None
    _stack: AsyncExitStack = field(factory=AsyncExitStack)

    async def __aenter__(self) -> Self:
        self._tasks = await self._stack.enter_async_context(anyio.create_task_group())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        with anyio.CancelScope(shield=True):
            await self.close()
        return await self._stack.__aexit__(kind, error, trace)

    # --- what the agent said about itself --------------------------------------------------------

    @property
    def name(self) -> str:
        """The agent's own name for people, else its program's."""
        info = self.about.get("agentInfo")
        info = info if isinstance(info, dict) else {}
        told = info.get("title") or info.get("name")
        return told if isinstance(told, str) and told.strip() else self.command.name

    @property
    def speaker(self) -> str:
        """Its name as the classifier knows it: the package's, without its scope."""
        info = self.about.get("agentInfo")
        name = info.get("name") if isinstance(info, dict) else None
        return name.rpartition("/")[2].lower() if isinstance(name, str) else ""

    @property
    def voice(self) -> Voice:
        return Voice(self.speaker, typed=extension.negotiated(self.about))

    def can(self, *path: str) -> bool:
        """Whether it advertised a capability: an object or true at this path."""
        value: Any = self.about.get("agentCapabilities")
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return isinstance(value, dict) or value is True

    # --- life -------------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        return self._connection is not None and not self._connection.lost

    @property
    def connection(self) -> Connection | None:
        """The connection in use, living or lost; None before the first start."""
        return self._connection

    async def ready(self) -> Connection:
        """The connection to a running, initialised agent.  Raises StartFailedError."""
        async with self._starting:
            if self._connection is None or self._connection.lost:
                self._connection = await self._start()
            return self._connection

    async def replace(self) -> Connection:
        """Kill the whole tree first, then start anew.  Raises StartFailedError."""
        await self.kill()
        return await self.ready()

    async def kill(self) -> None:
        """Kill the agent and everything it started, and wait until it is gone."""
        connection = self._connection
        if connection is not None:
            with anyio.CancelScope(shield=True):
                await connection.wire.kill()
                await connection.over.wait()

    async def close(self) -> None:
        """Let the agent end by itself for a moment, then kill what is left."""
        connection = self._connection
        if connection is not None and not connection.lost:
            await connection.wire.close(_GOODBYE_S)
            await connection.over.wait()

    async def _start(self) -> Connection:
        known = self.refusals.recall(self.command, self.wall())
        if known is not None:
            raise StartFailedError(known)
        assert self._tasks is not None, "use the runtime as a context manager"  # noqa: S101
        wire = self.spawn(self.command)
        connection = self._connect(wire)
        try:
            await wire.start()
        except WireError as error:
            raise self._refused(error.raw, Phase.START) from error
        self._tasks.start_soon(_serve_to_the_end, connection)
        try:
            self.about = await self._initialize(connection)
        except BaseException:  # whoever waits may be cancelled; an agent without owner must not be
            with anyio.CancelScope(shield=True):
                await wire.kill()
                await connection.over.wait()
            raise
        self.generation += 1
        return connection

    def _connect(self, wire: Wire) -> Connection:
        return Connection(wire, self._on_notification, self._answer, self._on_question)

    async def _initialize(self, connection: Connection) -> dict[str, Any]:
        bare = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        params = {
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": extension.declare(bare),
            "clientInfo": {"name": "turn-orchestrator", "version": __version__},
        }
        try:
            reply = await connection.request(
                "initialize", params, timeout_s=self.watchdogs.handshake_s
            )
        except WireError as error:
            raise self._refused(error.raw, Phase.START) from error
        except TimeoutError:
            text = f"{self.command.name} did not answer within {self.watchdogs.handshake_s:g} s."
            raise StartFailedError(Verdict.of(Kind.AGENT_START_TIMEOUT, text)) from None
        if reply.error is not None and reply.error.get("code") != METHOD_NOT_FOUND:
            raise self._refused(reply.raw(), Phase.HANDSHAKE)
        self._check(reply)
        return reply.fields

    def _check(self, reply: Reply) -> None:
        spoken = extension.whole(reply.fields.get("protocolVersion"))
        if spoken == PROTOCOL_VERSION:
            return
        name = self.command.name
        if spoken is None:
            text = f"{name} does not speak the Agent Client Protocol."
            verdict = Verdict.of(Kind.AGENT_START_FAILED, text, rule="acp.handshake")
        else:
            text = f"{name} speaks version {spoken} of the protocol; version 1 is needed."
            verdict = Verdict.of(Kind.UNSUPPORTED, text, rule="acp.protocol_version")
        self.refusals.remember(self.command, verdict, self.wall())
        raise StartFailedError(verdict)

    def _refused(self, raw: RawFailure, phase: Phase) -> StartFailedError:
        verdict = self.understand(raw, phase)
        self.refusals.remember(self.command, verdict, self.wall())
        return StartFailedError(verdict)

    def understand(
        self, raw: RawFailure, phase: Phase, *, served: tuple[str, ...] | None = None
    ) -> Verdict:
        """What a failure of this agent means."""
        context = Context(phase=phase, wall_now=self.wall(), advertised_models=served)
        return classify(raw, speaker=self.speaker or self.command.name, context=context)

    # --- sessions nobody wants --------------------------------------------------------------------

    def close_late(self, connection: Connection, session_id: object) -> None:
        """An answer to session/new or session/load that missed its budget: close and count it."""
        self.late_answers += 1
        if isinstance(session_id, str):
            self.close_session(connection, session_id)

    def close_session(self, connection: Connection, session_id: str) -> None:
        """Ask the agent to close a session, where it can, and do not wait for it."""
        if self._tasks is not None and self.can("sessionCapabilities", "close"):
            self._tasks.start_soon(self._close_session, connection, session_id)

    async def _close_session(self, connection: Connection, session_id: str) -> None:
        try:
            await connection.request(
                "session/close", {"sessionId": session_id}, timeout_s=self.watchdogs.session_s
            )
        except (WireError, TimeoutError):
            return  # an agent that is gone has closed everything

    # --- what comes in ----------------------------------------------------------------------------

    def attach(self, session_id: str, ear: SessionEar) -> None:
        """Route a session's updates to its listener."""
        self._ears[session_id] = ear

    def detach(self, session_id: str) -> None:
        """Stop listening to a session."""
        self._ears.pop(session_id, None)

    def _on_notification(self, method: str, params: dict[str, Any]) -> None:
        ear = self._ears.get(str(params.get("sessionId")))
        if ear is None:
            return
        update = params.get("update")
        if method == "session/update" and isinstance(update, dict):
            ear.on_update(update)
        else:
            ear.on_notification(method, params)

    def _on_question(self, message: dict[str, Any]) -> None:
        params = message.get("params")
        ear = self._ears.get(str(params.get("sessionId")) if isinstance(params, dict) else "")
        if ear is not None:
            ear.on_question(is_open=True)

    async def _answer(self, method: str, params: dict[str, Any]) -> Any:
        ear = self._ears.get(str(params.get("sessionId")))
        try:
            if method == "session/request_permission":
                return answer_permission(params, allow=self.allow_tools)
            return UNANSWERED
        finally:
            if ear is not None:
                ear.on_question(is_open=False)


async def _serve_to_the_end(connection: Connection) -> None:
    """Serve until the agent is gone; a host that is cancelled still has to see its tree die."""
    with anyio.CancelScope(shield=True):
        await connection.serve()
