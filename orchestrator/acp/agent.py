"""Any agent that speaks the Agent Client Protocol, as the runner's `Agent`.

One `AcpAgent` is one conversation.  Its native session may change under it: a dead process is
replaced and the session loaded again, a lost or spoilt session becomes a new one that starts with
a bounded text of what was said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final

import anyio
from attrs import define, field

from orchestrator.acp.connection import Call, Connection, Reply
from orchestrator.acp.framing import encode
from orchestrator.acp.intake import Intake, Listener
from orchestrator.acp.memory import Memory, blocks
from orchestrator.acp.options import Options
from orchestrator.acp.process import WireError
from orchestrator.acp.runtime import Runtime, StartFailedError
from orchestrator.acp.watch import Watch
from orchestrator.failure.held import is_command
from orchestrator.failure.kinds import Category, Kind
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Cause, Delivery, Phase, Verdict
from orchestrator.runner.agent import Attempt, AttemptEnd, RecoveryResult
from orchestrator.turn.effects import Payload, Recover
from orchestrator.turn.events import Step, StopReason

_PROMPT: Final = "session/prompt"
_STALLED_RULE: Final = "acp.watchdog"
_STALLED: Final = "The agent fell silent, so its answer was cut off."
_CIRCLED_RULE: Final = "acp.watchdog_circles"
_CIRCLED: Final = (
    "The agent wrote {} messages in a row without doing anything, so it was stopped. "
    "Start a new session to go on."
)
CUT_OFF_RULES: Final = frozenset((_STALLED_RULE, _CIRCLED_RULE))
"""Rules of the verdicts on a prompt that we cut off: its answer only acknowledges our cancel."""
_LAST_WORD_S: Final = 1.0
"""What a cancelled turn gets to tell the agent so; one that does not read is not waited for."""
_CANARY: Final = "Answer with the single word: ready. Use no tools."


PromptLine = Callable[[int | str], bytes]
"""Writes a prompt's request under the id it is given."""


class SessionFailedError(Exception):
    """A session could not be opened or loaded."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.title)
        self.verdict = verdict


class Missing(Enum):
    """What the agent's native session does not know of the conversation."""

    NOTHING = auto()
    PARTIAL = auto()
    """The cut-off answer: agents load a session without the text of a turn that was killed."""
    EVERYTHING = auto()


@define(eq=False)
class Running:
    """One prompt in flight."""

    intake: Intake
    watch: Watch
    call: Call | None = None
    cancelled: bool = False
    on_reply: Callable[[Reply], None] | None = None
    """Told of the answer in its place among the frames."""

    def take(self, update: Mapping[str, Any], item: Any = None) -> None:
        """One update of the session, and what it says about the agent's pace."""
        self.intake.update(update, item)
        if self.intake.lives:
            self.watch.life()
        self.watch.tools_running(len(self.intake.open_tools))
        self.watch.messages_in_a_row(self.intake.messages)


