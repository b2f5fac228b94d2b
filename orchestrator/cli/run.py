"""`orchestrator run`: a conversation with any ACP agent, its failures waited out and mended."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import anyio
from attrs import define, frozen
from cyclopts import Parameter

from orchestrator.acp.agent import SessionFailedError
from orchestrator.acp.process import Command, CommandMissingError, resolve
from orchestrator.acp.runtime import StartFailedError
from orchestrator.cli.chosen import Chosen
from orchestrator.cli.codes import Exit, Halt
from orchestrator.cli.conversation import Conversation
from orchestrator.cli.following import follow
from orchestrator.cli.hosting import Hosted, hosted, run_async
from orchestrator.cli.listening import listening
from orchestrator.cli.terminal import Output
from orchestrator.failure.kinds import Action, Kind
from orchestrator.failure.verdict import Verdict
from orchestrator.runner import Outcome, Turn
from orchestrator.settings.load import Loaded
from orchestrator.turn.effects import How

if TYPE_CHECKING:
    from orchestrator.service.serve import Listener

_CHOSEN: Final = Chosen()
_PLAIN: Final = Output()
_ASK: Final = "> "
_ENDED_BY: Final = {
    signal.SIGINT: ("interrupted", "stopped by Ctrl-C"),
    signal.SIGTERM: ("terminated", "ended by SIGTERM"),
    signal.SIGHUP: ("terminated", "ended, because the terminal was closed"),
}
_EXITS: Final = {How.LANDED: Exit.OK, How.STOPPED: Exit.INTERRUPTED}
"""How a turn ended to the command's exit; anything else is a failure."""


def run(
    *command: Annotated[str, Parameter(allow_leading_hyphen=True, show=False)],
    prompt: str | None = None,
    folder: Path | None = None,
    session: str = "",
    allow_tools: bool = False,
    listen: str | None = None,
    chosen: Chosen = _CHOSEN,
    output: Output = _PLAIN,
) -> int:
    """Talk to an agent; its failures are waited out, and the agent is restarted when it dies.

    orchestrator run [OPTIONS] -- COMMAND [ARG...]

    COMMAND starts any agent that speaks the Agent Client Protocol on stdin and stdout.  Without
    --prompt each line you type is a message, or the whole of a pipe is one.  The answer goes to
    stdout, everything else to stderr.  Ctrl-C stops the turn; a second one kills the agent.

    Parameters
    ----------
    prompt
        Send this one message and end.
    folder
        Where the agent works.  Default: the current folder.
    session
        Go on with this session of the agent.
    allow_tools
        Answer the agent's permission requests with yes.  Default: no.
    listen
        Serve metrics and incidents at HOST:PORT meanwhile.
    """
    loaded = chosen.load(output)
    if folder is not None and not folder.is_dir():
        raise Halt("usage", f"the folder {folder} is not there", field="--folder")
    try:
        resolved = resolve(command, folder=str(folder) if folder else None)
    except CommandMissingError as error:
        code = "agent_not_found" if command and command[0] else "usage"
        raise Halt(code, str(error), field="COMMAND") from None
    listener = listening(listen) if listen else None
    plan = Plan(resolved, prompt, session, allow_tools=allow_tools)
    return run_async(_Run(plan, chosen, loaded, output, listener).main)


@frozen
class Plan:
    """What the user asked for."""

    command: Command
    prompt: str | None
    session: str
    allow_tools: bool


