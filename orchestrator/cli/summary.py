"""What the metrics say after some turns, in a few lines."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from attrs import field, frozen
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from orchestrator.metrics import MetricsObserver

_FLOWS: Final = {
    "orchestrator_retries_scheduled_total": "scheduled",
    "orchestrator_retries_sent_total": "sent",
    "orchestrator_retries_dropped_total": "dropped",
    "orchestrator_turns_pending": "pending",
}
"""The series of the identity scheduled = sent + dropped + pending."""


@frozen
class Summary:
    """The numbers that are not zero."""

    turns: dict[str, int] = field(factory=dict)
    """Outcome to count."""
    retries: dict[str, dict[str, int]] = field(factory=dict)
    """Family to scheduled, sent, dropped and pending."""

    @property
    def adds_up(self) -> bool:
        """Everything scheduled was sent, dropped, or is still pending."""
        return all(
            row["scheduled"] == row["sent"] + row["dropped"] + row["pending"]
            for row in self.retries.values()
        )


def summarise(metrics: MetricsObserver) -> Summary:
    """Read the registry, as a scrape does."""
    turns: dict[str, int] = {}
    retries: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(_FLOWS.values(), 0))
    for metric in metrics.registry.collect():
        for sample in metric.samples:
            if sample.name == "orchestrator_turns_total" and sample.value:
                turns[sample.labels["outcome"]] = int(sample.value)
            elif sample.name in _FLOWS and sample.value:
                retries[sample.labels["family"]][_FLOWS[sample.name]] += int(sample.value)
    return Summary(turns, dict(retries))


def as_table(summary: Summary) -> RenderableType:
    """The summary for people."""
    turns = Table.grid(padding=(0, 2))
    for outcome, count in summary.turns.items():
        turns.add_row(Text(f"turns_total{{outcome={outcome}}}", "cyan"), str(count))
    flows = Table.grid(padding=(0, 2))
    flows.add_row(Text("retries", "bold"), *(Text(name, "bold") for name in _FLOWS.values()))
    for family, row in summary.retries.items():
        flows.add_row(Text(family, "cyan"), *(str(row[name]) for name in _FLOWS.values()))
    words = "scheduled = sent + dropped + pending, for each family"
    if not summary.adds_up:
        words = "scheduled is not sent + dropped + pending: please report this"
    return Group(turns, Text(), flows, Text(words, "dim"))