@define(eq=False)
class AcpAgent:
    """One conversation with an agent.  Hand it to a session of the orchestrator."""

    runtime: Runtime
    mcp_servers: Sequence[Mapping[str, Any]] = ()
    place: Mapping[str, Any] | None = None
    """Params of `session/new` and `session/load`; None: the agent's folder and `mcp_servers`."""
    canary_timeout_s: float = 30.0
    session_id: str = ""
    """The agent's own session id; recoveries change it.  Given at the start, it is loaded."""
    options: Options = field(factory=Options)
    on_options: Callable[[Options], None] = field(default=lambda _: None)
    """Told when the agent lists its options: the model in use, the models served."""
    memory: Memory = field(factory=Memory)
    _generation: int = 0
    """Of the process in which the session is open; 0 when it is in none."""
    _missing: Missing = Missing.NOTHING
    _unproven: int = 0
    """Generation of the process that loaded the session and has seen nothing of it since."""
    _running: Running | None = None
    _stopped: Attempt | None = None
    """An attempt that must not be sent any more."""
    _advised: set[str] = field(factory=set)
    """Advisories of this turn: an agent tells them again with each send of the prompt."""
    _said_before: int = 0
    """Entries of the memory before the turn that is running."""

    # --- the runner's side ------------------------------------------------------------------------

    async def attempt(self, attempt: Attempt, /) -> AttemptEnd:
        """Send the prompt and wait for its end, however the agent tells it."""
        if attempt.number == 1:
            self._advised.clear()
            self._said_before = len(self.memory)
            self.memory.user(attempt.prompt)
        try:
            connection = await self.open()
        except (StartFailedError, SessionFailedError) as error:
            return error.verdict
        if self._stopped is attempt:
            return StopReason.CANCELLED
        running = Running(self._listen(attempt), Watch(self.runtime.watchdogs))
        self._running = running
        try:
            return await self._prompt(connection, running, self._prompt_line(attempt))
        finally:
            self._running = None

    async def cancel(self, attempt: Attempt, /, *, hard: bool) -> None:
        """Ask the agent to stop; `hard` kills its whole tree."""
        self._stopped = attempt
        if hard:
            await self.runtime.kill()
        elif self._running is not None:
            await self._ask_to_stop(self._running)

    async def recover(self, recover: Recover, /) -> RecoveryResult:
        """Do one step of a recovery."""
        try:
            return await self._step(recover)
        except (StartFailedError, SessionFailedError) as error:
            return RecoveryResult(ok=False, detail=error.verdict.title)
        except WireError as error:
            verdict = self.runtime.understand(error.raw, Phase.LOAD)
            return RecoveryResult(ok=False, detail=verdict.title)
        except TimeoutError:
            return RecoveryResult(ok=False, detail="The agent did not answer in time.")

    # --- one prompt -------------------------------------------------------------------------------

    def _listen(self, attempt: Attempt) -> Intake:
        """The ear for one attempt."""
        ear = Remembering(attempt, self.memory, self._advised)
        return Intake(ear, self.runtime.voice, is_command=is_command(blocks(attempt.prompt)))

    def _prompt_line(self, attempt: Attempt) -> PromptLine:
        """How one attempt is written."""
        return self._plain_line([*self._reminder(attempt), *blocks(attempt.prompt)])

    def _plain_line(self, prompt: list[dict[str, Any]]) -> PromptLine:
        params = {"sessionId": self.session_id, "prompt": prompt}
        return lambda number: encode(
            {"jsonrpc": "2.0", "id": number, "method": _PROMPT, "params": params}
        )

    async def _prompt(
        self, connection: Connection, running: Running, line: PromptLine
    ) -> AttemptEnd:
        try:
            running.call = await connection.call(_PROMPT, {}, line=line, on_reply=running.on_reply)
            self._missing = Missing.NOTHING
            reply = await self._reply_or_silence(running.call, running.watch)
            if reply is None:
                return await self._silent(running)
        except WireError as error:
            running.intake.lose()
            return self._understand(error.raw)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(_LAST_WORD_S, shield=True):
                await self._ask_to_stop(running)
            raise
        end = running.intake.end(reply)
        if isinstance(end, StopReason) or running.intake.said or running.intake.done:
            self._unproven = 0
        if running.cancelled and end is StopReason.END_TURN:
            return StopReason.CANCELLED
        return self._understand(end) if isinstance(end, RawFailure) else end

    async def _reply_or_silence(self, call: Call, watch: Watch) -> Reply | None:
        """The answer, or None once the agent was silent for too long."""
        lost: WireError | None = None
        async with anyio.create_task_group() as tasks:

            async def guard() -> None:
                await watch.expired()
                tasks.cancel_scope.cancel()

            tasks.start_soon(guard)
            try:
                await call.wait()
            except WireError as error:
                lost = error
            tasks.cancel_scope.cancel()
        if lost is not None:
            raise lost
        return call.reply

    async def _silent(self, running: Running) -> AttemptEnd:
        """The watchdog's verdict: an agent that answers a cancel has stalled, another has died."""
        circled = running.watch.circles and not running.cancelled
        acknowledged = await self._acknowledged(running)
        running.intake.lose()
        if circled:
            text = _CIRCLED.format(running.intake.messages)
            return Verdict.of(
                Kind.BUDGET_EXHAUSTED, text, delivery=Delivery.SENT, rule=_CIRCLED_RULE
            )
        if not acknowledged:
            return self._understand(RawFailure.exit(-9, delivery=Delivery.SENT))
        return Verdict.of(
            Kind.CONNECTION_LOST,
            _STALLED,
            cause=Cause.STALLED,
            delivery=Delivery.SENT,
            rule=_STALLED_RULE,
        )

    async def _acknowledged(self, running: Running) -> bool:
        """Cancel the prompt; an agent that does not answer in time is killed."""
        if not running.cancelled:
            await self._ask_to_stop(running)
            assert running.call is not None  # noqa: S101 - it was sent
            if await self._reply_or_silence(running.call, running.watch) is not None:
                return True
        await self.runtime.kill()
        return False

    async def _ask_to_stop(self, running: Running) -> None:
        running.cancelled = True
        running.watch.cancelled()
        connection = self.runtime.connection
        if connection is None or running.call is None:
            return
        try:
            await connection.notify("session/cancel", {"sessionId": self.session_id})
        except WireError:
            return  # its end is on its way to whoever waits for the answer

    def _understand(self, raw: RawFailure) -> Verdict:
        return self.runtime.understand(raw, Phase.PROMPT, served=self.options.served)

    def _reminder(self, attempt: Attempt) -> list[dict[str, Any]]:
        """What goes in front of the prompt, so that the agent knows what it has to know."""
        continues = attempt.payload is Payload.CONTINUE
        text = ""
        if self._missing is Missing.EVERYTHING:
            text = self.memory.preface(upto=None if continues else self._said_before)
        elif self._missing is Missing.PARTIAL and continues:
            text = self.memory.partial()
        return blocks(text) if text else []

    # --- the session ------------------------------------------------------------------------------

    async def open(self) -> Connection:
        """A connection in which this conversation's session is open.

        Raises StartFailedError or SessionFailedError.
        """
        connection = await self.runtime.ready()
        if self._generation == self.runtime.generation:
            return connection
        if not self.session_id or not await self._load(connection):
            await self._new(connection)
        return connection

    async def _new(self, connection: Connection) -> None:
        reply = await self._session_request(connection, "session/new", self._place())
        session_id = reply.fields.get("sessionId")
        if reply.error is not None or not isinstance(session_id, str) or not session_id:
            raise SessionFailedError(self._not_opened(reply))
        self.runtime.detach(self.session_id)
        self.session_id = session_id
        self._missing, self._unproven = Missing.EVERYTHING, 0
        await self._opened(connection, reply)

    async def _load(self, connection: Connection) -> bool:
        """Open the session again.  False when this agent, or this session, can't be loaded.

        What the agent replays of the history was shown before, so nobody listens meanwhile.
        """
        method = self._load_method()
        if not method:
            return False
        self.runtime.detach(self.session_id)
        params = {"sessionId": self.session_id, **self._place()}
        reply = await self._session_request(connection, method, params)
        if reply.error is not None:
            return False
        if self._missing is Missing.NOTHING:
            self._missing = Missing.PARTIAL
        await self._opened(connection, reply)
        self._unproven = self._generation
        return True

    def _load_method(self) -> str:
        if self.runtime.can("loadSession"):
            return "session/load"
        return "session/resume" if self.runtime.can("sessionCapabilities", "resume") else ""

    def _place(self) -> dict[str, Any]:
        if self.place is not None:
            return dict(self.place)
        return {"cwd": self.runtime.command.folder, "mcpServers": list(self.mcp_servers)}

    async def _opened(self, connection: Connection, reply: Reply) -> None:
        self.learn(reply.fields)
        self.runtime.attach(self.session_id, self)
        self._generation = self.runtime.generation
        for option_id, value in self.options.to_restore():
            await self._set(connection, option_id, value)

    async def _session_request(
        self, connection: Connection, method: str, params: dict[str, Any]
    ) -> Reply:
        def close_late(reply: Reply) -> None:
            self.runtime.close_late(connection, reply.fields.get("sessionId"))

        return await self._ask(connection, method, params, "open a session", on_late=close_late)

    async def _ask(
        self,
        connection: Connection,
        method: str,
        params: dict[str, Any],
        what: str,
        on_late: Callable[[Reply], None] | None = None,
    ) -> Reply:
        """One request about the session.  Raises SessionFailedError when no answer comes."""
        budget_s = self.runtime.watchdogs.session_s
        try:
            return await connection.request(method, params, timeout_s=budget_s, on_late=on_late)
        except TimeoutError:
            text = f"{self.runtime.name} did not {what} within {budget_s:g} s."
            raise SessionFailedError(Verdict.of(Kind.AGENT_START_TIMEOUT, text)) from None
        except WireError as error:
            raise SessionFailedError(self.runtime.understand(error.raw, Phase.LOAD)) from error

    def _not_opened(self, reply: Reply) -> Verdict:
        if reply.error is not None:
            return self.runtime.understand(reply.raw(), Phase.HANDSHAKE)
        text = f"{self.runtime.name} opened a session without an id; it can't be used."
        return Verdict.of(Kind.AGENT_START_FAILED, text, rule="acp.session_new")

    # --- recoveries -------------------------------------------------------------------------------

    async def _step(self, recover: Recover) -> RecoveryResult:
        before = self.session_id
        match recover.step:
            case Step.RESPAWN:
                # Another session of the same process may have replaced it already.
                if not self.runtime.alive or self._generation == self.runtime.generation:
                    await self.runtime.replace()
                await self.open()
            case Step.RESET:
                connection = await self.runtime.ready()
                # What this very process loaded, and lost before it said a word, is loaded no
                # better by a second time.
                in_vain = self._unproven == self.runtime.generation
                if in_vain or not await self._load(connection):
                    await self._new(connection)
            case Step.DISCARD:
                await self._new(await self.runtime.ready())
            case Step.DEDICATED:
                await self._new(await self.runtime.replace())
            case Step.SWAP:
                return await self._swap(await self.open(), recover.target)
            case Step.CANARY:
                return await self._canary(await self.open())
        # Only a new session is named: it knows nothing of what was shown, a loaded one does.
        return RecoveryResult(ok=True, detail="" if self.session_id == before else self.session_id)

    async def _swap(self, connection: Connection, model: str) -> RecoveryResult:
        """Set another model and read it back; a silent no-op is a failure."""
        option = self.options.model_option
        if option is None:
            return RecoveryResult(ok=False, detail="The agent offers no choice of model.")
        if model not in (self.options.served or ()):
            return RecoveryResult(ok=False, detail=f"The agent does not offer {model}.")
        await self._set(connection, str(option.get("id")), model)
        if self.options.model != model:
            return RecoveryResult(ok=False, detail=f"The agent kept {self.options.model}.")
        self.options.chosen[str(option.get("id"))] = model
        return RecoveryResult(ok=True, detail=model)

    async def _set(self, connection: Connection, option_id: str, value: Any) -> None:
        params = {"sessionId": self.session_id, "configId": option_id, "value": value}
        reply = await self._ask(connection, "session/set_config_option", params, "set an option")
        self.learn(reply.fields)

    def learn(self, part: Mapping[str, Any]) -> None:
        if self.options.learn(part):
            self.on_options(self.options)

    async def _canary(self, connection: Connection) -> RecoveryResult:
        """Ask a fresh session of the same model for one word, to tell it from a spoilt session."""
        with anyio.move_on_after(self.canary_timeout_s):
            probe = AcpAgent(self.runtime, self.mcp_servers, place=self.place)
            probe.options.chosen = dict(self.options.chosen)
            await probe._new(connection)
            try:
                sung = await probe._sing(connection)
            finally:
                self.runtime.detach(probe.session_id)
                self.runtime.close_session(connection, probe.session_id)
            if sung:
                return RecoveryResult(ok=True)
            return RecoveryResult(ok=False, detail="A fresh session fails in the same way.")
        return RecoveryResult(ok=False, detail="A fresh session does not answer either.")

    async def _sing(self, connection: Connection) -> bool:
        self._running = Running(Intake(_Deaf(), self.runtime.voice), Watch(self.runtime.watchdogs))
        line = self._plain_line(blocks(_CANARY))
        end = await self._prompt(connection, self._running, line)
        return end is StopReason.END_TURN

    # --- the session's ear ------------------------------------------------------------------------

    def on_update(self, update: dict[str, Any]) -> None:
        """One `session/update`.  What comes after the answer belongs to no prompt."""
        self.learn(update)
        running = self._running
        if running is None or (running.call is not None and running.call.done):
            return
        running.take(update)

    def on_notification(self, method: str, params: dict[str, Any]) -> None:
        """Any other notification of this session."""
        if self._running is not None:
            self._running.intake.notification(method, params)

    @property
    def watch(self) -> Watch | None:
        """The clock of the prompt in flight."""
        return None if self._running is None else self._running.watch

    def on_question(self, *, is_open: bool) -> None:
        """The agent asks the user, or has been answered."""
        if self._running is not None:
            self._running.watch.question(is_open=is_open)


@define(eq=False)
class Remembering:
    """An attempt's listener that also keeps the text for a later session."""

    _attempt: Listener
    _memory: Memory
    _advised: set[str]

    def text(self, chunk: str) -> None:
        self._memory.agent(chunk)
        self._attempt.text(chunk)

    def thought(self) -> None:
        self._attempt.thought()

    def tool(self) -> None:
        self._attempt.tool()

    def retrying(self, title: str, category: Category) -> None:
        self._attempt.retrying(title, category)

    def advise(self, key: str, title: str) -> None:
        if key not in self._advised:
            self._advised.add(key)
            self._attempt.advise(key, title)


class _Deaf:
    """A listener where nobody is to see anything."""

    def text(self, chunk: str) -> None: ...
    def thought(self) -> None: ...
    def tool(self) -> None: ...
    def retrying(self, title: str, category: Category) -> None: ...
    def advise(self, key: str, title: str) -> None: ...
