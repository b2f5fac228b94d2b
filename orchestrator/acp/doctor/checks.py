"""What is tried with an agent, in order.

A check says how it came out, in one sentence.  What an agent refuses, or does not answer in time,
is raised, and told by whoever runs the checks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import anyio
from attrs import frozen

from orchestrator.acp.connection import Call, Reply
from orchestrator.acp.doctor.findings import Mark
from orchestrator.acp.doctor.patient import NoSessionError, Patient
from orchestrator.acp.process import WireError
from orchestrator.acp.runtime import PROTOCOL_VERSION
from orchestrator.acp.watch import Watch
from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Phase, Verdict
from orchestrator.turn.events import StopReason

_GOODBYE_S: Final = 3.0
"""What an agent gets to end by itself; codex takes two seconds."""
WITH_PROMPT: Final = "add --prompt TEXT to try it"

Told = tuple[Mark, str]


async def _start(patient: Patient) -> Told:
    await patient.runtime.ready()
    return (
        Mark.YES,
        f"{patient.runtime.name} starts and speaks protocol version {PROTOCOL_VERSION}.",
    )


async def _records(patient: Patient) -> Told:
    if patient.runtime.voice.typed:
        return Mark.YES, "It tells failures as records (sessionFailure)."
    return Mark.NO, "It tells failures as errors and text, without records (sessionFailure)."


async def _session(patient: Patient) -> Told:
    reply = await patient.ask(await patient.runtime.ready(), "session/new", patient.place)
    if reply.error is not None:
        raise NoSessionError(patient.runtime.understand(reply.raw(), Phase.HANDSHAKE))
    session_id = reply.fields.get("sessionId")
    if not isinstance(session_id, str) or not session_id:
        text = f"{patient.runtime.name} opened a session without an id; it can't be used."
        raise NoSessionError(Verdict.of(Kind.AGENT_START_FAILED, text, rule="acp.session_new"))
    patient.session_id = session_id
    patient.options.learn(reply.fields)
    return Mark.YES, "It opens a session."


async def _model(patient: Patient) -> Told:
    """Pick another model, read it back, and set the first one again."""
    options = patient.options
    if not patient.runtime.alive:
        return Mark.UNTRIED, "Choice of model: not tried, since it has ended."
    if options.model_option is None:
        return Mark.NO, "It offers no choice of model among its config options."
    before, served = options.model, options.served or ()
    other = next((model for model in served if model != before), None)
    if other is None:
        return Mark.NO, f"It offers no model but {before or 'its own'}."
    now = await _set_model(patient, other)
    again = await _set_model(patient, before) if before else now
    if now != other:
        return Mark.NO, f"It lists {len(served)} models, but kept {now} when {other} was set."
    if before and again != before:
        return Mark.PARTLY, f"It lists {len(served)} models; {other} can be set, but not {before}."
    return Mark.YES, f"It lists {len(served)} models, and another one can be set."


async def _set_model(patient: Patient, model: str) -> str:
    """Set a model; which one the agent says it uses then."""
    option = patient.options.model_option or {}
    params = {"sessionId": patient.session_id, "configId": str(option.get("id")), "value": model}
    reply = await patient.ask(await patient.runtime.ready(), "session/set_config_option", params)
    patient.options.learn(reply.fields)
    return patient.options.model


async def _answer(patient: Patient) -> Told:
    limits = patient.runtime.watchdogs
    call, ear = await patient.send_prompt()
    with anyio.fail_after(limits.first_sign_s + limits.silence_s):
        reply = await _unless_silent(call, ear.running.watch)
    end = ear.running.intake.end(reply)
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


async def _cancel(patient: Patient) -> Told:
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


def _cancelled(reply: Reply) -> Told:
    reason = reply.fields.get("stopReason")
    if reason == StopReason.CANCELLED:
        return Mark.YES, "It answers a cancel with cancelled."
    told = "an error" if reply.error is not None else str(reason)[:40]
    return Mark.PARTLY, f"It answers a cancel with {told}, which is read as cancelled."


async def _kill(patient: Patient) -> Told:
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


async def _respawn(patient: Patient) -> Told:
    await patient.runtime.replace()
    return Mark.YES, "It starts again."


async def _load(patient: Patient) -> Told:
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
    return Mark.PARTLY, f"It offers {method}, but not for an empty session; {WITH_PROMPT}."


async def _goodbye(patient: Patient) -> Told:
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
    run: Callable[[Patient], Awaitable[Told]]
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
    Check("answer", "Answer", _answer, needs=("session",), costs=True, vital=True),
    Check("cancel", "Cancel", _cancel, needs=("session", "answer"), costs=True),
    # After the prompts: they go to the user's own model, which not every agent sets again.
    Check("model", "Choice of model", _model, needs=("session",)),
    Check("kill", "Kill", _kill, needs=("start",), vital=True),
    Check("respawn", "Start after a death", _respawn, needs=("start",), vital=True),
    Check("load", "Load after a death", _load, needs=("session", "respawn")),
    Check("goodbye", "Goodbye", _goodbye, needs=("respawn",)),
)
