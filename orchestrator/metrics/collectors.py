"""From rows of the table to prometheus-client's collectors, every label set created at 0.

A child of prometheus-client takes a lock and checks its arguments at each call, which would be the
larger part of what counting costs.  So what only goes up or down is a `Tally`: a plain number that
is brought into its child when somebody collects.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from threading import Lock
from typing import Any, Final

import prometheus_client as prometheus

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
    pass


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


def tallied(collector: Any, bound: dict[Any, Any]) -> dict[Any, Any]:
    """Put a tally before each child, unless another process reads it: that one can't fold it."""
    if many_processes():
        return bound
    tallies = {labels: Tally(child) for labels, child in bound.items()}
    collector.tallies = tuple(tallies.values())
    return tallies
