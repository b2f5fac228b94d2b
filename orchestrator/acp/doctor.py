"""What an agent can do for a recovery, tried out on the agent itself.

`CHECKS` is the table of what is tried, in order; `REMEDIES` is what recovery can do with that.
Each check has its budget from the watchdogs, and a check that can't work is told as not tried.
No prompt is sent unless one was given: prompts cost money.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import anyio
from attrs import define, evolve, field, fields, frozen

from orchestrator.acp import keeper
from orchestrator.acp.connection import Call, Connection, Reply
from orchestrator.acp.intake import Intake
from orchestrator.acp.memory import blocks
from orchestrator.acp.options import Options
from orchestrator.acp.process import WireError
from orchestrator.acp.runtime import PROTOCOL_VERSION, Runtime, StartFailedError
from orchestrator.acp.watch import Watch
from orchestrator.failure.kinds import Category, Kind
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Phase, Verdict
from orchestrator.settings.model import Watchdogs
from orchestrator.turn.events import StopReason

_GOODBYE_S: Final = 3.0
"""What an agent gets to end by itself; codex takes two seconds."""
_WITH_PROMPT: Final = "add --prompt TEXT to try it"


class Mark(StrEnum):
    """How a check came out."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"
    UNTRIED = "untried"


@frozen
class Finding:
    """What one check found, or what one remedy is worth."""

    name: str
    """Stable: programs match on it."""
    mark: Mark
    text: str
    """One sentence for people."""


class _NoSessionError(Exception):
    """A request for a session was refused; `verdict` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.title)
        self.verdict = verdict


@define(eq=False)
class Patient:
    """One agent under examination.  Keep its runtime open meanwhile."""

    runtime: Runtime
    prompt: str = ""
    """Sent twice where given: once to be answered, once to be cut off."""
    tell: Callable[[Finding], None] = field(default=lambda _: None)
    """Told of each finding as it is made."""
    processes: Callable[[], set[int]] = field(default=lambda: set(keeper.descendants(os.getpid())))
    """Every process that this one started, and what those started."""
    living: Callable[[set[int]], set[int]] = field(
        default=lambda pids: {pid for pid in pids if _is_alive(pid)}
    )
    """Those that still run, whoever their parent is now."""
    found: dict[str, Finding] = field(factory=dict)
    """Findings so far, by check."""
    refusal: Verdict | None = None
    """Why the agent, or its session, could not be started."""
    session_id: str = ""
    options: Options = field(factory=Options)
    _others: set[int] = field(init=False)
    """Processes that were there before the agent."""

    def __attrs_post_init__(self) -> None:
        self.runtime.watchdogs = bounded(self.runtime.watchdogs)
        self._others = self.processes()

    async def examine(self) -> tuple[Finding, ...]:
        """Run every check that makes sense; only the first one of an agent that can't start."""
        for check in CHECKS:
            finding = Finding(check.name, *await self._one(check))
            self.found[check.name] = finding
            self.tell(finding)
            if finding.name == "start" and finding.mark is Mark.NO:
                break
        return tuple(self.found.values())

    async def _one(self, check: Check) -> tuple[Mark, str]:
        if check.costs and not self.prompt:
            return Mark.UNTRIED, f"{check.title}: not tried; {_WITH_PROMPT}."
        for need in check.needs:
            if self.found[need].mark in (Mark.NO, Mark.UNTRIED):
                return Mark.UNTRIED, f"{check.title}: not tried, since {need} did not work."
        try:
            return await check.run(self)
        except (StartFailedError, _NoSessionError) as error:
            self.refusal = self.refusal or error.verdict
            return Mark.NO, f"{check.title}: {error.verdict.title}"
        except WireError as error:
            verdict = self.runtime.understand(error.raw, Phase.PROMPT)
            return Mark.NO, f"{check.title}: {verdict.title}"
        except TimeoutError:
            return Mark.NO, f"{check.title}: no answer in time."

    @property
    def failed(self) -> bool:
        """Whether something that every turn needs did not work."""
        return any(c.vital and _mark(self.found, c.name) is Mark.NO for c in CHECKS)

    # --- what the checks share --------------------------------------------------------------------

    @property
    def place(self) -> dict[str, Any]:
        """Where the session is."""
        return {"cwd": self.runtime.command.folder, "mcpServers": []}

    async def ask(self, connection: Connection, method: str, params: dict[str, Any]) -> Reply:
        """One request about the session, in the session's budget."""
        budget_s = self.runtime.watchdogs.session_s
        return await connection.request(method, params, timeout_s=budget_s)

    async def send_prompt(self) -> tuple[Call, _Ear]:
        """Send the prompt, and listen to what comes of it."""
        connection = await self.runtime.ready()
        ear = _Ear(self.runtime)
        self.runtime.attach(self.session_id, ear)
        params = {"sessionId": self.session_id, "prompt": blocks(self.prompt)}
        return await connection.call("session/prompt", params), ear

    def tree(self) -> set[int]:
        """The agent and everything it started."""
        return self.processes() - self._others


