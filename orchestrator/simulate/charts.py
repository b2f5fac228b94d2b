"""Pictures of a run as inline SVG: no script, no font, no request; colours come from the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from orchestrator.simulate import drawing
from orchestrator.simulate.drawing import Axis
from orchestrator.simulate.measures import Unit, in_words
from orchestrator.simulate.scenario import Stretch
from orchestrator.simulate.tally import BINS, Load, Mark, Result, Sign, Spread, Strip, middle

MERGED: Final = 2
"""Bins of a load that one step of the picture shows."""


# Load over time -----------------------------------------------------------------------------------


def load_over_time(load: Load, duration_s: float, plays: int, outage: Stretch | None) -> str:
    """Calls a second: those of new turns, those of retries above them, and what landed."""
    height, top, bottom = 300, 22.0, 34.0
    step_s = load.bin_s * MERGED
    new, calls, landed = (
        per_second(counts, step_s * max(1, plays))
        for counts in (load.turns, load.calls, load.landed)
    )
    peak = max([*new, *calls, *landed, 1e-9])
    x = Axis(0.0, duration_s, drawing.LEFT, drawing.WIDTH - drawing.RIGHT)
    y = Axis(0.0, drawing.ceiling(peak), height - bottom, top)
    body = over_time(x, y, outage)
    body.append(drawing.area(x, y, calls, step_s, "retries"))
    body.append(drawing.area(x, y, new, step_s, "turns"))
    body.append(drawing.line(x, y, landed, step_s, "landed"))
    label = (
        f"Calls a second over time. At most {peak:.3g} calls a second, at most {max(new):.3g} of"
        " them by new turns."
    )
    return drawing.svg(height, body, label)


def over_time(x: Axis, y: Axis, outage: Stretch | None) -> list[str]:
    """What any picture over time stands on: its lines, its times, and the outage behind them."""
    body = []
    if outage is not None:
        left, right = x.at(outage.from_s), x.at(min(outage.to_s, x.high))
        body += [
            drawing.rect((left, y.end, max(right - left, 2.0), y.start - y.end), "outage"),
            drawing.text((left + right) / 2, y.end - 7, "outage", "note middle"),
        ]
    body += drawing.rows(y, lambda value: f"{value:g}")
    return body + drawing.columns(x, y.start, drawing.time_ticks(x.high))


def per_second(counts: Sequence[int], seconds: float) -> list[float]:
    """Counts of a load as a rate, in steps of `MERGED` bins of so many seconds together."""
    return [sum(counts[place : place + MERGED]) / seconds for place in range(0, BINS, MERGED)]


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
    x = Axis(low, high, drawing.LEFT, drawing.WIDTH - drawing.RIGHT, math.log)
    heights = [0] * bars
    for time, count in times:
        share = (x.at(max(time, low)) - x.start) / (x.end - x.start)
        heights[min(bars - 1, max(0, int(share * bars)))] += count
    y = Axis(0.0, max(heights) / spread.total, height - bottom, top)
    width = (x.end - x.start) / bars
    body = drawing.columns(x, height - bottom, [t for t in drawing.TIMES if low <= t <= high])
    for place, count in enumerate(heights):
        if count:
            peak = y.at(count / spread.total)
            words = f"{count / spread.total * 100:.1f} % of those that came back"
            body.append(
                drawing.rect(
                    (x.start + place * width + 1, peak, width - 2, height - bottom - peak),
                    "bar",
                    words,
                )
            )
    for share, name, up in _SPOKEN_OF:
        seconds = spread.percentile(share) or low
        across = x.at(min(max(seconds, low), high))
        body.append(drawing.stroke((across, up + 4, across, height - bottom), "mark"))
        words = f"{name} {in_words(Unit.SECONDS, seconds)}"
        side, shift = ("end", -5) if across > drawing.WIDTH - _ROOM else ("start", 5)
        body.append(drawing.text(across + shift, up + 4, words, f"note {side}"))
    return drawing.svg(
        height, body, f"Distribution of the time to recovery of {spread.total:,} turns."
    )


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
    x = Axis(0.0, max(longest, 1.0), left, drawing.WIDTH - drawing.RIGHT, math.sqrt)
    body = drawing.columns(x, height - 30.0, [0, *(t for t in drawing.TIMES if t <= longest)])
    for place, strip in enumerate(strips):
        middle_y = top + row * place + row / 2
        body.append(
            drawing.text(left - 12, middle_y + 4, _RESULT.get(strip.result, "landed"), "end row")
        )
        body += _strip(strip.marks, x, middle_y)
    return drawing.svg(height, body, f"{len(strips)} sample turns with their attempts and waits.")


def _strip(marks: Sequence[Mark], x: Axis, y: float) -> Iterable[str]:
    start = marks[0][0]
    for place, (when, sign, words) in enumerate(marks):
        since = when - start
        if sign in _SPANS:
            until, how = _span_end(marks, place)
            left, right = x.at(since), x.at(until - start)
            width = max(right - left, 2.5)
            if sign is Sign.WAITS:
                yield drawing.stroke((left, y, left + width, y), "wait", f"waits {words}")
            elif sign is Sign.RECOVERS:
                yield drawing.rect((left, y - 5, width, 10), "rebuild", f"rebuilds: {words}")
            else:
                kind = "good" if how is Sign.LANDED else "bad" if how is Sign.FAILED else "cut"
                said = f"attempt {words}, {'landed' if kind == 'good' else 'did not land'}"
                yield drawing.rect((left, y - 8, width, 16), f"attempt {kind}", said)
        elif sign in _POINTS:
            said = f"{in_words(Unit.SECONDS, since)}: {words}"
            yield drawing.point(x.at(since), y - 12, _POINTS[sign], said)


def _span_end(marks: Sequence[Mark], place: int) -> tuple[float, Sign]:
    """When what began there was over, and by what."""
    for when, sign, _ in marks[place + 1 :]:
        if sign in _ENDS_SPAN:
            return when, sign
    return marks[-1][0], marks[-1][1]
