"""From rows of the table to prometheus-client's collectors, every label set created at 0."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any, Final

import prometheus_client as prometheus

from orchestrator.metrics.series import Labels, Series, Type


class _Ours:
    """Brings itself up to date before it is collected, without the `_created` twin of a series."""

    before: Callable[[], None] | None = None

    def collect(self) -> Iterator[prometheus.Metric]:
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
