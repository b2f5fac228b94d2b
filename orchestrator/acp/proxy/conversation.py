"""One session of the client's: the runner's agent for its turns, the ear for its updates.

The client knows the session by one id for ever.  The agent's own id is the same until a recovery
had to open another session; from then on every frame is readdressed on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import anyio
from attrs import define, field, frozen

from orchestrator.acp.agent import (
    CUT_OFF_RULES,
    AcpAgent,
    PromptLine,
    Remembering,
    Running,
    SessionFailedError,
)
from orchestrator.acp.connection import Connection, Reply
from orchestrator.acp.framing import Frame, encode
from orchestrator.acp.memory import blocks
from orchestrator.acp.proxy.ending import Last
from orchestrator.acp.proxy.frames import (
    line_of,
    moved,
    readdressed,
    reframed,
    renumbered,
    session_of,
)
from orchestrator.acp.proxy.intake import RelayIntake
from orchestrator.acp.proxy.reload import Reload
from orchestrator.acp.proxy.store import Kept
from orchestrator.acp.proxy.stream import stream_of
from orchestrator.acp.proxy.upstream import Upstream
from orchestrator.failure.held import is_command
from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Verdict
from orchestrator.incident.record import Record
from orchestrator.runner.agent import Attempt, AttemptEnd, RecoveryResult
from orchestrator.turn.effects import Payload, Recover
from orchestrator.turn.events import Step, StopReason

_OF_ONE_MESSAGE: Final = ("messageId",)
"""Params that name the user's message: a continue is another one."""


@frozen
class Dial:
    """Something a session is set to, beside its config options."""

    param: str
    """Of the request that sets it."""
    part: str
    """Of an opened session's answer that tells it."""
    current: str


DIALS: Final[Mapping[str, Dial]] = MappingProxyType(
    {
        "session/set_mode": Dial("modeId", "modes", "currentModeId"),
        "session/set_model": Dial("modelId", "models", "currentModelId"),
    }
)
"""By the method that sets it."""


@define(eq=False)
class Prompted:
    """One prompt of the client's, until it is answered."""

    frame: Frame
    last: Last = field(factory=Last)
    """How its last attempt ended."""
    agent_ids: set[str] = field(factory=set)
    """The agent's own ids of what was told under ours."""
    agent_text: str = ""
    """The failure in the agent's own words, as its store may keep it."""
    advised: set[str] = field(factory=set)
    record: Record | None = None
    """The terminal record, until the answer carries it."""
    told: bool = False
    """A revision of this turn's incident was told."""
    on_sent: Callable[[], None] = field(default=lambda: None)
    """Told once the prompt stands in the agent's line, or has to wait for something else."""


