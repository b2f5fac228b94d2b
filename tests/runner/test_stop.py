"""Stop, steer, rebind and retry-now, in each state a turn can be in."""

import anyio
import anyio.lowlevel
import pytest

from orchestrator import Facts, How, Kind, RecoveryResult, Severity, State
from orchestrator.settings.model import TurnLimits, Watchdogs
from orchestrator.testing import (
    HANG,
    CancellableScriptedAgent,
    ScriptedAgent,
    assert_nothing_lost,
    assert_settled,
)
from orchestrator.turn.effects import Drop, NoteCode
from orchestrator.turn.events import DropReason, Evidence
from tests.runner.world import a_world

pytestmark = pytest.mark.anyio


async def stay(_):
    await anyio.sleep_forever()


class Rebuilding(ScriptedAgent):
    """An agent whose recovery steps never end by themselves."""

    async def recover(self, recover):
        self.recovered.append(recover)
        await anyio.sleep_forever()
        return RecoveryResult(ok=True)


STATES = {
    State.ATTEMPTING: lambda: ScriptedAgent([HANG]),
    State.WAITING: lambda: ScriptedAgent(Kind.OVERLOADED),
    State.RECOVERING: lambda: Rebuilding(Kind.SESSION_NOT_FOUND),
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("hard", [False, True])
async def test_a_stop_ends_the_turn_in_each_state_and_hands_everything_back(state, hard):
    async with a_world() as world:
        async with world.session(STATES[state]()).turn("hi") as turn:
            await world.clock.settle()
            assert turn.machine.state is state
            before = world.clock.now()
            turn.stop(hard=hard)
            await turn
            assert world.clock.now() == before
        assert turn.outcome.how is How.STOPPED
        assert len(turn.outcome.dropped) == (0 if state is State.ATTEMPTING else 1)
        assert turn.session.state == type(turn.session.state)(
            poisoned_streak=turn.session.state.poisoned_streak
        )
    assert_nothing_lost(world.recorder)
    assert_settled(world.sink.records)


async def test_a_stop_has_taken_effect_when_it_returns():
    async with (
        a_world(sinks=[]) as world,
        world.session(ScriptedAgent(Kind.OVERLOADED)).turn("hi") as turn,
    ):
        await world.clock.settle()
        assert turn.machine.state is State.WAITING
        turn.stop()
        assert turn.machine.state is State.STOPPED
        assert world.recorder.effects(Drop)


async def test_a_stopped_wait_offers_retry_first():
    async with a_world() as world:
        async with world.session(ScriptedAgent(Kind.OVERLOADED)).turn("hi") as turn:
            await world.clock.settle()
            turn.stop()
        last = world.sink.records[-1]
        assert last.severity is Severity.ERROR
        assert last.actions[0] == "retry"
        assert world.sink.notes[-1].code is NoteCode.STOPPED


async def test_a_stop_before_the_turn_is_awaited_sends_nothing():
    async with a_world() as world:
        agent = ScriptedAgent()
        turn = world.session(agent).turn("hi")
        turn.stop()
        assert (await turn).how is How.STOPPED
        assert agent.sent == []


async def test_a_stop_of_a_turn_in_line_leaves_the_running_one_alone():
    async with a_world() as world:
        agent = ScriptedAgent([stay])
        session = world.session(agent)
        async with session.turn("first") as first:
            await world.clock.settle()
            async with session.turn("second") as second:
                await world.clock.settle()
                assert session.turns == (first, second)
                second.stop()
                assert (await second).how is How.STOPPED
            assert first.outcome is None
            first.stop()
        assert [s.prompt for s in agent.sent] == ["first"]
    assert_nothing_lost(world.recorder)


async def test_a_stop_of_the_session_ends_what_runs_and_what_stands_in_line():
    async with a_world() as world:
        session = world.session(ScriptedAgent([stay], ["later"]))
        async with session.turn("first") as first:
            await world.clock.settle()
            async with session.turn("second") as second:
                await world.clock.settle()
                session.stop()
        assert (first.outcome.how, second.outcome.how) == (How.STOPPED, How.STOPPED)
        assert (await session.turn("third")).landed, "a turn after the Stop is a new one"


async def test_a_cooperative_agent_ends_its_attempt_by_itself():
    async with a_world() as world:
        agent = CancellableScriptedAgent(["so far", HANG])
        async with world.session(agent).turn("hi") as turn:
            await world.clock.settle()
            turn.stop()
        assert (turn.outcome.how, turn.outcome.text) == (How.STOPPED, "so far")
        assert agent.cancelled == [(1, False)]


async def test_a_cooperative_agent_of_an_awaited_turn_needs_no_scope():
    async with a_world() as world:
        agent = CancellableScriptedAgent([HANG])
        turn = world.session(agent).turn("hi")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(world.clock.settle)

            async def stop():
                await world.clock.settle()
                turn.stop()

            tasks.start_soon(stop)
            assert (await turn).how is How.STOPPED


async def test_a_deaf_agent_is_ended_when_the_stop_budget_is_used_up():
    async with a_world(turn=TurnLimits(stop_budget_s=10.0)) as world:
        agent = CancellableScriptedAgent([HANG], deaf=True)
        async with world.session(agent).turn("hi") as turn:
            await world.clock.settle()
            turn.stop()
            await world.clock.advance(9.9)
            assert turn.outcome is None
            await world.clock.advance(0.2)
        assert turn.outcome.how is How.STOPPED
        assert agent.cancelled == [(1, False), (1, True)]


async def test_a_second_stop_is_a_hard_one():
    async with a_world() as world:
        agent = CancellableScriptedAgent([HANG], deaf=True)
        async with world.session(agent).turn("hi") as turn:
            await world.clock.settle()
            turn.stop()
            await world.clock.settle()
            turn.stop()
        assert turn.outcome.how is How.STOPPED
        assert agent.cancelled[-1] == (1, True)


async def test_an_agent_that_never_ends_is_left_behind_by_a_turn_that_runs_beside():
    class Stubborn(ScriptedAgent):
        async def attempt(self, attempt):
            await anyio.sleep_forever()

        async def cancel(self, attempt, *, hard):
            raise OSError("no such process")

    async with a_world() as world:
        async with world.session(Stubborn()).turn("hi") as turn:
            await world.clock.settle()
            turn.stop(hard=True)
        assert turn.outcome.how is How.STOPPED


class Deaf(ScriptedAgent):
    """Hears no cancel, however hard; `ended` is how its attempt came to its end."""

    ended = None

    async def attempt(self, attempt):
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.sleep_forever)
                await anyio.sleep_forever()
        except BaseException as error:
            self.ended = type(error)
            raise

    async def cancel(self, attempt, *, hard):
        pass


