"""What the dashboard and the rules ask for, taken apart: selectors, names, labels."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import promql_parser
import yaml
from attrs import frozen

from dashboards.queries import expanded
from orchestrator.metrics.series import OTHER, SERIES, Labels
from orchestrator.settings.model import Metrics

FOLDER = Path(__file__).resolve().parents[2] / "dashboards"
DASHBOARD = json.loads((FOLDER / "orchestrator.json").read_text(encoding="utf-8"))
ALERTS = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))
ALERT_TESTS = yaml.safe_load((FOLDER / "alerts_test.yml").read_text(encoding="utf-8"))

FOREIGN = {"up": {"job", "instance"}, "scrape_duration_seconds": {"job", "instance"}}
"""Series that Prometheus itself makes, with the labels we use of them."""
TARGET_LABELS = {"job", "instance"}
_WORD = re.compile(r"label_values\((.+), (\w+)\)")


@frozen
class Selector:
    name: str
    matchers: tuple[tuple[str, str, str], ...]
    """Label, operator and value."""


def panels():
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def panel_exprs() -> list[tuple[str, str]]:
    """Where each expression of the dashboard stands, and the expression."""
    of_panels = [(p["title"], t["expr"]) for p in panels() for t in p["targets"]]
    marks = [(mark["name"], mark["expr"]) for mark in DASHBOARD["annotations"]["list"]]
    return of_panels + marks


def variable_queries() -> list[tuple[str, str, str]]:
    """Name, expression and label of each variable that is filled by a query."""
    found = []
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            expr, label = _WORD.fullmatch(variable["query"]["query"]).groups()
            found.append((variable["name"], expr, label))
    return found


def rules():
    return [rule for group in ALERTS["groups"] for rule in group["rules"]]


def alerts():
    return [rule for rule in rules() if "alert" in rule]


def selectors(expr: str) -> Iterator[Selector]:
    """Every series that an expression reads."""
    yield from _walk(promql_parser.parse(expanded(expr)))


def _walk(node) -> Iterator[Selector]:
    if isinstance(node, promql_parser.VectorSelector):
        matchers = tuple(
            (m.name, str(m.op).rsplit(".", 1)[-1], m.value) for m in node.matchers.matchers
        )
        yield Selector(node.name, matchers)
        return
    for part in ("expr", "lhs", "rhs", "vector_selector", "vs", "param"):
        inner = getattr(node, part, None)
        if inner is not None:
            yield from _walk(inner)
    for inner in getattr(node, "args", None) or ():
        yield from _walk(inner)


def known() -> dict[str, dict[str, tuple[str, ...] | None]]:
    """Each sample name of our registry, with its labels and their values; None is any value."""
    names = {}
    for series in SERIES:
        labels = {name: _values(values) for name, values in series.labels.items()}
        ends = ("_bucket", "_sum", "_count") if series.type == "histogram" else ("",)
        for end in ends:
            names[series.full_name + end] = labels | ({"le": None} if end == "_bucket" else {})
    return names


def _values(values):
    if values is Labels.PROVIDER:
        return (*Metrics().providers, OTHER)
    return None if values is Labels.CONFIGURED else tuple(str(value) for value in values)
