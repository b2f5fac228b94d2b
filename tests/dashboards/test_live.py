"""The shipped files against a real Prometheus that scrapes real processes, and Grafana's own types.

`make test-dashboards`.  Installs what it needs on a fresh machine.
"""

import json
import math
import re
import socket
import time
from urllib.request import Request, urlopen

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

from dashboards import live
from dashboards.preview.__main__ import height, photograph, write
from dashboards.queries import expanded
from orchestrator.turn.effects import Family
from tests.dashboards import tools
from tests.dashboards.expressions import (
    ALERTS,
    DASHBOARD,
    FOLDER,
    alerts,
    known,
    panel_exprs,
    panels,
    rules,
    variable_queries,
)

pytestmark = [pytest.mark.dashboards, pytest.mark.timeout(1200)]

PATIENCE_S = 120.0
"""How long a query may take until it gives data: the demo goes round its scripts in less."""


@pytest.fixture(scope="session")
def promtool():
    return tools.debian("prometheus", "promtool")


@pytest.fixture(scope="session")
def demos():
    """Two processes, each with a port of its own."""
    with live.demo() as one, live.demo() as other:
        yield one, other


@pytest.fixture(scope="session")
def outage():
    """A process whose providers and agents are down: what the alerts watch for."""
    with live.demo("--outage") as address:
        yield address


@pytest.fixture(scope="session")
def dead():
    """An address that nothing answers: taken, so that nobody else gets it, and not listened on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture(scope="session")
def server(promtool, demos, outage, dead, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prometheus")
    with live.prometheus(live.configured([*demos, dead], outage=[outage]), folder) as running:
        yield running


def scrape(address, accept="text/plain"):
    request = Request(f"http://{address}/metrics", headers={"Accept": accept})
    with urlopen(request, timeout=10) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def has_data(result):
    """At least one sample that is a number."""
    return any(not math.isnan(float(series["value"][1])) for series in result)


def eventually(ask):
    """Ask until there is an answer that holds; give the last one."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = ask()
        if answer or time.monotonic() > deadline:
            return answer
        time.sleep(0.5)


# promtool -----------------------------------------------------------------------------------------


def test_the_text_format_of_a_live_process_is_clean(promtool, demos):
    content_type, text = scrape(demos[0])
    assert content_type.startswith("text/plain; version=0.0.4")
    said = tools.run([promtool, "check", "metrics"], input=text)
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")


def test_the_openmetrics_format_of_a_live_process_is_clean(promtool, demos):
    content_type, text = scrape(demos[0], "application/openmetrics-text;version=1.0.0")
    assert content_type.startswith("application/openmetrics-text; version=1.0.0")
    families = list(openmetrics(text))
    counters = {family.name for family in families if family.type == "counter"}
    assert any(sample.exemplar for family in families for sample in family.samples)
    # This promtool reads the text format alone: same samples, the counters' metadata under the
    # name it has there, no exemplars and no end mark.
    lines = []
    for line in text.removesuffix("# EOF\n").splitlines():
        about = re.match(r"# (?:HELP|TYPE) (\S+)", line)
        if about and about[1] in counters:
            lines.append(line.replace(about[1], f"{about[1]}_total", 1))
        else:
            lines.append(line if about else line.partition(" # {")[0])
    said = tools.run([promtool, "check", "metrics"], input="\n".join(lines) + "\n")
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")


def test_promtool_would_notice_a_series_with_a_bad_name(promtool):
    said = tools.run(
        [promtool, "check", "metrics"], input="# TYPE retryWait_ms counter\nretryWait_ms 1\n"
    )
    assert said.returncode == 3


def test_the_sample_configuration_and_the_rules_are_valid(promtool):
    for what, name in (("config", "prometheus.yml"), ("rules", "alerts.yml")):
        said = tools.run([promtool, "check", what, name], cwd=FOLDER)
        assert said.returncode == 0, said.stderr


def test_the_rules_pass_their_unit_tests(promtool):
    said = tools.run([promtool, "test", "rules", "alerts_test.yml"], cwd=FOLDER)
    assert said.returncode == 0, said.stdout + said.stderr


