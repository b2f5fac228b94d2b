"""Pictures of several contenders in one scenario: a line for each, over the same axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from orchestrator.simulate import drawing
from orchestrator.simulate.charts import MERGED, over_time, per_second
from orchestrator.simulate.drawing import Axis
from orchestrator.simulate.scenario import Scenario
from orchestrator.simulate.tally import Load, Result, Tally, middle

_COLOURS: Final = 8
"""After so many contenders the colours come again, broken in another way."""
_STROKES: Final = 4
_LEAST_S: Final = 0.1
_LEAST_SHARE: Final = 0.08
"""A picture of nothing looks like nothing."""


def style(place: int) -> str:
    """The CSS classes of a contender's line; the first one's is the strongest."""
    first = " first" if place == 0 else ""
    return f"who hue{place % _COLOURS} stroke{place // _COLOURS % _STROKES}{first}"


def rates(
    scenario: Scenario, tallies: Sequence[Tally], counts: Callable[[Load], list[int]], what: str
) -> str:
    """What happened each second, contender by contender, before the turns that people began."""
    height, top, bottom = 280, 22.0, 34.0
    lines = [_rate(tally, counts(tally.load)) for tally in tallies]
    asked = _rate(tallies[0], tallies[0].load.turns)
    step_s = tallies[0].load.bin_s * MERGED
    x = Axis(0.0, scenario.duration_s, drawing.LEFT, drawing.WIDTH - drawing.RIGHT)
    peak = max(value for values in [asked, *lines, [1e-9]] for value in values)
    y = Axis(0.0, drawing.ceiling(peak), height - bottom, top)
    body = over_time(x, y, scenario.outage)
    body.append(drawing.area(x, y, asked, step_s, "asked"))
    # The first is drawn last: the others are held to it.
    body += [
        drawing.line(x, y, values, step_s, style(place))
        for place, values in reversed(list(enumerate(lines)))
    ]
    return drawing.svg(height, body, f"{what} over time, at most {peak:.3g} a second.")


def _rate(tally: Tally, counts: Sequence[int]) -> list[float]:
    return per_second(counts, tally.load.bin_s * MERGED * max(1, tally.plays))


def came_back(tallies: Sequence[Tally]) -> str:
    """Of the turns that did not land at once: how many had their answer, how soon after failing."""
    shares = [_shares(tally) for tally in tallies]
    times = [seconds for points in shares for seconds, _ in points]
    if not times:
        return ""
    height, top, bottom = 260, 22.0, 34.0
    low = max(_LEAST_S, min(times) * 0.9)
    high = max(max(times) * 1.1, low * 4)
    x = Axis(low, high, drawing.LEFT, drawing.WIDTH - drawing.RIGHT, math.log)
    peak = max(points[-1][1] for points in shares if points)
    y = Axis(0.0, min(1.0, drawing.ceiling(max(peak, _LEAST_SHARE))), height - bottom, top)
    body = drawing.rows(y, lambda value: f"{value * 100:g} %")
    body += drawing.columns(x, y.start, [t for t in drawing.TIMES if low <= t <= high])
    for place, points in reversed(list(enumerate(shares))):
        spots = [(x.start, y.start)]
        for seconds, share in points:
            across = x.at(max(seconds, low))
            spots += [(across, spots[-1][1]), (across, y.at(share))]
        spots.append((x.end, spots[-1][1]))
        body.append(drawing.path(spots, style(place)))
    return drawing.svg(height, body, "Share of the turns in trouble that had come back, over time.")


def _shares(tally: Tally) -> list[tuple[float, float]]:
    """Seconds since the first failure, and the share that had come back by then."""
    troubled = tally.turns - tally.results[Result.LANDED_CLEAN]
    seen, points = 0, []
    for bucket in sorted(tally.recovery.counts):
        seen += tally.recovery.counts[bucket]
        points.append((middle(bucket), min(1.0, seen / troubled)))
    return points
