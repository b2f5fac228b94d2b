"""Pictures of a run as inline SVG: no script, no font, no request; colours come from the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Final

from attrs import frozen

from orchestrator.simulate.measures import Unit, in_words
from orchestrator.simulate.scenario import Stretch
from orchestrator.simulate.tally import BINS, Load, Mark, Result, Sign, Spread, Strip, middle

_WIDTH: Final = 1040
_LEFT, _RIGHT = 64.0, 32.0
Box = tuple[float, float, float, float]
"""Left, top, width and height; or both ends of a line."""
_MERGED: Final = 2
"""Bins of a load that one step of the picture shows."""
_TIMES: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 86_400)


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


# Load over time -----------------------------------------------------------------------------------


def load_over_time(load: Load, duration_s: float, plays: int, outage: Stretch | None) -> str:
    """Calls a second: those of new turns, those of retries above them, and what landed."""
    height, top, bottom = 300, 22.0, 34.0
    step_s = load.bin_s * _MERGED
    new, calls, landed = (
        _per_second(counts, step_s * max(1, plays))
        for counts in (load.turns, load.calls, load.landed)
    )
    peak = max([*new, *calls, *landed, 1e-9])
    x = Axis(0.0, duration_s, _LEFT, _WIDTH - _RIGHT)
    y = Axis(0.0, _ceiling(peak), height - bottom, top)
    body = []
    if outage is not None:
        left, right = x.at(outage.from_s), x.at(min(outage.to_s, duration_s))
        body += [
            _rect((left, top, max(right - left, 2.0), height - bottom - top), "outage"),
            _text((left + right) / 2, top - 7, "outage", "note middle"),
        ]
    body += _rows(y, lambda value: f"{value:g}")
    body += _columns(x, height - bottom, _time_ticks(duration_s))
    body.append(_area(x, y, calls, step_s, "retries"))
    body.append(_area(x, y, new, step_s, "turns"))
    body.append(_line(x, y, landed, step_s, "landed"))
    label = (
        f"Calls a second over time. At most {peak:.3g} calls a second, at most {max(new):.3g} of"
        " them by new turns."
    )
    return _svg(height, body, label)


def _per_second(counts: Sequence[int], seconds: float) -> list[float]:
    return [sum(counts[place : place + _MERGED]) / seconds for place in range(0, BINS, _MERGED)]


# Time to recovery ---------------------------------------------------------------------------------


def recovery(spread: Spread) -> str:
    """How long turns that failed and landed took, with the percentiles that are spoken of."""
    if not spread.total:
        return ""
    height, top, bottom, bars = 220, 48.0, 34.0, 48
    times = [
        (middle(bucket) if bucket else 0.001, count) for bucket, count in spread.counts.items()
    ]
    low = max(0.1, min(time for time, _ in times) * 0.9)
    high = max(max(time for time, _ in times) * 1.1, low * 4)
    x = Axis(low, high, _LEFT, _WIDTH - _RIGHT, math.log)
    heights = [0] * bars
    for time, count in times:
        share = (x.at(max(time, low)) - x.start) / (x.end - x.start)
        heights[min(bars - 1, max(0, int(share * bars)))] += count
    y = Axis(0.0, max(heights) / spread.total, height - bottom, top)
    width = (x.end - x.start) / bars
    body = _columns(x, height - bottom, [t for t in _TIMES if low <= t <= high])
    for place, count in enumerate(heights):
        if count:
            peak = y.at(count / spread.total)
            words = f"{count / spread.total * 100:.1f} % of those that came back"
            body.append(
                _rect(
                    (x.start + place * width + 1, peak, width - 2, height - bottom - peak),
                    "bar",
                    words,
                )
            )
    for share, name, up in _SPOKEN_OF:
        seconds = spread.percentile(share) or low
        across = x.at(min(max(seconds, low), high))
        body.append(_stroke((across, up + 4, across, height - bottom), "mark"))
        words = f"{name} {in_words(Unit.SECONDS, seconds)}"
        side, shift = ("end", -5) if across > _WIDTH - _ROOM else ("start", 5)
        body.append(_text(across + shift, up + 4, words, f"note {side}"))
    return _svg(height, body, f"Distribution of the time to recovery of {spread.total:,} turns.")


_SPOKEN_OF: Final = ((0.5, "p50", 38.0), (0.95, "p95", 24.0), (0.99, "p99", 10.0))
"""Percentiles, each with its label at a height of its own."""
_ROOM: Final = 100.0


# Sample turns -------------------------------------------------------------------------------------

_RESULT: Final = {
    Result.LANDED_AFTER_RETRY: "landed, retried",
    Result.LANDED_AFTER_RECOVERY: "landed, rebuilt",
    Result.FAILED: "failed",
    Result.DENIED: "denied by the budget",
    Result.REFUSED: "refused",
    Result.STOPPED: "stopped",
    Result.SUPERSEDED: "gave way",
}
_SPANS: Final = {
    Sign.SENT: "attempt",
    Sign.WAITS: "wait",
    Sign.RECOVERS: "rebuild",
}
"""What lasts until the next of these, or the end of the attempt."""
_ENDS_SPAN: Final = frozenset({*_SPANS, Sign.FAILED, Sign.LANDED, Sign.ENDED})
_POINTS: Final = {
    Sign.WARNED: "warned",
    Sign.ERROR: "error",
    Sign.ACTED: "acted",
}


def sample_turns(strips: Sequence[Strip]) -> str:
    """One strip a turn: attempts, waits, recoveries, and what the user was told and did."""
    if not strips:
        return ""
    row, top, left = 30.0, 8.0, 176.0
    height = int(top + row * len(strips) + 34)
    longest = max(strip.marks[-1][0] - strip.marks[0][0] for strip in strips)
    x = Axis(0.0, max(longest, 1.0), left, _WIDTH - _RIGHT, math.sqrt)
    body = _columns(x, height - 30.0, [0, *(t for t in _TIMES if t <= longest)])
    for place, strip in enumerate(strips):
        middle_y = top + row * place + row / 2
        body.append(_text(left - 12, middle_y + 4, _RESULT.get(strip.result, "landed"), "end row"))
        body += _strip(strip.marks, x, middle_y)
    return _svg(height, body, f"{len(strips)} sample turns with their attempts and waits.")


def _strip(marks: Sequence[Mark], x: Axis, y: float) -> Iterable[str]:
    start = marks[0][0]
    for place, (when, sign, words) in enumerate(marks):
        since = when - start
        if sign in _SPANS:
            until, how = _span_end(marks, place)
            left, right = x.at(since), x.at(until - start)
            width = max(right - left, 2.5)
            if sign is Sign.WAITS:
                yield _stroke((left, y, left + width, y), "wait", f"waits {words}")
            elif sign is Sign.RECOVERS:
                yield _rect((left, y - 5, width, 10), "rebuild", f"rebuilds: {words}")
            else:
                kind = "good" if how is Sign.LANDED else "bad" if how is Sign.FAILED else "cut"
                said = f"attempt {words}, {'landed' if kind == 'good' else 'did not land'}"
                yield _rect((left, y - 8, width, 16), f"attempt {kind}", said)
        elif sign in _POINTS:
            said = f"{in_words(Unit.SECONDS, since)}: {words}"
            yield _point(x.at(since), y - 12, _POINTS[sign], said)


def _span_end(marks: Sequence[Mark], place: int) -> tuple[float, Sign]:
    """When what began there was over, and by what."""
    for when, sign, _ in marks[place + 1 :]:
        if sign in _ENDS_SPAN:
            return when, sign
    return marks[-1][0], marks[-1][1]


# Pieces -------------------------------------------------------------------------------------------


def _svg(height: int, body: Iterable[str], label: str) -> str:
    inner = "\n".join(body)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(label)}">\n'
        f"{inner}\n</svg>"
    )


def _rect(box: Box, kind: str, words: str = "") -> str:
    x, y, width, height = box
    head = f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'{head} rx="1.5"/>' if not words else f'{head} rx="1.5">{_title(words)}</rect>'


def _stroke(ends: Box, kind: str, words: str = "") -> str:
    x1, y1, x2, y2 = ends
    head = f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f"{head}/>" if not words else f"{head}>{_title(words)}</line>"


def _point(x: float, y: float, kind: str, words: str) -> str:
    shape = _SHAPES[kind]
    path = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in shape)
    return f'<polygon class="{kind}" points="{path}">{_title(words)}</polygon>'


_SHAPES: Final = {
    "warned": ((-4, 4), (4, 4), (0, -3)),
    "error": ((-3.5, -3.5), (3.5, -3.5), (3.5, 3.5), (-3.5, 3.5)),
    "acted": ((0, -5), (4.5, 0), (0, 5), (-4.5, 0)),
}
"""A warning is a triangle, an error a square, a person's doing a diamond: not by colour alone."""


