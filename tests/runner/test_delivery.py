"""Sinks and observers are foreign code: one that fails never breaks a turn."""

import asyncio
import logging

import anyio
import pytest
import trio.testing

from orchestrator import How, Kind, MetricsObserver, Orchestrator, Settings, State
from orchestrator.runner.delivery import PATIENCE_S
from orchestrator.sinks.memory import MemorySink
from orchestrator.testing import (
    HANG,
    CancellableScriptedAgent,
    JumpingClock,
    RecordingSink,
    ScriptedAgent,
    assert_nothing_lost,
)
from tests.runner.world import a_world

pytestmark = pytest.mark.anyio


async def test_a_sink_that_raises_is_switched_off_counted_and_logged_once(caplog):
    metrics = MetricsObserver()
    broken, good = RecordingSink(error=OSError("disk full")), MemorySink()
    async with a_world(sinks=[broken, good], observers=[metrics], clock=JumpingClock()) as world:
        outcome = await world.session(ScriptedAgent(Kind.OVERLOADED, Kind.BILLING)).turn("hi")
        assert outcome.how is How.FAILED
        assert [r.revision for r in good.records] == [1, 2]
        assert world.orchestrator.delivery.switched_off == {"RecordingSink": "OSError"}
    assert [r.levelno for r in caplog.records] == [logging.ERROR]
    assert (
        metrics.registry.get_sample_value(
            "orchestrator_sink_errors_total", {"sink": "RecordingSink"}
        )
        == 1
    )
    assert (
        metrics.registry.get_sample_value("orchestrator_sink_disabled", {"sink": "RecordingSink"})
        == 1
    )
    assert metrics.registry.get_sample_value("orchestrator_sink_disabled", {"sink": "memory"}) == 0


async def test_what_a_sink_raises_is_logged_without_its_secrets(caplog):
    secret = "sk-ant-api03-" + "a1B2" * 20
    async with a_world(sinks=[RecordingSink(error=OSError(secret))]) as world:
        await world.session(ScriptedAgent(Kind.BILLING)).turn("hi")
    assert "switched off" in caplog.text
    assert secret not in caplog.text


async def test_a_record_that_reached_no_sink_leaves_revision_and_active_state_untouched():
    flaky = RecordingSink(error=OSError(), after=1)
    async with a_world(sinks=[flaky], clock=JumpingClock()) as world:
        session = world.session(ScriptedAgent(Kind.OVERLOADED, Kind.BILLING))
        turn = session.turn("hi")
        outcome = await turn
        assert outcome.how is How.FAILED
        assert outcome.record.revision == 1
        assert session.active == (outcome.record,)
        assert session.ledger.restamp(outcome.record).revision == 2


async def test_one_sink_that_took_a_record_is_enough():
    broken, good = RecordingSink(error=OSError()), RecordingSink()
    async with a_world(sinks=[broken, good]) as world:
        session = world.session(ScriptedAgent(Kind.BILLING))
        outcome = await session.turn("hi")
        assert session.active == (outcome.record,) == tuple(good.records)


async def test_without_sinks_the_host_reads_the_turn_and_that_is_delivery():
    async with a_world(sinks=[]) as world:
        session = world.session(ScriptedAgent(Kind.BILLING))
        outcome = await session.turn("hi")
        assert session.active == (outcome.record,)


async def test_an_observer_that_raises_is_switched_off_and_the_others_go_on(caplog):
    def broken(*_):
        raise LookupError

    metrics = MetricsObserver()
    async with a_world(observers=[broken, metrics]) as world:
        assert (await world.session(ScriptedAgent(["ok"])).turn("hi")).landed
        assert world.orchestrator.delivery.switched_off == {"broken": "LookupError"}
        await world.session(ScriptedAgent(["ok"])).turn("hi")
    assert caplog.text.count("switched off") == 1
    assert (
        metrics.registry.get_sample_value("orchestrator_sink_errors_total", {"sink": "broken"}) == 1
    )
    assert_nothing_lost(world.recorder)


async def test_two_sinks_of_one_kind_have_two_names():
    sinks = [RecordingSink(error=OSError()), RecordingSink(error=OSError())]
    async with a_world(sinks=sinks) as world:
        await world.session(ScriptedAgent(Kind.BILLING)).turn("hi")
        assert set(world.orchestrator.delivery.switched_off) == {
            "RecordingSink",
            "RecordingSink-2",
        }


async def test_the_metrics_read_the_active_incidents():
    metrics = MetricsObserver()
    async with a_world(observers=[metrics]) as world:
        await world.session(ScriptedAgent(Kind.BILLING)).turn("hi")
        metrics.refresh()
        assert (
            metrics.registry.get_sample_value(
                "orchestrator_incidents_active", {"category": "limit", "severity": "error"}
            )
            == 1
        )


