"""`orchestrator doctor`: what recovery can do with an agent, before anything goes wrong."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import Parameter

from orchestrator.acp.doctor import examine
from orchestrator.acp.process import Command, CommandMissingError, resolve
from orchestrator.acp.runtime import Runtime, StartFailedError
from orchestrator.cli.chosen import Chosen
from orchestrator.cli.codes import Exit, Halt
from orchestrator.cli.hosting import run_async
from orchestrator.cli.terminal import Output
from orchestrator.settings.model import Watchdogs

_CHOSEN: Final = Chosen()
_PLAIN: Final = Output()


def doctor(
    *command: Annotated[str, Parameter(allow_leading_hyphen=True, show=False)],
    chosen: Chosen = _CHOSEN,
    output: Output = _PLAIN,
) -> int:
    """Start an agent and say what recovery can do with it.

    orchestrator doctor [OPTIONS] -- COMMAND [ARG...]
    """
    loaded = chosen.load(output)
    try:
        resolved = resolve(command)
    except CommandMissingError as error:
        raise Halt("agent_not_found" if command else "usage", str(error), field="COMMAND") from None
    try:
        run_async(_main, resolved, loaded.settings.watchdogs, output)
    except StartFailedError as error:
        raise Halt("agent_start_failed", error.verdict.title, field=resolved.name) from None
    return Exit.OK


async def _main(command: Command, watchdogs: Watchdogs, output: Output) -> None:
    async with Runtime(command, watchdogs) as runtime:
        for finding in await examine(runtime):
            output.stdout.print(f"{finding.mark:<8}{finding.text}", soft_wrap=True)
