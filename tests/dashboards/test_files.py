"""The shipped files against the code: pure, quick, part of the ordinary suite."""

import re
from itertools import combinations

import pytest
import yaml

from dashboards import build
from dashboards.queries import MACROS, expanded, names_in
from orchestrator.metrics.series import SERIES
from tests.dashboards.expressions import (
    ALERT_TESTS,
    ALERTS,
    DASHBOARD,
    FOLDER,
    FOREIGN,
    TARGET_LABELS,
    alerts,
    known,
    panel_exprs,
    panels,
    rules,
    selectors,
    variable_queries,
)

README = (FOLDER / "README.md").read_text(encoding="utf-8")
NOT_ON_A_PANEL: set[str] = set()
"""Series that deliberately stand on no panel, with the reason beside each.  None does today."""
MAKES_LABELS = ("count by", "label_")


def test_the_dashboard_file_is_what_the_script_builds():
    assert (FOLDER / "orchestrator.json").read_text(encoding="utf-8") == build.rendered(), (
        "stale: run `python -m dashboards.build`"
    )


def test_building_twice_gives_the_same_bytes():
    assert build.rendered() == build.rendered()


def test_it_is_a_classic_dashboard_that_imports_as_it_is():
    assert DASHBOARD["schemaVersion"] == 41
    assert DASHBOARD["uid"] == "turn-orchestrator"
    assert DASHBOARD["id"] is None
    assert DASHBOARD["editable"] is True
    assert "__inputs" not in DASHBOARD


def test_the_rows_follow_an_operator_from_now_to_plumbing():
    rows = [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"]
    assert rows == [
        "Now",
        "What retrying buys",
        "Ladders",
        "Failures",
        "Recoveries",
        "Plumbing",
    ]


def test_no_two_panels_share_an_id_or_a_title():
    every = DASHBOARD["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    assert len({panel["title"] for panel in every}) == len(every)


def cells(panel):
    place = panel["gridPos"]
    return {
        (x, y)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    }


def test_no_two_panels_overlap_and_none_leaves_the_grid():
    for one, other in combinations(DASHBOARD["panels"], 2):
        assert not cells(one) & cells(other), (one["title"], other["title"])
    for panel in DASHBOARD["panels"]:
        assert all(0 <= x < build.COLUMNS for x, _ in cells(panel)), panel["title"]


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_a_panel_has_a_unit_a_word_for_nothing_and_says_what_to_do(panel):
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["unit"]
    assert defaults["noValue"]
    sentences = re.findall(r"[^.?!:]+[.?!:]", panel["description"])
    assert len(sentences) >= 2, "what it shows, then what to do"
    assert panel["description"].endswith(".")
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])


def test_every_variable_is_declared_and_used():
    declared = [variable["name"] for variable in DASHBOARD["templating"]["list"]]
    assert declared == ["datasource", "job", "instance", "provider", "family"]
    used = {"datasource"}
    for _, expr in panel_exprs():
        used |= names_in(expr)
    for _, expr, _ in variable_queries():
        used |= names_in(expr)
    assert used - set(MACROS) == set(declared)


def test_every_rate_follows_the_scrape_interval():
    for title, expr in panel_exprs():
        spans = set(re.findall(r"\[([^\]]+)\]", expr))
        assert spans <= {"$__rate_interval", "$__range"}, title


def test_a_query_names_the_job_and_the_instance_it_is_for():
    for title, expr in panel_exprs():
        for selector in selectors(expr):
            assert {"job", "instance"} <= {label for label, _, _ in selector.matchers}, title


def every_expr():
    yield from panel_exprs()
    for name, expr, _ in variable_queries():
        yield f"variable {name}", expr
    for rule in rules():
        yield rule.get("alert") or rule["record"], rule["expr"]


RECORDED = {rule["record"] for rule in rules() if "record" in rule}


@pytest.mark.parametrize(("where", "expr"), list(every_expr()))
def test_an_expression_parses_and_names_only_series_labels_and_values_that_exist(where, expr):
    names = known()
    found = list(selectors(expr))
    assert found or "vector(" in expr, where
    for selector in found:
        if selector.name in FOREIGN or selector.name in RECORDED:
            continue
        assert selector.name in names, f"{where}: no series {selector.name}"
        labels = names[selector.name]
        for label, op, value in selector.matchers:
            if label in TARGET_LABELS:
                continue
            assert label in labels, f"{where}: {selector.name} has no label {label}"
            allowed = labels[label]
            if allowed is not None and op in {"Re", "Equal"}:
                pattern = value if op == "Re" else re.escape(value)
                alternatives = pattern.split("|") if "(" not in pattern else [pattern]
                for alternative in alternatives:
                    assert any(re.fullmatch(alternative, known_) for known_ in allowed), (
                        f"{where}: nothing has {label} {alternative}"
                    )