@pytest.mark.parametrize("spoiled", ["never", "always"])
def test_the_unit_tests_would_notice_each_alert_that_never_or_always_fires(
    promtool, tmp_path, spoiled
):
    cases = yaml.safe_load((FOLDER / "alerts_test.yml").read_text(encoding="utf-8"))
    for alert in alerts():
        name = alert["alert"]
        broken = json.loads(json.dumps(ALERTS))
        for group in broken["groups"]:
            for rule in group["rules"]:
                if rule.get("alert") == name:
                    rule["expr"] = "vector(0) > 1" if spoiled == "never" else "vector(1)"
                    rule["for"] = "0s"
        about = [
            c
            for c in cases["tests"]
            if any(
                told["alertname"] == name and bool(told["exp_alerts"]) == (spoiled == "never")
                for told in c["alert_rule_test"]
            )
        ]
        (tmp_path / "alerts.yml").write_text(yaml.safe_dump(broken), encoding="utf-8")
        (tmp_path / "alerts_test.yml").write_text(
            yaml.safe_dump({**cases, "tests": about[:1]}), encoding="utf-8"
        )
        said = tools.run([promtool, "test", "rules", "alerts_test.yml"], cwd=tmp_path)
        assert said.returncode == 1, f"{name} {spoiled} fires and no test notices"


# A real Prometheus --------------------------------------------------------------------------------


def test_both_processes_are_scraped_each_on_its_own_port(server, demos):
    def answering():
        found = server.instant('up{job="orchestrator"} == 1')
        return found if len(found) == len(demos) else None

    up = {series["metric"]["instance"] for series in eventually(answering)}
    assert up == set(demos)
    by_instance = eventually(
        lambda: server.instant('count by (instance) (orchestrator_turns_total{job="orchestrator"})')
    )
    assert {series["metric"]["instance"] for series in by_instance} == set(demos)


@pytest.mark.parametrize(("where", "expr"), panel_exprs())
def test_every_panel_and_mark_gives_data(server, where, expr):
    filled = expanded(expr, rate_interval="15s", span="60s")
    answer = eventually(lambda: (found := server.instant(filled)) and has_data(found) and found)
    assert answer, f"{where} is empty: {filled}"


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.get("alert") or rule["record"])
def test_every_rule_gives_data(server, rule):
    answer = eventually(lambda: has_data(server.instant(rule["expr"])))
    assert answer, rule["expr"]


def test_every_rule_is_loaded_and_evaluated_without_an_error(server):
    groups = eventually(
        lambda: (
            (found := server.get("rules")["groups"])
            and all(rule["health"] == "ok" for group in found for rule in group["rules"])
            and found
        )
    )
    loaded = [rule["name"] for group in groups for rule in group["rules"]]
    assert sorted(loaded) == sorted(rule.get("alert") or rule["record"] for rule in rules())


@pytest.mark.parametrize(("name", "expr", "label"), variable_queries())
def test_every_variable_finds_values(server, name, expr, label):
    found = eventually(lambda: server.get(f"label/{label}/values", **{"match[]": expanded(expr)}))
    assert found, name


def test_every_series_of_the_registry_reaches_prometheus_and_no_other_does(server):
    def stored():
        names = server.get("label/__name__/values", **{"match[]": '{__name__=~"orchestrator_.+"}'})
        return set(names) if set(names) >= set(known()) else None

    assert eventually(stored) == set(known())


def test_at_every_scrape_scheduled_is_sent_and_dropped_and_pending(server):
    """The scrapes of a process are one moment, so the identity holds in what Prometheus stored."""
    expr = (
        "sum by (instance, family) (orchestrator_retries_scheduled_total)"
        " - sum by (instance, family) (orchestrator_retries_sent_total)"
        " - sum by (instance, family) (orchestrator_retries_dropped_total)"
        " - sum by (instance, family) (orchestrator_turns_pending)"
    )
    eventually(lambda: server.instant(expr))
    now = time.time()
    series = server.ranged(expr, now - 60, now, 1)
    assert len(series) == 3 * len(Family)
    assert {value for one in series for _, value in one["values"]} == {"0"}


