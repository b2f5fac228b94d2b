import pytest

from orchestrator import (
    AgentError,
    Ended,
    Facts,
    How,
    Kind,
    NoteDelivered,
    RawFailure,
    RecordRevised,
    RecoveryStarted,
    Refusal,
    RetryScheduled,
    RuntimeFailure,
    Severity,
    Step,
    StopReason,
    TextShown,
    Verdict,
)
from orchestrator.errors import PromptTimeoutError, QuotaError, RefusedError, TransportError
from orchestrator.testing import (
    HANG,
    JumpingClock,
    ScriptedAgent,
    assert_nothing_lost,
    assert_settled,
)
from orchestrator.turn.effects import Payload
from orchestrator.turn.events import Evidence
from tests.runner.world import a_world

pytestmark = pytest.mark.anyio


async def test_a_turn_that_lands_at_once_gives_its_text_and_tells_nobody_anything():
    async with a_world() as world:
        turn = world.session(ScriptedAgent(["Hel", "lo"])).turn("hi", turn_id="m-1")
        outcome = await turn
        assert (outcome.turn_id, outcome.how, outcome.text) == ("m-1", How.LANDED, "Hello")
        assert (outcome.attempts, outcome.waited_s, outcome.record) == (1, 0.0, None)
        assert outcome.landed
        assert not outcome.structural
        assert outcome.error() is None
        assert turn.result() is outcome
        assert await turn is outcome, "a second await gives the same outcome"
    assert world.sink.items == []
    assert_nothing_lost(world.recorder)


async def test_a_turn_that_is_never_awaited_sends_nothing():
    async with a_world() as world:
        agent = ScriptedAgent()
        world.session(agent).turn("hi")
    assert agent.sent == []
    assert world.recorder.steps == []


async def test_a_failed_attempt_is_sent_again_verbatim_after_its_wait():
    async with a_world() as world:
        agent = ScriptedAgent(Kind.OVERLOADED, ConnectionResetError("gone"), ["done"])
        async with world.session(agent).turn("hi") as turn:
            await world.clock.advance(1.9)
            assert len(agent.sent) == 1
            await world.clock.advance(4.2)
        assert turn.outcome.landed
        assert (turn.outcome.attempts, turn.outcome.waited_s) == (3, 6.0)
        assert [s.payload for s in agent.sent] == [Payload.VERBATIM] * 3
        assert [s.prompt for s in agent.sent] == ["hi"] * 3
    assert_settled(world.sink.records, landed=True)


async def test_after_text_was_shown_the_agent_is_asked_to_continue():
    async with a_world(clock=JumpingClock()) as world:
        agent = ScriptedAgent(["Hel", Kind.SERVER_ERROR], ["lo"])
        session = world.session(agent, continue_prompt="Go on.")
        outcome = await session.turn("hi")
        assert outcome.text == "Hello"
        assert [s.prompt for s in agent.sent] == ["hi", "Go on."]


@pytest.mark.parametrize(
    ("end", "how", "error"),
    [
        (Kind.BILLING, How.FAILED, QuotaError),
        (Verdict.of(Kind.CONNECTION_LOST, "gone", transient=False), How.FAILED, TransportError),
        (RawFailure.http(402, None, {"error": {"type": "billing_error"}}), How.FAILED, AgentError),
        (Refusal("policy", "I can't."), How.REFUSED, RefusedError),
        (StopReason.REFUSAL, How.REFUSED, RefusedError),
        (StopReason.MAX_TURN_REQUESTS, How.FAILED, AgentError),
        (ValueError("a bug of the host"), How.FAILED, AgentError),
    ],
)
async def test_each_end_of_an_attempt_becomes_an_outcome_and_an_error(end, how, error):
    async with a_world() as world:
        turn = world.session(ScriptedAgent(["partial", Evidence.TOOL], end)).turn("hi")
        agent = turn.session.agent
        agent.scripts = [[end]]
        outcome = await turn
        assert outcome.how is how
        with pytest.raises(error) as caught:
            turn.result()
        assert caught.value.outcome is outcome
        if isinstance(end, Exception):
            assert caught.value.__cause__ is end


@pytest.mark.parametrize("end", [StopReason.MAX_TOKENS, StopReason.CANCELLED, StopReason.END_TURN])
async def test_an_answer_that_was_cut_short_by_the_agent_has_landed(end):
    async with a_world() as world:
        outcome = await world.session(ScriptedAgent(["so far", end])).turn("hi")
        assert (outcome.how, outcome.stop_reason, outcome.text) == (How.LANDED, end, "so far")


async def test_the_timeout_carries_what_arrived_in_time():
    async with a_world() as world:
        turn = world.session(ScriptedAgent(["half an ans", Kind.REQUEST_TIMEOUT])).turn("hi")
        await turn
        with pytest.raises(PromptTimeoutError) as caught:
            turn.result()
        assert caught.value.partial_output == "half an ans"
        assert not isinstance(caught.value, RuntimeFailure)


async def test_an_error_of_this_package_keeps_its_verdict():
    async with a_world() as world:
        verdict = Verdict.of(Kind.USAGE_LIMIT, "You've hit your limit.")
        outcome = await world.session(ScriptedAgent(QuotaError(verdict))).turn("hi")
        assert outcome.verdict is verdict


