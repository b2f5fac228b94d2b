import anyio
import pytest
from attrs import evolve

from orchestrator import How, Kind, Orchestrator, Settings, State
from orchestrator.settings.model import Budget
from orchestrator.testing import (
    HANG,
    CancellableScriptedAgent,
    JumpingClock,
    Recorder,
    RecordingSink,
    ScriptedAgent,
    assert_nothing_lost,
    assert_settled,
)
from orchestrator.turn.effects import Drop, NoteCode, Send
from orchestrator.turn.events import DropReason
from tests.runner.world import SETTINGS, a_world

pytestmark = pytest.mark.anyio


async def test_leaving_drops_what_waits_ends_what_runs_and_flushes_last():
    ends = []
    told = CancellableScriptedAgent([HANG])

    async def host(session):
        ends.append((session.id, (await session.turn("hi")).how))

    async with anyio.create_task_group() as tasks:
        async with a_world() as world:
            tasks.start_soon(host, world.session(ScriptedAgent(Kind.OVERLOADED), "waiting"))
            tasks.start_soon(host, world.session(ScriptedAgent([HANG]), "running"))
            tasks.start_soon(host, world.session(told, "cooperative"))
            await world.clock.settle()
        assert world.sink.flushed == 1
        assert_nothing_lost(world.recorder)
        assert_settled(world.sink.records)
    assert sorted(ends) == [
        ("cooperative", How.STOPPED),
        ("running", How.STOPPED),
        ("waiting", How.SUPERSEDED),
    ]
    assert told.cancelled == [(1, True)]
    assert [d.reason for d in world.recorder.effects(Drop)] == [DropReason.LOST]


async def test_leaving_because_of_an_error_drops_what_waits_and_passes_the_error_on():
    recorder, sink = Recorder(), RecordingSink()
    with pytest.raises(LookupError):  # noqa: PT012 - the body is what fails
        async with (
            Orchestrator(SETTINGS, sinks=[sink], observers=[recorder]) as orchestrator,
            orchestrator.session("chat", ScriptedAgent(Kind.OVERLOADED)).turn("hi"),
        ):
            while len(recorder.steps) < 3:
                await anyio.lowlevel.checkpoint()
            raise LookupError
    assert_nothing_lost(recorder)
    assert_settled(sink.records)


async def test_leaving_under_cancellation_still_delivers_the_last_revisions():
    recorder, sink = Recorder(), RecordingSink()
    with anyio.CancelScope() as scope:
        async with Orchestrator(SETTINGS, sinks=[sink], observers=[recorder]) as orchestrator:
            session = orchestrator.session("chat", ScriptedAgent(Kind.OVERLOADED))
            async with session.turn("hi"):
                while len(recorder.steps) < 3:
                    await anyio.lowlevel.checkpoint()
                scope.cancel()
                await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert sink.flushed == 1
    assert_nothing_lost(recorder)
    assert_settled(sink.records)


async def test_what_is_closed_starts_nothing():
    orchestrator = Orchestrator()
    with pytest.raises(RuntimeError, match="not open"):
        orchestrator.session("chat", ScriptedAgent())
    async with orchestrator:
        session = orchestrator.session("chat", ScriptedAgent())
    with pytest.raises(RuntimeError, match="not open"):
        session.turn("hi")
    with pytest.raises(RuntimeError, match="entered once"):
        async with orchestrator:
            pass


async def test_a_host_with_its_own_lifecycle_runs_and_closes_it():
    orchestrator = Orchestrator(SETTINGS, sinks=[sink := RecordingSink()])
    async with anyio.create_task_group() as tasks:
        await tasks.start(orchestrator.run)
        session = orchestrator.session("chat", ScriptedAgent(["ok"], Kind.OVERLOADED))
        assert (await session.turn("hi")).landed
        turn = session.turn("again")
        tasks.start_soon(turn.wait)
        while turn.machine.state is not State.WAITING:
            await anyio.lowlevel.checkpoint()
        await orchestrator.aclose()
        assert sink.flushed == 1
        await orchestrator.aclose()
    assert turn.outcome.how is How.SUPERSEDED


async def test_closing_what_was_never_run_does_nothing():
    await Orchestrator().aclose()


async def test_two_orchestrators_never_meet():
    async with a_world() as one, a_world() as other:
        mine, theirs = (w.session(ScriptedAgent(Kind.BILLING)) for w in (one, other))
        assert mine is not theirs
        await mine.turn("hi")
        assert other.recorder.steps == []
        assert other.sink.items == []
        assert other.orchestrator.active == ()
        assert mine.epoch != theirs.epoch
        one.orchestrator.settings = Settings()
        assert other.orchestrator.settings == SETTINGS