@define(eq=False)
class _Ear:
    """Listens to one prompt; shows nobody anything."""

    runtime: Runtime
    heard: anyio.Event = field(factory=anyio.Event)
    """Set at the first sign of life."""
    intake: Intake = field(init=False)
    watch: Watch = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.intake = Intake(self, self.runtime.voice)
        self.watch = Watch(self.runtime.watchdogs)

    def on_update(self, update: dict[str, Any]) -> None:
        self.watch.life()
        self.intake.update(update)
        self.watch.tools_running(len(self.intake.open_tools))
        self.heard.set()

    def on_notification(self, method: str, params: dict[str, Any]) -> None:
        self.watch.life()
        self.intake.notification(method, params)

    def on_question(self, *, is_open: bool) -> None:
        self.watch.question(is_open=is_open)

    def text(self, chunk: str) -> None: ...
    def thought(self) -> None: ...
    def tool(self) -> None: ...
    def retrying(self, title: str, category: Category) -> None: ...
    def advise(self, key: str, title: str) -> None: ...


# --- the checks ----------------------------------------------------------------------------------


async def _start(patient: Patient) -> tuple[Mark, str]:
    await patient.runtime.ready()
    return (
        Mark.YES,
        f"{patient.runtime.name} starts and speaks protocol version {PROTOCOL_VERSION}.",
    )


async def _records(patient: Patient) -> tuple[Mark, str]:
    if patient.runtime.voice.typed:
        return Mark.YES, "It tells failures as records (sessionFailure)."
    return Mark.NO, "It tells failures as errors and text, without records (sessionFailure)."


async def _session(patient: Patient) -> tuple[Mark, str]:
    reply = await patient.ask(await patient.runtime.ready(), "session/new", patient.place)
    if reply.error is not None:
        raise _NoSessionError(patient.runtime.understand(reply.raw(), Phase.HANDSHAKE))
    session_id = reply.fields.get("sessionId")
    if not isinstance(session_id, str) or not session_id:
        text = f"{patient.runtime.name} opened a session without an id; it can't be used."
        raise _NoSessionError(Verdict.of(Kind.AGENT_START_FAILED, text, rule="acp.session_new"))
    patient.session_id = session_id
    patient.options.learn(reply.fields)
    return Mark.YES, "It opens a session."


async def _model(patient: Patient) -> tuple[Mark, str]:
    """Pick another model, read it back, and set the first one again."""
    options = patient.options
    if options.model_option is None:
        return Mark.NO, "It offers no choice of model among its config options."
    before, served = options.model, options.served or ()
    other = next((model for model in served if model != before), None)
    if other is None:
        return Mark.NO, f"It offers no model but {before or 'its own'}."
    connection, kept = await patient.runtime.ready(), ""
    for value in (other, *([before] if before else [])):
        params = {"configId": str(options.model_option.get("id")), "value": value}
        params["sessionId"] = patient.session_id
        reply = await patient.ask(connection, "session/set_config_option", params)
        options.learn(reply.fields)
        if value == other and options.model != other:
            kept = options.model
    if kept:
        return Mark.NO, f"It lists {len(served)} models, but kept {kept} when {other} was set."
    return Mark.YES, f"It lists {len(served)} models, and another one can be set."


async def _answer(patient: Patient) -> tuple[Mark, str]:
    limits = patient.runtime.watchdogs
    call, ear = await patient.send_prompt()
    with anyio.fail_after(limits.first_sign_s + limits.silence_s):
        reply = await _unless_silent(call, ear.watch)
    end = ear.intake.end(reply)
    if isinstance(end, RawFailure):
        end = patient.runtime.understand(end, Phase.PROMPT, served=patient.options.served)
    if isinstance(end, Verdict):
        return Mark.NO, f"It does not answer the prompt: {end.title}"
    if end is StopReason.END_TURN or end is None:
        return Mark.YES, "It answers the prompt."
    return Mark.PARTLY, f"It ends the prompt with {getattr(end, 'value', 'a refusal')}."


