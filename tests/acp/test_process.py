import errno
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import anyio
import psutil
import pytest

from orchestrator.acp import keeper, process
from orchestrator.acp.framing import encode
from orchestrator.acp.process import (
    AgentProcess,
    Command,
    CommandMissingError,
    Exit,
    WireError,
    resolve,
)
from orchestrator.failure.classify import classify
from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import Surface
from orchestrator.failure.verdict import Context, Delivery, Phase

pytestmark = pytest.mark.anyio

ECHO = "import sys\nfor line in sys.stdin: sys.stdout.write(line); sys.stdout.flush()\n"
TREE = """
import os, subprocess, sys, time
# One child in the group, one in a session of its own, one whose parent has already gone.
sleep = [sys.executable, "-c", "import time; time.sleep(300)"]
kids = [subprocess.Popen(sleep), subprocess.Popen(sleep, start_new_session=True)]
if os.fork() == 0:
    os.setsid()
    lost = subprocess.Popen(sleep)
    print('{"pid": %d}' % lost.pid, flush=True)
    os._exit(0)
os.wait()
for kid in kids:
    print('{"pid": %d}' % kid.pid, flush=True)
print('{"pid": %d}' % os.getpid(), flush=True)
sys.stdin.readline()
"""


def script(tmp_path, text, name="agent.py"):
    path = tmp_path / name
    path.write_text(f"#!{sys.executable}\n" + textwrap.dedent(text))
    path.chmod(0o755)
    return path


def program(tmp_path, text):
    return Command((sys.executable, "-c", textwrap.dedent(text)), str(tmp_path))


async def frames(process, count):
    got = []
    while len(got) < count:
        more = await process.receive()
        assert more is not None, "the stream ended early"
        got += more
    return [f.value for f in got]


def alive(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


class Running:
    """An agent process with its `tend` beside it, killed at the end."""

    def __init__(self, command, stall_s=5.0):
        self.process = AgentProcess(command, stall_s)

    async def __aenter__(self):
        self.tasks = anyio.create_task_group()
        await self.tasks.__aenter__()
        await self.process.start()
        self.tasks.start_soon(self.process.tend)
        return self.process

    async def __aexit__(self, *exc):
        await self.process.kill()
        return await self.tasks.__aexit__(*exc)


# -- resolve


def test_a_name_is_found_in_path_once_and_becomes_absolute(tmp_path):
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    script(bin_folder, "", "agent")
    other = tmp_path / "repo"
    other.mkdir()
    command = resolve(["agent", "--acp"], folder=str(other), env={"PATH": str(bin_folder)})
    assert command.argv == (str(bin_folder / "agent"), "--acp")
    assert command.name == "agent"


@pytest.mark.parametrize("entry", ["{repo}/bin", ".", "", "bin"])
def test_a_name_is_never_found_through_the_sessions_folder(tmp_path, monkeypatch, entry):
    repo = tmp_path / "repo"
    (repo / "bin").mkdir(parents=True)
    script(repo / "bin", "", "agent")
    script(repo, "", "agent")
    monkeypatch.chdir(repo)
    with pytest.raises(CommandMissingError, match=r"agent was (not found|found only inside)"):
        resolve(["agent"], folder=str(repo), env={"PATH": entry.format(repo=repo)})


def test_a_path_that_the_user_wrote_is_taken_as_it_is(tmp_path, monkeypatch):
    script(tmp_path, "", "agent")
    monkeypatch.chdir(tmp_path)
    assert resolve(["./agent"]).argv == (str(tmp_path / "agent"),)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "No agent command was given; put it after `--`."),
        (["no-such-agent"], "no-such-agent was not found; install it, or write its full path."),
        (["/no/such/agent"], "agent is not a program that can be run; check its path."),
        (["~nobody-of-that-name/agent"], "agent is not a program that can be run; check its path."),
        (["/usr"], "usr is not a program that can be run; check its path."),
    ],
)
def test_a_missing_command_is_one_clear_sentence(words, sentence):
    with pytest.raises(CommandMissingError) as caught:
        resolve(words)
    assert str(caught.value) == sentence


def test_a_current_folder_that_was_removed_is_one_clear_sentence(tmp_path, monkeypatch):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    with pytest.raises(CommandMissingError, match=r"^The current folder is not there any more\.$"):
        resolve([sys.executable])


def test_a_missing_folder_is_one_clear_sentence():
    with pytest.raises(CommandMissingError, match="folder gone is not there"):
        resolve([sys.executable], folder="/no/such/gone")


# -- speaking


async def test_frames_go_in_and_out_byte_for_byte(tmp_path):
    async with Running(program(tmp_path, ECHO)) as process:
        line = b'{"id" : 1,  "x":"\\u00e9"}\n'
        await process.send(line)
        (frame,) = await process.receive()
        assert frame.raw == line


