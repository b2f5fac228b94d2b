"""`doctor` as a user starts it: real processes, good ones and bad ones."""

import json
import os
import sys

import psutil
import pytest

from orchestrator.cli.app import run
from orchestrator.cli.codes import Exit

SOON = ("--set", "watchdogs.handshake_s=0.2s")
LONG_LINE = "x" * 4000


@pytest.fixture(autouse=True)
def _quiet_world(monkeypatch):
    for name in [name for name in os.environ if name.startswith("ORCHESTRATOR_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")


@pytest.fixture(autouse=True)
def _no_orphan():
    before = set(psutil.Process().children(recursive=True))
    yield
    assert set(psutil.Process().children(recursive=True)) <= before


def flaky(tmp_path, script="answer"):
    words = [sys.executable, "-m", "orchestrator.acp.flaky", "--state", str(tmp_path / "state")]
    return [*words, "--script", script, "--pace", "0.01"]


def test_each_finding_is_a_line_with_a_mark(tmp_path, capsys):
    assert run(["doctor", "--", *flaky(tmp_path)]) == Exit.OK
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "yes      Flaky agent starts and speaks protocol version 1."
    assert "yes      It tells failures as records (sessionFailure)." in lines
    assert "yes      Killed, its whole tree is gone (1 process)." in lines
    assert "untried  Answer: not tried; add --prompt TEXT to try it." in lines
    after = lines[lines.index("What recovery can do:") :]
    assert "yes      A dead agent is restarted and its session loaded again." in after
    assert err == ""
    assert json.loads((tmp_path / "state").read_text())["next"] == 0


def test_json_is_one_object(tmp_path, capsys):
    command = ["doctor", "--json", "--prompt", "hello", "--", *flaky(tmp_path, "answer,hang")]
    assert run([*command[:2], "--set", "watchdogs.first_sign_s=0.2s", *command[2:]]) == Exit.OK
    told = json.loads(capsys.readouterr().out)
    checks = {check["name"]: check["mark"] for check in told["checks"]}
    assert told["agent"] == "Flaky agent"
    assert checks["answer"] == checks["cancel"] == checks["load"] == "yes"
    assert {hope["name"]: hope["mark"] for hope in told["recovery"]}["unstick"] == "yes"


def test_a_prompt_that_fails_is_a_failure(tmp_path, capsys):
    assert run(["doctor", "--prompt", "hello", "--", *flaky(tmp_path, "sign_in")]) == Exit.FAILED
    assert "no       It does not answer the prompt: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "echo this is no protocol; cat >/dev/null; exit"],
        ["sh", "-c", "sleep 600 & exec sleep 600"],
        ["yes", LONG_LINE],
        ["sh", "-c", f"exec yes {LONG_LINE} >&2"],
    ],
    ids=["prints garbage", "never answers", "floods its output", "floods stderr"],
)
def test_an_agent_that_does_not_answer_is_unreachable(command, capsys):
    assert run(["doctor", *SOON, "--", *command]) == Exit.UNREACHABLE
    out, err = capsys.readouterr()
    assert out.startswith("no       Start: ")
    assert "did not answer within 0.2 s" in err


def test_an_agent_that_dies_at_its_start_says_why(capsys):
    command = ["sh", "-c", "echo no disk left >&2; exit 3"]
    assert run(["doctor", "--json", "--", *command]) == Exit.UNREACHABLE
    out, err = capsys.readouterr()
    assert [c["name"] for c in json.loads(out)["checks"]] == ["start"]
    told = json.loads(err)
    assert told["code"] == "agent_start_failed"
    assert "no disk left" in told["message"]


def test_a_command_that_is_not_there_is_unreachable(capsys):
    assert run(["doctor", "--", "no-such-agent"]) == Exit.UNREACHABLE
    assert "no-such-agent was not found" in capsys.readouterr().err


def test_no_command_is_wrong_usage(capsys):
    assert run(["doctor"]) == Exit.USAGE
    assert "put it after `--`" in capsys.readouterr().err
