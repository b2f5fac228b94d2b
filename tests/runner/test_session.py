import pytest

from orchestrator import (
    Category,
    How,
    Kind,
    RawFailure,
    Record,
    RetryRefusedError,
    SessionState,
    Severity,
    Verdict,
)
from orchestrator.settings.model import Recoveries
from orchestrator.testing import JumpingClock, RecordingSink, ScriptedAgent, assert_nothing_lost
from orchestrator.turn.effects import Payload
from orchestrator.turn.events import Evidence, RuntimeReplaced, SignedIn
from tests.runner.world import a_world

pytestmark = pytest.mark.anyio


async def test_turns_of_one_session_run_one_after_another():
    async with a_world() as world:
        agent = ScriptedAgent(Kind.OVERLOADED, ["first"], ["second"])
        session = world.session(agent)
        async with session.turn("1") as first:
            await world.clock.settle()
            async with session.turn("2") as second:
                await world.clock.advance(1)
                assert [s.prompt for s in agent.sent] == ["1"]
                await world.clock.advance(2)
        assert (first.outcome.text, second.outcome.text) == ("first", "second")
    assert_nothing_lost(world.recorder)


async def test_turns_of_two_sessions_do_not_wait_for_each_other():
    async with a_world() as world:
        slow = world.session(ScriptedAgent(Kind.OVERLOADED), "slow")
        async with slow.turn("1") as waiting:
            await world.clock.settle()
            assert (await world.session(ScriptedAgent(), "quick").turn("2")).landed
            assert waiting.outcome is None
            waiting.stop()


async def test_a_turn_in_line_goes_by_what_the_one_before_it_left():
    async with a_world() as world:
        agent = ScriptedAgent(Kind.AGENT_DIED, Kind.OVERLOADED, Kind.BILLING, Kind.BILLING)
        session = world.session(agent)
        async with session.turn("1"):
            await world.clock.settle()
            async with session.turn("2") as second:
                await world.clock.advance(60)
        assert second.machine.session.deaths == 1
        assert session.state.deaths == 1
        assert (await session.turn("3")).landed
        assert session.state == SessionState()


async def test_the_same_key_is_the_same_session():
    async with a_world() as world:
        agent = ScriptedAgent()
        session = world.session(agent)
        assert world.session(agent) is session
        other = ScriptedAgent()
        assert world.session(other) is session
        await session.turn("hi")
        assert (len(agent.sent), len(other.sent)) == (0, 1)
        world.orchestrator.forget("chat")
        assert world.session(agent) is not session


async def test_a_session_with_a_turn_is_not_forgotten():
    async with a_world() as world:
        session = world.session(ScriptedAgent(Kind.OVERLOADED))
        async with session.turn("hi") as turn:
            await world.clock.settle()
            world.orchestrator.forget("chat")
            assert world.session(session.agent) is session
            turn.stop()


async def test_ids_of_turns_never_repeat():
    async with a_world() as world:
        first, second = (world.session(ScriptedAgent(), key) for key in "ab")
        ids = [s.turn("x").id for s in (first, first, second, second)]
        assert len(set(ids)) == 4


# The action `retry` ------------------------------------------------------------------------------


async def test_retry_sends_the_message_again_on_a_full_ladder_when_nothing_was_shown():
    async with a_world(clock=JumpingClock()) as world:
        agent = ScriptedAgent(*[Kind.OVERLOADED] * 4, *[Kind.OVERLOADED] * 3, ["at last"])
        session = world.session(agent)
        failed = await session.turn("hi")
        assert (failed.how, failed.attempts) == (How.FAILED, 4)
        outcome = await session.retry(failed.record.id)
        assert (outcome.text, outcome.attempts) == ("at last", 4)
        assert {(s.prompt, s.payload) for s in agent.sent} == {("hi", Payload.VERBATIM)}
        assert session.active == ()


@pytest.mark.parametrize("shown", ["text", Evidence.TOOL])
async def test_retry_asks_to_continue_when_something_was_shown_or_run(shown):
    async with a_world(clock=JumpingClock()) as world:
        agent = ScriptedAgent([shown, Kind.BILLING], Kind.OVERLOADED, ["rest"])
        session = world.session(agent, continue_prompt="Go on.")
        failed = await session.turn("hi")
        assert (await session.retry(failed.record.id)).landed
        assert [s.prompt for s in agent.sent] == ["hi", "Go on.", "Go on."]
        assert agent.sent[-1].payload is Payload.CONTINUE


