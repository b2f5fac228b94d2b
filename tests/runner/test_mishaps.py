"""What hosts and agents get wrong, and what goes wrong at a bad moment."""

import asyncio

import anyio
import pytest
from anyio.lowlevel import checkpoint

from orchestrator import (
    AgentError,
    Facts,
    How,
    Kind,
    Orchestrator,
    RawFailure,
    Refusal,
    Step,
    Verdict,
)
from orchestrator.errors import StoppedError
from orchestrator.incident.record import Action
from orchestrator.runner import RecoveryResult
from orchestrator.runner.decorator import recovering
from orchestrator.settings.model import Ladders, Recoveries, Settings
from orchestrator.testing import (
    HANG,
    JumpingClock,
    RecordingSink,
    ScriptedAgent,
    assert_nothing_lost,
)
from orchestrator.turn.effects import Drop, Payload
from orchestrator.turn.events import Began
from tests.runner.world import a_world

pytestmark = pytest.mark.anyio

KEY = "sk-ant-api03-" + "A1b2C3d4E5f6" * 6


class SlowSink(RecordingSink):
    async def deliver(self, item, /):
        for _ in range(5):
            await checkpoint()
        await super().deliver(item)


# Wrong values -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda w, _: w.orchestrator.session("", ScriptedAgent()), "session: '' is not allowed"),
        (lambda w, _: w.orchestrator.session(None, ScriptedAgent()), "session: None is not"),
        (lambda w, _: w.orchestrator.session("other", None), "agent: None is not allowed; an obj"),
        (lambda w, _: setattr(w.orchestrator, "settings", None), "settings: None is not allowed"),
        (lambda _, s: s.turn(None), "prompt: None is not allowed; text, or"),
        (lambda _, s: s.turn(b"hi"), "prompt: a value of type bytes is not allowed"),
        (lambda _, s: s.turn(["hi"]), "prompt: a value of type list is not allowed"),
        (
            lambda _, s: s.turn("hi", facts=None),
            "facts: None is not allowed; a value of type Facts",
        ),
        (lambda _, s: s.turn("hi", turn_id=""), "turn_id: '' is not allowed"),
        (lambda _, s: s.follow_up(None), "text: None is not allowed; a value of type str"),
        (lambda _, s: s.turn("hi").steer(None), "text: None is not allowed; a value of type str"),
        (lambda _, s: s.rebind(None), "key: None is not allowed; a value of type str"),
        (lambda _, s: s.update(served="opus"), "served: 'opus' is not allowed; a sequence"),
        (lambda _, s: s.update(served=[1]), "served: a value of type list is not allowed"),
        (lambda _, s: s.update(model=4), "model: 4 is not allowed; a value of type str"),
        (lambda _, s: s.update(shared_deaths="1"), "shared_deaths: '1' is not allowed"),
        (lambda _, s: s.restore(["x"]), "records: 'x' is not allowed; a Record"),
        (lambda _, s: s.restore([("x", Kind.BILLING)]), "records: a value of type tuple is not"),
    ],
)
async def test_a_wrong_value_is_named_where_it_is_handed_in(ask, says):
    async with a_world() as world:
        session = world.session(ScriptedAgent(["fine"]))
        with pytest.raises((TypeError, ValueError), match=f"^{says}"):
            ask(world, session)
        assert (await session.turn("hi")).landed


@pytest.mark.parametrize("wrong", ["the disk is full", None, KeyboardInterrupt()])
async def test_a_report_of_something_else_is_named(wrong):
    async with a_world() as world:
        with pytest.raises(TypeError, match=r"^failure: .* is not allowed; a RawFailure, an exc"):
            await world.session(ScriptedAgent()).report(wrong)
        assert world.sink.items == []


async def test_a_long_wrong_value_is_named_by_its_type_alone():
    async with a_world() as world:
        with pytest.raises(TypeError, match=r"^facts: a value of type str is not allowed"):
            world.session(ScriptedAgent()).turn("hi", facts=KEY)