def test_the_check_of_names_would_notice_a_renamed_series_or_label():
    wrong = list(selectors('sum by (x) (rate(orchestrator_turn_total{outcome="landed"}[1m])) > 0'))
    assert [selector.name for selector in wrong] == ["orchestrator_turn_total"]
    assert wrong[0].name not in known()
    assert wrong[0].matchers == (("outcome", "Equal", "landed"),)


def test_every_series_of_the_registry_stands_on_a_panel_or_on_the_list():
    shown = {selector.name for _, expr in panel_exprs() for selector in selectors(expr)}
    for series in SERIES:
        names = {name for name in known() if name.startswith(series.full_name)}
        assert names & shown or series.full_name in NOT_ON_A_PANEL, series.full_name
    assert not {name for name in NOT_ON_A_PANEL if name in shown}


def test_legends_name_labels_that_the_query_leaves():
    for panel in panels():
        for target in panel["targets"]:
            for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]):
                assert re.search(rf"by \([^)]*\b{label}\b", target["expr"]), panel["title"]


def test_variables_and_macros_are_filled_in_as_grafana_would():
    expr = 'rate(a_total{job=~"$job", family=~"${family}"}[$__rate_interval])'
    assert names_in(expr) == {"job", "family", "__rate_interval"}
    filled = expanded(expr, rate_interval="20s", family="busy|death")
    assert filled == 'rate(a_total{job=~".+", family=~"busy|death"}[20s])'


# Alerts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_says_what_is_wrong_and_leads_to_its_runbook(alert):
    assert alert["labels"]["severity"] in {"page", "ticket"}
    notes = alert["annotations"]
    assert set(notes) == {"summary", "description", "runbook_url", "dashboard"}
    assert len(notes["summary"]) < 80
    assert notes["description"].endswith(".")
    assert notes["dashboard"] == f"/d/{DASHBOARD['uid']}"
    path, _, anchor = notes["runbook_url"].partition("#")
    assert path == "dashboards/README.md"
    assert anchor in anchors(README)


def anchors(markdown):
    headings = re.findall(r"^#+ (.+)$", markdown, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    fires, silent = set(), set()
    for case in ALERT_TESTS["tests"]:
        for told in case["alert_rule_test"]:
            (fires if told["exp_alerts"] else silent).add(told["alertname"])
    names = {alert["alert"] for alert in alerts()}
    assert fires == names
    assert silent == names


def test_every_ratio_meets_a_restart_and_a_gap():
    dividing = {alert["alert"] for alert in alerts() if "/" in alert["expr"]} | {
        "TurnErrorBudgetBurnFast"
    }
    for event in ("restart", "gap"):
        met = {
            told["alertname"]
            for case in ALERT_TESTS["tests"]
            if event in case["name"]
            for told in case["alert_rule_test"]
            if told["exp_alerts"]
        }
        assert dividing <= met, event


def test_a_recorded_series_is_used_and_a_used_one_is_recorded():
    used = {
        selector.name
        for alert in alerts()
        for selector in selectors(alert["expr"])
        if ":" in selector.name
    }
    assert used == RECORDED


def test_every_alert_has_an_expected_group_and_no_rule_has_two_names():
    names = [rule.get("alert") or rule["record"] for rule in rules()]
    assert len(set(names)) == len(names)
    assert [group["name"] for group in ALERTS["groups"]] == [
        "orchestrator_ratios",
        "orchestrator_turns",
        "orchestrator_retries",
        "orchestrator_plumbing",
    ]


def test_the_sample_configuration_scrapes_the_demo_under_the_job_that_the_alerts_expect():
    config = yaml.safe_load((FOLDER / "prometheus.yml").read_text(encoding="utf-8"))
    (scraped,) = config["scrape_configs"]
    assert scraped["job_name"] == "orchestrator"
    assert scraped["static_configs"] == [{"targets": ["127.0.0.1:9464"]}]
    assert config["rule_files"] == ["alerts.yml"]


def test_the_readme_shows_pictures_that_exist_and_claims_nothing_about_grafana_it_did_not_do():
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README)
    assert len(pictures) == 2
    for picture in pictures:
        assert (FOLDER / picture).stat().st_size > 10_000
    assert "not been tested in Grafana" in " ".join(README.split())