async def waited_for(turn, outcomes):
    """A host that awaits its turn, and whose task is its own again afterwards."""
    outcomes.append(await turn)
    await anyio.lowlevel.checkpoint()
    outcomes.append("went on")


async def test_an_agent_that_ignores_a_hard_stop_is_waited_for_as_long_as_a_cancel_may_take():
    async with a_world(watchdogs=Watchdogs(cancel_s=7)) as world, anyio.create_task_group() as host:
        agent, outcomes = Deaf(), []
        turn = world.session(agent).turn("hi")
        host.start_soon(waited_for, turn, outcomes)
        await world.clock.settle()
        turn.stop(hard=True)
        await world.clock.advance(6.9)
        assert (outcomes, agent.ended) == ([], None)
        await world.clock.advance(0.2)
        assert outcomes[0].how is How.STOPPED
        assert outcomes[1:] == ["went on"]
        assert agent.ended is anyio.get_cancelled_exc_class()
        assert world.session(agent).current is None


async def test_an_agent_that_ignores_both_stops_ends_after_both_budgets():
    async with a_world() as world, anyio.create_task_group() as host:
        outcomes = []
        turn = world.session(Deaf()).turn("hi")
        host.start_soon(waited_for, turn, outcomes)
        await world.clock.settle()
        turn.stop()
        await world.clock.advance(19.9)
        assert outcomes == []
        await world.clock.advance(0.2)
        assert outcomes[0].how is How.STOPPED


