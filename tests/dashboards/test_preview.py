"""The preview's drawing, over answers that no server gave."""

import math

import pytest

from dashboards.build import dashboard
from dashboards.preview.render import Span, legend, page, shown
from tests.dashboards.expressions import panels

SPAN = Span(1_000.0, 1_060.0, 20.0, "1m")
HOSTILE = "<script>alert(1)</script>"


class Canned:
    """Answers each query with two series, one of them with a gap."""

    def ranged(self, expr, start, end, step):
        labels = {"le": "4", "family": HOSTILE, "outcome": "landed", "sink": "log"}
        whole = [[start + n * step, str(n)] for n in range(4)]
        return [
            {"metric": labels, "values": whole},
            {"metric": {**labels, "le": "+Inf"}, "values": [*whole[:1], [start + step, "NaN"]]},
        ]

    def instant(self, expr):
        return [
            {"metric": {"kind": HOSTILE, "provider": "other"}, "value": [0, str(n)]}
            for n in range(9)
        ]


class Silent(Canned):
    def ranged(self, expr, start, end, step):
        return []

    def instant(self, expr):
        return []


def test_every_panel_is_drawn_under_its_title():
    drawn = page(dashboard(), Canned(), SPAN)
    for panel in panels():
        assert f"<h3>{panel['title']}</h3>" in drawn
    assert drawn.count("data-figure=") == sum(
        panel["type"] in {"timeseries", "heatmap"} for panel in panels()
    )


def test_it_says_that_it_is_a_preview_and_not_grafana():
    assert "Preview of the panels over a real Prometheus. Not Grafana." in page(
        dashboard(), Canned(), SPAN
    )


def test_names_from_outside_are_shown_as_text():
    assert HOSTILE not in page(dashboard(), Canned(), SPAN)


def test_it_asks_nobody_else_for_anything():
    drawn = page(dashboard(), Silent(), SPAN)
    head, _, tail = drawn.partition("<script>")
    markup = head + tail.rpartition("</script>")[2]
    assert "src=" not in markup
    assert "href=" not in markup
    assert "url(" not in markup


def test_an_empty_panel_says_so_in_its_own_words():
    drawn = page(dashboard(), Silent(), SPAN)
    for panel in panels():
        assert f'<p class="none">{panel["fieldConfig"]["defaults"]["noValue"]}</p>' in drawn


@pytest.mark.parametrize(
    ("value", "unit", "decimals", "text"),
    [
        (0.1234, "percentunit", None, "12.3 %"),
        (3.0, "short", None, "3"),
        (1234.5, "short", 0, "1,234"),
        (0.25, "ops", None, "0.25/s"),
        (0.004, "s", None, "4.0 ms"),
        (90.0, "s", None, "1.5 min"),
        (0.0, "s", None, "0.00 s"),
        (math.nan, "short", None, "no value"),
    ],
)
def test_a_value_is_shown_in_its_unit(value, unit, decimals, text):
    assert shown(value, unit, decimals) == text


def test_a_legend_is_filled_from_the_labels():
    assert legend("{{step}} {{outcome}}", {"step": "swap", "outcome": "done"}) == "swap done"
    assert legend("__auto", {"__name__": "x", "a": "1"}) == "a=1"