async def test_leaving_flushes_each_sink_that_can_be_flushed():
    sink = RecordingSink()
    async with a_world(sinks=[sink, MemorySink()]):
        assert sink.flushed == 0
    assert sink.flushed == 1


async def test_a_flush_that_raises_does_not_keep_the_others_from_theirs():
    class Stuck(RecordingSink):
        async def flush(self):
            raise OSError

    sink = RecordingSink()
    async with a_world(sinks=[Stuck(), sink]):
        pass
    assert sink.flushed == 1


def test_a_sink_that_hangs_is_switched_off_after_its_patience():
    class Hanging:
        async def deliver(self, item):
            await anyio.sleep_forever()

    async def main():
        async with Orchestrator(Settings(), sinks=[Hanging()]) as orchestrator:
            session = orchestrator.session("chat", ScriptedAgent(Kind.BILLING))
            before = anyio.current_time()
            outcome = await session.turn("hi")
            assert outcome.how is How.FAILED
            assert anyio.current_time() - before == pytest.approx(PATIENCE_S)
            assert orchestrator.delivery.switched_off == {"Hanging": "TimeoutError"}

    clock = trio.testing.MockClock(autojump_threshold=0)
    anyio.run(main, backend="trio", backend_options={"clock": clock})


async def test_a_cancelled_delivery_is_no_fault_of_the_sink():
    class Slow(RecordingSink):
        async def deliver(self, item):
            await anyio.sleep_forever()

    async with a_world(sinks=[Slow()]) as world:
        turn = world.session(ScriptedAgent(Kind.OVERLOADED)).turn("hi")
        with anyio.move_on_after(0.01):
            await turn
        assert turn.machine.state in {State.WAITING, State.SUPERSEDED}
        assert world.orchestrator.delivery.switched_off == {}
        world.orchestrator.delivery.sinks = ()


async def _gone(*_, **__):
    """What a library's own task, cancelled by that library, raises in whoever awaits it."""
    task = asyncio.get_running_loop().create_future()
    task.cancel()
    await task


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("advised", [False, True])
async def test_a_cancellation_that_nobody_asked_for_is_the_sinks_fault_alone(beside, advised):
    async def advise(attempt):
        attempt.advise("slow", "Slow today.")  # delivered by a helper, while the attempt goes on
        await anyio.sleep(0.01)

    class Broken(MemorySink):
        deliver = flush = _gone

    broken, good = Broken(), MemorySink()
    agent = ScriptedAgent([advise, "fine"] if advised else Kind.OVERLOADED, ["fine"])
    async with a_world(sinks=[broken, good], clock=JumpingClock()) as world:
        turn = world.session(agent).turn("hi")
        if beside:
            async with turn:
                pass
        assert (await turn).landed
        assert world.orchestrator.delivery.switched_off == {"memory": "CancelledError"}
    assert len(good.records) == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancel_that_was_itself_cancelled_leaves_every_other_turn_alone(caplog):
    class Broken(CancellableScriptedAgent):
        cancel = _gone

    async with a_world() as world:
        async with (
            world.session(ScriptedAgent(["fine"]), "other").turn("hi") as other,
            world.session(Broken([HANG])).turn("hi") as turn,
        ):
            await world.clock.settle()
            turn.stop(hard=True)
            await world.clock.settle()
        assert (turn.outcome.how, other.outcome.how) == (How.STOPPED, How.LANDED)
    assert "agent.cancel raised CancelledError" in caplog.text


async def test_two_deliveries_that_fail_together_switch_a_sink_off_once(caplog):
    class Slow:
        async def deliver(self, _):
            await anyio.lowlevel.checkpoint()
            raise OSError("disk full")

    metrics = MetricsObserver()
    async with (
        a_world(sinks=[Slow()], observers=[metrics]) as world,
        anyio.create_task_group() as tasks,
    ):
        for key in ("a", "b"):
            turn = world.session(ScriptedAgent(Kind.BILLING), key).turn("hi")
            tasks.start_soon(turn.wait)
    errors = metrics.registry.get_sample_value("orchestrator_sink_errors_total", {"sink": "Slow"})
    assert (errors, len(caplog.records)) == (1, 1)


async def test_an_observer_that_cannot_count_a_broken_sink_breaks_no_turn(caplog):
    class Counts:
        heard = 0

        def __call__(self, *_):
            self.heard += 1

        def sink_opened(self, _):
            pass

        def sink_failed(self, _):
            raise OSError("no space")

        sink_switched_off = sink_failed

    counts = Counts()
    async with a_world(sinks=[RecordingSink(error=OSError())], observers=[counts]) as world:
        outcome = await world.session(ScriptedAgent(Kind.BILLING)).turn("hi")
    assert outcome.how is How.FAILED
    assert "was not counted" in caplog.text
    assert counts.heard == 3  # Started, Began, Failed