async def test_the_same_seed_draws_the_same_waits():
    async def delays(seed):
        clock = JumpingClock()
        async with Orchestrator(clock=clock, seed=seed) as orchestrator:
            agent = ScriptedAgent(*[Kind.OVERLOADED] * 3)
            return (await orchestrator.session("chat", agent).turn("hi")).waited_s

    assert await delays(7) == await delays(7) != await delays(8)


async def test_settings_are_swapped_at_a_turn_boundary():
    none = evolve(SETTINGS, ladders=evolve(SETTINGS.ladders, transient_retries=0))
    async with a_world() as world:
        agent = ScriptedAgent(Kind.OVERLOADED, ["ok"], Kind.OVERLOADED)
        session = world.session(agent)
        async with session.turn("hi") as turn:
            await world.clock.settle()
            world.orchestrator.settings = none
            await world.clock.advance(3)
        assert turn.outcome.landed, "a running turn keeps what it began with"
        assert (await session.turn("next")).how is How.FAILED


# The retry budget --------------------------------------------------------------------------------

ONE_RETRY = Budget(enabled=True, capacity=5.0, retry_cost=5.0, refill_per_s=0.0, landed_refill=5.0)


async def test_a_retry_that_the_budget_denies_at_the_decision_is_not_scheduled():
    async with a_world(budget=ONE_RETRY, clock=JumpingClock()) as world:
        session = world.session(ScriptedAgent(*[Kind.OVERLOADED] * 4))
        outcome = await session.turn("hi")
        assert (outcome.how, outcome.attempts) == (How.FAILED, 2)
        assert [note.code for note in outcome.notes] == [NoteCode.RETRY_BUDGET]
        assert outcome.dropped == ()
    assert_nothing_lost(world.recorder)


async def test_a_retry_that_others_used_up_the_budget_for_ends_as_denied():
    async with a_world(budget=ONE_RETRY) as world:
        first = world.session(ScriptedAgent(Kind.OVERLOADED, Kind.BILLING), "first")
        second = world.session(ScriptedAgent(Kind.OVERLOADED, Kind.BILLING), "second")
        async with first.turn("1") as one, second.turn("2") as two:
            await world.clock.advance(3)
        outcomes = sorted([one.outcome, two.outcome], key=lambda o: o.attempts)
        assert [o.attempts for o in outcomes] == [1, 2]
        assert [d.reason for d in outcomes[0].dropped] == [DropReason.DENIED]
        assert [note.code for note in outcomes[0].notes] == [NoteCode.RETRY_BUDGET]
        assert outcomes[0].how is How.FAILED
        assert outcomes[0].verdict.kind is Kind.OVERLOADED
        assert outcomes[1].dropped == ()
    assert_nothing_lost(world.recorder)


async def test_each_provider_has_a_budget_of_its_own():
    async with a_world(budget=ONE_RETRY, clock=JumpingClock()) as world:
        for provider in ("anthropic", "openai"):
            session = world.session(ScriptedAgent(Kind.OVERLOADED), provider, provider=provider)
            assert (await session.turn("hi")).attempts == 2


async def test_a_landed_turn_refills_the_budget_and_a_recovery_costs_nothing():
    async with a_world(budget=ONE_RETRY, clock=JumpingClock()) as world:
        scripts = [Kind.OVERLOADED, ["ok"], Kind.AGENT_DIED, Kind.OVERLOADED, ["ok"]]
        session = world.session(ScriptedAgent(*scripts))
        assert (await session.turn("1")).attempts == 2
        assert (await session.turn("2")).attempts == 3
        assert [s.family for s in world.recorder.effects(Send)][-2:] == ["death", "transient"]


async def test_a_budget_that_is_switched_on_later_counts_from_then():
    async with a_world(clock=JumpingClock()) as world:
        session = world.session(ScriptedAgent(*[Kind.OVERLOADED] * 7))
        assert (await session.turn("1")).attempts == 4
        world.orchestrator.settings = evolve(SETTINGS, budget=ONE_RETRY)
        assert (await session.turn("2")).attempts == 2
        world.orchestrator.settings = evolve(SETTINGS, budget=Budget(enabled=True, capacity=50.0))
        assert (await session.turn("3")).how is How.FAILED, "as empty in proportion as before"
