"""The command as an editor runs it: real pipes, real signals, and nobody left behind."""

import array
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

AGENT = [sys.executable, str(Path(__file__).with_name("real_agent.py"))]
LONG_S = 30
"""Longer than anything here takes; a test that needs it has failed."""


class Editor:
    """A client with blocking pipes."""

    def __init__(self, process):
        self.process = process
        self.seen = []

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def until(self, condition):
        while not any(condition(message) for message in self.seen):
            line = self.process.stdout.readline()
            assert line, "the proxy has ended"
            self.seen.append(json.loads(line))
        return next(message for message in self.seen if condition(message))

    def ask(self, number, method, **params):
        self.send(id=number, method=method, params=params)
        return self.until(lambda m: m.get("id") == number and "method" not in m)

    def post(self, number, text):
        block = {"type": "text", "text": text}
        params = {"sessionId": "s1", "prompt": [block]}
        self.send(id=number, method="session/prompt", params=params)

    def prompt(self, number, text):
        self.post(number, text)
        return self.until(lambda m: m.get("id") == number and "method" not in m)

    def begin(self):
        hello = self.ask(0, "initialize", protocolVersion=1, clientCapabilities={})
        assert hello["result"]["protocolVersion"] == 1
        self.ask(1, "session/new", cwd="/", mcpServers=[])

    def text(self):
        updates = [m["params"]["update"] for m in self.seen if "params" in m]
        return "".join(u["content"]["text"] for u in updates)


@contextmanager
def editor(tmp_path, *options, agent=AGENT, env=None, stderr=None):
    command = [sys.executable, "-m", "orchestrator.cli", "proxy", "--state-dir", str(tmp_path)]
    quick = ["--set", "ladders.curve.first_s=0.05", "--set", "ladders.curve.jitter=0"]
    with (tmp_path / "stderr").open("wb") as file:
        process = subprocess.Popen(
            [*command, *quick, *options, "--", *agent],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=file if stderr is None else stderr,
            env={**os.environ, **(env or {})},
        )
    try:
        yield Editor(process)
    finally:
        process.kill()
        process.wait()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()


def tree(process):
    return psutil.Process(process.pid).children(recursive=True)


def gone(processes):
    _, left = psutil.wait_procs(processes, timeout=LONG_S)
    return not [p for p in left if p.status() != psutil.STATUS_ZOMBIE]


def full(pipe):
    """Whether a pipe holds about all that it can: nobody reads it."""
    held = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, held)
    return held[0] > fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) // 2


def end_of_input(process):
    process.stdin.close()


def sends(number):
    return lambda process: process.send_signal(number)


ENDS = {
    "end of input": end_of_input,
    "SIGTERM": sends(signal.SIGTERM),
    "SIGINT": sends(signal.SIGINT),
    "SIGHUP": sends(signal.SIGHUP),
    "SIGKILL": sends(signal.SIGKILL),
}


@pytest.mark.parametrize(
    ("end", "busy"),
    [("end of input", False), ("SIGKILL", False), *[(end, True) for end in ENDS]],
)
def test_no_process_outlives_the_proxy_however_it_ends(tmp_path, end, busy):
    with editor(tmp_path) as client:
        client.begin()
        client.prompt(2, "pids")
        if busy:
            block = {"type": "text", "text": "hang"}
            client.send(
                id=3, method="session/prompt", params={"sessionId": "s1", "prompt": [block]}
            )
            time.sleep(0.1)
        processes = tree(client.process)
        agents = set(json.loads(client.text()))
        assert agents <= {p.pid for p in processes}
        ENDS[end](client.process)
        client.process.wait(LONG_S)
        assert gone(processes)
        if end != "SIGKILL":
            assert client.process.returncode == 0
        assert "Traceback" not in (tmp_path / "stderr").read_text()


@pytest.mark.parametrize("end", ENDS)
def test_a_client_that_reads_nothing_keeps_no_proxy_from_its_end(tmp_path, end):
    with editor(tmp_path) as client:
        client.begin()
        processes = tree(client.process)
        client.post(2, "flood")
        pipe = client.process.stdout
        deadline = time.monotonic() + LONG_S
        while not full(pipe) and time.monotonic() < deadline:
            time.sleep(0.05)
        ENDS[end](client.process)
        client.process.wait(LONG_S)
        assert gone(processes)


