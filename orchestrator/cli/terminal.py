"""Where a command prints: data to stdout, messages to stderr, colour only where it is wanted.

Each stream is judged by itself: stdout in a pipe says nothing about stderr on a terminal.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TextIO

from attrs import frozen
from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from orchestrator.cli.codes import ASKED_FOR, Halt
from orchestrator.failure.redact import terminal_line

STDIN: Final = Path("/dev/stdin")
"""What a bare `-` on the command line stands for; the parser would take it for an option."""
_WIDE: Final = 10_000
"""Columns of a pipe: what is read by a program is never wrapped."""
_READABLE: Final = 100
"""Columns of running text, however wide the window is."""


@Parameter(name="*")
@frozen
class Output:
    """How a command prints; every command takes these."""

    json: bool = False
    """JSON on stdout, and an error as one JSON object on stderr."""
    no_color: bool = False
    """No colour and no cursor movement, as NO_COLOR=1 does."""

    @property
    def stdout(self) -> Console:
        """For data."""
        return console(sys.stdout, plain=self.no_color)

    @property
    def stderr(self) -> Console:
        """For messages; what was printed before on stdout comes first."""
        sys.stdout.flush()
        return console(sys.stderr, plain=self.no_color)

    def say(self, message: str) -> None:
        """One message on stderr; foreign text in it does no harm."""
        say(message, self.stderr)

    def note(self, message: str) -> None:
        """One message on stderr, as an object with `--json`."""
        if self.json:
            self.message({"note": message})
        else:
            self.say(message)

    def warn(self, message: str) -> None:
        """One warning on stderr, as an object with `--json`."""
        if self.json:
            self.message({"warning": message})
        else:
            sentence(self.stderr, _line("warning", "yellow", message))

    def error(self, message: str) -> None:
        """One error on stderr that does not end the command."""
        sentence(self.stderr, _line("error", "bold red", message))

    def message(self, value: object) -> None:
        """One JSON value on one line of stderr."""
        print(json_line(value), file=sys.stderr)

    def data(self, value: object) -> None:
        """One JSON value on one line of stdout."""
        print(json_line(value))


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Let the frame end the command; the reader went away."""
        raise BrokenPipeError


def is_plain(stream: TextIO, environ: Mapping[str, str] | None = None) -> bool:
    """Whether escape sequences are unwelcome on this stream."""
    environ = os.environ if environ is None else environ
    unwelcome = environ.get("NO_COLOR") or environ.get("TERM", "") in {"dumb", "unknown"}
    return bool(unwelcome) or not stream.isatty()


def console(stream: TextIO, *, plain: bool = False) -> Console:
    """A console that writes no escape sequence where none is wanted."""
    plain = plain or is_plain(stream)
    return _Console(
        file=stream,
        force_terminal=not plain,
        color_system=None if plain else "auto",
        no_color=plain,
        width=None if stream.isatty() else _WIDE,
        markup=False,
        highlight=False,
        emoji=False,
    )


def prose(stream: TextIO, *, plain: bool = False) -> Console:
    """A console for running text, such as help: never wider than people read."""
    made = console(stream, plain=plain)
    columns = os.environ.get("COLUMNS", "")
    if not stream.isatty():
        made.width = min(int(columns), _READABLE) if columns.isdigit() and int(columns) else 80
    else:
        made.width = min(made.width, _READABLE)
    return made


def columns(
    out: Console, rows: Sequence[Sequence[Text | str]], *, gap: int = 2, widest: int = 40
) -> None:
    """Rows as aligned columns, without borders and without blanks at the end of a line.

    A cell beyond `widest` pushes the rest of its own line and no other.  On a terminal that is too
    narrow the last cell goes on below, between its words.
    """
    cells = [[Text(c) if isinstance(c, str) else c for c in row] for row in rows]
    lengths = [[cell.cell_len for cell in column] for column in zip(*cells, strict=True)]
    widths = [max((n for n in column if n <= widest), default=0) for column in lengths]
    for row in cells:
        line = Text()
        for cell, width in zip(row[:-1], widths[:-1], strict=True):
            line += cell
            line.append(" " * (max(width - cell.cell_len, 0) + gap))
        if row and out.file.isatty() and line.cell_len + row[-1].cell_len > out.width:
            _folded(out, line, row[-1])
            continue
        line += row[-1] if row else Text()
        line.rstrip()
        out.print(line, soft_wrap=True)


_NARROW: Final = 4
"""Blanks before a cell that stands below its line."""
_ROOM: Final = 24
"""Columns that words need to stand beside what comes before them."""


def _folded(out: Console, line: Text, last: Text) -> None:
    beside = out.width - line.cell_len >= _ROOM
    indent = line.cell_len if beside else _NARROW
    if not beside:
        line.rstrip()
        out.print(line, soft_wrap=True)
        line = Text(" " * indent)
    for words in last.wrap(out, max(out.width - indent, _ROOM)):
        words.rstrip()
        out.print(line + words, soft_wrap=True)
        line = Text(" " * indent)


def sentence(out: Console, text: Text) -> None:
    """One line in a pipe; on a terminal no word is cut."""
    out.print(text, soft_wrap=not out.file.isatty())


def say(message: str, stderr: Console) -> None:
    """One message on stderr; foreign text in it does no harm."""
    sentence(stderr, Text(terminal_line(message)))


def show_error(halt: Halt, *, as_json: bool, plain: bool = False) -> None:
    """The end of a command that did not work: a sentence, what it is about, what to do next."""
    if as_json:
        print(json_line(halt.as_json()), file=sys.stderr)
        return
    stderr = console(sys.stderr, plain=plain)
    named = halt.field and halt.field not in halt.message
    message = f"{halt.field}: {halt.message}" if named else halt.message
    if halt.code in ASKED_FOR:
        sentence(stderr, Text(terminal_line(message)))
        return
    sentence(stderr, _line("error", "bold red", message))
    for problem in halt.problems:
        sentence(stderr, Text(f"  {terminal_line(problem)}"))
    if halt.hint:
        sentence(stderr, _line("hint", "cyan", halt.hint))


def _line(label: str, style: str, message: str) -> Text:
    return Text.assemble((f"{label}: ", style), terminal_line(message))


def json_line(value: object) -> str:
    """Compact JSON in ASCII: one line whatever is in it."""
    return json.dumps(value, separators=(", ", ": "), default=_plain, allow_nan=False)


def _plain(value: Any) -> object:
    if isinstance(value, Iterable):
        return list(value)
    return str(value)