@define(eq=False)
class _Run:
    plan: Plan
    chosen: Chosen
    loaded: Loaded
    output: Output
    listener: Listener | None
    _turn: Turn | None = None
    _ended_by: signal.Signals | None = None
    """The signal that ended everything."""

    async def main(self) -> int:
        """Run the whole conversation; answer the exit code."""
        code: int = Exit.INTERRUPTED
        async with anyio.create_task_group() as tasks:
            await tasks.start(self._mind_signals, tasks.cancel_scope)
            async with hosted(
                self.plan.command,
                self.loaded.settings,
                listener=self.listener,
                settings_ok=self.loaded.ok,
                allow_tools=self.plan.allow_tools,
                load=self.plan.session,
            ) as host:
                code = await self._converse(host)
            tasks.cancel_scope.cancel()
        if self._ended_by is not None:
            raise Halt(*_ENDED_BY[self._ended_by])
        return code

    async def _mind_signals(
        self, scope: anyio.CancelScope, *, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        """Ctrl-C stops the turn, the next one everything; a hang-up or SIGTERM all at once."""
        with anyio.open_signal_receiver(*_ENDED_BY) as signals:
            task_status.started()
            async for number in signals:
                turn = self._turn
                if number == signal.SIGINT and turn is not None and not turn.stopping:
                    turn.stop()
                    continue
                self._ended_by = number
                if turn is not None:
                    turn.stop(hard=True)
                scope.cancel()

    async def _converse(self, host: Hosted) -> int:
        await self._open(host)
        code: int = Exit.OK
        async with anyio.create_task_group() as tasks:
            conversation = Conversation(self.output, tasks)
            told = (host.metrics, self.output.note, host.put_in_force)
            tasks.start_soon(follow, self.chosen, self.loaded, *told)
            async for prompt in self._prompts():
                outcome = await self._one(host, conversation, prompt)
                code = self._code(outcome)
            tasks.cancel_scope.cancel()
        return code

    async def _open(self, host: Hosted) -> None:
        """Start the agent now, so that what can't work is told before anybody writes a message."""
        try:
            await host.agent.open()
        except (StartFailedError, SessionFailedError) as error:
            verdict = error.verdict
            if not verdict.transient and verdict.recovery is None:
                raise self._unreachable(verdict) from None

    def _unreachable(self, verdict: Verdict) -> Halt:
        code = "agent_not_found" if verdict.kind is Kind.AGENT_NOT_FOUND else "agent_start_failed"
        hint = ""
        if Action.LOGIN in verdict.actions:
            hint = f"sign in with {self.plan.command.name} itself first"
        problems = (verdict.details,) if verdict.details else ()
        return Halt(code, verdict.title, field=self.plan.command.name, hint=hint, problems=problems)

    async def _one(self, host: Hosted, conversation: Conversation, prompt: str) -> Outcome:
        async with host.session.turn(prompt) as turn:
            self._turn = turn
            async for progress in turn:
                conversation.show(progress)
        self._turn = None
        outcome = await turn
        conversation.end(outcome, host.agent.session_id)
        return outcome

    def _code(self, outcome: Outcome) -> int:
        code = _EXITS.get(outcome.how, Exit.FAILED)
        if code is Exit.FAILED and self.output.json and outcome.verdict is not None:
            told = Halt("turn_failed", outcome.verdict.title)
            self.output.message(told.as_json())
        return code

    async def _prompts(self) -> AsyncIterator[str]:
        """The one that was given, the whole of a pipe, or each line that is typed."""
        if self.plan.prompt is not None:
            yield self.plan.prompt
        elif not sys.stdin.isatty():
            text = await anyio.to_thread.run_sync(sys.stdin.read)
            if text.strip():
                yield text
        else:
            async for line in self._typed():
                if line.strip():
                    yield line

    async def _typed(self) -> AsyncIterator[str]:
        """Lines of the terminal until Ctrl-D.  Read without a thread: Ctrl-C gets through."""
        held = b""
        while True:
            *lines, held = held.split(b"\n")
            for line in lines:
                yield line.decode("utf-8", "replace")
            self._ask()
            await anyio.wait_readable(sys.stdin)
            data = os.read(sys.stdin.fileno(), 65_536)
            if not data:
                if held:
                    yield held.decode("utf-8", "replace")
                return
            held += data

    def _ask(self) -> None:
        if not self.output.json:
            sys.stderr.write(_ASK)
            sys.stderr.flush()
