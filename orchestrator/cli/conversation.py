"""What `run` shows: the answer on stdout as it streams, everything else on stderr."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from typing import Final, TextIO

import anyio
from anyio.abc import TaskGroup
from attrs import define, field
from rich.live import Live
from rich.text import Text

from orchestrator.cli.drawing import bar, is_ascii
from orchestrator.cli.terminal import Output, is_plain
from orchestrator.failure.redact import terminal_line
from orchestrator.incident.record import Record, Severity
from orchestrator.incident.view import Change, Transcript
from orchestrator.runner import (
    NoteDelivered,
    Outcome,
    Progress,
    RecordRevised,
    RecoveryStarted,
    RetryScheduled,
    TextShown,
)

_REFRESH_S: Final = 0.1
_LAYOUT: Final = re.compile(r"([\n\t])")
_ACTIONS: Final = {"retry": "send it again", "login": "sign in", "new_session": "start anew"}


def harmless(text: str) -> str:
    """Foreign text for a terminal: lines and tabs stay, nothing else moves the cursor."""
    parts = _LAYOUT.split(text.replace("\r\n", "\n"))
    return "".join(part if part in {"\n", "\t"} else terminal_line(part) for part in parts)


def _same_place(one: TextIO, other: TextIO) -> bool:
    """Whether two streams end on one terminal, in one pipe or in one file."""
    try:
        return os.path.samestat(os.fstat(one.fileno()), os.fstat(other.fileno()))
    except (OSError, ValueError):  # a stream that is no file
        return False


@define(eq=False)
class Conversation:
    """Prints one conversation."""

    output: Output
    tasks: TaskGroup
    transcript: Transcript = field(factory=Transcript)
    _countdown: Live | None = None
    _mid_line: bool = False
    _shared: bool = field(factory=lambda: _same_place(sys.stdout, sys.stderr))
    """Answer and messages go to one place, so a message has to begin on a line of its own there."""

    def show(self, progress: Progress) -> None:
        """Print one thing that happened."""
        self._stop_counting()
        if self.output.json:
            told = _AS_JSON.get(type(progress))
            if told is not None:
                self.output.data(told(progress))
            return
        match progress:
            case TextShown(text=text):
                self._write(text)
            case RecordRevised(record=record):
                self._record(record)
            case RetryScheduled() as scheduled:
                self._wait(scheduled)
            case RecoveryStarted(step=step, target=target):
                self._say(f"recovering: {step}{f' to {target}' if target else ''}", "blue")
            case NoteDelivered(note=note):
                self._say(note.text, "dim")
            case _:
                return

    def end(self, outcome: Outcome, session_id: str) -> None:
        """The turn is over."""
        self._stop_counting()
        if self.output.json:
            self.output.data(
                {
                    "type": "end",
                    "how": outcome.how,
                    "kind": outcome.verdict.kind if outcome.verdict else None,
                    "text": outcome.text,
                    "attempts": outcome.attempts,
                    "waited_s": round(outcome.waited_s, 3),
                    "session_id": session_id,
                }
            )
        elif self._mid_line:
            self._write("\n")

    def _write(self, text: str) -> None:
        # NO_COLOR is no leave for the agent to write escape sequences: only a pipe gets all of it.
        sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)
        sys.stdout.flush()
        self._mid_line = not text.endswith("\n")

    def _finish_line(self) -> None:
        """A message does not begin in the middle of the answer's line.

        Where the answer goes elsewhere, it is left as it is.
        """
        if self._mid_line and self._shared:
            self._write("\n")

    def _record(self, record: Record) -> None:
        applied = self.transcript.apply(record)
        if applied.change is Change.IGNORED:
            return
        is_error = record.severity is Severity.ERROR
        words = record.title
        if is_error and applied.entry.actions:
            offered = ", ".join(_ACTIONS[action] for action in applied.entry.actions)
            words += f" [you can: {offered}]"
        self._say(f"{record.severity}: {words}", "bold red" if is_error else "yellow")
        if record.details:
            self._say(f"  {record.details}", "dim")

    def _say(self, text: str, style: str) -> None:
        self._finish_line()
        # A log line stays one line; on a terminal words are not cut.
        self.output.stderr.print(Text(terminal_line(text), style), soft_wrap=is_plain(sys.stderr))

    def _wait(self, scheduled: RetryScheduled) -> None:
        of = f" of {scheduled.limit}" if scheduled.limit else ""
        words = f"retry {scheduled.number}{of}"
        if self.output.no_color or is_plain(sys.stderr):
            self._say(f"{words} in {scheduled.delay_s:.1f} s", "yellow")
            return
        self._finish_line()
        self._countdown = Live(console=self.output.stderr, auto_refresh=False, transient=True)
        self._countdown.start()
        self.tasks.start_soon(self._count, self._countdown, words, scheduled.delay_s)

    async def _count(self, live: Live, words: str, length_s: float) -> None:
        """Count a wait down on one line."""
        until = anyio.current_time() + length_s
        ascii_only = is_ascii(live.console)
        while self._countdown is live:
            line = Text(f"{words}  ", "yellow")
            left_s = max(0.0, until - anyio.current_time())
            line.append_text(bar(left_s, length_s, ascii_only=ascii_only))
            live.update(line.append("  Ctrl-C stops", "dim"), refresh=True)
            await anyio.sleep(_REFRESH_S)

    def _stop_counting(self) -> None:
        """Take the line away, before anything else is written."""
        if self._countdown is not None:
            self._countdown.stop()
            self._countdown = None


def _record_as_json(progress: RecordRevised) -> dict[str, object]:
    record = progress.record
    return {
        "type": "record",
        "id": record.id,
        "revision": record.revision,
        "category": record.category,
        "severity": record.severity,
        "title": record.title,
        "details": record.details,
        "actions": list(record.actions),
    }


_AS_JSON: Final[dict[type, Callable[..., dict[str, object]]]] = {
    TextShown: lambda p: {"type": "text", "attempt": p.attempt, "text": p.text},
    RecordRevised: _record_as_json,
    RetryScheduled: lambda p: {
        "type": "wait",
        "family": p.family,
        "number": p.number,
        "limit": p.limit,
        "delay_s": round(p.delay_s, 3),
        "kind": p.kind,
    },
    RecoveryStarted: lambda p: {"type": "recovery", "step": p.step, "target": p.target},
    NoteDelivered: lambda p: {"type": "note", "code": p.note.code, "text": p.note.text},
}
"""Progress to its object; the end has one of its own."""