async def test_a_frame_of_ten_megabytes_passes_both_ways(tmp_path):
    line = encode({"data": "x" * 10_000_000})
    async with Running(program(tmp_path, ECHO)) as process:
        got = []

        async def read():
            while not got:
                got.extend(await process.receive())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await process.send(line)
        assert got[0].raw == line


async def test_a_write_that_stalls_halfway_is_ambiguous(tmp_path):
    async with Running(program(tmp_path, "import time; time.sleep(60)"), stall_s=0.01) as process:
        with pytest.raises(WireError) as caught:
            await process.send(encode({"data": "x" * 1_000_000}))
        assert caught.value.raw.delivery is Delivery.AMBIGUOUS
        with pytest.raises(WireError) as caught:
            await process.send(encode({}))
        assert caught.value.raw.delivery is Delivery.NOT_SENT


async def test_a_write_that_never_starts_was_not_sent(tmp_path):
    async with Running(program(tmp_path, "import time; time.sleep(60)"), stall_s=0.01) as process:
        await process.send(b"x" * 65_535 + b"\n")
        with pytest.raises(WireError) as caught:
            await process.send(encode({}))
        assert caught.value.raw.delivery is Delivery.NOT_SENT


async def test_an_agent_that_stopped_reading_has_failed_by_that_however_it_ends(tmp_path):
    async with Running(program(tmp_path, "import time; time.sleep(60)"), stall_s=0.01) as process:
        with pytest.raises(WireError):
            await process.send(encode({"data": "x" * 1_000_000}))
        await process.kill()
        told = process.failure(delivery=Delivery.SENT)
        assert told.message == "the agent stopped reading its input"
        assert told.delivery is Delivery.SENT


@pytest.mark.parametrize("room", range(5))
async def test_a_start_for_which_there_are_too_few_descriptors_fails_and_leaves_none(
    tmp_path, monkeypatch, room
):
    before = psutil.Process().num_fds()
    pipes = [os.pipe() for _ in range(room)]

    def pipe():
        if not pipes:
            raise OSError(errno.EMFILE, "Too many open files")
        return pipes.pop()

    monkeypatch.setattr(process.os, "pipe", pipe)
    with pytest.raises(WireError) as caught:
        await AgentProcess(program(tmp_path, ECHO), 5).start()
    monkeypatch.undo()
    verdict = classify(caught.value.raw, context=Context(phase=Phase.START))
    assert (verdict.kind, verdict.delivery) == (Kind.HOST_EXHAUSTED, Delivery.NOT_SENT)
    assert psutil.Process().num_fds() == before


async def test_a_write_to_a_dead_agent_was_not_sent(tmp_path):
    dies = (
        "import os, sys, time\nos.close(0)\nos.close(1)\ntime.sleep(0.2)\n"
        "sys.stderr.write('npm error code E404\\n')\nsys.stderr.flush()\nos._exit(1)"
    )
    async with Running(program(tmp_path, dies)) as process:
        await process.receive()  # the end of its output: it is dying, and has not told how
        with pytest.raises(WireError) as caught:
            await process.send(encode({}))
        raw = caught.value.raw
        assert (raw.delivery, raw.exit_code) == (Delivery.NOT_SENT, 1)
        assert raw.stderr == "npm error code E404\n"


async def test_a_write_to_an_agent_on_its_way_out_has_met_a_dead_agent(tmp_path):
    ignores = "import time\ntime.sleep(60)"
    async with Running(program(tmp_path, ignores)) as process, anyio.create_task_group() as tasks:
        tasks.start_soon(process.close, 60)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(WireError) as caught:
            await process.send(encode({}))
        verdict = classify(caught.value.raw)
        assert (verdict.kind, verdict.delivery) == (Kind.AGENT_DIED, Delivery.NOT_SENT)
        os.kill(process.pid, signal.SIGKILL)


async def test_a_cancelled_write_does_not_tear_a_frame(tmp_path):
    first, second = encode({"data": "x" * 1_000_000}), encode({"id": 2})
    async with Running(program(tmp_path, ECHO)) as process:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(process.send, first)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
            tasks.start_soon(_read_one, process)
        await process.send(second)


async def _read_one(process):
    with anyio.CancelScope(shield=True):
        assert len((await process.receive()) or []) >= 0


# -- ending


async def test_an_exit_is_reported_with_its_code_and_the_end_of_stderr(tmp_path):
    text = "import sys; sys.stderr.write('x' * 50000 + 'no such model'); sys.exit(3)"
    async with Running(program(tmp_path, text)) as process:
        assert await process.ended() == Exit(3)
        assert await process.receive() is None
        raw = process.failure(delivery=Delivery.SENT)
    assert raw.surface is Surface.EXIT
    assert (raw.exit_code, raw.delivery) == (3, Delivery.SENT)
    assert raw.stderr.endswith("no such model")
    assert len(raw.stderr) <= 16 * 1024