async def test_the_result_of_a_turn_that_runs_is_refused():
    async with a_world() as world:
        turn = world.session(ScriptedAgent()).turn("hi")
        with pytest.raises(RuntimeError, match="await it first"):
            turn.result()


async def test_what_happens_can_be_iterated_over_in_order():
    async with a_world() as world:
        agent = ScriptedAgent(Kind.OVERLOADED, Kind.SESSION_NOT_FOUND, ["ok"])
        async with world.session(agent).turn("hi") as turn:
            await world.clock.advance(3)
            told = [progress async for progress in turn]
        assert [type(p) for p in told if not isinstance(p, RecordRevised)] == [
            RetryScheduled,
            RecoveryStarted,
            TextShown,
            Ended,
        ]
        retry, recovery = told[1], next(p for p in told if isinstance(p, RecoveryStarted))
        assert (retry.number, retry.limit, retry.delay_s, retry.kind) == (
            1,
            3,
            2.0,
            Kind.OVERLOADED,
        )
        assert recovery.step is Step.RESET
        assert told[-1].outcome is turn.outcome


async def test_iterating_after_the_end_gives_the_rest_and_stops():
    async with a_world() as world:
        async with world.session(ScriptedAgent(["a"])).turn("hi") as turn:
            await turn
            told = [progress async for progress in turn]
        assert [type(p) for p in told] == [TextShown, Ended]
        assert [progress async for progress in turn] == []


async def test_iterating_without_entering_is_refused():
    async with a_world() as world:
        turn = world.session(ScriptedAgent()).turn("hi")
        with pytest.raises(RuntimeError, match="async with"):
            await anext(turn)


async def test_an_error_never_carries_retry_counters():
    async with a_world() as world:
        agent = ScriptedAgent(*[Kind.OVERLOADED] * 9)
        async with world.session(agent).turn("hi") as turn:
            await world.clock.advance(60)
            told = [progress async for progress in turn]
        errors = [
            p.record.title
            for p in told
            if isinstance(p, RecordRevised) and p.record.severity is Severity.ERROR
        ]
        assert errors
        assert not any(" of " in title for title in errors)
        assert not any(isinstance(p, RecordRevised | Ended) and hasattr(p, "number") for p in told)
    assert_settled(world.sink.records)


async def test_a_dropped_retry_is_in_the_outcome_and_in_a_note():
    async with a_world() as world:
        async with world.session(ScriptedAgent(Kind.OVERLOADED)).turn("hi") as turn:
            await world.clock.advance(1)
            turn.stop()
            told = [progress async for progress in turn]
        assert [drop.number for drop in turn.outcome.dropped] == [1]
        assert any(isinstance(p, NoteDelivered) for p in told)
        assert turn.outcome.attempts == 1


async def test_a_failure_in_the_body_stops_the_turn_and_is_passed_on():
    async with a_world() as world:
        with pytest.raises(LookupError):  # noqa: PT012 - the body is what fails
            async with world.session(ScriptedAgent([HANG])).turn("hi") as turn:
                await world.clock.settle()
                raise LookupError
        assert turn.outcome.how is How.STOPPED
    assert_nothing_lost(world.recorder)


async def test_leaving_the_body_early_waits_for_the_outcome():
    async with a_world(clock=JumpingClock()) as world:
        async with world.session(ScriptedAgent(Kind.OVERLOADED, ["ok"])).turn("hi") as turn:
            pass
        assert turn.outcome.text == "ok"


async def test_a_turn_is_entered_once():
    async with a_world() as world:
        turn = world.session(ScriptedAgent()).turn("hi")
        await turn
        with pytest.raises(RuntimeError, match="running already"):
            async with turn:
                pass


async def test_a_nested_turn_does_not_stand_in_line_and_gives_up_at_once():
    async with a_world() as world:
        session = world.session(ScriptedAgent())
        inner = []

        async def nest(_):
            agent.scripts.append([Kind.OVERLOADED])
            inner.append(await session.turn("inner", facts=Facts(nested=True)))

        agent = session.agent
        agent.scripts = [[nest]]
        outer = await session.turn("outer")
        assert outer.landed
        assert (inner[0].how, inner[0].attempts) == (How.FAILED, 1)
        assert [s.prompt for s in agent.sent] == ["outer", "inner"]
    assert_nothing_lost(world.recorder)


async def test_an_attempt_may_not_end_in_something_else():
    class Odd(ScriptedAgent):
        async def attempt(self, attempt):
            return "done"

    async with a_world() as world:
        turn = world.session(Odd()).turn("hi")
        with pytest.raises(TypeError, match="'done' is not allowed"):
            await turn
        assert turn.outcome.how is How.STOPPED
    assert_nothing_lost(world.recorder)


async def test_a_crash_of_a_turn_beside_is_raised_where_it_was_entered():
    class Odd(ScriptedAgent):
        async def attempt(self, attempt):
            return "done"

    async with a_world() as world:
        with pytest.raises(TypeError):
            async with world.session(Odd()).turn("hi") as turn:
                await turn