async def _unless_silent(call: Call, watch: Watch) -> Reply:
    """The answer.  Raises TimeoutError once the agent was silent for too long."""
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
    if call.reply is None:
        raise TimeoutError
    return call.reply


async def _cancel(patient: Patient) -> tuple[Mark, str]:
    """Cut the prompt off at its first sign of life, or where none comes at its limit."""
    limits = patient.runtime.watchdogs
    call, ear = await patient.send_prompt()
    async with anyio.create_task_group() as tasks:

        async def answered() -> None:
            with suppress(WireError):  # looked at below
                await call.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(answered)
        with anyio.move_on_after(limits.first_sign_s):
            await ear.heard.wait()
        tasks.cancel_scope.cancel()
    if call.done:
        await call.wait()
        return Mark.UNTRIED, "It answered before it could be cancelled; try a longer prompt."
    connection = await patient.runtime.ready()
    await connection.notify("session/cancel", {"sessionId": patient.session_id})
    try:
        reply = await call.within(limits.cancel_s)
    except TimeoutError:
        return Mark.NO, f"It does not answer a cancel within {limits.cancel_s:g} s."
    return _cancelled(reply)


def _cancelled(reply: Reply) -> tuple[Mark, str]:
    reason = reply.fields.get("stopReason")
    if reason == StopReason.CANCELLED:
        return Mark.YES, "It answers a cancel with cancelled."
    told = "an error" if reply.error is not None else str(reason)[:40]
    return Mark.PARTLY, f"It answers a cancel with {told}, which is read as cancelled."


async def _kill(patient: Patient) -> tuple[Mark, str]:
    if not patient.runtime.alive:
        return Mark.NO, "It ended by itself before it was killed."
    tree = patient.tree()
    await patient.runtime.kill()
    left = patient.living(tree) | patient.tree()
    if left:
        listed = ", ".join(str(pid) for pid in sorted(left))
        return Mark.NO, f"Killed, it leaves processes behind: {listed}."
    if not tree:
        return Mark.PARTLY, "It can be killed; its processes can't be counted on this system."
    # The first of them is the keeper, which is ours.
    return Mark.YES, f"Killed, its whole tree is gone ({_count(len(tree) - 1)})."


def _count(number: int) -> str:
    return "1 process" if number == 1 else f"{number} processes"


def _is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[:1] not in (["Z"], ["X"])


async def _respawn(patient: Patient) -> tuple[Mark, str]:
    await patient.runtime.replace()
    return Mark.YES, "It starts again."


async def _load(patient: Patient) -> tuple[Mark, str]:
    runtime = patient.runtime
    methods = {
        "session/load": runtime.can("loadSession"),
        "session/resume": runtime.can("sessionCapabilities", "resume"),
    }
    method = next((name for name, can in methods.items() if can), None)
    if method is None:
        return Mark.NO, "It offers neither session/load nor session/resume."
    runtime.detach(patient.session_id)
    params = {"sessionId": patient.session_id, **patient.place}
    reply = await patient.ask(await runtime.ready(), method, params)
    if reply.error is None:
        return Mark.YES, f"A new process opens the old session with {method}."
    why = runtime.understand(reply.raw(), Phase.LOAD).title
    if patient.prompt:
        return Mark.NO, f"It offers {method}, but a new process refused the old session: {why}"
    return Mark.PARTLY, f"It offers {method}, but not for an empty session; {_WITH_PROMPT}."


async def _goodbye(patient: Patient) -> tuple[Mark, str]:
    """Close its input, as an editor does at its end."""
    connection = await patient.runtime.ready()
    if patient.session_id and patient.runtime.can("sessionCapabilities", "close"):
        with suppress(WireError, TimeoutError):  # a courtesy: the session was opened for this look
            await patient.ask(connection, "session/close", {"sessionId": patient.session_id})
    await connection.wire.close(_GOODBYE_S)
    exit_ = await connection.wire.ended()
    await connection.over.wait()
    if exit_.code is not None and exit_.code >= 0:
        return Mark.YES, "It ends by itself when its input is closed."
    return Mark.PARTLY, f"It has to be killed: {_GOODBYE_S:g} s after its input was closed it ran."


