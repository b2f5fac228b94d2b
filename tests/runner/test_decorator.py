import anyio
import pytest

from orchestrator import AgentError, Facts, Kind, MetricsObserver, recovering
from orchestrator.errors import QuotaError, TransportError, error_for
from orchestrator.failure.verdict import Verdict
from orchestrator.testing import JumpingClock, assert_nothing_lost
from tests.runner.world import a_world

pytestmark = pytest.mark.anyio


def failing(times, error):
    calls = []

    async def ask(question, *, tone="plain"):
        """Ask something."""
        calls.append((question, tone))
        if len(calls) <= times:
            raise error
        return f"{tone} answer to {question}"

    return ask, calls


async def test_a_function_that_fails_in_a_way_that_passes_is_called_again():
    async with a_world(clock=JumpingClock()) as world:
        ask, calls = failing(2, ConnectionResetError("gone"))
        answer = await recovering(world.orchestrator)(ask)("why", tone="kind")
        assert answer == "kind answer to why"
        assert calls == [("why", "kind")] * 3
        assert world.clock.now() == 6.0
    assert_nothing_lost(world.recorder)


async def test_what_can_not_pass_is_raised_at_once_with_its_cause():
    async with a_world() as world:
        spent = error_for(Verdict.of(Kind.BILLING, "Your credit is used up."))
        ask, calls = failing(9, spent)
        with pytest.raises(QuotaError, match="credit") as caught:
            await recovering(world.orchestrator)(ask)("why")
        assert len(calls) == 1
        assert caught.value.__cause__ is spent


async def test_a_ladder_that_is_used_up_raises_the_last_failure():
    async with a_world(clock=JumpingClock()) as world:
        ask, calls = failing(9, ConnectionResetError("gone"))
        patient = recovering(world.orchestrator, facts=Facts(interactive=False))
        with pytest.raises(TransportError) as caught:
            await patient(ask)("why")
        assert len(calls) == 4
        assert isinstance(caught.value.__cause__, ConnectionResetError)


async def test_a_recovery_is_more_than_a_plain_function_can_do():
    async with a_world() as world:
        ask, calls = failing(9, error_for(Verdict.of(Kind.SESSION_NOT_FOUND, "No such session.")))
        with pytest.raises(AgentError):
            await recovering(world.orchestrator)(ask)("why")
        assert len(calls) == 1


async def test_the_function_keeps_its_name_and_may_return_nothing():
    async with a_world() as world:

        @recovering(world.orchestrator)
        async def ask():
            """Ask nothing."""

        assert (ask.__name__, ask.__doc__) == ("ask", "Ask nothing.")
        assert await ask() is None


async def test_concurrent_calls_share_no_ladder():
    async with a_world() as world:
        waits = []
        tries = {}

        @recovering(world.orchestrator)
        async def ask(number):
            waits.append((number, world.clock.now()))
            tries[number] = tries.get(number, 0) + 1
            if tries[number] < 3:
                raise ConnectionResetError
            return number

        answers = []
        async with anyio.create_task_group() as tasks:
            for number in range(3):

                async def call(number=number):
                    answers.append(await ask(number))

                tasks.start_soon(call)
            await world.clock.advance(10)
        assert sorted(answers) == [0, 1, 2]
        assert sorted(waits) == [(n, at) for n in range(3) for at in (0.0, 2.0, 6.0)]


async def test_a_cancelled_call_is_not_called_again():
    async with a_world() as world:
        ask, calls = failing(9, ConnectionResetError())
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(recovering(world.orchestrator)(ask), "why")
                await world.clock.settle()
                scope.cancel()
        await world.clock.advance(60)
        assert len(calls) == 1
    assert_nothing_lost(world.recorder)


async def test_calls_count_under_their_provider():
    metrics = MetricsObserver()
    async with a_world(observers=[metrics], clock=JumpingClock()) as world:
        ask, _ = failing(1, ConnectionResetError())
        await recovering(world.orchestrator, provider="openai")(ask)("why")
    labels = {"kind": "connection_lost", "provider": "openai"}
    assert metrics.registry.get_sample_value("orchestrator_failures_total", labels) == 1


async def test_it_may_be_decorated_before_the_orchestrator_is_open():
    from orchestrator import Orchestrator

    orchestrator = Orchestrator(clock=JumpingClock())
    ask, calls = failing(1, ConnectionResetError())
    wrapped = recovering(orchestrator)(ask)
    with pytest.raises(RuntimeError, match="not open"):
        await wrapped("too early")
    async with orchestrator:
        assert await wrapped("in time") == "plain answer to in time"
    assert len(calls) == 2


async def test_a_function_that_is_not_async_is_told_so():
    async with a_world() as world:

        @recovering(world.orchestrator)
        def plain(question):
            return question

        with pytest.raises(AgentError, match="for async functions") as caught:
            await plain("why")
        assert isinstance(caught.value.__cause__, TypeError)