async def test_a_signal_is_reported_as_a_signal(tmp_path):
    text = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    async with Running(program(tmp_path, text)) as process:
        await process.ended()
        assert process.failure().signal == signal.SIGKILL


async def test_a_program_that_cannot_be_executed_says_why(tmp_path):
    broken = tmp_path / "agent"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    async with Running(Command((str(broken),), str(tmp_path))) as process:
        await process.ended()
        raw = process.failure()
    assert raw.exit_code == 127
    assert "No such file" in raw.stderr
    assert raw.delivery is Delivery.NOT_SENT


async def test_an_agent_that_ends_by_itself_on_end_of_input_is_not_killed(tmp_path):
    async with Running(program(tmp_path, "import sys; sys.stdin.read(); sys.exit(7)")) as process:
        await process.close(grace_s=30)
        assert process.exit == Exit(7)


async def test_an_agent_that_ignores_the_end_of_input_is_killed(tmp_path):
    async with Running(program(tmp_path, "import time; time.sleep(300)")) as process:
        await process.close(grace_s=0.01)
        assert not alive(process.pid)


async def test_a_kill_takes_the_whole_tree_with_it(tmp_path):
    async with Running(program(tmp_path, TREE)) as process:
        pids = [v["pid"] for v in await frames(process, 4)]
        assert all(alive(pid) for pid in pids)
        await process.kill()
        assert not any(alive(pid) for pid in pids)


async def test_what_a_dead_agent_leaves_behind_is_gone_when_its_end_is_reported(tmp_path):
    async with Running(program(tmp_path, TREE)) as process:
        pids = [v["pid"] for v in await frames(process, 4)]
        os.kill(process.pid, signal.SIGKILL)
        assert await process.ended() == Exit(-signal.SIGKILL)
        assert not any(alive(pid) for pid in pids)


async def test_a_killed_keeper_takes_the_whole_tree_with_it(tmp_path):
    async with Running(program(tmp_path, TREE)) as process:
        pids = [v["pid"] for v in await frames(process, 4)]
        os.kill(psutil.Process(process.pid).ppid(), signal.SIGKILL)
        assert await process.ended() == Exit(-signal.SIGKILL)
        assert not any(alive(pid) for pid in (*pids, process.pid))


async def test_the_output_ends_with_the_agent_even_if_a_stray_child_holds_it_open(tmp_path):
    unmarked = TREE.replace("(sleep, start_new", "(sleep, env={}, start_new")
    async with Running(program(tmp_path, unmarked)) as process:
        strays = [v["pid"] for v in await frames(process, 4)]
        os.kill(psutil.Process(process.pid).ppid(), signal.SIGKILL)
        try:
            assert await process.receive() is None
            assert any(alive(pid) for pid in strays)
        finally:
            keeper.kill_each(strays)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_no_process_outlives_us_however_we_end(tmp_path, name):
    """We are a process of our own here, so that it can be killed like any other."""
    us = textwrap.dedent(
        f"""
        import anyio
        from orchestrator.acp.process import AgentProcess, Command

        async def main():
            command = Command(({sys.executable!r}, "-c", {TREE!r}), {str(tmp_path)!r})
            process = AgentProcess(command, 5)
            async with anyio.create_task_group() as tasks:
                await process.start()
                tasks.start_soon(process.tend)
                while (frames := await process.receive()) is not None:
                    for frame in frames:
                        print(frame.value["pid"], flush=True)

        anyio.run(main)
        """
    )
    started = subprocess.Popen(
        [sys.executable, "-c", us],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    pids = [psutil.Process(int(started.stdout.readline())) for _ in range(4)]
    started.send_signal(signal.Signals[name])
    started.wait()
    started.stdout.close()
    assert psutil.wait_procs(pids, timeout=30)[1] == []


def test_descendants_do_not_trip_over_a_strange_command_name(tmp_path):
    child = subprocess.Popen([script(tmp_path, "import time; time.sleep(300)", "a) S 1 (b")])
    try:
        assert child.pid in keeper.descendants(os.getpid())
    finally:
        child.kill()
        child.wait()
    assert child.pid not in keeper.descendants(os.getpid())


def test_the_keeper_imports_nothing_but_the_standard_library():
    run = f"runpy.run_path({keeper.__file__!r})"
    text = f"import json, runpy, sys; {run}; print(json.dumps([*sys.modules]))"
    out = subprocess.run(
        [sys.executable, "-I", "-S", "-c", text], check=True, capture_output=True, text=True
    )
    modules = {name.partition(".")[0] for name in json.loads(out.stdout)}
    assert modules - {"__main__", "__mp_main__"} <= sys.stdlib_module_names
