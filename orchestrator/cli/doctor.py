"""`orchestrator doctor`: what recovery can do with an agent, before anything goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Final

from attrs import asdict
from cyclopts import Parameter
from rich.text import Text

from orchestrator.acp.doctor import Finding, Mark, Patient, examine, failed, remedies
from orchestrator.acp.process import Command, CommandMissingError, resolve
from orchestrator.acp.runtime import Runtime
from orchestrator.cli.chosen import Chosen
from orchestrator.cli.codes import Exit, Halt
from orchestrator.cli.hosting import run_async
from orchestrator.cli.terminal import Output
from orchestrator.failure.kinds import Action, Kind
from orchestrator.failure.redact import terminal_line
from orchestrator.failure.verdict import Verdict
from orchestrator.settings.load import Loaded

_CHOSEN: Final = Chosen()
_PLAIN: Final = Output()
_STYLES: Final = {Mark.YES: "green", Mark.PARTLY: "yellow", Mark.NO: "red", Mark.UNTRIED: "dim"}


def doctor(
    *command: Annotated[str, Parameter(allow_leading_hyphen=True, show=False)],
    prompt: str = "",
    folder: Path | None = None,
    chosen: Chosen = _CHOSEN,
    output: Output = _PLAIN,
) -> int:
    """Start an agent, try it out, and say what recovery can do with it.

    orchestrator doctor [OPTIONS] -- COMMAND [ARG...]

    It is started, opened a session, killed, started again and given its old session; nothing of it
    is left behind.  It is sent no prompt unless you give one.

    Parameters
    ----------
    prompt
        Send this twice: once to be answered, once to be cut off.  Your provider may charge for it.
    folder
        Where the agent works.  Default: the current folder.
    """
    loaded = chosen.load(output)
    try:
        resolved = resolve(command, folder=str(folder) if folder else None)
    except CommandMissingError as error:
        raise Halt("agent_not_found" if command else "usage", str(error), field="COMMAND") from None
    tell = _teller(output)
    patient = run_async(_examine, resolved, loaded, prompt, tell)
    hopes = remedies(patient.found)
    if output.json:
        output.data(_as_json(patient, hopes))
    elif hopes:
        output.stdout.print("\nWhat recovery can do:")
        _print(output, hopes)
    if patient.found["start"].mark is Mark.NO and patient.refusal is not None:
        raise _unreachable(patient.refusal, resolved.name)
    return Exit.FAILED if failed(patient.found) else Exit.OK


async def _examine(
    command: Command, loaded: Loaded, prompt: str, tell: Callable[[Finding], None]
) -> Patient:
    async with Runtime(command, loaded.settings.watchdogs) as runtime:
        patient = Patient(runtime, prompt, tell)
        await examine(patient)
    return patient


def _teller(output: Output) -> Callable[[Finding], None]:
    """Print each finding as it is made; JSON comes in one piece at the end."""

    def tell(finding: Finding) -> None:
        _print(output, [finding])

    return (lambda _: None) if output.json else tell


def _print(output: Output, findings: Iterable[Finding]) -> None:
    for found in findings:
        mark = Text(f"{found.mark:<9}", _STYLES[found.mark])
        output.stdout.print(mark + Text(terminal_line(found.text)), soft_wrap=True)


def _as_json(patient: Patient, hopes: Iterable[Finding]) -> dict[str, object]:
    return {
        "agent": patient.runtime.name,
        "checks": [asdict(found) for found in patient.found.values()],
        "recovery": [asdict(hope) for hope in hopes],
    }


def _unreachable(verdict: Verdict, name: str) -> Halt:
    code = "agent_not_found" if verdict.kind is Kind.AGENT_NOT_FOUND else "agent_start_failed"
    hint = f"sign in with {name} itself first" if Action.LOGIN in verdict.actions else ""
    problems = (verdict.details,) if verdict.details else ()
    return Halt(code, verdict.title, field=name, hint=hint, problems=problems)
