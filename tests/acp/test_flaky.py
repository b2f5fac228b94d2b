"""Real processes, end to end: the agent that fails on purpose, and a recording as a process."""

import json
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import psutil
import pytest

from orchestrator import Orchestrator
from orchestrator.acp import flaky
from orchestrator.acp.agent import AcpAgent
from orchestrator.acp.process import resolve
from orchestrator.acp.runtime import Runtime
from orchestrator.failure.kinds import Kind
from orchestrator.incident.record import Severity
from orchestrator.settings.model import Curve, Ladders, Settings, Watchdogs
from orchestrator.sinks.memory import MemorySink
from orchestrator.turn.effects import How, Payload

pytestmark = pytest.mark.anyio

AT_ONCE = Settings(
    ladders=Ladders(curve=Curve(first_s=0.001, factor=1, cap_s=0.001)),
    watchdogs=Watchdogs(first_sign_s=60, silence_s=60),
)
REPLAY = Path(__file__).parent / "replay_agent.py"


def flaky_command(tmp_path, script=flaky.DEFAULT_SCRIPT, pace="0"):
    words = [sys.executable, "-m", "orchestrator.acp.flaky", "--state", str(tmp_path / "state")]
    return resolve([*words, "--script", script, "--pace", pace], folder=str(tmp_path))


async def converse(command, *prompts, settings=AT_ONCE):
    sink = MemorySink()
    pids = []
    async with (
        Runtime(command, settings.watchdogs) as runtime,
        Orchestrator(settings, sinks=[sink], seed=1) as orchestrator,
    ):
        session = orchestrator.session("chat", AcpAgent(runtime))
        outcomes = []
        for prompt in prompts:
            outcomes.append(await session.turn(prompt))
            if runtime.connection is not None:
                pids.append(runtime.connection.wire.pid)
    return outcomes, sink.records, pids


async def test_the_demos_turn_meets_everything_and_lands(tmp_path):
    (outcome,), records, (pid,) = await converse(flaky_command(tmp_path), "fix the tests")
    assert (outcome.how, outcome.attempts) == (How.LANDED, 4)
    words = outcome.text.split()
    assert words[:3] == ["The", "tests", "failed"]
    assert len(words) == len(flaky._ANSWER.split())
    assert all(record.severity is Severity.WARNING for record in records)
    assert len({record.id for record in records}) == 2, "before the text, and after it"
    assert not psutil.pid_exists(pid)


@pytest.mark.parametrize(
    ("act", "how", "kind"),
    [
        ("answer", How.LANDED, None),
        ("limit", How.FAILED, Kind.USAGE_LIMIT),
        ("sign_in", How.FAILED, Kind.AUTH_REQUIRED),
        ("silent", How.LANDED, None),
    ],
)
async def test_each_act_leads_where_it_should(tmp_path, act, how, kind):
    (outcome,), _, _ = await converse(flaky_command(tmp_path, act), "hello")
    assert (outcome.how, outcome.verdict and outcome.verdict.kind) == (how, kind)
    assert outcome.attempts == (2 if act == "silent" else 1)


async def test_a_recording_is_played_by_a_process_as_it_is_in_memory(tmp_path):
    words = [sys.executable, str(REPLAY), "codex", "r403.air", "1e9"]
    command = resolve(words, folder=str(tmp_path))
    (outcome,), records, _ = await converse(command, "hello")
    assert (outcome.how, outcome.verdict.kind) == (How.FAILED, Kind.ACCESS_DENIED)
    assert records[-1].title == outcome.verdict.title


@pytest.mark.parametrize("moment", ["starting", "idle", "answering"])
async def test_a_host_that_is_cancelled_leaves_no_process(tmp_path, moment):
    command = flaky_command(tmp_path, "hang", pace="0.01")
    family = []
    with anyio.CancelScope() as scope:
        async with Runtime(command) as runtime, anyio.create_task_group() as tasks:
            agent = AcpAgent(runtime)
            if moment == "starting":
                tasks.start_soon(agent.open)
                while not family:
                    await anyio.lowlevel.checkpoint()
                    family = psutil.Process().children(recursive=True)
            else:
                await agent.open()
                family = psutil.Process().children(recursive=True)
            if moment == "answering":
                tasks.start_soon(agent.attempt, Prompted())
                await anyio.wait_all_tasks_blocked()
            scope.cancel()
    assert family
    assert psutil.wait_procs(family, timeout=30)[1] == []


class Prompted:
    """An attempt that nobody watches."""

    number, payload, prompt = 1, Payload.VERBATIM, "hello"


# -- the agent itself


def test_its_place_in_the_script_outlives_its_death(tmp_path):
    state = tmp_path / "state"
    sent = []
    agent = flaky.FlakyAgent(state, ("overloaded", "answer"), sent.append)
    agent.take({"id": 1, "method": "initialize", "params": {}})
    agent.take({"id": 2, "method": "session/new", "params": {}})
    session = sent[-1]["result"]["sessionId"]
    agent.take({"id": 3, "method": "session/prompt", "params": {"sessionId": session}})
    while agent.act:
        agent.step()
    assert sent[-1]["error"]["data"] == {"errorKind": "overloaded"}

    reborn = flaky.FlakyAgent(state, ("overloaded", "answer"), sent.append)
    reborn.take({"id": 1, "method": "session/load", "params": {"sessionId": session}})
    assert sent[-1]["result"] == {}
    reborn.take({"id": 2, "method": "session/prompt", "params": {"sessionId": session}})
    while reborn.act:
        reborn.step()
    assert sent[-1]["result"] == {"stopReason": "end_turn"}


def test_it_answers_what_it_does_not_know(tmp_path):
    sent = []
    agent = flaky.FlakyAgent(tmp_path / "state", ("answer",), sent.append)
    agent.take({"id": 1, "method": "session/fork", "params": {}})
    agent.take({"id": 2, "method": "session/load", "params": {"sessionId": "gone"}})
    agent.take({"id": 3, "method": "session/prompt", "params": {"sessionId": "gone"}})
    agent.take({"method": "session/cancel"})
    assert [message["error"]["code"] for message in sent] == [-32601, -32002, -32002]


def test_a_cancel_ends_its_act(tmp_path):
    sent = []
    agent = flaky.FlakyAgent(tmp_path / "state", ("hang",), sent.append)
    agent.take({"id": 1, "method": "session/new"})
    session = sent[-1]["result"]["sessionId"]
    agent.take({"id": 2, "method": "session/prompt", "params": {"sessionId": session}})
    agent.step()
    agent.take({"method": "session/cancel", "params": {"sessionId": session}})
    assert sent[-1] == {"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "cancelled"}}


def test_an_unknown_act_is_refused_by_name():
    words = [sys.executable, "-m", "orchestrator.acp.flaky", "--state", "s", "--script", "dance"]
    told = subprocess.run(words, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert "dance is no act; there are overloaded," in told.stderr


def test_every_frame_it_sends_is_json(tmp_path):
    words = [sys.executable, "-m", "orchestrator.acp.flaky", "--state", str(tmp_path / "s")]
    asked = json.dumps({"id": 1, "method": "initialize", "params": {}})
    told = subprocess.run(words, input=asked + "\n", capture_output=True, text=True, check=True)
    assert json.loads(told.stdout)["result"]["protocolVersion"] == 1
