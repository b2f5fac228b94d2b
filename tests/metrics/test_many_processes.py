"""Several processes on a host that share prometheus-client's multi-process directory."""

import os
import subprocess
import sys

import pytest

WORKER = """
import asyncio, json, sys
import httpx
from orchestrator.failure.kinds import Category, Kind
from orchestrator.failure.verdict import Verdict
from orchestrator.incident.record import Record, Severity
from orchestrator.metrics import MetricsObserver
from orchestrator.service.app import create_app
from orchestrator.settings.model import Settings
from orchestrator.turn.events import Began, Failed, Finished, Live, Started
from orchestrator.turn.incidents import TurnIds
from orchestrator.turn.machine import TurnMachine

async def scrape(app):
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
        accept = {"accept": "application/openmetrics-text;version=1.0.0"}
        return (await client.get("/metrics", headers=accept)).text

observer = MetricsObserver()
observer.sink_opened("log")
live = Live()
for number in range(int(sys.argv[1])):
    machine = TurnMachine(Settings(), TurnIds(f"turn-{number}", "s", "e"))
    for event in (Started(0.0, live), Began(0.0, live), Finished(1.0, live, 1)):
        observer(machine, event, machine.handle(event))
waiting = TurnMachine(Settings(), TurnIds("waiting", "s", "e"))
for event in (
    Started(0.0, live), Began(0.0, live), Failed(1.0, live, 1, Verdict.of(Kind.OVERLOADED, "No."))
):
    observer(waiting, event, waiting.handle(event))
observer.settings_loaded(ok=sys.argv[2] == "good")
observer.active = lambda: [Record("a", 1, Category.LIMIT, Severity.ERROR, "Wait.")]
if sys.argv[2] == "refreshed":
    observer.refresh()
print(asyncio.run(scrape(create_app(observer))) if sys.argv[2] == "good" else "")
"""


def work(folder, turns, settings):
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WORKER, str(turns), settings],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def scraped(tmp_path_factory):
    """What the last of three processes shows."""
    folder = tmp_path_factory.mktemp("shared")
    work(folder, 3, "bad")
    work(folder, 4, "refreshed")
    return work(folder, 5, "good")


def sample(text, name):
    (found,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return float(found.rsplit(" ", 1)[1])


def test_counters_of_all_processes_come_as_one_sum(scraped):
    assert sample(scraped, 'orchestrator_turns_total{outcome="landed_clean"}') == 12
    assert sample(scraped, 'orchestrator_retries_scheduled_total{family="transient"}') == 3
    assert sample(scraped, 'orchestrator_backoff_seconds_count{family="transient"}') == 3


def test_gauges_are_merged_as_each_means(scraped):
    assert sample(scraped, "orchestrator_turns_in_progress") == 3
    assert sample(scraped, 'orchestrator_turns_pending{family="transient"}') == 3
    assert sample(scraped, "orchestrator_settings_last_reload_successful") == 0
    assert sample(scraped, 'orchestrator_sink_disabled{sink="log"}') == 0
    (build,) = [
        line for line in scraped.splitlines() if line.startswith("orchestrator_build_info{")
    ]
    assert build.endswith(" 1.0")
    assert "pid=" not in scraped


def test_what_is_read_on_collection_is_as_old_as_the_last_refresh(scraped):
    name = 'orchestrator_incidents_active{category="limit",severity="error"}'
    assert sample(scraped, name) == 2, "one process never refreshed, so its incident is not seen"


def test_exemplars_do_not_work_across_processes(scraped):
    assert " # {" not in scraped


def test_a_process_that_is_gone_takes_its_gauges_with_it(tmp_path):
    work(tmp_path, 1, "bad")
    (gauges,) = tmp_path.glob("gauge_livesum_*.db")
    pid = gauges.stem.rsplit("_", 1)[1]
    code = f"from prometheus_client.multiprocess import mark_process_dead; mark_process_dead({pid})"
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)
    scraped = work(tmp_path, 1, "good")
    assert sample(scraped, "orchestrator_turns_in_progress") == 1
    assert sample(scraped, 'orchestrator_turns_total{outcome="landed_clean"}') == 2