@pytest.mark.parametrize(
    "name", ["backoff_seconds_bucket", "time_to_recovery_seconds_bucket", "turns_total"]
)
def test_exemplars_lead_from_a_sample_to_its_turn(server, name):
    def stored():
        now = time.time()
        found = server.get(
            "query_exemplars", query=f"orchestrator_{name}", start=now - 120, end=now
        )
        return [one for series in found for one in series["exemplars"]]

    exemplars = eventually(stored)
    assert exemplars
    assert all(re.fullmatch(r"demo-\d+", one["labels"]["turn_id"]) for one in exemplars)


def test_the_preview_is_drawn_light_and_dark_in_a_browser(server, tmp_path):
    tools.debian("chromium", "chromium")
    eventually(lambda: has_data(server.instant("orchestrator_build_info")))
    pictures = photograph(write(server, tmp_path, seconds=60), tmp_path)
    shades = []
    for picture in pictures:
        content = picture.read_bytes()
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        assert int.from_bytes(content[20:24], "big") == height(DASHBOARD)
        assert len(content) > 100_000, "a page without drawings is far smaller"
        shades.append(content)
    assert shades[0] != shades[1]


# Grafana's own types ------------------------------------------------------------------------------


def compiled(dashboard, folder):
    """What the TypeScript compiler says about a dashboard."""
    (folder / "orchestrator.json").write_text(json.dumps(dashboard), encoding="utf-8")
    (folder / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    modules = tools.npm_folder() / "node_modules"
    (folder / "node_modules").symlink_to(modules)
    here = FOLDER.parent / "tests" / "dashboards" / "check.ts"
    (folder / "check.ts").write_text(here.read_text(encoding="utf-8"), encoding="utf-8")
    return tools.run(
        [
            modules / ".bin" / "tsc",
            "--noEmit",
            "--skipLibCheck",
            "--strict",
            "--resolveJsonModule",
            "--module",
            "nodenext",
            "--moduleResolution",
            "nodenext",
            "check.ts",
        ],
        cwd=folder,
    )


def test_the_dashboard_fits_the_types_that_grafana_publishes(tmp_path):
    said = compiled(DASHBOARD, tmp_path)
    assert said.returncode == 0, said.stdout


@pytest.mark.parametrize(
    "wrong",
    [
        {"schemaVersion": "41"},
        {"panels": [{**panels()[0], "gridPos": {"x": "0"}}]},
        {"templating": {"list": [{"name": "job", "type": "query", "current": {"text": 1}}]}},
    ],
    ids=["schema version", "grid position", "variable"],
)
def test_the_types_would_notice_a_dashboard_that_does_not_fit(tmp_path, wrong):
    assert compiled({**DASHBOARD, **wrong}, tmp_path).returncode != 0


def through_the_sdk(dashboard):
    # Large: only this test pays for it.
    from grafana_foundation_sdk.cog import plugins
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import Dashboard

    plugins.register_default_plugins()
    return json.loads(json.dumps(Dashboard.from_json(dashboard), cls=JSONEncoder))


def lost(before, after, path=""):
    """Paths of what was there and is gone or changed; defaults that were added do not count."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            where = f"{path}/{key}"
            if key in after:
                yield from lost(value, after[key], where)
            else:
                yield re.sub(r"/\d+", "/*", where)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from lost(one, other, f"{path}/{place}")
    elif before != after:
        yield path


UNKNOWN_TO_THE_SDK = {
    "/id",  # null: Grafana gives one on import
    "/annotations/list/*/titleFormat",  # the Prometheus data source's own fields
    "/annotations/list/*/textFormat",
}


def test_the_dashboard_goes_through_grafanas_sdk_and_comes_back_whole():
    once = through_the_sdk(DASHBOARD)
    assert set(lost(DASHBOARD, once)) == UNKNOWN_TO_THE_SDK
    assert through_the_sdk(once) == once