async def test_retry_is_refused_for_what_can_not_succeed():
    async with a_world() as world:
        session = world.session(ScriptedAgent(Kind.MESSAGE_TOO_LARGE))
        failed = await session.turn("hi")
        assert failed.structural
        with pytest.raises(RetryRefusedError, match="can't succeed in this conversation"):
            session.retry(failed.record.id)


async def test_a_retry_that_is_asked_for_twice_runs_once_until_it_has_ended():
    async with a_world() as world:
        session = world.session(ScriptedAgent(*[Kind.BILLING] * 3))
        incident = (await session.turn("hi")).record.id
        again = session.retry(incident)
        with pytest.raises(RetryRefusedError, match="is being tried again"):
            session.retry(incident)
        async with again:
            with pytest.raises(RetryRefusedError):
                session.retry(incident)
        assert (await session.retry(incident)).how is How.FAILED
        session.retry(incident)  # dropped, so never run
        assert session.retry(incident).outcome is None


async def test_retry_is_refused_for_an_incident_nobody_knows():
    async with a_world() as world:
        with pytest.raises(RetryRefusedError, match="'x:error' is no failed turn"):
            world.session(ScriptedAgent()).retry("x:error")


async def test_only_the_newest_failed_turns_are_remembered():
    async with a_world() as world:
        session = world.session(ScriptedAgent(*[Kind.BILLING] * 70))
        ids = [(await session.turn(str(n))).record.id for n in range(70)]
        with pytest.raises(RetryRefusedError):
            session.retry(ids[0])
        assert session.retry(ids[-1]).prompt == "69"


# Outside a turn ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "failure",
    [
        RawFailure.exit(137, stderr="out of memory"),
        ConnectionResetError("gone"),
        Verdict.of(Kind.AGENT_DIED, "The agent died. Start a new session."),
    ],
)
async def test_a_failure_outside_a_turn_is_told_and_starts_no_ladder(failure):
    async with a_world() as world:
        agent = ScriptedAgent()
        session = world.session(agent)
        record = await session.report(failure)
        assert record.id == f"chat:session-error:{session.epoch}:1"
        assert (record.revision, record.severity) == (1, Severity.ERROR)
        assert session.active == (record,)
        assert world.sink.records == [record]
        assert agent.sent == []
        assert (await session.report(failure)).id.endswith(":2")


async def test_what_is_no_failure_is_not_reported():
    async with a_world() as world:
        session = world.session(ScriptedAgent())
        assert await session.report(Verdict.of(Kind.CANCELLED, "stopped")) is None
        assert world.sink.items == []


async def test_a_report_that_nobody_took_is_not_active():
    async with a_world(sinks=[RecordingSink(error=OSError())]) as world:
        session = world.session(ScriptedAgent())
        assert await session.report(OSError("x")) is None
        assert session.active == ()


async def test_each_kind_is_ended_by_what_its_policy_names():
    async with a_world() as world:
        session = world.session(ScriptedAgent())
        await session.report(Verdict.of(Kind.AUTH_REQUIRED, "Sign in."))
        await session.report(Verdict.of(Kind.AGENT_DIED, "Start a new session."))
        await session.report(Verdict.of(Kind.SERVER_ERROR, "Try again."))
        session.signed_in()
        assert [r.title for r in session.active] == ["Start a new session.", "Try again."]
        await session.turn("hi")
        assert [r.title for r in session.active] == ["Start a new session."]
        session.runtime_replaced()
        assert session.active == ()
        assert world.orchestrator.active == ()


async def test_a_recovery_that_replaced_the_runtime_ends_what_held_until_then():
    async with a_world() as world:
        session = world.session(ScriptedAgent(Kind.AGENT_DIED, Kind.BILLING))
        await session.report(Verdict.of(Kind.AGENT_START_TIMEOUT, "It did not start in time."))
        outcome = await session.turn("hi")
        assert outcome.how is How.FAILED
        assert session.active == (outcome.record,)


async def test_observers_hear_of_a_sign_in_and_a_new_runtime_while_a_turn_runs():
    async with a_world() as world:

        def meanwhile(_):
            session.signed_in()
            session.runtime_replaced()

        session = world.session(ScriptedAgent([meanwhile, "ok"]))
        assert (await session.turn("hi")).landed
        assert len(world.recorder.events(SignedIn)) == 1
        assert len(world.recorder.events(RuntimeReplaced)) == 1


