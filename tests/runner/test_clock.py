"""Windows and waits through the real driver, in virtual time, on both event loops."""

import asyncio
import time

import anyio
import looptime
import pytest
import trio.testing

from orchestrator import Facts, How, Kind, Orchestrator, Settings, testing
from orchestrator.runner.clock import LoopClock, sleeper
from orchestrator.settings.model import Choices, TurnLimits
from orchestrator.sinks.jsonl import JsonLinesSink
from orchestrator.testing import (
    HANG,
    CancellableScriptedAgent,
    JumpingClock,
    ManualClock,
    Pause,
    Recorder,
    ScriptedAgent,
    assert_nothing_lost,
)
from orchestrator.turn.effects import Wait
from tests.runner.world import SETTINGS


def on_trio(main):
    clock = trio.testing.MockClock(autojump_threshold=0)
    return anyio.run(main, backend="trio", backend_options={"clock": clock})


def on_asyncio(main):
    options = {"loop_factory": looptime.new_event_loop}
    return anyio.run(main, backend="asyncio", backend_options=options)


async def the_window():
    recorder = Recorder()
    agent = ScriptedAgent(*[ConnectionResetError()] * 40)
    async with Orchestrator(Settings(), observers=[recorder], seed=1) as orchestrator:
        began = anyio.current_time()
        outcome = await orchestrator.session("chat", agent).turn("hi")
        took = anyio.current_time() - began
    assert_nothing_lost(recorder)
    return outcome, took, recorder


@pytest.mark.parametrize("run", [on_trio, on_asyncio])
def test_a_lost_connection_is_waited_for_as_long_as_its_window(run):
    outcome, took, recorder = run(the_window)
    assert outcome.how is How.FAILED
    assert 300 <= took < 340
    assert outcome.waited_s == pytest.approx(took)
    assert 13 <= outcome.attempts <= 15
    assert [w.family for w in recorder.effects(Wait)][:4] == ["transient"] * 3 + ["connection"]


@pytest.mark.parametrize("run", [on_trio, on_asyncio])
def test_a_stop_during_a_long_wait_takes_no_time(run):
    async def main():
        settings = Settings(choices=Choices(ride_out=True))
        async with Orchestrator(settings, seed=1) as orchestrator:
            agent = ScriptedAgent(*[Kind.OVERLOADED] * 40)
            async with orchestrator.session("chat", agent).turn("hi") as turn:
                await anyio.sleep(600)
                pressed = anyio.current_time()
                turn.stop()
                assert (await turn).how is How.STOPPED
                assert anyio.current_time() == pressed

    run(main)


@pytest.mark.parametrize("run", [on_trio, on_asyncio])
def test_the_stop_budget_runs_on_the_loops_clock(run):
    async def main():
        settings = Settings(turn=TurnLimits(stop_budget_s=10.0))
        async with Orchestrator(settings) as orchestrator:
            agent = CancellableScriptedAgent([HANG], deaf=True)
            async with orchestrator.session("chat", agent).turn("hi") as turn:
                await anyio.sleep(1)
                pressed = anyio.current_time()
                turn.stop()
                await turn
                assert anyio.current_time() - pressed == pytest.approx(10.0)

    run(main)


@pytest.mark.parametrize("run", [on_trio, on_asyncio])
def test_a_canary_has_its_own_time(run):
    class Slow(ScriptedAgent):
        async def recover(self, recover):
            self.recovered.append(recover)
            await anyio.sleep(3600)

    async def main():
        async with Orchestrator(Settings(), seed=1) as orchestrator:
            agent = Slow(*[Kind.OVERLOADED] * 8)
            session = orchestrator.session("chat", agent)
            for _ in range(2):
                began = anyio.current_time()
                outcome = await session.turn("hi", facts=Facts(interactive=False))
                took = anyio.current_time() - began - outcome.waited_s
            assert [r.step for r in agent.recovered] == ["canary"]
            assert took == pytest.approx(30.0)

    run(main)


@pytest.mark.parametrize(("run", "many"), [(on_trio, 2_000), (on_asyncio, 10_000)])
def test_thousands_of_turns_side_by_side_all_land(run, many):
    async def main():
        landed = []

        async def host(session):
            landed.append(await session.turn("hi"))

        async with Orchestrator(SETTINGS) as orchestrator:
            async with anyio.create_task_group() as tasks:
                for number in range(many):
                    agent = ScriptedAgent(Kind.OVERLOADED)
                    tasks.start_soon(host, orchestrator.session(str(number), agent))
                await anyio.sleep(1)
                assert len(orchestrator.running) == many
                began = anyio.current_time()
            assert anyio.current_time() - began < 2.5
            assert not orchestrator.running
        assert len(landed) == many
        assert all(outcome.landed and outcome.attempts == 2 for outcome in landed)

    run(main)