def _text(x: float, y: float, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def _title(words: str) -> str:
    return f"<title>{escape(words)}</title>"


def _area(x: Axis, y: Axis, values: Sequence[float], step_s: float, kind: str) -> str:
    end = x.at(len(values) * step_s)
    floor = [f"{end},{y.start}", f"{x.start},{y.start}"]
    return f'<path class="{kind}" d="M{" L".join(_steps(x, y, values, step_s) + floor)} Z"/>'


def _line(x: Axis, y: Axis, values: Sequence[float], step_s: float, kind: str) -> str:
    return f'<path class="{kind}" d="M{" L".join(_steps(x, y, values, step_s))}"/>'


def _steps(x: Axis, y: Axis, values: Sequence[float], step_s: float) -> list[str]:
    points = []
    for place, value in enumerate(values):
        up = y.at(value)
        points += [f"{x.at(place * step_s)},{up}", f"{x.at((place + 1) * step_s)},{up}"]
    return points


def _rows(y: Axis, words: Callable[[float], str]) -> list[str]:
    """Lines across, with their values."""
    body = []
    for part in range(5):
        value = y.high * part / 4
        up = y.at(value)
        body += [
            _stroke((_LEFT, up, _WIDTH - _RIGHT, up), "grid"),
            _text(_LEFT - 8, up + 4, words(float(f"{value:.3g}")), "tick end"),
        ]
    return body


def _columns(x: Axis, bottom: float, ticks: Iterable[float]) -> list[str]:
    """Lines upward, with their times; those that would stand on each other are left out."""
    body: list[str] = []
    last = -math.inf
    for tick in ticks:
        place = x.at(tick)
        if place - last < _APART:
            continue
        last = place
        body += [
            _stroke((place, bottom, place, bottom + 5), "grid"),
            _text(place, bottom + 20, _clock(tick), "tick middle"),
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


def _time_ticks(duration_s: float) -> list[float]:
    step = next((t for t in _TIMES if duration_s / t <= _MOST_TICKS), _TIMES[-1])
    return [step * place for place in range(int(duration_s / step) + 1)]


_MOST_TICKS: Final = 10


def _ceiling(peak: float) -> float:
    """The next round number above, that four lines divide well."""
    size = 10.0 ** math.floor(math.log10(peak))
    return next(
        size * step for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if size * step >= peak
    )