async def test_an_attempt_that_nobody_answered_is_no_boundary():
    async with a_world(clock=JumpingClock()) as world:
        agent = ScriptedAgent(ConnectionResetError(), Kind.BILLING)
        session = world.session(agent)
        await session.report(Verdict.of(Kind.SERVER_ERROR, "Try again."))
        seen = []
        agent.scripts[1] = [lambda _: seen.extend(session.active), Kind.BILLING]
        await session.turn("hi")
        assert "Try again." in [r.title for r in seen]
        assert "Try again." not in [r.title for r in session.active]


async def test_a_success_clears_only_what_was_active_when_its_attempt_began():
    async with a_world() as world:

        async def meanwhile(_):
            await session.report(Verdict.of(Kind.SERVER_ERROR, "Somebody else failed."))

        session = world.session(ScriptedAgent([meanwhile, "ok"]))
        await session.report(Verdict.of(Kind.SERVER_ERROR, "Earlier."))
        await session.turn("hi")
        assert [r.title for r in session.active] == ["Somebody else failed."]


async def test_restored_records_are_active_until_their_policy_ends_them():
    async with a_world() as world:
        session = world.session(ScriptedAgent(Kind.BILLING, ["ok"]))
        limit = Record("m-1:error", 2, Category.LIMIT, Severity.ERROR, "You've hit your limit.")
        died = Record("m-2:error", 1, Category.CONNECTION, Severity.ERROR, "The agent died.")
        session.restore([limit, (died, Kind.AGENT_DIED)])
        assert session.active == (limit, died)
        await session.turn("one")
        assert limit in session.active, "a failed turn proves nothing about a limit"
        await session.turn("two")
        assert session.active == (died,)


# What the host knows -----------------------------------------------------------------------------


async def test_the_served_models_make_a_swap_possible():
    recoveries = Recoveries(fallback_models=("small",))
    async with a_world(recoveries=recoveries, clock=JumpingClock()) as world:
        agent = ScriptedAgent(*[Kind.OVERLOADED] * 4, ["ok"])
        session = world.session(agent)
        session.update(model="large", served=("large", "small"), shared_deaths=0)
        assert (await session.turn("hi")).landed
        assert [(r.step, r.target) for r in agent.recovered] == [("swap", "small")]
        assert session.state.fallback_model == "small"
        session.update(served=("large",))
        assert session.state.fallback_model == "small"
        session.update(model="large")
        assert session.state.fallback_model == "", "the user picked another"


async def test_a_stored_session_state_is_taken_up():
    async with a_world() as world:
        session = world.session(ScriptedAgent(Kind.AGENT_DIED), state=SessionState(deaths=3))
        assert (await session.turn("hi")).how is How.FAILED


async def test_advisories_of_the_agent_become_notices():
    async with a_world() as world:

        def advise(attempt):
            attempt.advise("k", "You have used 90 % of your limit.")
            attempt.advise("k", "You have used 90 % of your limit.")

        session = world.session(ScriptedAgent([advise, "ok"], [advise, "ok"]))
        assert (await session.turn("hi")).record is None, "a notice is not the turn's incident"
        await session.turn("again")
        assert [r.id for r in world.sink.records] == [
            f"chat:notice:{session.epoch}:{n}" for n in (1, 2)
        ]
        assert session.active == ()


async def test_the_agents_own_retries_are_passed_on_and_settled_by_its_answer():
    async with a_world() as world:

        def retries(attempt):
            attempt.retrying("Reconnecting... 1/5")
            attempt.retrying("Reconnecting... 2/5")

        session = world.session(ScriptedAgent([retries, "ok"]))
        outcome = await session.turn("hi")
        assert [r.revision for r in world.sink.records] == [1, 2]
        assert outcome.landed
        assert session.active == ()


async def test_late_reports_of_an_attempt_are_ignored():
    async with a_world(clock=JumpingClock()) as world:
        attempts = []
        agent = ScriptedAgent([attempts.append, Kind.OVERLOADED])

        def late(attempt):
            attempts[0].text("from the dead")
            attempts[0].tool()
            attempts[0].retrying("still trying")
            attempts[0].advise("k", "late")
            attempt.text("")
            attempt.text("alive")

        agent.scripts.append([late])
        outcome = await world.session(agent).turn("hi")
        attempts[0].thought()
        assert (outcome.text, outcome.attempts) == ("alive", 2)
        assert repr(attempts[0]).startswith("<Attempt 1 of ")
        assert attempts[0].turn_id == outcome.turn_id
