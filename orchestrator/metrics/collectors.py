"""From rows of the table to prometheus-client's collectors, every label set created at 0.

A child of prometheus-client takes a lock and checks its arguments at each call, which would be the
larger part of what counting costs.  So what only goes up or down is a `Tally`: a plain number that
is brought into its child when somebody collects.  And a histogram's sizes go into a `Spread`, which
is read then.
"""

from __future__ import annotations

import math
import os
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate, product
from threading import Lock
from typing import Any, Final

import prometheus_client as prometheus
from prometheus_client.metrics_core import HistogramMetricFamily
from prometheus_client.samples import Exemplar
from prometheus_client.utils import floatToGoString

from orchestrator.metrics.series import Labels, Series, Type

_folding: Final = Lock()
"""Held while tallies are brought in: two threads that collect at once count nothing twice."""


class Tally:
    """One count.  `inc` is for the thread of the event loop alone, `fold` for any.

    Nothing that is counted in between gets lost: the count only moves on, and is never taken back.
    """

    __slots__ = ("_child", "_count", "_exemplar", "_folded")

    def __init__(self, child: Any) -> None:
        self._child = child
        self._count = self._folded = 0
        self._exemplar: dict[str, str] | None = None

    def inc(self, amount: int = 1, exemplar: dict[str, str] | None = None) -> None:
        """Count; what was counted last gives the exemplar."""
        self._count += amount
        if exemplar is not None:
            self._exemplar = exemplar

    def fold(self) -> None:
        """Bring what is new into the child.  Only while `_folding` is held."""
        new = self._count - self._folded
        if not new:
            return
        self._folded += new
        if self._exemplar is None:
            self._child.inc(new)
        else:
            self._child.inc(new - 1)
            self._child.inc(1, self._exemplar)


class Spread:
    """Sizes by bucket.  `observe` is for the thread of the event loop alone."""

    __slots__ = ("_bounds", "_counts", "_exemplars", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = (*bounds, math.inf)
        self._counts = [0] * len(self._bounds)
        self._exemplars: list[Exemplar | None] = [None] * len(self._bounds)
        self.sum = 0.0

    def observe(self, size: float, exemplar: dict[str, str] | None = None) -> None:
        """Count a size; the last one in a bucket gives its exemplar."""
        place = bisect_left(self._bounds, size)
        self._counts[place] += 1
        self.sum += size
        if exemplar is not None:
            self._exemplars[place] = Exemplar(exemplar, size, time.time())

    def buckets(self) -> list[Any]:
        """Upper bound, count up to there and exemplar of each bucket, as prometheus-client asks."""
        names = map(floatToGoString, self._bounds)
        counts = map(float, accumulate(tuple(self._counts)))
        return list(zip(names, counts, tuple(self._exemplars), strict=True))


class _Ours:
    """Brings itself up to date before it is collected, without the `_created` twin of a series."""

    tallies: tuple[Tally, ...] = ()
    before: Callable[[], None] | None = None

    def fold(self) -> None:
        with _folding:
            for tally in self.tallies:
                tally.fold()

    def collect(self) -> Iterator[prometheus.Metric]:
        self.fold()
        if self.before is not None:
            self.before()
        for metric in super().collect():  # type: ignore[misc]  # the other parent has it
            metric.samples = [s for s in metric.samples if not s.name.endswith("_created")]
            yield metric


class _Counter(_Ours, prometheus.Counter):
    pass


class _Gauge(_Ours, prometheus.Gauge):
    pass


class _Histogram(_Ours, prometheus.Histogram):
    spreads: Mapping[str, Spread] = {}
    """By the value of its one label, where no other process reads them."""

    def collect(self) -> Iterator[prometheus.Metric]:
        if not self.spreads:
            yield from super().collect()
            return
        family = HistogramMetricFamily(self._name, self._documentation, labels=self._labelnames)
        for label, spread in self.spreads.items():
            family.add_metric((label,), spread.buckets(), spread.sum)
        yield family


_CLASSES: Final[dict[Type, Any]] = {
    Type.COUNTER: _Counter,
    Type.GAUGE: _Gauge,
    Type.HISTOGRAM: _Histogram,
}


def build(series: Series, registry: prometheus.CollectorRegistry) -> Any:
    """Build and register the collector of one row."""
    own: dict[str, Any] = {}
    if series.type is Type.HISTOGRAM:
        own["buckets"] = series.buckets
    if series.type is Type.GAUGE:
        own["multiprocess_mode"] = series.across
    collector = _CLASSES[series.type]
    return collector(series.full_name, series.help, tuple(series.labels), registry=registry, **own)


def children(series: Series, collector: Any, providers: Iterable[str]) -> dict[Any, Any]:
    """Create a child for each combination of labels, keyed by its value or tuple of values."""
    if not series.labels or Labels.CONFIGURED in series.labels.values():
        return {}
    known = tuple(providers)
    values = [known if v is Labels.PROVIDER else v for v in series.labels.values()]
    return {
        combined[0] if len(combined) == 1 else combined: collector.labels(*combined)
        for combined in product(*values)
    }


def many_processes() -> bool:
    """Whether other processes expose what this one counts."""
    return "PROMETHEUS_MULTIPROC_DIR" in os.environ


def spread(series: Series, collector: Any, bound: dict[Any, Any]) -> dict[Any, Any]:
    """Put a spread in the place of each child, unless another process reads it."""
    if many_processes():
        return bound
    collector.spreads = {label: Spread(series.buckets) for label in bound}
    return dict(collector.spreads)


def tallied(collector: Any, bound: dict[Any, Any]) -> dict[Any, Any]:
    """Put a tally before each child, unless another process reads it: that one can't fold it."""
    if many_processes():
        return bound
    tallies = {labels: Tally(child) for labels, child in bound.items()}
    collector.tallies = tuple(tallies.values())
    return tallies