def test_the_loop_clock_reads_the_loop_that_runs():
    async def main():
        clock = LoopClock()
        before = clock.now()
        assert before == pytest.approx(anyio.current_time())
        await clock.sleep(60)
        assert clock.now() - before == pytest.approx(60.0)

    on_trio(main)
    on_asyncio(main)


@pytest.mark.anyio
async def test_a_manual_clock_wakes_sleepers_in_order_at_their_own_time():
    clock, woken = ManualClock(), []

    async def sleeper(seconds):
        await clock.sleep(seconds)
        woken.append((seconds, clock.now()))

    async with anyio.create_task_group() as tasks:
        for seconds in (3, 1, 2, 0):
            tasks.start_soon(sleeper, seconds)
        await clock.advance(2.5)
        assert woken == [(0, 0.0), (1, 1.0), (2, 2.0)]
        assert clock.now() == 2.5
        await clock.advance(1)
        assert woken[-1] == (3, 3.0)


@pytest.mark.anyio
async def test_a_sleeper_that_is_cancelled_is_forgotten():
    clock = ManualClock()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.sleep, 1)
        await clock.settle()
        tasks.cancel_scope.cancel()
    await clock.advance(5)
    assert clock.now() == 5


class SlowFile(JsonLinesSink):
    """A file on a disk that takes its time."""

    def _write(self, line):
        time.sleep(0.02)
        super()._write(line)


@pytest.mark.anyio
async def test_a_manual_clock_waits_for_sinks_that_write_files(tmp_path):
    clock, agent = ManualClock(), ScriptedAgent(Kind.OVERLOADED, Kind.OVERLOADED, ["ok"])
    with SlowFile(tmp_path / "records.jsonl") as sink:
        async with Orchestrator(sinks=[sink], clock=clock, seed=1) as orchestrator:
            async with orchestrator.session("chat", agent).turn("hi") as turn:
                await clock.advance(10)
            assert turn.outcome.landed
            assert turn.outcome.waited_s < 10
    assert len((tmp_path / "records.jsonl").read_text().splitlines()) == 2


@pytest.mark.anyio
async def test_who_sleeps_on_a_manual_clock_that_nobody_moves_is_told_so(monkeypatch):
    monkeypatch.setattr(testing, "_PATIENCE_S", 0.01)
    clock, agent = ManualClock(), ScriptedAgent(Kind.OVERLOADED, ["ok"])
    async with Orchestrator(clock=clock, seed=1) as orchestrator:
        turn = orchestrator.session("chat", agent).turn("hi")
        with pytest.raises(RuntimeError, match=r"stands at 0 s, and somebody has waited for 2\.\d"):
            await turn
    await clock.advance(5)


@pytest.mark.anyio
async def test_a_jumping_clock_takes_no_time_and_says_it_did():
    clock = JumpingClock()
    async with Orchestrator(clock=clock, seed=1) as orchestrator:
        agent = ScriptedAgent(Kind.OVERLOADED, [Pause(0.0), "ok"])
        outcome = await orchestrator.session("chat", agent).turn("hi")
    assert outcome.landed
    assert clock.now() == outcome.waited_s >= 2.0


@pytest.mark.parametrize("run", [on_trio, on_asyncio])
def test_a_sleep_ends_when_it_is_over_and_when_somebody_ends_it(run):
    async def main():
        sleep = sleeper(LoopClock())
        began = anyio.current_time()
        await sleep(60.0).wait()
        assert anyio.current_time() - began == pytest.approx(60.0)
        long = sleep(3600.0)
        long.cancel()
        await long.wait()
        long.cancel()  # too late, and harmless
        assert anyio.current_time() - began == pytest.approx(60.0)

    run(main)


def test_a_turn_whose_host_is_cancelled_in_a_wait_leaves_no_timer_behind():
    """A timer of an hour would hold the turn for an hour."""

    async def main():
        async with Orchestrator(SETTINGS) as orchestrator:
            session = orchestrator.session("chat", ScriptedAgent(*[Kind.OVERLOADED] * 9))
            async with anyio.create_task_group() as tasks:
                before = open_timers()
                tasks.start_soon(session.turn("hi").wait)
                await anyio.wait_all_tasks_blocked()
                assert open_timers() == before + 1
                tasks.cancel_scope.cancel()
            assert open_timers() == before

    def open_timers():
        scheduled = asyncio.get_running_loop()._scheduled
        return sum(not timer.cancelled() for timer in scheduled)

    anyio.run(main)
