"""Draw each panel's live query results into one HTML page.

A preview, made without Grafana: the layout, the units and the queries are the dashboard's, the
drawing is plotly's.  The page holds everything it needs and asks nobody else for anything.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen
from plotly.offline import get_plotlyjs

from dashboards.queries import Prometheus, expanded

_PALETTE: Final = (
    "#3274d9", "#56a64b", "#ff780a", "#8f3bb8", "#e0226e", "#37a2a2", "#b8860b", "#5a6b7b",
    "#a16ae8", "#c4162a", "#6ed0e0", "#7eb26d", "#d68a00", "#806eb7", "#99440a", "#447ebc",
)  # fmt: skip
_NAMED: Final = {
    "green": "#56a64b", "blue": "#3274d9", "purple": "#8f3bb8", "red": "#e02f44",
    "orange": "#ff780a", "yellow": "#e0b400", "text": "var(--ink)",
}  # fmt: skip
_SUFFIXES: Final = {"s": " s", "ops": "/s"}


@frozen
class Span:
    """The stretch of time that is drawn."""

    start: float
    end: float
    step: float
    rate_interval: str

    @property
    def text(self) -> str:
        return f"{int(self.end - self.start)}s"


def color(name: str) -> str:
    return _NAMED.get(name, name)


def shown(value: float, unit: str, decimals: int | None = None) -> str:
    """A value as people read it, in the panel's unit."""
    if math.isnan(value):
        return "no value"
    if unit == "percentunit":
        return f"{100 * value:.{1 if decimals is None else decimals}f} %"
    if unit == "s":
        return _seconds(value)
    places = decimals if decimals is not None else (0 if float(value).is_integer() else 2)
    return f"{value:,.{places}f}" + ("/s" if unit == "ops" else "")


def _seconds(value: float) -> str:
    for size, name in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if value >= size:
            return f"{value / size:.1f} {name}"
    return f"{value:.2f} s" if value >= 1 or value == 0 else f"{1000 * value:.1f} ms"


def legend(template: str, metric: Mapping[str, str]) -> str:
    if template in {"", "__auto"}:
        return ", ".join(f"{k}={v}" for k, v in metric.items() if k != "__name__") or "value"
    for name, value in metric.items():
        template = template.replace("{{" + name + "}}", value)
    return template


def asked(server: Prometheus, target: Mapping[str, Any], span: Span) -> list[dict[str, Any]]:
    """The result of one target, for the whole span or as of now."""
    expr = expanded(target["expr"], rate_interval=span.rate_interval, span=span.text)
    if target["instant"]:
        return server.instant(expr)
    return server.ranged(expr, span.start, span.end, span.step)


def fixed(panel: Mapping[str, Any]) -> dict[str, str]:
    return {
        override["matcher"]["options"]: color(override["properties"][0]["value"]["fixedColor"])
        for override in panel["fieldConfig"]["overrides"]
    }


def timeseries(panel: Mapping[str, Any], server: Prometheus, span: Span) -> str:
    defaults = panel["fieldConfig"]["defaults"]
    stacked = defaults["custom"]["stacking"]["mode"] == "normal"
    colors = fixed(panel)
    traces: list[dict[str, Any]] = []
    for target in panel["targets"]:
        for series in asked(server, target, span):
            name = legend(target["legendFormat"], series["metric"])
            tint = colors.get(name, _PALETTE[len(traces) % len(_PALETTE)])
            traces.append(_trace(name, tint, series["values"], span, stacked=stacked))
    unit = defaults["unit"]
    axis: dict[str, Any] = {"rangemode": "tozero", "ticksuffix": _SUFFIXES.get(unit, "")}
    if unit == "percentunit":
        axis["tickformat"] = ".0%" if "max" in defaults else ".1%"
    if "max" in defaults:
        axis["range"] = [0, 1.05 * defaults["max"]]
    return _plot(panel, traces, axis, span)


def _trace(
    name: str, tint: str, values: list[tuple[float, str]], span: Span, *, stacked: bool
) -> dict[str, Any]:
    """One line.  Where a series has no sample it is 0 in a stack, and a gap elsewhere."""
    known = {float(at): None if value == "NaN" else float(value) for at, value in values}
    times = [
        span.start + n * span.step for n in range(int((span.end - span.start) / span.step) + 1)
    ]
    missing = 0.0 if stacked else None
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [round(1000 * at) for at in times],
        "y": [known.get(at, missing) for at in times],
        "line": {"color": tint, "width": 1 if stacked else 2},
    }
    return trace | ({"stackgroup": "all", "fillcolor": tint + "99"} if stacked else {})


