"""`orchestrator proxy`: between any ACP client and any ACP agent, on stdin and stdout."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TextIO

import anyio
from attrs import evolve
from cyclopts import Parameter

from orchestrator.acp.process import CommandMissingError, resolve
from orchestrator.acp.proxy.own_retries import lowered
from orchestrator.acp.proxy.serve import Setup
from orchestrator.acp.proxy.store import Store, default_folder
from orchestrator.cli.chosen import Chosen
from orchestrator.cli.codes import Exit, Halt
from orchestrator.cli.following import follow
from orchestrator.cli.hosting import Served, run_async
from orchestrator.cli.listening import listening
from orchestrator.cli.log import Log
from orchestrator.cli.loop_noise import LoopNoise
from orchestrator.cli.terminal import Output
from orchestrator.journal import JournalObserver
from orchestrator.metrics import MetricsObserver
from orchestrator.runner import Observer

if TYPE_CHECKING:
    from orchestrator.service.serve import Listener

_CHOSEN: Final = Chosen()
_PLAIN: Final = Output()


def proxy(
    *command: Annotated[str, Parameter(allow_leading_hyphen=True, show=False)],
    notices: bool = False,
    own_retries: bool = False,
    metrics: str | None = None,
    journal: Path | None = None,
    log: Path | None = None,
    state_dir: Path | None = None,
    chosen: Chosen = _CHOSEN,
    output: Output = _PLAIN,
) -> int:
    """Speak the Agent Client Protocol for an agent, and wait out, mend or tell its failures.

    orchestrator proxy [OPTIONS] -- COMMAND [ARG...]

    Put it in front of the agent's command in your editor's configuration.  An overload is waited
    out, a dead agent is replaced, a lost session is rebuilt once, a silent one is noticed; what
    needs no decision passes as it came.

    Parameters
    ----------
    notices
        Show short rows of text about retries in a client that reads no failure records.
    own_retries
        Lower the agent's own retries, where it documents a setting for them.
    metrics
        Serve metrics and incidents at HOST:PORT.
    journal
        Write every event and decision to this file, as JSON lines.
    log
        Write one line for each decision to this file.  Default: stderr.
    state_dir
        Where a reload finds its incidents.  Default: $XDG_STATE_HOME/turn-orchestrator/proxy.
    """
    loaded = chosen.load(output)
    settings = loaded.settings
    try:
        resolved = resolve(command)
    except CommandMissingError as error:
        raise Halt("agent_not_found" if command else "usage", str(error), field="COMMAND") from None
    listener = listening(metrics, "--metrics") if metrics else None
    with _opened(log) as file:
        write = Log(file.fileno()).write
        if listener is not None:
            write(f"metrics at {listener.url}/metrics")
        if own_retries:
            resolved, sentence = lowered(resolved)
            write(sentence)
        counted, noise = MetricsObserver(settings.metrics), LoopNoise()
        counted.settings_loaded(ok=loaded.ok)
        observers: list[Observer] = [counted, noise]
        if journal is not None:
            observers.append(_journal(journal))
        setup = Setup(
            resolved,
            settings,
            store=Store(state_dir or default_folder(), resolved.name),
            notices=notices,
            write=write,
            observers=observers,
            beside=partial(follow, chosen, loaded, counted, write),
        )
        run_async(_main, setup, noise, listener, counted)
    return Exit.OK


async def _main(
    setup: Setup, noise: LoopNoise, listener: Listener | None, metrics: MetricsObserver
) -> None:
    noise.install()
    if listener is None:
        await setup.run()
        return
    served = Served(listener, metrics)
    setup = evolve(setup, sinks=[*setup.sinks, served.incidents])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(served.serve)
        await setup.run()
        tasks.cancel_scope.cancel()


def _opened(path: Path | None) -> TextIO:
    if path is None:
        return open(sys.stderr.fileno(), "w", encoding="utf-8", closefd=False)
    try:
        return path.open("a", encoding="utf-8")
    except OSError as error:
        raise Halt(
            "unreadable_file", f"{path} can't be written: {error.strerror}", field="--log"
        ) from None


def _journal(path: Path) -> Observer:
    try:
        observer = JournalObserver(path)
        observer.open()  # at the first turn it would be too late to say that it can't be written
    except OSError as error:
        told = f"{path} can't be written: {error.strerror}"
        raise Halt("unreadable_file", told, field="--journal") from None
    return observer