@pytest.mark.parametrize(
    "report",
    [
        lambda attempt: attempt.text(b"bytes"),
        lambda attempt: attempt.text(None),
        lambda attempt: attempt.retrying(None),
        lambda attempt: attempt.retrying("again", "service"),
        lambda attempt: attempt.advise(None, "title"),
        lambda attempt: attempt.advise("key", 5),
        lambda attempt: attempt.advise("key", "title", "limit"),
    ],
)
async def test_a_wrong_report_of_an_agent_is_a_failure_of_its_attempt_and_nothing_more(report):
    async with a_world() as world:
        outcome = await world.session(ScriptedAgent([report])).turn("hi")
        assert outcome.how is How.FAILED
        assert "is not allowed" in outcome.record.title
        assert (await world.session(ScriptedAgent(["fine"])).turn("again")).text == "fine"


@pytest.mark.parametrize("wrong", [None, True, "reset"])
async def test_a_recovery_step_may_not_end_in_something_else(wrong):
    class Forgetful(ScriptedAgent):
        async def recover(self, recover, /):
            return wrong

    async with a_world() as world:
        with pytest.raises(TypeError, match=r"^recover: .* is not allowed; a value of type Recov"):
            await world.session(Forgetful(Kind.AGENT_DIED)).turn("hi")
    assert_nothing_lost(world.recorder)


# Secrets ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "script",
    [
        [lambda attempt: attempt.retrying(f"again with {KEY}")],
        [lambda attempt: attempt.advise("key", f"{KEY} runs out")],
        [lambda attempt: attempt.retrying("again"), Refusal(explanation=f"not with {KEY}")],
        [Verdict.of(Kind.BILLING, f"{KEY} is spent", details=KEY, raw_detail=KEY)],
        [RawFailure.acp_error(-32603, f"{KEY} is spent")],
    ],
)
async def test_no_secret_of_an_agent_is_told_to_anybody(script):
    async with a_world() as world:
        outcome = await world.session(ScriptedAgent(script)).turn("hi")
        assert world.sink.records
        assert KEY not in repr((world.sink.items, world.recorder.steps, outcome))


async def test_what_an_agent_says_of_itself_is_never_longer_than_a_title():
    long = "The agent is trying again, because its connection was lost. " + "More words. " * 10_000

    def talk(attempt):
        attempt.retrying(long)
        attempt.advise("key", long)

    async with a_world() as world:
        await world.session(ScriptedAgent([talk])).turn("hi")
    titles = {record.title for record in world.sink.records}
    assert titles == {"The agent is trying again, because its connection was lost."}


async def test_no_secret_of_a_host_is_reported():
    async with a_world() as world:
        record = await world.session(ScriptedAgent()).report(Verdict.of(Kind.BILLING, KEY))
        assert record.title == "[REDACTED: credential]"


# At a bad moment ----------------------------------------------------------------------------------


async def test_what_the_body_raises_is_passed_on_as_it_is():
    orchestrator = Orchestrator()
    with pytest.raises(AgentError, match="spent"):  # noqa: PT012 - the body is what fails
        async with orchestrator:
            agent = ScriptedAgent(Verdict.of(Kind.BILLING, "spent"))
            turn = orchestrator.session("chat", agent).turn("hi")
            await turn
            turn.result()


async def test_leaving_lets_everything_go_even_when_winding_up_fails(monkeypatch):
    async def fail():
        raise LookupError("a defect")

    orchestrator = Orchestrator()
    with pytest.raises(LookupError, match="a defect"):  # noqa: PT012 - leaving is what fails
        async with orchestrator:
            orchestrator.session("chat", ScriptedAgent())
            monkeypatch.setattr(orchestrator.delivery.__class__, "flush", lambda _: fail())
    with anyio.fail_after(5):  # exits only where no scope of the orchestrator is left open
        await checkpoint()


async def test_a_turn_of_a_closed_orchestrator_says_so_and_sends_nothing():
    agent = ScriptedAgent()
    async with a_world() as world:
        awaited, entered = (world.session(agent).turn("hi") for _ in range(2))
    with pytest.raises(RuntimeError, match="not open"):
        await awaited
    with pytest.raises(RuntimeError, match="not open"):
        await entered.__aenter__()
    assert agent.sent == []


async def test_reports_at_the_same_time_are_incidents_of_their_own():
    sink = SlowSink()
    async with a_world(sinks=[sink]) as world:
        session = world.session(ScriptedAgent())
        async with anyio.create_task_group() as tasks:
            for title in "abc":
                tasks.start_soon(session.report, Verdict.of(Kind.UNKNOWN, title))
        assert sorted(record.title for record in session.active) == ["a", "b", "c"]
    assert len({record.id for record in sink.records}) == 3


