"""Show turns while they run: drawn live on a terminal, else a line or an object per change."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, Protocol

import anyio
from attrs import asdict, define, field
from rich.live import Live
from rich.text import Text

from orchestrator.cli.drawing import as_json, drawn, is_ascii, line
from orchestrator.cli.summary import Summary, as_table
from orchestrator.cli.terminal import Output, is_plain
from orchestrator.cli.timeline import Row, Timeline
from orchestrator.failure.redact import terminal_line
from orchestrator.runner import Outcome, Progress, TextShown, Turn

_REFRESH_S: Final = 0.08


class Show(Protocol):
    """Watches turns from their begin to their end."""

    async def watch(
        self, turn: Turn, prompt: str, on_progress: Callable[[Progress], None]
    ) -> Outcome: ...

    def summary(self, summary: Summary) -> None: ...


def show_for(timeline: Timeline, output: Output) -> Show:
    """The show that fits where our output goes."""
    if output.json or output.no_color or is_plain(output.stdout.file):  # type: ignore[arg-type]
        return LineShow(timeline, output)
    return LiveShow(timeline, output)


@define(eq=False)
class LiveShow:
    """Rows that change in place.  A turn that is over stays where it was drawn."""

    timeline: Timeline
    output: Output
    _first: int = 0

    async def watch(
        self, turn: Turn, prompt: str, on_progress: Callable[[Progress], None]
    ) -> Outcome:
        """Draw one turn until it is over."""
        self._first = len(self.timeline.rows)
        self.timeline.turn(prompt)
        console = self.output.stdout
        with Live(console=console, auto_refresh=False, vertical_overflow="visible") as live:
            async with turn, anyio.create_task_group() as tasks:
                tasks.start_soon(self._refresh, live)
                async for progress in turn:
                    if isinstance(progress, TextShown):
                        self.timeline.text(progress.text)
                    on_progress(progress)
                tasks.cancel_scope.cancel()
            self._draw(live)
        outcome = await turn
        console.print(Text(f"         {ended(outcome)}\n", "dim"))
        return outcome

    async def _refresh(self, live: Live) -> None:
        while True:
            self._draw(live)
            await anyio.sleep(_REFRESH_S)

    def _draw(self, live: Live) -> None:
        rows = self.timeline.rows[self._first :]
        ascii_only = is_ascii(live.console)
        elapsed_s = self.timeline.elapsed_s
        live.update(
            drawn(rows, elapsed_s, self.timeline.answer, ascii_only=ascii_only), refresh=True
        )

    def summary(self, summary: Summary) -> None:
        """Print what the metrics say."""
        self.output.stdout.print(Text("What a scrape of the metrics says:\n", "bold"))
        self.output.stdout.print(as_table(summary))


@define(eq=False)
class LineShow:
    """One line, or one object, for each change."""

    timeline: Timeline
    output: Output
    _printed: dict[int, str] = field(factory=dict, init=False)
    """Row by identity, and how it was told last."""
    _unwritable: OSError | None = field(default=None, init=False)
    """Why no more can be printed; raised by `watch`, since here it would be an observer's."""

    def __attrs_post_init__(self) -> None:
        self.timeline.on_change = self._changed

    async def watch(
        self, turn: Turn, prompt: str, on_progress: Callable[[Progress], None]
    ) -> Outcome:
        """Print one turn until it is over."""
        self.timeline.turn(prompt)
        async with turn:
            async for progress in turn:
                if self._unwritable is not None:
                    raise self._unwritable
                if isinstance(progress, TextShown):
                    self.timeline.text(progress.text)
                on_progress(progress)
        outcome = await turn
        if self.output.json:
            told = {"how": str(outcome.how), "attempts": outcome.attempts, "text": outcome.text}
            self.output.data({"what": "end", "waited_s": round(outcome.waited_s, 3), **told})
        else:
            if outcome.text:
                self._print(f"answer: {terminal_line(outcome.text.strip())}")
            self._print(ended(outcome))
        return outcome

    def _changed(self, row: Row) -> None:
        text = line(row)
        if self._printed.get(id(row)) == text:
            return
        self._printed[id(row)] = text
        try:
            if self.output.json:
                self.output.data(as_json(row, self.timeline))
                sys.stdout.flush()
            else:
                self._print(text)
        except OSError as error:
            self._unwritable = error

    def _print(self, text: str) -> None:
        self.output.stdout.print(Text(f"{self.timeline.elapsed_s:6.2f} s  {text}"), soft_wrap=True)

    def summary(self, summary: Summary) -> None:
        """Print what the metrics say."""
        if self.output.json:
            self.output.data({"what": "metrics", **asdict(summary), "adds_up": summary.adds_up})
        else:
            self.output.stdout.print(as_table(summary))


def ended(outcome: Outcome) -> str:
    """How a turn ended, in a few words."""
    attempts = "1 attempt" if outcome.attempts == 1 else f"{outcome.attempts} attempts"
    return f"{outcome.how} after {attempts}, {outcome.waited_s:.1f} s of it waiting"
