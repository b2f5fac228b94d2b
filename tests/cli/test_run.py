"""`demo` and `run` as a user starts them: real processes, short waits."""

import json
import os
import pty
import signal
import subprocess
import sys
import urllib.request

import psutil
import pytest

from orchestrator.cli import demo
from orchestrator.cli.app import run
from orchestrator.cli.codes import Exit
from orchestrator.settings.model import Curve, Ladders, Settings

QUICK = ("--set", "ladders.curve.first_s=0.01s", "--set", "ladders.curve.cap_s=0.01s")
QUICK += ("--set", "ladders.curve.factor=1")


@pytest.fixture(autouse=True)
def _quiet_world(monkeypatch):
    for name in [name for name in os.environ if name.startswith("ORCHESTRATOR_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")


def flaky(tmp_path, script, pace="0"):
    words = [sys.executable, "-m", "orchestrator.acp.flaky", "--state", str(tmp_path / "state")]
    return [*words, "--script", script, "--pace", pace]


def talk(tmp_path, script, *options, prompt="hello"):
    return run(["run", *QUICK, *options, "--prompt", prompt, "--", *flaky(tmp_path, script)])


# -- run


def test_the_answer_goes_to_stdout_and_everything_else_to_stderr(tmp_path, capsys):
    assert talk(tmp_path, "overloaded,dropped,death,answer") == Exit.OK
    out, err = capsys.readouterr()
    assert out.startswith("The tests failed because the clock was read twice. I read it")
    assert "(1 of 3)" in err
    assert "recovering: respawn" in err
    assert "warning: " in err


def test_a_failed_turn_is_one_error_with_what_can_be_done(tmp_path, capsys):
    assert talk(tmp_path, "sign_in") == Exit.FAILED
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert "[you can: sign in]" in err


def test_json_is_objects_on_stdout_and_the_error_is_one_on_stderr(tmp_path, capsys):
    assert talk(tmp_path, "overloaded,limit", "--json") == Exit.FAILED
    out, err = capsys.readouterr()
    told = [json.loads(line) for line in out.splitlines()]
    assert [t["type"] for t in told if t["type"] != "note"] == [
        "record",
        "record",
        "wait",
        "record",
        "end",
    ]
    assert {t["id"] for t in told if t["type"] == "record"} == {told[0]["id"]}
    assert (told[-1]["how"], told[-1]["kind"]) == ("failed", "usage_limit")
    assert json.loads(err)["code"] == "turn_failed"


def test_a_missing_command_is_told_without_a_turn(capsys):
    assert run(["run", "--json", "--prompt", "x", "--", "no-such-agent"]) == Exit.UNREACHABLE
    told = json.loads(capsys.readouterr().err)
    assert told["code"] == "agent_not_found"
    assert told["message"] == "no-such-agent was not found; install it, or write its full path."


@pytest.mark.parametrize("words", [[], ["--", ""]])
def test_no_command_is_a_mistake_in_the_command_line(words, capsys):
    assert run(["run", *words]) == Exit.USAGE
    assert "put it after `--`" in capsys.readouterr().err


def test_a_missing_folder_is_a_mistake_in_the_command_line(capsys):
    assert run(["run", "--json", "--folder", "no/such", "--", "true"]) == Exit.USAGE
    told = json.loads(capsys.readouterr().err)
    assert (told["code"], told["field"]) == ("usage", "--folder")
    assert told["message"] == "the folder no/such is not there"


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import sys; sys.exit(3)", "exit code 3 before it answered"),
        (
            'import sys; sys.stdin.readline(); print(\'{"id":1,"result":{}}\')',
            "does not speak the Agent Client Protocol",
        ),
    ],
)
def test_a_bad_agent_is_one_sentence(capsys, program, words):
    code = run(["run", "--prompt", "x", "--", sys.executable, "-c", program])
    err = capsys.readouterr().err
    assert code == Exit.UNREACHABLE
    assert words in err
    assert "Traceback" not in err


def test_an_agent_that_only_listens_is_given_up(capsys):
    options = ["--set", "watchdogs.handshake_s=0.1s", "--prompt", "x"]
    program = "print('hello'); import sys; sys.stdin.read()"
    code = run(["run", *options, "--", sys.executable, "-c", program])
    assert code == Exit.UNREACHABLE
    assert "did not answer within 0.1 s" in capsys.readouterr().err


def test_the_whole_of_a_pipe_is_one_message(tmp_path):
    command = [sys.executable, "-m", "orchestrator.cli", "run", "--json", "--"]
    done = subprocess.run(
        [*command, *flaky(tmp_path, "answer")],
        input="one\ntwo\n",
        capture_output=True,
        text=True,
        check=True,
    )
    ends = [json.loads(line) for line in done.stdout.splitlines() if '"end"' in line]
    assert [end["how"] for end in ends] == ["landed"]


