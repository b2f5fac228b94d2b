"""The host's own task is cancelled: at each await, in each state, on both event loops."""

import anyio
import pytest

from orchestrator import How, Kind, RecoveryResult
from orchestrator.testing import (
    CancellableScriptedAgent,
    JumpingClock,
    Pause,
    ScriptedAgent,
    assert_nothing_lost,
    assert_settled,
)
from orchestrator.turn.effects import SessionState
from orchestrator.turn.events import Evidence
from tests.runner.world import a_world

pytestmark = pytest.mark.anyio

SCRIPTS = {
    "retries": [Kind.OVERLOADED, ConnectionResetError(), ["ok"]],
    "recovers": [Kind.SESSION_NOT_FOUND, Kind.AGENT_DIED, ["ok"]],
    "fails": [Kind.OVERLOADED, Kind.BILLING],
    "continues": [["half", Kind.SERVER_ERROR], [Evidence.THOUGHT, Evidence.TOOL, "rest"]],
}


class Slow:
    """An agent that takes its time before, while and after it works."""

    def _slowly(self, method):
        async def call(*args):
            await anyio.lowlevel.checkpoint()
            result = await method(*args)
            await anyio.lowlevel.checkpoint()
            return result

        return call

    def __init__(self, agent):
        self.attempt = self._slowly(agent.attempt)
        self.recover = self._slowly(agent.recover)


async def cancelled_after(world, agent, ticks):
    """Run a turn in a scope that is cancelled after so many turns of the loop."""
    turn = world.session(agent).turn("hi")
    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:

            async def cancel():
                for _ in range(ticks):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()

            tasks.start_soon(cancel)
            await turn
        tasks.cancel_scope.cancel()
    return turn, scope.cancelled_caught


@pytest.mark.parametrize("script", SCRIPTS)
async def test_a_cancelled_turn_hands_everything_back_wherever_it_was(script):
    caught, ticks = True, 0
    ways = set()
    while caught:
        async with a_world(clock=JumpingClock()) as world:
            agent = Slow(ScriptedAgent(*SCRIPTS[script]))
            turn, caught = await cancelled_after(world, agent, ticks)
            for _ in range(30):
                await anyio.lowlevel.checkpoint()
            assert turn.outcome is not None, f"after {ticks} ticks nobody ended the turn"
            ways.add(turn.outcome.how)
            assert not world.orchestrator.running
            assert not turn.session.turns
            if caught and turn.outcome.how is not How.LANDED:
                spent = turn.session.state
                assert (spent.discard, spent.poisoned_streak) == (0, 0)
            assert (await turn.session.turn("next")).how in {How.LANDED, How.FAILED}
        assert_nothing_lost(world.recorder)
        of_turn = [r for r in world.sink.records if r.id.startswith(f"{turn.id}:")]
        assert_settled(of_turn, landed=turn.outcome.landed or not turn.machine.clean)
        ticks += 1
    assert ticks > 5, "the scenario has that many places to be cancelled in"
    assert How.STOPPED in ways
    assert How.SUPERSEDED in ways


async def test_a_cancelled_wait_is_a_drop_and_counts_nothing():
    async with a_world() as world:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                session = world.session(ScriptedAgent(Kind.OVERLOADED))
                turn = session.turn("hi")

                async def host():
                    await turn

                tasks.start_soon(host)
                await world.clock.settle()
                scope.cancel()
        await world.clock.settle()
        assert turn.outcome.how is How.SUPERSEDED
        assert [d.reason for d in turn.outcome.dropped] == ["lost"]
        assert session.state == SessionState()
    assert_nothing_lost(world.recorder)


async def test_somebody_else_who_waits_for_a_cancelled_turn_gets_its_outcome():
    async with a_world() as world:
        turn = world.session(ScriptedAgent(Kind.OVERLOADED)).turn("hi")
        got = []
        async with anyio.create_task_group() as tasks:
            with anyio.CancelScope() as scope:

                async def cancel():
                    await world.clock.settle()
                    await world.clock.settle()
                    scope.cancel()

                async def join():
                    await world.clock.settle()
                    got.append(await turn)

                tasks.start_soon(cancel)
                tasks.start_soon(join)
                await turn
        assert [outcome.how for outcome in got] == [How.SUPERSEDED]


async def test_a_cancelled_turn_in_line_leaves_the_line():
    async with a_world() as world:
        session = world.session(ScriptedAgent([Pause(0.001)]))

        async def stay(_):
            await anyio.sleep_forever()

        session.agent.scripts = [[stay]]
        async with session.turn("first") as first:
            await world.clock.settle()
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:

                    async def host():
                        await session.turn("second")

                    tasks.start_soon(host)
                    await world.clock.settle()
                    scope.cancel()
            await world.clock.settle()
            assert session.turns == (first,)
            first.stop()
    assert_nothing_lost(world.recorder)


async def test_a_cancelled_body_drops_the_turn_beside_it():
    async with a_world() as world:
        with anyio.CancelScope() as scope:
            async with world.session(ScriptedAgent(Kind.OVERLOADED)).turn("hi") as turn:
                await world.clock.settle()
                scope.cancel()
                await anyio.sleep_forever()
        await world.clock.settle()
        assert turn.outcome.how is How.STOPPED
    assert_nothing_lost(world.recorder)
    assert_settled(world.sink.records)


async def test_a_cooperative_agent_sees_the_cancellation_of_its_host():
    seen = []

    class Agent(CancellableScriptedAgent):
        async def attempt(self, attempt):
            try:
                return await super().attempt(attempt)
            except BaseException as error:
                seen.append(error)
                raise

    async def stay(_):
        await anyio.sleep_forever()

    async with a_world() as world:
        turn, caught = await cancelled_after(world, Agent([stay]), 5)
        assert caught
        assert isinstance(seen[0], anyio.get_cancelled_exc_class())
        assert turn.outcome.how is How.STOPPED


async def test_a_cancelled_recovery_step_ends_with_its_turn():
    ended = []

    class Rebuilding(ScriptedAgent):
        async def recover(self, recover):
            try:
                await anyio.sleep_forever()
            finally:
                ended.append(recover.step)
            return RecoveryResult(ok=True)

    async with a_world() as world:
        async with world.session(Rebuilding(Kind.AGENT_DIED)).turn("hi") as turn:
            await world.clock.settle()
            turn.stop()
        assert ended == ["respawn"]
        assert turn.outcome.how is How.STOPPED


async def test_a_machine_that_raises_holds_up_neither_its_watchers_nor_the_turns_behind_it():
    async with a_world() as world:
        session = world.session(ScriptedAgent())
        broken = session.turn("broken")

        class Machine(type(broken.machine)):
            def handle(self, event):
                raise ZeroDivisionError

        broken.machine = Machine(broken.machine.settings, broken.machine.ids)
        got = []

        async def join():
            try:
                await broken
            except (RuntimeError, ZeroDivisionError) as error:
                got.append(type(error))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(join)
            tasks.start_soon(join)
        assert ZeroDivisionError in got
        assert len(got) == 2
        assert not world.orchestrator.running
        assert (await session.turn("next")).landed
