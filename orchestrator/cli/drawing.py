"""Draw a timeline: live on a terminal, a line for each change elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from orchestrator.cli.timeline import Mark, Row, Timeline
from orchestrator.failure.redact import terminal_line

_LOOKS: Final[Mapping[Mark, tuple[str, str, str]]] = MappingProxyType(
    {
        Mark.TURN: ("●", "*", "bold"),
        Mark.ATTEMPT: ("→", ">", "cyan"),
        Mark.LANDED: ("✓", "+", "green"),
        Mark.FAILED: ("✗", "x", "red"),
        Mark.STOPPED: ("■", "#", "magenta"),
        Mark.WAIT: ("◷", "~", "yellow"),
        Mark.WAITED: ("◷", "~", "dim"),
        Mark.RECOVERY: ("↻", "@", "blue"),
        Mark.RECOVERED: ("↻", "@", "blue"),
        Mark.WARNING: ("▲", "!", "yellow"),
        Mark.ERROR: ("▲", "!", "bold red"),
        Mark.DROPPED: ("↩", "<", "magenta"),
        Mark.NOTE: ("·", "-", "dim"),
    }
)
"""Mark to symbol, symbol where the terminal knows no more than ASCII, and style."""
_LABEL: Final = 10
"""Cells of the label, as wide as `attempt 12`."""
_BAR: Final = 20
"""Cells of a wait's bar."""


def is_ascii(console: Console) -> bool:
    """Whether this console's encoding lacks the symbols."""
    try:
        "●✓◷▲━…".encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return True
    return False


def drawn(rows: list[Row], elapsed_s: float, answer: str, *, ascii_only: bool) -> RenderableType:
    """Rows of one turn as they stand now, and its answer below them."""
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", min_width=6, style="dim", no_wrap=True)
    table.add_column(width=1)
    table.add_column(no_wrap=True, min_width=_LABEL)
    table.add_column(ratio=1, overflow="fold")
    for row in rows:
        symbol, plain, style = _LOOKS[row.mark]
        table.add_row(
            f"{row.at_s:.1f} s",
            Text(plain if ascii_only else symbol, style),
            Text(_label(row), style),
            _text(row, elapsed_s, ascii_only=ascii_only),
        )
    if not answer:
        return table
    shown = Text(terminal_line(answer.strip()), "italic")
    return Group(table, Padding(shown, (0, 0, 0, 9)))


def _label(row: Row) -> str:
    return f"{row.label} r{row.revision}" if row.revision > 1 else terminal_line(row.label)


def _text(row: Row, elapsed_s: float, *, ascii_only: bool) -> Text:
    text = Text(terminal_line(row.text), "bold" if row.mark is Mark.TURN else "")
    if row.mark is Mark.WAIT:
        left_s = max(0.0, row.until_s - elapsed_s)
        text.append("  ").append_text(bar(left_s, row.length_s, ascii_only=ascii_only))
    elif row.mark is Mark.WAITED:
        text.append(f"  waited {row.length_s:.1f} s", "dim")
    return text


def bar(left_s: float, length_s: float, *, ascii_only: bool) -> Text:
    """How much of a wait is over, and what is left."""
    done = 1.0 if length_s <= 0 else 1.0 - left_s / length_s
    cells = round(done * _BAR)
    full, empty = ("#", ".") if ascii_only else ("━", "╌")
    drawn_bar = Text(full * cells, "yellow").append(empty * (_BAR - cells), "dim")
    return drawn_bar.append(f" {left_s:.1f} s left")


def line(row: Row) -> str:
    """One change of a row as a line of a log."""
    parts = [f"{_label(row)}: {terminal_line(row.text)}"]
    if row.mark is Mark.WAIT:
        parts.append(f"in {row.length_s:.1f} s")
    elif row.mark is Mark.WAITED:
        parts.append(f"waited {row.length_s:.1f} s")
    return " ".join(parts)


def as_json(row: Row, timeline: Timeline) -> dict[str, object]:
    """One change of a row as an object."""
    told: dict[str, object] = {
        "at_s": round(timeline.elapsed_s, 3),
        "what": str(row.mark),
        "label": row.label,
        "text": row.text,
    }
    if row.revision:
        told["revision"] = row.revision
    if row.length_s:
        told["wait_s"] = round(row.length_s, 3)
    return told