def heatmap(panel: Mapping[str, Any], server: Prometheus, span: Span) -> str:
    rows = sorted(
        asked(server, panel["targets"][0], span), key=lambda series: float(series["metric"]["le"])
    )
    times = sorted({float(at) for series in rows for at, _ in series["values"]})
    below = dict.fromkeys(times, 0.0)
    z: list[list[float | None]] = []
    for series in rows:
        now = {float(at): float(v) for at, v in series["values"]}
        # Buckets count what is at most their bound; a cell is what lies between two bounds.
        z.append([max(0.0, now.get(at, 0.0) - below[at]) or None for at in times])
        below = {at: now.get(at, below[at]) for at in times}
    trace = {
        "type": "heatmap",
        "x": [1000 * at for at in times],
        "y": ["≤ " + series["metric"]["le"].removesuffix(".0") + " s" for series in rows],
        "z": z,
        "colorscale": "YlOrRd",
        "showscale": False,
        "ygap": 1,
    }
    return _plot(panel, [trace], {"type": "category", "dtick": 1}, span)


def _plot(
    panel: Mapping[str, Any], traces: list[dict[str, Any]], axis: dict[str, Any], span: Span
) -> str:
    if not traces:
        return _none(panel["fieldConfig"]["defaults"])
    beside = panel["options"]["legend"].get("placement") == "right"
    figure = {
        "data": traces,
        "beside": beside,
        "wide": panel["gridPos"]["w"] >= 8,
        "xaxis": {"type": "date", "range": [1000 * span.start, 1000 * span.end]},
        "yaxis": axis,
    }
    return f"<div class=plot data-figure='{html.escape(json.dumps(figure), quote=True)}'></div>"


def stat(panel: Mapping[str, Any], server: Prometheus, span: Span) -> str:
    defaults = panel["fieldConfig"]["defaults"]
    mapped = defaults["mappings"][0]["options"] if defaults["mappings"] else {}
    cells = []
    target = panel["targets"][0]
    for series in asked(server, target, span):
        value = float(series["values"][-1][1])
        name = (
            legend(target["legendFormat"], series["metric"])
            if target["legendFormat"] != "__auto"
            else ""
        )
        words = mapped.get(f"{value:g}")
        text = words["text"] if words else shown(value, defaults["unit"], defaults.get("decimals"))
        tint = color(words["color"]) if words else _judged(value, defaults["thresholds"]["steps"])
        cells.append(
            f"<div><small>{html.escape(name)}</small>"
            f'<b style="color:{tint}">{html.escape(text)}</b></div>'
        )
    return f'<div class="stat">{"".join(cells)}</div>' if cells else _none(defaults)


def _none(defaults: Mapping[str, Any]) -> str:
    return f'<p class="none">{html.escape(defaults["noValue"])}</p>'


def _judged(value: float, steps: list[dict[str, Any]]) -> str:
    reached = [step for step in steps if step["value"] is None or value >= step["value"]]
    return color(reached[-1]["color"])


def table(panel: Mapping[str, Any], server: Prometheus, span: Span, most: int = 7) -> str:
    defaults = panel["fieldConfig"]["defaults"]
    rows = asked(server, panel["targets"][0], span)
    if not rows:
        return _none(defaults)
    columns = [name for name in rows[0]["metric"] if name != "__name__"]
    head = "".join(f"<th>{html.escape(name)}" for name in (*columns, "value"))
    body = "".join(
        "<tr>"
        + "".join(f"<td>{html.escape(row['metric'].get(name, ''))}" for name in columns)
        + f"<td>{shown(float(row['value'][1]), defaults['unit'], defaults.get('decimals'))}"
        for row in rows[:most]
    )
    more = f"<p class=more>and {len(rows) - most} more</p>" if len(rows) > most else ""
    return f"<table><tr>{head}{body}</table>{more}"


_KINDS: Final = {"timeseries": timeseries, "heatmap": heatmap, "stat": stat, "table": table}