async def test_a_nested_turns_notice_never_takes_the_place_of_one_of_the_turn_around_it():
    async with a_world() as world:
        session = world.session(ScriptedAgent())

        async def around(attempt):
            attempt.advise("a", "of the turn around")
            await session.turn("inner", facts=Facts(nested=True))

        session.use(ScriptedAgent([around], [lambda attempt: attempt.advise("b", "of the inner")]))
        await session.turn("outer")
        titles = [entry.title for entry in world.sink.records]
        assert sorted(titles) == ["of the inner", "of the turn around"]
        assert len({record.id for record in world.sink.records}) == 2


async def test_a_clock_that_goes_back_leaves_no_negative_waits():
    class Backwards(JumpingClock):
        steps = iter([-86_400.0, 90_000.0])

        async def sleep(self, seconds, /):
            await checkpoint()
            self._now += next(self.steps)

    async with a_world(clock=Backwards()) as world:
        outcome = await world.session(ScriptedAgent(Kind.OVERLOADED, ["fine"])).turn("hi")
        assert outcome.landed
        assert outcome.waited_s == 90_000.0


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("beside", [False, True])
async def test_a_cancellation_that_nobody_asked_for_ends_the_attempt_and_not_its_host(beside):
    async def gone(_):
        task = asyncio.get_running_loop().create_future()
        task.cancel()
        await task

    async with a_world() as world:
        session = world.session(ScriptedAgent(["half", gone], ["fine"]))
        turn = session.turn("hi")
        if beside:
            async with turn:
                pass
        outcome = await turn
        assert (outcome.how, outcome.stop_reason, outcome.text) == (How.LANDED, "cancelled", "half")
        assert (await session.turn("again")).text == "fine"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancellation_that_nobody_asked_for_is_a_step_that_failed():
    class Broken(ScriptedAgent):
        async def recover(self, recover, /):
            raise asyncio.CancelledError

    async with a_world() as world:
        outcome = await world.session(Broken(Kind.AGENT_DIED)).turn("hi")
        assert outcome.how is How.FAILED


async def test_a_cancellation_that_goes_through_an_agents_own_tasks_is_never_taken_for_its_own():
    class Nursery(ScriptedAgent):
        async def attempt(self, attempt, /):
            attempt.text("half")
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(anyio.sleep_forever)
                await anyio.sleep_forever()

    async with a_world() as world:
        turn = world.session(Nursery()).turn("hi")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turn.wait)
            await world.clock.settle()
            tasks.cancel_scope.cancel()
    assert turn.outcome.how is How.STOPPED


@pytest.mark.parametrize("inside", ["attempt", "recover"])
async def test_a_failure_that_meets_a_cancellation_never_reaches_whoever_cancelled(inside):
    class Nursery(ScriptedAgent):
        async def attempt(self, attempt, /):
            if inside == "recover":
                return Verdict.of(Kind.AGENT_DIED, "died")
            return await self.fail_when_cancelled()

        async def recover(self, recover, /):
            return await self.fail_when_cancelled()

        async def fail_when_cancelled(self):
            async def clean_up():
                try:
                    await anyio.sleep_forever()
                finally:
                    raise ConnectionResetError

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(clean_up)
                tasks.start_soon(anyio.sleep_forever)
                await anyio.sleep_forever()

    async with a_world() as world:
        turn = world.session(Nursery()).turn("hi")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(turn.wait)
            await world.clock.settle()
            tasks.cancel_scope.cancel()
    assert turn.outcome.how is not How.LANDED
    assert_nothing_lost(world.recorder)


# The action retry ---------------------------------------------------------------------------------


async def test_a_retry_that_is_offered_after_a_stop_can_be_pressed():
    async with a_world() as world:
        session = world.session(ScriptedAgent(Kind.OVERLOADED, ["fine"]))
        async with session.turn("hi") as turn:
            await world.clock.settle()
            turn.stop()
        assert Action.RETRY in turn.outcome.record.actions
        assert (await session.retry(turn.outcome.record.id)).text == "fine"