def test_ctrl_c_stops_the_turn_and_leaves_no_process(tmp_path):
    command = [sys.executable, "-m", "orchestrator.cli", "run", "--json", "--prompt", "x"]
    command += ["--", *flaky(tmp_path, "death,hang", pace="0.01")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        line = ""
        while '"recovery"' not in line:
            line = child.stdout.readline()
        family = psutil.Process(child.pid).children(recursive=True)
        child.send_signal(signal.SIGINT)
        rest = child.stdout.read()
        assert child.wait() == Exit.INTERRUPTED
    assert json.loads(rest.splitlines()[-1])["how"] == "stopped"
    assert not [p for p in family if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (signal.SIGTERM, "ended by SIGTERM"),
        (signal.SIGHUP, "ended, because the terminal was closed"),
    ],
)
def test_a_signal_that_ends_everything_is_told_by_its_name(tmp_path, number, says):
    deaf = tmp_path / "deaf.py"
    deaf.write_text(_DEAF)
    command = [sys.executable, "-m", "orchestrator.cli", "run", "--json", "--prompt", "x"]
    with subprocess.Popen(
        [*command, "--", sys.executable, str(deaf)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout.readline(), "the first word of the answer"
        family = psutil.Process(child.pid).children(recursive=True)
        child.send_signal(number)
        child.stdout.read()
        told = json.loads(child.stderr.read().splitlines()[-1])
        assert (told["code"], told["message"]) == ("terminated", says)
        assert child.wait() == Exit.TERMINATED
    assert psutil.wait_procs(family, timeout=30)[1] == []


def test_a_second_ctrl_c_kills_an_agent_that_does_not_listen(tmp_path):
    deaf = tmp_path / "deaf.py"
    deaf.write_text(_DEAF)
    command = [sys.executable, "-m", "orchestrator.cli", "run", "--json", "--prompt", "x"]
    with subprocess.Popen(
        [*command, "--", sys.executable, str(deaf)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout.readline(), "the first word of the answer"
        family = psutil.Process(child.pid).children(recursive=True)
        child.send_signal(signal.SIGINT)
        assert "cancel" in child.stdout.readline()
        child.send_signal(signal.SIGINT)
        child.stdout.read()
        assert json.loads(child.stderr.read().splitlines()[-1])["code"] == "interrupted"
        assert child.wait() == Exit.INTERRUPTED
    assert psutil.wait_procs(family, timeout=30)[1] == []


_DEAF = """
import json, sys
def send(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def say(text):
    content = {"type": "text", "text": text}
    update = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": content}
    send(method="session/update", params={"sessionId": "s", "update": update})
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "session/prompt":
        say("answering")
    elif asked["method"] == "session/cancel":
        say("a cancel came, and is ignored")
    else:
        send(id=asked["id"], result={"protocolVersion": 1, "sessionId": "s"})
"""


def test_each_line_that_is_typed_is_a_message(tmp_path):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "orchestrator.cli", "run", "--no-color", "--"]
    with subprocess.Popen(
        [*command, *flaky(tmp_path, "answer,answer")],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    ) as child:
        os.close(theirs)
        os.write(ours, b"one\n")
        written = b""
        while written.count(b"pass now.") < 1:
            written += os.read(ours, 4096)
        os.write(ours, b"two\n\x04")
        while child.poll() is None:
            try:
                written += os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
        assert child.wait() == Exit.OK
    os.close(ours)
    assert written.count(b"pass now.") == 2
    assert b"> " in written


# -- demo


@pytest.fixture
def _short_demo(monkeypatch):
    curve = Curve(first_s=0.2, factor=1, cap_s=0.2)
    monkeypatch.setattr(demo, "_SETTINGS", Settings(ladders=Ladders(curve=curve)))
    monkeypatch.setattr(demo, "_PACE_S", 0)
    monkeypatch.setattr(demo, "_STOP_AFTER_S", 0)


@pytest.mark.usefixtures("_short_demo")
def test_the_demo_ends_well_and_its_metrics_add_up(capsys):
    assert run(["demo", "--json"]) == Exit.OK
    out, err = capsys.readouterr()
    told = [json.loads(line) for line in out.splitlines()]
    assert [t["how"] for t in told if t["what"] == "end"] == ["landed", "landed", "stopped"]
    assert told[0] == {**told[0], "what": "turn", "label": "turn"}
    metrics = told[-1]
    assert metrics["adds_up"]
    assert metrics["turns"] == {"landed_clean": 1, "landed_after_recovery": 1, "stopped": 1}
    assert metrics["retries"]["transient"] == {
        "scheduled": 3,
        "sent": 2,
        "dropped": 1,
        "pending": 0,
    }
    assert "fails on purpose" in err


def test_a_reader_of_the_demo_that_goes_away_ends_it_without_a_word_more():
    command = [sys.executable, "-c", _SHORT, "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline()
        child.stdout.close()
        err = child.stderr.read()
        assert child.wait() == Exit.CLOSED_PIPE
    assert err.splitlines() == [err.strip()], "only what the demo is about"
    assert "fails on purpose" in err


_SHORT = """
import sys
from orchestrator.cli import demo
from orchestrator.cli.app import run
from orchestrator.settings.model import Curve, Ladders, Settings
demo._SETTINGS = Settings(ladders=Ladders(curve=Curve(first_s=0.2, factor=1, cap_s=0.2)))
sys.exit(run(["demo", *sys.argv[1:]]))
"""


def test_the_demo_can_be_scraped_until_ctrl_c():
    command = [sys.executable, "-c", _LISTENING]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as child:
        line = ""
        while "serving" not in line:
            line = child.stderr.readline()
            assert line, "the demo ended early"
        url = line.split()[1].rstrip(";")
        with urllib.request.urlopen(url) as answer:
            text = answer.read().decode()
        child.send_signal(signal.SIGINT)
        child.stderr.read()
        assert child.wait() == Exit.OK
    assert 'orchestrator_turns_total{outcome="stopped"} 1.0' in text


_LISTENING = """
import sys
from orchestrator.cli import demo
from orchestrator.cli.app import run
from orchestrator.settings.model import Curve, Ladders, Settings
demo._SETTINGS = Settings(ladders=Ladders(curve=Curve(first_s=0.2, factor=1, cap_s=0.2)))
demo._PACE_S = demo._STOP_AFTER_S = 0
sys.exit(run(["demo", "--listen", "127.0.0.1:0"]))
"""