def page(dashboard: Mapping[str, Any], server: Prometheus, span: Span) -> str:
    """The whole dashboard as one page."""
    parts = []
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        where = (
            f"grid-column:{place['x'] + 1}/span {place['w']};"
            f"grid-row:{place['y'] + 1}/span {place['h']}"
        )
        if panel["type"] == "row":
            parts.append(f'<h2 style="{where}">{html.escape(panel["title"])}</h2>')
            continue
        inside = _KINDS[panel["type"]](panel, server, span)
        parts.append(
            f'<section style="{where}" title="{html.escape(panel["description"], quote=True)}">'
            f"<h3>{html.escape(panel['title'])}</h3>{inside}</section>"
        )
    return _PAGE.format(
        title=html.escape(dashboard["title"]),
        plotly=get_plotlyjs(),
        style=_STYLE,
        script=_SCRIPT,
        body="\n".join(parts),
    )


_PAGE: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}: preview</title>
<meta name="color-scheme" content="light dark">
<style>{style}</style>
<header><h1>{title}</h1><p>Preview of the panels over a real Prometheus. Not Grafana.</p></header>
<main>
{body}
</main>
<script>{plotly}</script>
<script>{script}</script>
</html>
"""

_STYLE: Final = """
:root{--ink:#24292e;--faint:#5c6670;--page:#f4f5f7;--card:#fff;--line:#dfe2e6}
:root.dark{--ink:#d8dbe0;--faint:#9aa3ae;--page:#111217;--card:#181b1f;--line:#2c3038}
*{box-sizing:border-box}
body{margin:0;padding:12px;background:var(--page);color:var(--ink);
  font:13px/1.35 system-ui,"DejaVu Sans",sans-serif}
header{display:flex;align-items:baseline;gap:16px;padding:0 4px 8px}
h1{font-size:18px;margin:0}header p{margin:0;color:var(--faint)}
main{display:grid;grid-template-columns:repeat(24,1fr);grid-auto-rows:30px;gap:6px}
h2{font-size:14px;margin:0;align-self:center;padding-left:4px}
section{background:var(--card);border:1px solid var(--line);border-radius:3px;padding:6px 8px;
  overflow:hidden;display:flex;flex-direction:column;min-width:0}
h3{font-size:12.5px;font-weight:600;margin:0 0 2px}
.plot{flex:1;min-height:0}
.none{margin:auto;color:var(--faint)}
.stat{flex:1;display:flex;justify-content:space-evenly;align-items:center;gap:12px;min-height:0}
.stat div{text-align:center}.stat small{display:block;color:var(--faint)}
.stat b{font-size:27px;font-weight:600}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:2px 8px;border-bottom:1px solid var(--line)}
th{color:var(--faint);font-weight:500}
th:last-child,td:last-child{text-align:right;font-variant-numeric:tabular-nums}
.more{margin:4px 8px;color:var(--faint)}
"""

_SCRIPT: Final = """
const wanted = new URLSearchParams(location.search).get('theme');
const dark = wanted ? wanted === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
document.documentElement.classList.toggle('dark', dark);
const ink = getComputedStyle(document.documentElement).getPropertyValue('--ink').trim();
const line = dark ? '#2c3038' : '#e4e7eb';
for (const box of document.querySelectorAll('.plot')) {
  const figure = JSON.parse(box.dataset.figure);
  const axis = {gridcolor: line, zerolinecolor: line, linecolor: line, automargin: true,
                tickfont: {size: 10}};
  const heat = figure.data[0].type === 'heatmap';
  if (heat) figure.data[0].reversescale = !dark;
  const legend = figure.beside
    ? {orientation: 'v', x: 1.01, y: 1, font: {size: 10}}
    : {orientation: 'h', y: -0.14, yanchor: 'top', x: 0, font: {size: 10}};
  const layout = {
    margin: {l: 8, r: 8, t: 4, b: 4}, paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
    font: {color: ink, size: 11, family: 'system-ui, "DejaVu Sans", sans-serif'},
    showlegend: !heat, hovermode: 'x unified', legend,
    xaxis: {...axis, ...figure.xaxis, nticks: figure.wide ? 7 : 4, tickangle: 0,
            tickformat: '%H:%M:%S'},
    yaxis: {...axis, nticks: 6, ...figure.yaxis},
  };
  Plotly.newPlot(box, figure.data, layout, {displayModeBar: false, responsive: true});
}
document.title += ' (drawn)';
"""