@frozen
class Check:
    """One thing that is tried."""

    name: str
    title: str
    """What it is about, for people."""
    run: Callable[[Patient], Awaitable[tuple[Mark, str]]]
    needs: tuple[str, ...] = ()
    """Checks that have to work before."""
    costs: bool = False
    """It sends the prompt."""
    vital: bool = False
    """No turn works without."""


CHECKS: Final = (
    Check("start", "Start", _start, vital=True),
    Check("records", "Failure records", _records, needs=("start",)),
    Check("session", "New session", _session, needs=("start",), vital=True),
    Check("model", "Choice of model", _model, needs=("session",)),
    Check("answer", "Answer", _answer, needs=("session",), costs=True, vital=True),
    Check("cancel", "Cancel", _cancel, needs=("session", "answer"), costs=True),
    Check("kill", "Kill", _kill, needs=("start",), vital=True),
    Check("respawn", "Start after a death", _respawn, needs=("start",), vital=True),
    Check("load", "Load after a death", _load, needs=("session", "respawn")),
    Check("goodbye", "Goodbye", _goodbye, needs=("respawn",)),
)


# --- what recovery can do with it ----------------------------------------------------------------


@frozen
class Remedy:
    """One thing that recovery does, and the check that says how well."""

    name: str
    check: str
    told: Mapping[Mark, tuple[Mark, str]]
    """Result of the check to what it means."""


_NEVER: Final = (Mark.NO, "A dead agent ends the turn: it does not start again.")
_KILLED: Final = "A silent turn is cut off by killing the agent."

REMEDIES: Final = (
    Remedy(
        "retry",
        "session",
        {Mark.YES: (Mark.YES, "A failed turn is waited out and sent again.")},
    ),
    Remedy(
        "reload",
        "load",
        {
            Mark.YES: (Mark.YES, "A dead agent is restarted and its session loaded again."),
            Mark.PARTLY: (Mark.PARTLY, "A dead agent is restarted; its session may be loadable."),
            Mark.NO: (Mark.PARTLY, "A dead agent is restarted, with a new session."),
            Mark.UNTRIED: _NEVER,
        },
    ),
    Remedy(
        "transcript",
        "session",
        {Mark.YES: (Mark.YES, "A lost session becomes a new one, told what was said so far.")},
    ),
    Remedy(
        "swap",
        "model",
        {
            Mark.YES: (Mark.YES, "A model that fails can be swapped for another."),
            Mark.NO: (Mark.NO, "A model that fails can't be swapped from here."),
        },
    ),
    Remedy(
        "unstick",
        "cancel",
        {
            Mark.YES: (Mark.YES, "A silent turn is cancelled; the agent lives on."),
            Mark.PARTLY: (Mark.YES, "A silent turn is cancelled; the agent lives on."),
            Mark.NO: (Mark.PARTLY, _KILLED),
            Mark.UNTRIED: (Mark.UNTRIED, "A silent turn is cancelled, else the agent killed."),
        },
    ),
    Remedy(
        "incident",
        "records",
        {
            Mark.YES: (Mark.YES, "Its failures are read as they are, and its own retries shown."),
            Mark.NO: (Mark.PARTLY, "Its failures are told apart by their words and codes."),
        },
    ),
    Remedy(
        "clean",
        "kill",
        {
            Mark.YES: (Mark.YES, "Nothing of it runs on after it was killed."),
            Mark.PARTLY: (Mark.PARTLY, "Its processes are killed as a group."),
            Mark.NO: (Mark.NO, "Something of it may run on after it was killed."),
        },
    ),
)


def remedies(found: Mapping[str, Finding]) -> tuple[Finding, ...]:
    """What recovery can do with an agent; nothing for one that no turn can be had with."""
    if _mark(found, "session") is not Mark.YES:
        return ()
    told = ((r.name, r.told.get(_mark(found, r.check))) for r in REMEDIES)
    return tuple(Finding(name, *what) for name, what in told if what is not None)


def _mark(found: Mapping[str, Finding], check: str) -> Mark:
    return found[check].mark if check in found else Mark.UNTRIED


def bounded(watchdogs: Watchdogs) -> Watchdogs:
    """The same limits; one that is switched off has its default, for a look has to end."""
    defaults = {limit.name: limit.default for limit in fields(Watchdogs)}
    off: dict[str, Any] = {k: v for k, v in defaults.items() if not getattr(watchdogs, k)}
    return evolve(watchdogs, **off)
