"""Write `orchestrator.json`: `python -m dashboards.build`.

Grafana's classic model, schema version 41.  Sorted and without a clock, so that the same panels
always give the same bytes; a test fails when the file is stale.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from dashboards.panels import ROWS, Panel, Query, Row

TARGET: Final = Path(__file__).with_name("orchestrator.json")
UID: Final = "turn-orchestrator"
COLUMNS: Final = 24
ROW_HEIGHT: Final = 1
RUNBOOK: Final = "dashboards/README.md"
SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}

_JOB: Final = 'job=~"$job"'
_INSTANCE: Final = f'{_JOB}, instance=~"$instance"'
VARIABLES: Final = (
    ("job", "label_values(orchestrator_build_info, job)"),
    ("instance", f"label_values(orchestrator_build_info{{{_JOB}}}, instance)"),
    ("provider", f"label_values(orchestrator_failures_total{{{_INSTANCE}}}, provider)"),
    ("family", f"label_values(orchestrator_retries_scheduled_total{{{_INSTANCE}}}, family)"),
)
"""Name and query; the data source comes before them."""

ANNOTATIONS: Final = (
    (
        "New version",
        "purple",
        "count by (version) (orchestrator_build_info{"
        + _INSTANCE
        + "}) unless count by (version) (orchestrator_build_info{"
        + _INSTANCE
        + "} offset 5m)",
        "{{version}} first seen",
    ),
    (
        "Settings taken over",
        "blue",
        "changes(orchestrator_settings_last_reload_success_timestamp_seconds{"
        + _INSTANCE
        + "}[$__rate_interval]) > 0",
        "{{instance}} took its settings over",
    ),
)
"""Name, colour, query and text of what is marked on every time axis."""


def target(query: Query, place: int) -> dict[str, Any]:
    built: dict[str, Any] = {
        "datasource": SOURCE,
        "editorMode": "code",
        "expr": query.expr,
        "format": "time_series",
        "range": not query.instant,
        "instant": query.instant,
        "legendFormat": query.legend or "__auto",
        "refId": "ABCDEFGH"[place],
    }
    if query.instant:
        built["format"] = "table"
    if query.heatmap:
        built["format"] = "heatmap"
    return built


def thresholds(panel: Panel) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [
        {"color": color, "value": None if place == 0 else bound}
        for place, (bound, color) in enumerate(panel.thresholds)
    ]
    return {"mode": "absolute", "steps": steps or [{"color": "text", "value": None}]}


def fixed_colors(panel: Panel) -> list[dict[str, Any]]:
    return [
        {
            "matcher": {"id": "byName", "options": name},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": color}}],
        }
        for name, color in sorted(panel.colors.items())
    ]


def mappings(panel: Panel) -> list[dict[str, Any]]:
    if not panel.mappings:
        return []
    options = {
        value: {"text": text, "color": color, "index": place}
        for place, (value, (text, color)) in enumerate(sorted(panel.mappings.items()))
    }
    return [{"type": "value", "options": options}]


def timeseries(panel: Panel) -> tuple[dict[str, Any], dict[str, Any]]:
    custom = {
        "drawStyle": "line",
        "lineWidth": 1 if panel.stacked else 2,
        "fillOpacity": 60 if panel.stacked else 8,
        "showPoints": "never",
        "stacking": {"group": "A", "mode": "normal" if panel.stacked else "none"},
    }
    options = {
        "legend": {
            "calcs": ["lastNotNull"],
            "displayMode": "table" if panel.many else "list",
            "placement": "right" if panel.many else "bottom",
            "showLegend": True,
        },
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    return options, custom


def stat(panel: Panel) -> tuple[dict[str, Any], dict[str, Any]]:
    judged = bool(panel.thresholds or panel.mappings)
    options = {
        "colorMode": "value" if judged else "none",
        "graphMode": "none" if panel.mappings else "area",
        "justifyMode": "auto",
        "orientation": "auto",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "textMode": "auto",
        "wideLayout": True,
    }
    return options, {}


def heatmap(panel: Panel) -> tuple[dict[str, Any], dict[str, Any]]:
    options = {
        "calculate": False,
        "cellGap": 1,
        "color": {"mode": "scheme", "scheme": "Oranges", "steps": 32, "exponent": 0.5},
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "rowsFrame": {"layout": "auto"},
        "tooltip": {"mode": "single", "yHistogram": False, "showColorScale": True},
        "yAxis": {"axisPlacement": "left", "reverse": False, "unit": panel.unit},
    }
    return options, {}


def table(_: Panel) -> tuple[dict[str, Any], dict[str, Any]]:
    options = {
        "cellHeight": "sm",
        "showHeader": True,
        "sortBy": [{"desc": True, "displayName": "Value"}],
    }
    return options, {"align": "auto", "filterable": True}


KINDS: Final = {"timeseries": timeseries, "stat": stat, "heatmap": heatmap, "table": table}


def built(panel: Panel, number: int, x: int, y: int) -> dict[str, Any]:
    options, custom = KINDS[panel.kind](panel)
    defaults: dict[str, Any] = {
        "color": {"mode": "thresholds" if panel.kind == "stat" else "palette-classic"},
        "custom": custom,
        "mappings": mappings(panel),
        "min": 0,
        "noValue": panel.no_value,
        "thresholds": thresholds(panel),
        "unit": panel.unit,
    }
    if panel.maximum is not None:
        defaults["max"] = panel.maximum
    if panel.decimals is not None:
        defaults["decimals"] = panel.decimals
    shown: dict[str, Any] = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
        "fieldConfig": {"defaults": defaults, "overrides": fixed_colors(panel)},
        "options": options,
        "targets": [target(query, place) for place, query in enumerate(panel.queries)],
    }
    if panel.kind == "table":
        shown["transformations"] = [
            {"id": "organize", "options": {"excludeByName": {"Time": True}}},
        ]
    return shown


def laid_out(rows: tuple[Row, ...]) -> list[dict[str, Any]]:
    """Fill each row from left to right; a panel that does not fit begins a new line."""
    panels: list[dict[str, Any]] = []
    y = 0
    for row in rows:
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": row.title,
                "collapsed": False,
                "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": ROW_HEIGHT},
                "panels": [],
            }
        )
        y, x, tallest = y + ROW_HEIGHT, 0, 0
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                y, x, tallest = y + tallest, 0, 0
            panels.append(built(panel, len(panels) + 1, x, y))
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest
    return panels


def variables() -> list[dict[str, Any]]:
    source = {
        "type": "datasource",
        "name": "datasource",
        "label": "Data source",
        "query": "prometheus",
        "current": {"selected": False, "text": "default", "value": "default"},
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "options": [],
        "refresh": 1,
        "regex": "",
        "skipUrlSync": False,
    }
    chosen = [
        {
            "type": "query",
            "name": name,
            "label": name.capitalize(),
            "datasource": SOURCE,
            "query": {"qryType": 1, "query": query, "refId": f"Variable-{name}"},
            "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
            "hide": 0,
            "includeAll": True,
            "multi": True,
            "options": [],
            "refresh": 2,
            "regex": "",
            "skipUrlSync": False,
            "sort": 1,
        }
        for name, query in VARIABLES
    ]
    return [source, *chosen]


def annotations() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "datasource": SOURCE,
            "enable": True,
            "hide": False,
            "iconColor": color,
            "expr": expr,
            "titleFormat": name,
            "textFormat": text,
        }
        for name, color, expr, text in ANNOTATIONS
    ]


def dashboard() -> dict[str, Any]:
    return {
        "id": None,
        "uid": UID,
        "title": "Turn orchestrator",
        "description": "What retrying buys, what it costs, and what needs a person.",
        "tags": ["orchestrator", "retries"],
        "schemaVersion": 41,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "fiscalYearStartMonth": 0,
        "liveNow": False,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "timepicker": {},
        "timezone": "browser",
        "weekStart": "",
        "links": [],
        "annotations": {"list": annotations()},
        "templating": {"list": variables()},
        "panels": laid_out(ROWS),
    }


def rendered() -> str:
    return json.dumps(dashboard(), indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    TARGET.write_text(rendered(), encoding="utf-8")
    print(f"wrote {TARGET.name}: {len(dashboard()['panels'])} panels")
