"""`orchestrator metrics`: what it lists, and a demo that can be scraped."""

import json
import os
import re
import signal
import subprocess
import sys
from urllib.request import urlopen

import pytest

from orchestrator.cli.app import run
from orchestrator.cli.codes import Exit
from orchestrator.metrics.series import SERIES
from orchestrator.service.serve import Address, listen


def test_the_list_shows_every_series_with_its_labels_and_meaning(capsys):
    assert run(["metrics", "list"]) == Exit.OK
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "type", "labels", "help"]
    assert [line.split()[0] for line in lines] == [series.full_name for series in SERIES]
    for line, series in zip(lines, SERIES, strict=True):
        assert line.endswith(series.help)
        assert all(label in line for label in series.labels)


def test_the_list_as_json_holds_every_value_that_a_label_can_have(capsys):
    assert run(["metrics", "list", "--json"]) == Exit.OK
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert list(rows) == [series.full_name for series in SERIES]
    assert "landed_clean" in rows["orchestrator_turns_total"]["labels"]["outcome"]
    assert rows["orchestrator_unclassified_total"]["labels"]["provider"][-1] == "other"
    assert rows["orchestrator_backoff_seconds"]["buckets"][0] == 0.25


@pytest.mark.parametrize("speed", ["0", "-1", "nan", "inf", "100000"])
def test_a_speed_out_of_range_is_named_with_what_is_allowed(capsys, speed):
    assert run(["metrics", "demo", f"--speed={speed}"]) == Exit.USAGE
    assert "--speed" in capsys.readouterr().err


def test_an_address_that_is_none_is_named_with_what_is_allowed(capsys):
    assert run(["metrics", "demo", "--listen=here:there", "--json"]) == Exit.USAGE
    error = json.loads(capsys.readouterr().err)
    assert (error["code"], error["field"]) == ("usage", "--listen")
    assert "HOST:PORT" in error["message"]


def test_an_address_that_is_taken_ends_the_command_before_it_begins(capsys):
    taken = listen(Address(port=0))
    assert run(["metrics", "demo", f"--listen={taken.address}"]) == Exit.CANNOT_BIND
    taken.close()
    assert "address already in use" in capsys.readouterr().err


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGINT])
def test_the_demo_can_be_scraped_until_it_is_told_to_end_and_ends_well(ended_by):
    command = [sys.executable, "-W", "error", "-m", "orchestrator.cli", "metrics", "demo"]
    with subprocess.Popen(
        [*command, "--listen=127.0.0.1:0", "--speed=1000"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    ) as running:
        url = re.search(r"http://\S+/metrics", running.stderr.readline())[0]
        with urlopen(url, timeout=20) as answer:
            assert b"orchestrator_turns_total" in answer.read()
        with urlopen(url.replace("/metrics", "/v1/incidents"), timeout=20) as answer:
            assert "incidents" in json.load(answer)
        running.send_signal(ended_by)
        said = running.stderr.read()
        assert running.wait(timeout=20) == Exit.OK, said
    assert said == ""
