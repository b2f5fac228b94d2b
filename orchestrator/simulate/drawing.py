"""Pieces of pictures as inline SVG: axes, lines, areas and marks.  Colours come from the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Final

from attrs import frozen

WIDTH: Final = 1040
LEFT, RIGHT = 64.0, 32.0
Box = tuple[float, float, float, float]
"""Left, top, width and height; or both ends of a line."""
TIMES: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 86_400)


@frozen
class Axis:
    """A way from values to places along the width or height of a picture."""

    low: float
    high: float
    start: float
    end: float
    bend: Callable[[float], float] = float
    """How values are stretched: evenly, by root, by logarithm."""

    def at(self, value: float) -> float:
        low, high = self.bend(self.low), self.bend(self.high)
        share = (self.bend(value) - low) / (high - low) if high > low else 0.0
        return round(self.start + share * (self.end - self.start), 1)


def svg(height: int, body: Iterable[str], label: str) -> str:
    """A picture; `label` tells those who cannot see it what it shows."""
    inner = "\n".join(body)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(label)}">\n'
        f"{inner}\n</svg>"
    )


def rect(box: Box, kind: str, words: str = "") -> str:
    """A box; `words` are shown where somebody points at it."""
    x, y, width, height = box
    head = f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'{head} rx="1.5"/>' if not words else f'{head} rx="1.5">{_title(words)}</rect>'


def stroke(ends: Box, kind: str, words: str = "") -> str:
    """A straight line between two places."""
    x1, y1, x2, y2 = ends
    head = f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f"{head}/>" if not words else f"{head}>{_title(words)}</line>"


def point(x: float, y: float, kind: str, words: str) -> str:
    """A small mark of its kind's own shape."""
    shape = _SHAPES[kind]
    path = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in shape)
    return f'<polygon class="{kind}" points="{path}">{_title(words)}</polygon>'


_SHAPES: Final = {
    "warned": ((-4, 4), (4, 4), (0, -3)),
    "error": ((-3.5, -3.5), (3.5, -3.5), (3.5, 3.5), (-3.5, 3.5)),
    "acted": ((0, -5), (4.5, 0), (0, 5), (-4.5, 0)),
}
"""A warning is a triangle, an error a square, a person's doing a diamond: not by colour alone."""


def text(x: float, y: float, words: str, kind: str) -> str:
    """Words at a place."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def _title(words: str) -> str:
    return f"<title>{escape(words)}</title>"


def area(x: Axis, y: Axis, values: Sequence[float], step_s: float, kind: str) -> str:
    """What lies under values that each hold for `step_s`."""
    end = x.at(len(values) * step_s)
    floor = [f"{end},{y.start}", f"{x.start},{y.start}"]
    return f'<path class="{kind}" d="M{" L".join(_steps(x, y, values, step_s) + floor)} Z"/>'


def line(x: Axis, y: Axis, values: Sequence[float], step_s: float, kind: str) -> str:
    """Values that each hold for `step_s`, as one line."""
    return f'<path class="{kind}" d="M{" L".join(_steps(x, y, values, step_s))}"/>'


def path(spots: Sequence[tuple[float, float]], kind: str) -> str:
    """A line from spot to spot."""
    return f'<path class="{kind}" d="M{" L".join(f"{x},{y}" for x, y in spots)}"/>'


def _steps(x: Axis, y: Axis, values: Sequence[float], step_s: float) -> list[str]:
    points = []
    for place, value in enumerate(values):
        up = y.at(value)
        points += [f"{x.at(place * step_s)},{up}", f"{x.at((place + 1) * step_s)},{up}"]
    return points


def rows(y: Axis, words: Callable[[float], str]) -> list[str]:
    """Lines across, with their values."""
    body = []
    for part in range(5):
        value = y.high * part / 4
        up = y.at(value)
        body += [
            stroke((LEFT, up, WIDTH - RIGHT, up), "grid"),
            text(LEFT - 8, up + 4, words(float(f"{value:.3g}")), "tick end"),
        ]
    return body


def columns(x: Axis, bottom: float, ticks: Iterable[float]) -> list[str]:
    """Lines upward, with their times; those that would stand on each other are left out."""
    body: list[str] = []
    last = -math.inf
    for tick in ticks:
        place = x.at(tick)
        if place - last < _APART:
            continue
        last = place
        body += [
            stroke((place, bottom, place, bottom + 5), "grid"),
            text(place, bottom + 20, _clock(tick), "tick middle"),
        ]
    return body


_APART: Final = 40.0


def _clock(seconds: float) -> str:
    """A tick's time: `30 s`, `5 min`, `1 h 30`."""
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004 - a minute
        return f"{whole} s" if whole else "0"
    if whole < 3600:  # noqa: PLR2004 - an hour
        minutes, rest = divmod(whole, 60)
        return f"{minutes}:{rest:02} min" if rest else f"{minutes} min"
    hours, rest = divmod(whole // 60, 60)
    return f"{hours} h {rest:02}" if rest else f"{hours} h"


def time_ticks(duration_s: float) -> list[float]:
    """Round times along a picture, not too many."""
    step = next((t for t in TIMES if duration_s / t <= _MOST_TICKS), TIMES[-1])
    return [step * place for place in range(int(duration_s / step) + 1)]


_MOST_TICKS: Final = 10


def ceiling(peak: float) -> float:
    """The next round number above, that four lines divide well."""
    size = 10.0 ** math.floor(math.log10(peak))
    return next(
        size * step for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if size * step >= peak
    )