async def test_a_retry_of_what_was_shown_never_goes_on_in_a_session_that_knows_nothing_of_it():
    agent = ScriptedAgent(
        ["shown", Kind.BILLING],
        Kind.SESSION_NOT_FOUND,
        recoveries={Step.RESET: RecoveryResult(ok=True, detail="another native session")},
    )
    async with a_world() as world:
        session = world.session(agent)
        failed = await session.turn("hi")
        again = await session.retry(failed.record.id)
        assert again.how is How.FAILED
        assert [sent.payload for sent in agent.sent] == [Payload.VERBATIM, Payload.CONTINUE]


# What is owed -------------------------------------------------------------------------------------


@pytest.mark.parametrize("press", [lambda turn: turn.stop(), lambda turn: turn.session.stop()])
async def test_an_owed_completion_that_outlives_a_stop_lands(press):
    async with a_world() as world:
        session = world.session(ScriptedAgent(Kind.OVERLOADED, ["owed"]))
        async with session.turn("hi", facts=Facts(owed=True)) as turn:
            await world.clock.settle()
            press(turn)
            await world.clock.advance(2)
        assert (turn.outcome.how, turn.outcome.text) == (How.LANDED, "owed")


async def test_an_owed_completion_outlives_a_stop_before_a_wait_that_leads_to_a_step():
    agent = ScriptedAgent(Kind.REGISTRATION_THROTTLED, ["owed"])
    async with a_world() as world:
        async with world.session(agent).turn("hi", facts=Facts(owed=True)) as turn:
            await world.clock.settle()
            turn.stop()
            await world.clock.advance(2)
        assert (turn.outcome.how, turn.outcome.text) == (How.LANDED, "owed")


async def test_a_stop_still_ends_an_owed_completion_in_flight():
    async with a_world() as world:
        session = world.session(ScriptedAgent(Kind.OVERLOADED, ["owed", HANG]))
        async with session.turn("hi", facts=Facts(owed=True)) as turn:
            await world.clock.settle()
            turn.stop()
            await world.clock.advance(2)
            turn.stop()
        assert turn.outcome.how is How.STOPPED


async def test_owed_completions_keep_their_order_ahead_of_newer_messages():
    in_order = {
        "first": Facts(),
        "newer": Facts(),
        "owed 1": Facts(owed=True),
        "owed 2": Facts(owed=True),
    }
    async with a_world() as world, anyio.create_task_group() as tasks:
        agent = ScriptedAgent([lambda _: world.clock.sleep(1)])
        for prompt, facts in in_order.items():
            tasks.start_soon(world.session(agent).turn(prompt, facts=facts).wait)
            await world.clock.settle()
        await world.clock.advance(1)
    assert [sent.prompt for sent in agent.sent] == ["first", "owed 1", "owed 2", "newer"]


# A plain function ---------------------------------------------------------------------------------


async def test_a_function_that_says_it_was_cancelled_raises_that():
    async with a_world() as world:

        @recovering(world.orchestrator)
        async def cancelled():
            raise RuntimeError("AbortError: This operation was aborted")

        with pytest.raises(StoppedError) as caught:
            await cancelled()
        assert isinstance(caught.value.__cause__, RuntimeError)


# What an embedder's own tests assert --------------------------------------------------------------


@pytest.mark.parametrize("swapped", [RecoveryResult(ok=False), RecoveryResult(ok=True)])
async def test_nothing_is_lost_however_many_steps_failed_on_the_way(swapped):
    recoveries = Recoveries(fallback_models=("b", "c", "d"))
    ladders = Ladders(transient_retries=0)
    agent = ScriptedAgent(Kind.OVERLOADED, recoveries={Step.SWAP: swapped})
    async with a_world(settings=Settings(ladders=ladders, recoveries=recoveries)) as world:
        session = world.session(agent)
        session.update(model="a", served=["a", "b", "c", "d"])
        async with session.turn("hi"):
            await world.clock.advance(60)
    assert len(world.recorder.effects(Drop)) == (0 if swapped.ok else 3)
    assert_nothing_lost(world.recorder)


async def test_a_retry_that_was_neither_sent_nor_dropped_is_noticed():
    async with a_world() as world, world.session(ScriptedAgent(Kind.OVERLOADED)).turn("hi"):
        await world.clock.advance(60)
    world.recorder.steps = [step for step in world.recorder.steps if not isinstance(step[1], Began)]
    with pytest.raises(AssertionError, match="scheduled 1 retries, sent 0 and dropped 0"):
        assert_nothing_lost(world.recorder)