@pytest.mark.parametrize("end", ENDS)
def test_an_agent_that_reads_nothing_keeps_no_proxy_from_its_end(tmp_path, end):
    with editor(tmp_path) as client:
        client.begin()
        processes = tree(client.process)
        client.post(2, "deaf")
        client.until(lambda message: "params" in message)
        client.send(id=3, method="x/large", params={"data": "x" * 3_000_000})
        ENDS[end](client.process)
        client.process.wait(LONG_S - 10)  # a write may stall for thirty seconds
        assert gone(processes)


def test_a_killed_agent_takes_its_children_with_it_before_the_next_one_starts(tmp_path):
    with editor(tmp_path) as client:
        client.begin()
        client.prompt(2, "pids")
        first = json.loads(client.text())
        processes = [psutil.Process(pid) for pid in first]
        client.seen.clear()
        block = {"type": "text", "text": "hang"}
        client.send(id=3, method="session/prompt", params={"sessionId": "s1", "prompt": [block]})
        time.sleep(0.1)
        os.kill(first[0], signal.SIGKILL)
        # The prompt is sent again, verbatim, to an agent that hangs on it again.
        deadline = time.monotonic() + LONG_S
        while time.monotonic() < deadline:
            now = {p.pid for p in tree(client.process)}
            if now and not now & set(first) and len(now) > 3:
                break
            time.sleep(0.02)
        assert gone(processes)
        client.send(method="session/cancel", params={"sessionId": "s1"})
        client.process.stdin.close()
        client.process.wait(LONG_S)


def test_an_agent_that_dies_in_its_answer_is_replaced_and_asked_for_the_rest(tmp_path):
    with editor(tmp_path) as client:
        client.begin()
        answer = client.prompt(2, "die")
        assert answer["result"] == {"stopReason": "end_turn"}
        assert client.text() == "half continue from where you stopped."


def test_a_failure_is_retried_and_then_told_as_the_agent_told_it(tmp_path):
    with editor(tmp_path, "--set", "ladders.transient_retries=2") as client:
        client.begin()
        answer = client.prompt(2, "overload")
        assert answer["error"]["message"] == "529"
        log = (tmp_path / "stderr").read_text()
        assert log.count("attempt 3 failed: overloaded") == 1


@pytest.mark.parametrize("read", [True, False])
def test_nobody_has_to_read_what_a_proxy_writes_to_stderr(tmp_path, read):
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    if not read:
        os.write(writer, b"x" * 4096)
    with editor(tmp_path, "--set", "ladders.transient_retries=2", stderr=writer) as client:
        client.begin()
        assert client.prompt(2, "overload")["error"]["message"] == "529"
        client.process.stdin.close()
        assert client.process.wait(LONG_S) == 0
    os.close(writer)
    assert (b"attempt 1 failed" in os.read(reader, 4096)) == read
    os.close(reader)


def test_log_journal_and_metrics_go_where_they_are_told(tmp_path):
    log, journal = tmp_path / "log", tmp_path / "journal.jsonl"
    options = ["--log", str(log), "--journal", str(journal), "--metrics", "127.0.0.1:0"]
    with editor(tmp_path, *options, "--notices") as client:
        client.begin()
        client.prompt(2, "say hello")
        client.process.stdin.close()
        client.process.wait(LONG_S)
    assert "turn landed" in log.read_text()
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert {"journal", "turn", "event"} <= {line["line"] for line in lines}


def test_a_command_that_is_not_there_is_one_sentence(tmp_path):
    command = [sys.executable, "-m", "orchestrator.cli", "proxy", "--", "no-such-agent"]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 6
    assert "no-such-agent was not found" in done.stderr
    assert done.stdout == ""


def test_an_agent_that_cannot_start_is_told_once_and_not_started_again(tmp_path):
    starts = tmp_path / "starts"
    program = (
        f"open({str(starts)!r}, 'a').write('x'); import sys;"
        "sys.stderr.write('npm error code E404\\n'); sys.exit(1)"
    )
    with editor(tmp_path, agent=[sys.executable, "-c", program]) as client:
        first = client.ask(0, "initialize", protocolVersion=1)
        second = client.ask(1, "initialize", protocolVersion=1)
        third = client.ask(2, "session/new", cwd="/", mcpServers=[])
    assert first["error"]["message"] == second["error"]["message"] == third["error"]["message"]
    assert first["error"]["data"] == {"errorKind": "agent_start_failed"}
    assert starts.read_text() == "x"
