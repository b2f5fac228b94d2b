"""`orchestrator demo`: three turns over an agent that fails on purpose, as its own process."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from orchestrator.acp.process import resolve
from orchestrator.cli.codes import Exit
from orchestrator.cli.hosting import Hosted, hosted, run_async
from orchestrator.cli.listening import listening, told_to_end
from orchestrator.cli.show import Show, show_for
from orchestrator.cli.summary import summarise
from orchestrator.cli.terminal import Output
from orchestrator.cli.timeline import Timeline
from orchestrator.runner import Progress, RetryScheduled
from orchestrator.settings.model import Curve, Ladders, Settings

if TYPE_CHECKING:
    from orchestrator.service.serve import Listener

_PLAIN: Final = Output()
_SETTINGS: Final = Settings(ladders=Ladders(curve=Curve(first_s=1.0, factor=1.5, cap_s=2.0)))
"""Short waits, so that somebody watches to the end."""
_SCRIPT: Final = "overloaded,dropped,death,answer,answer,overloaded"
_PACE_S: Final = 0.06
_STOP_AFTER_S: Final = 0.5
_TURNS: Final = (
    ("Why do the tests fail? Fix them.", False),
    ("Thank you. Once more, in short?", False),
    ("Now deploy it.", True),
)
"""What the user says, and whether the user presses Stop while the turn waits."""


def demo(*, listen: str | None = None, output: Output = _PLAIN) -> int:
    """Watch three turns fail, wait, recover and answer, over an agent that fails on purpose.

    The agent runs as a process of its own.  The first turn meets an overload, a dropped connection
    and the agent's death in the middle of its answer; the second lands at once; the third is
    stopped while it waits, and hands back what it had planned.

    Parameters
    ----------
    listen
        Serve the metrics at HOST:PORT as well, and go on serving until Ctrl-C.
    """
    listener = listening(listen) if listen else None
    run_async(_run, output, listener)
    return Exit.OK


async def _run(output: Output, listener: Listener | None) -> None:
    timeline = Timeline(anyio.current_time)
    show = show_for(timeline, output)
    with tempfile.TemporaryDirectory(prefix="orchestrator-demo-") as folder:
        state = str(Path(folder, "state.json"))
        words = [sys.executable, "-m", "orchestrator.acp.flaky", "--state", state]
        words += ["--script", _SCRIPT, "--pace", str(_PACE_S)]
        command = resolve(words, folder=folder)
        async with hosted(
            command, _SETTINGS, sinks=[timeline], observers=[timeline], listener=listener
        ) as host:
            output.note("three turns over an agent that fails on purpose, as a process of its own")
            timeline.begin()
            for prompt, stops in _TURNS:
                await _turn(host, show, prompt, stops=stops)
            show.summary(summarise(host.metrics))
            if listener is not None:
                output.note(f"serving {listener.url}/metrics; Ctrl-C ends it")
                await told_to_end()


async def _turn(host: Hosted, show: Show, prompt: str, *, stops: bool) -> None:
    """One turn; with `stops`, the user presses Stop a moment after the first wait began."""
    turn = host.session.turn(prompt)
    async with anyio.create_task_group() as tasks:

        async def press_stop() -> None:
            await anyio.sleep(_STOP_AFTER_S)
            turn.stop()

        def on_progress(progress: Progress) -> None:
            if stops and isinstance(progress, RetryScheduled):
                tasks.start_soon(press_stop)

        await show.watch(turn, prompt, on_progress)
        tasks.cancel_scope.cancel()