async def test_an_orchestrator_that_closes_waits_for_no_deaf_agent():
    outcomes = []
    async with anyio.create_task_group() as host, a_world() as world:
        host.start_soon(waited_for, world.session(Deaf()).turn("hi"), outcomes)
        await world.clock.settle()
    assert outcomes[0].how is How.STOPPED
    assert outcomes[1:] == ["went on"]


async def test_a_host_that_is_cancelled_while_a_hard_stop_runs_is_cancelled():
    async with a_world() as world:
        outcomes = []
        with anyio.CancelScope() as host:
            async with anyio.create_task_group() as tasks:
                turn = world.session(Deaf()).turn("hi")
                tasks.start_soon(waited_for, turn, outcomes)
                await world.clock.settle()
                turn.stop(hard=True)
                host.cancel()
        assert host.cancelled_caught
        assert (outcomes, turn.outcome.how) == ([], How.STOPPED)


async def test_text_that_still_lands_after_a_soft_stop_is_kept():
    async with a_world() as world:

        async def tail(attempt):
            try:
                await anyio.sleep_forever()
            finally:
                attempt.text(" and a tail")

        async with world.session(ScriptedAgent(["start", tail])).turn("hi") as turn:
            await world.clock.settle()
            turn.stop()
        assert turn.outcome.text == "start and a tail"


async def test_a_stop_after_the_end_changes_nothing():
    async with a_world() as world:
        turn = world.session(ScriptedAgent()).turn("hi")
        outcome = await turn
        turn.stop()
        assert not turn.steer("more")
        assert not turn.retry_now()
        assert turn.outcome is outcome


# A message of the user --------------------------------------------------------------------------


async def test_a_steer_revokes_a_recovery_that_yields():
    async with a_world() as world:
        async with world.session(Rebuilding(Kind.SESSION_NOT_FOUND)).turn("hi") as turn:
            await world.clock.settle()
            assert turn.steer("never mind")
        assert (turn.outcome.how, turn.outcome.unconsumed) == (How.SUPERSEDED, ("never mind",))
        assert [d.reason for d in turn.outcome.dropped] == [DropReason.SUPERSEDED]
    assert_nothing_lost(world.recorder)


async def test_a_plain_retry_does_not_yield_to_a_follow_up():
    async with a_world() as world:
        agent = ScriptedAgent(Kind.OVERLOADED, ["ok"])
        session = world.session(agent)
        async with session.turn("hi") as turn:
            await world.clock.settle()
            assert session.follow_up("and then")
            await world.clock.advance(3)
        assert turn.outcome.landed
        assert turn.outcome.unconsumed == ("and then",)
        assert not session.live.user_input, "a message belongs to the turn it was given to"


async def test_a_follow_up_without_a_turn_is_a_turn():
    async with a_world() as world:
        assert not world.session(ScriptedAgent()).follow_up("hello?")


async def test_a_steer_that_the_agent_has_read_is_consumed():
    class Steered(ScriptedAgent):
        async def steer(self, attempt, text):
            assert attempt.unread == (text,)
            attempt.consumed(text)
            attempt.consumed("something it never got")

    async with a_world() as world:
        session = world.session(Steered([stay]))
        async with session.turn("hi") as turn:
            await world.clock.settle()
            turn.steer("left")
            assert session.live.user_input
            await world.clock.settle()
            assert not session.live.user_input
            turn.stop()
        assert turn.outcome.unconsumed == ()


async def test_a_users_turn_in_line_is_a_newer_message_and_an_owed_one_is_not():
    async with a_world() as world:
        session = world.session(ScriptedAgent([stay], ["2"], ["3"]))
        async with session.turn("first") as first:
            await world.clock.settle()
            async with session.turn("owed", facts=Facts(owed=True)) as owed:
                await world.clock.settle()
                assert not session.live.user_input
                async with session.turn("newer") as newer:
                    await world.clock.settle()
                    assert session.live.user_input
                    first.stop()
        order = [s.prompt for s in session.agent.sent]
        assert order == ["first", "owed", "newer"]
        assert owed.outcome.landed
        assert newer.outcome.landed


