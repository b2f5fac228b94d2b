"""A settings file that changes while a program runs."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import anyio
import pytest

from orchestrator.cli import following
from orchestrator.cli.chosen import Chosen
from orchestrator.cli.following import follow
from orchestrator.metrics import MetricsObserver
from orchestrator.settings.load import load

GOOD = "[ladders]\ntransient_retries = 5\n"
BETTER = "[ladders]\ntransient_retries = 6\n"
BAD = "[ladders]\ntransient_retries = -1\n"
AGENT = Path(__file__).parents[1] / "acp" / "proxy" / "real_agent.py"
LONG_S = 60


def reload_ok(metrics):
    name = "orchestrator_settings_last_reload_successful"
    return metrics.registry.get_sample_value(name)


async def until(condition):
    with anyio.fail_after(LONG_S):
        while not condition():  # noqa: ASYNC110 - a file has no event
            await anyio.sleep(0.01)


@pytest.mark.anyio
async def test_a_file_that_changes_is_put_in_force_and_a_bad_one_changes_nothing(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(following, "LOOK_EVERY_S", 0.01)
    file, metrics, said, used = tmp_path / "mine.toml", MetricsObserver(), [], []
    file.write_text(GOOD)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow, Chosen(file), load(file), metrics, said.append, used.append)
        await anyio.sleep(0.1)
        assert (said, used) == ([], [])
        file.write_text(BAD)
        await until(lambda: len(said) == 1)
        assert "ladders.transient_retries: -1 is not allowed" in said[0]
        assert (used, reload_ok(metrics)) == ([], 0.0)
        file.write_text(BETTER)
        await until(lambda: len(said) == 2)
        assert said[1] == "settings changed: ladders.transient_retries"
        assert [settings.ladders.transient_retries for settings in used] == [6]
        assert reload_ok(metrics) == 1.0
        file.unlink()
        await until(lambda: len(said) == 3)
        assert said[2].startswith("settings kept as they were, because of file")
        assert (len(used), reload_ok(metrics)) == (1, 0.0)
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_what_changed_before_anybody_looked_is_put_in_force_too(tmp_path, monkeypatch):
    monkeypatch.setattr(following, "LOOK_EVERY_S", 0.01)
    file, said, used = tmp_path / "mine.toml", [], []
    file.write_text(GOOD)
    loaded = load(file)
    file.write_text(BETTER)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow, Chosen(file), loaded, MetricsObserver(), said.append, used.append)
        await until(lambda: used)
        tasks.cancel_scope.cancel()
    assert [settings.ladders.transient_retries for settings in used] == [6]


@pytest.mark.anyio
async def test_a_bad_file_of_the_start_is_not_told_of_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(following, "LOOK_EVERY_S", 0.01)
    file, metrics, said, used = tmp_path / "mine.toml", MetricsObserver(), [], []
    file.write_text(BAD)
    loaded = load(file, strict=False)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow, Chosen(file), loaded, metrics, said.append, used.append)
        await until(lambda: reload_ok(metrics) == 0.0)
        assert (said, used) == ([], [])
        file.write_text(GOOD)
        await until(lambda: used)
        await until(lambda: said == ["settings changed: ladders.transient_retries"])
        tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_a_file_of_the_user_is_found_when_it_appears(tmp_path, monkeypatch):
    monkeypatch.setattr(following, "LOOK_EVERY_S", 0.01)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("ORCHESTRATOR_SETTINGS", raising=False)
    said, used = [], []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow, Chosen(), load(), MetricsObserver(), said.append, used.append)
        await anyio.sleep(0.1)
        (tmp_path / "orchestrator").mkdir()
        (tmp_path / "orchestrator" / "settings.toml").write_text(GOOD)
        await until(lambda: used)
        assert used[0].ladders.transient_retries == 5
        tasks.cancel_scope.cancel()


def scraped(url):
    with urlopen(url, timeout=LONG_S) as answer:
        text = answer.read().decode()
    gauge = r"^orchestrator_settings_last_reload_successful (\S+)"
    return float(re.search(gauge, text, re.MULTILINE)[1])


def test_a_proxy_that_runs_takes_a_changed_file_over_and_its_gauge_says_whether_it_could(tmp_path):
    file, log = tmp_path / "mine.toml", tmp_path / "log"
    file.write_text(BAD)
    command = [sys.executable, "-m", "orchestrator.cli", "proxy", "--settings", str(file)]
    command += ["--state-dir", str(tmp_path), "--log", str(log), "--metrics", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--", sys.executable, str(AGENT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    ) as proxy:
        assert "transient_retries: -1 is not allowed" in proxy.stderr.readline()
        until_s = time.monotonic() + LONG_S
        url = None
        while url is None and time.monotonic() < until_s:
            found = re.search(r"http://\S+/metrics", log.read_text() if log.exists() else "")
            url = found and found[0]
            time.sleep(0.05)
        assert scraped(url) == 0.0
        file.write_text(GOOD)
        while "settings changed" not in log.read_text() and time.monotonic() < until_s:
            time.sleep(0.05)
        assert "settings changed: ladders.transient_retries" in log.read_text()
        assert scraped(url) == 1.0
        proxy.send_signal(signal.SIGTERM)
        proxy.wait(LONG_S)