@define(eq=False, kw_only=True, repr=False)
class Conversation(AcpAgent):
    """An `AcpAgent` whose other side is a client."""

    runtime: Upstream
    client_id: str
    """The session's id as the client knows it."""
    send: Callable[[bytes], None]
    """Sends a line to the client."""
    capable: Callable[[], bool]
    """Whether the client reads records."""
    kept: Kept = field(factory=Kept)
    on_moved: Callable[[], None] = field(default=lambda: None)
    """Told when the native session changed."""
    reload: Reload | None = None
    """Set while the client loads this session's history."""
    prompts: dict[str, Prompted] = field(factory=dict)
    """Those not answered yet, by turn id."""
    dials: dict[str, Any] = field(factory=dict)
    """What was chosen by other means than config options, by the method that sets it."""
    _current: Prompted | None = None
    _opening: anyio.CancelScope | None = None
    _one_opens: anyio.Lock = field(factory=anyio.Lock)
    _ended: list[Frame] | None = None
    """Updates behind an answer that is not told to the client yet."""

    # --- frames ----------------------------------------------------------------------------------

    @property
    def translated(self) -> bool:
        return self.session_id != self.client_id

    def to_client(self, frame: Frame) -> bytes:
        """A frame of the agent as the client is to see it."""
        if self.translated and session_of(frame.message):
            return readdressed(frame, self.client_id)
        return line_of(frame)

    def to_agent(self, frame: Frame) -> bytes:
        """A frame of the client as the agent is to see it."""
        if self.translated and session_of(frame.message):
            return readdressed(frame, self.session_id)
        return line_of(frame)

    def show(self, frame: Frame) -> None:
        self.send(self.to_client(frame))

    def hear(self, frame: Frame) -> None:
        """One notification of this session, in its place."""
        message = frame.message
        params = message["params"]
        update = params.get("update")
        if message["method"] != "session/update" or not isinstance(update, dict):
            self.on_notification(message["method"], params)
            self.show(frame)
            return
        self.learn(update)
        if update.get("sessionUpdate") == "current_mode_update":
            self.dials["session/set_mode"] = update.get("currentModeId")
        running = self._running
        if self.reload is not None:
            self.show(self.reload.passed(frame))
        elif self._ended is not None:
            self._ended.append(frame)
        elif running is None or running.call is None:
            self.show(frame)
        else:
            running.take(update, frame)
            self._stream(frame, update, running)

    def _stream(self, frame: Frame, update: dict[str, Any], running: Running) -> None:
        """Let what only goes on with this text pass without being read."""
        lane, intake = self.runtime.lane, running.intake
        if lane is None or self.translated or not intake.said_now:
            return

        def goes_on() -> bool:
            return self._running is running and self._ended is None and self.reload is None

        def pass_on(lines: list[bytes], texts: list[str]) -> None:
            running.watch.life()
            for line in lines:
                self.send(line)
            intake.listener.text(texts[0] if len(texts) == 1 else "".join(texts))

        lane.stream = stream_of(frame.raw, update["content"]["text"], goes_on, pass_on)

    def decided(self) -> None:
        """What the last answer leads to is known: let go of what came behind it."""
        ended, self._ended = self._ended, None
        for frame in ended or ():
            self.show(frame)

    def goes_on(self) -> None:
        """The turn does not end with its last answer: only the failure in it is kept back."""
        prompted = self._current
        if prompted is not None:
            asides = prompted.last.asides
            for frame in asides:
                self.show(frame)
            prompted.last.withheld = tuple(f for f in prompted.last.withheld if f not in asides)
        self.decided()

    # --- one attempt -----------------------------------------------------------------------------

    async def attempt(self, attempt: Attempt, /) -> AttemptEnd:
        if attempt.number > 1:
            self.goes_on()
        prompted = self._current = self.prompts[attempt.turn_id]
        prompted.last = Last()
        if not self.is_open:
            prompted.on_sent()
        try:
            end = await super().attempt(attempt)
        finally:
            prompted.on_sent()
        return StopReason.CANCELLED if self._stopped is attempt else end

    async def cancel(self, attempt: Attempt, /, *, hard: bool) -> None:
        if self._opening is not None:
            self._opening.cancel()
        await super().cancel(attempt, hard=hard)

    async def recover(self, recover: Recover, /) -> RecoveryResult:
        self.goes_on()
        return await super().recover(recover)

    @property
    def is_open(self) -> bool:
        """The session is open in a process that runs."""
        return self.runtime.alive and self._generation == self.runtime.generation

    def _listen(self, attempt: Attempt) -> RelayIntake:
        prompted = self.prompts[attempt.turn_id]
        return RelayIntake(
            _Reporting(attempt, self.memory, self._advised),
            self.runtime.voice,
            is_command=is_command(blocks(attempt.prompt)),
            show=self.show,
            capable=self.capable(),
            again=attempt.number > 1,
            shown=prompted.advised,
            on_absorbed=prompted.agent_ids.add,
        )

    def _prompt_line(self, attempt: Attempt) -> PromptLine:
        prompted = self.prompts[attempt.turn_id]
        frame, reminder = prompted.frame, self._reminder(attempt)
        if attempt.payload is Payload.VERBATIM and not reminder:
            addressed = frame
            if self.translated:
                message = moved(frame.message, self.session_id)
                addressed = reframed(self.to_agent(frame), message)
            return lambda number: renumbered(addressed, number)
        params = {**frame.message["params"], "sessionId": self.session_id}
        params["prompt"] = [*reminder, *blocks(attempt.prompt)]
        if attempt.payload is Payload.CONTINUE:
            for name in _OF_ONE_MESSAGE:
                params.pop(name, None)
        message = {**frame.message, "params": params}
        return lambda number: encode({**message, "id": number})

    async def _prompt(
        self, connection: Connection, running: Running, line: PromptLine
    ) -> AttemptEnd:
        prompted = self._current
        assert prompted is not None  # noqa: S101 - set by `attempt`
        running.on_reply = self._answered
        # The request stands in the lane as soon as its line is written.
        end = await super()._prompt(connection, running, _and_then(line, prompted.on_sent))
        cut_off = isinstance(end, Verdict) and end.rule in CUT_OFF_RULES
        reply = None if running.call is None or cut_off else running.call.reply
        prompted.last = Last(reply, running.intake.withheld)
        return end

    def _answered(self, _: Reply) -> None:
        """What comes behind belongs to no prompt, and waits until the answer's meaning is known."""
        self._ended = []

    # --- the session -----------------------------------------------------------------------------

    def opened_by_client(self, reply: Reply, *, loaded: bool = False) -> None:
        """The client's own request opened this session in the process that runs."""
        self.learn(reply.fields)
        self._generation = self.runtime.generation
        self._unproven = self._generation if loaded else 0
        self.runtime.attach(self.session_id, self)

    async def open(self) -> Connection:
        async with self._one_opens:
            with anyio.CancelScope() as scope:
                self._opening = scope
                try:
                    return await super().open()
                finally:
                    self._opening = None
        raise SessionFailedError(Verdict.of(Kind.CANCELLED, "Stopped before the session was open."))

    async def _new(self, connection: Connection) -> None:
        with self.runtime.opening():
            await super()._new(connection)
        self.on_moved()

    async def _canary(self, connection: Connection) -> RecoveryResult:
        with self.runtime.opening():
            return await super()._canary(connection)

    async def _opened(self, connection: Connection, reply: Reply) -> None:
        await super()._opened(connection, reply)
        # As they were chosen: while they are set again the agent may tell what it is set to.
        for method, value in tuple(self.dials.items()):
            dial = DIALS[method]
            part = reply.fields.get(dial.part)
            if isinstance(part, dict) and part.get(dial.current) == value:
                continue
            params = {"sessionId": self.session_id, dial.param: value}
            await self._ask(connection, method, params, f"answer {method}")

    async def _step(self, recover: Recover) -> RecoveryResult:
        if recover.step is not Step.DEDICATED:
            return await super()._step(recover)
        # A process of its own would be another agent's; other sessions live in this one.
        await self._new(await self.runtime.ready())
        return RecoveryResult(ok=True, detail=self.session_id)


class _Reporting(Remembering):
    """The client has the text: the runner needs to know only that there was some."""

    def text(self, chunk: str) -> None:
        self._memory.agent(chunk)
        self._attempt.text(chunk[:1])


def _and_then(line: PromptLine, told: Callable[[], None]) -> PromptLine:
    def write(number: int | str) -> bytes:
        data = line(number)
        told()
        return data

    return write