async def test_an_owed_completion_goes_ahead_of_a_newer_message():
    async with a_world() as world:
        session = world.session(ScriptedAgent([stay]))
        async with session.turn("first") as first:
            await world.clock.settle()
            async with session.turn("newer"):
                await world.clock.settle()
                async with session.turn("owed", facts=Facts(owed=True)):
                    await world.clock.settle()
                    first.stop()
        assert [s.prompt for s in session.agent.sent] == ["first", "owed", "newer"]


# Rebind and retry-now ---------------------------------------------------------------------------


@pytest.mark.parametrize("state", [State.WAITING, State.RECOVERING])
async def test_a_rebind_drops_what_is_pending(state):
    async with a_world() as world:
        session = world.session(STATES[state]())
        async with session.turn("hi") as turn:
            await world.clock.settle()
            session.rebind("another conversation")
        assert turn.outcome.how is How.SUPERSEDED
        assert [d.reason for d in turn.outcome.dropped] == [DropReason.REBOUND]
        assert world.sink.notes[-1].code is NoteCode.MOVED
        assert (await session.turn("there")).landed
    assert_nothing_lost(world.recorder)


async def test_a_rebind_leaves_an_attempt_in_flight_alone():
    async with a_world() as world:
        session = world.session(ScriptedAgent([lambda _: session.rebind("elsewhere"), "text"]))
        assert (await session.turn("hi")).landed


async def test_a_rebind_drops_a_turn_in_line():
    async with a_world() as world:
        session = world.session(ScriptedAgent([stay]))
        async with session.turn("first") as first:
            await world.clock.settle()
            async with session.turn("second") as second:
                await world.clock.settle()
                session.rebind("elsewhere")
                assert (await second).how is How.SUPERSEDED
            first.stop()
        assert [s.prompt for s in session.agent.sent] == ["first"]


async def test_retry_now_sends_at_once_and_counts():
    async with a_world() as world:
        agent = ScriptedAgent(Kind.OVERLOADED, ["ok"])
        async with world.session(agent).turn("hi") as turn:
            await world.clock.settle()
            assert turn.retry_now()
        assert turn.outcome.landed
        assert world.clock.now() == 0.0
    assert_nothing_lost(world.recorder)


@pytest.mark.parametrize("state", [State.ATTEMPTING, State.RECOVERING])
async def test_retry_now_is_only_for_a_wait(state):
    async with a_world() as world, world.session(STATES[state]()).turn("hi") as turn:
        await world.clock.settle()
        assert not turn.retry_now()
        turn.stop()


async def test_an_observer_that_presses_stop_is_heard_after_the_answer_is_performed():
    async with a_world(observers=[lambda *_: turns[0].stop() if turns else None]) as world:
        turns = []
        turn = world.session(ScriptedAgent(Kind.OVERLOADED)).turn("hi")
        turns.append(turn)
        assert (await turn).how is How.STOPPED
    assert_nothing_lost(world.recorder)


async def test_a_stop_while_sinks_are_slow_is_handed_in_after_the_delivery():
    class Slow:
        def __init__(self):
            self.go, self.items = anyio.Event(), []

        async def deliver(self, item):
            await self.go.wait()
            self.items.append(item)

    slow = Slow()
    async with a_world(sinks=[slow]) as world:
        async with world.session(ScriptedAgent(Kind.OVERLOADED)).turn("hi") as turn:
            await world.clock.settle()
            turn.stop()
            await world.clock.settle()
            assert turn.outcome is None
            assert slow.items == []
            slow.go.set()
        assert turn.outcome.how is How.STOPPED
        assert [getattr(i, "severity", "note") for i in slow.items] == [
            Severity.WARNING,
            "note",
            Severity.ERROR,
        ]
    assert_nothing_lost(world.recorder)


async def test_evidence_in_an_attempt_is_delivered_while_the_attempt_goes_on():
    async with a_world() as world:
        shown = anyio.Event()

        async def settle_then_hang(_):
            await world.clock.settle()
            shown.set()

        lost = [ConnectionResetError()] * 4
        agent = ScriptedAgent(*lost, [Evidence.TEXT, Evidence.TEXT, settle_then_hang, stay])
        async with world.session(agent).turn("hi") as turn:
            await world.clock.advance(60)
            await shown.wait()
            assert "back" in world.sink.records[-1].title.lower()
            turn.stop()
    assert_nothing_lost(world.recorder)
