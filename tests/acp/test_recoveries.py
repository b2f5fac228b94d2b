"""What the client does to recover, which models it sets, and how long it bears silence."""

import anyio
import pytest
import trio
import trio.testing
from attrs import evolve

from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Cause, Delivery
from orchestrator.settings.model import Watchdogs
from orchestrator.turn.effects import Recover
from orchestrator.turn.events import Step, StopReason
from tests.acp.doubles import CONTINUED, Attempt, Double, Talk, answer, fail, text, updated
from tests.acp.wires import END

pytestmark = pytest.mark.anyio

# -- recoveries


async def test_a_respawn_loads_the_session_and_a_continue_is_told_what_was_cut_off():
    double = Double(answers={"session/prompt": lambda m: [(0.0, text("s1", "half")), (0.0, END)]})
    async with Talk(double) as agent:
        await agent.attempt(Attempt())
        del double.answers["session/prompt"]
        result = await agent.recover(Recover(Step.RESPAWN))
        assert (result.ok, result.detail) == (True, "")
        await agent.attempt(evolve(CONTINUED))
    told, asked = double.prompts()[-1]
    assert told.endswith("half")
    assert asked == "Please continue."


async def test_a_respawn_kills_what_is_left_before_it_starts_another():
    double = Double()
    async with Talk(double) as agent:
        await agent.open()
        await agent.recover(Recover(Step.RESPAWN))
        assert double.wires[0].killed
        assert len(double.wires) == 2


async def test_where_loading_is_impossible_a_new_session_is_told_what_was_said():
    double = Double(capabilities={})
    async with Talk(double) as agent:
        await agent.attempt(Attempt(prompt="one"))
        result = await agent.recover(Recover(Step.RESPAWN))
        assert (result.ok, result.detail) == (True, "s2")
        await agent.attempt(Attempt(prompt="two"))
        await agent.attempt(Attempt(prompt="three"))
    (told, asked), alone = double.prompts()[-2:]
    assert "User: one" in told
    assert "Agent: done" in told
    assert (asked, alone) == ("two", ["three"])


async def test_a_verbatim_retry_in_a_new_session_is_not_told_its_own_message():
    double = Double(answers={"session/prompt": fail(-32603, "Session not found")})
    async with Talk(double) as agent:
        await agent.attempt(Attempt(prompt="one"))
        double.answers["session/load"] = fail(-32002, "Resource not found")
        del double.answers["session/prompt"]
        assert (await agent.recover(Recover(Step.RESET))).detail == "s2"
        await agent.attempt(Attempt(2, prompt="one"))
    assert double.prompts()[-1] == ["one"]


async def test_a_resume_is_used_where_there_is_no_load():
    double = Double(capabilities={"sessionCapabilities": {"resume": {}}})
    double.answers["session/resume"] = {}
    async with Talk(double) as agent:
        await agent.open()
        assert (await agent.recover(Recover(Step.RESPAWN))).detail == ""
        assert agent.session_id == "s1"
    assert double.methods[1] == ["initialize", "session/resume"]


async def test_a_discard_leaves_the_old_session_behind():
    double = Double()
    async with Talk(double) as agent:
        await agent.open()
        assert (await agent.recover(Recover(Step.DISCARD))).detail == "s2"
    assert len(double.wires) == 1


async def test_a_dedicated_runtime_is_a_new_process_with_a_new_session():
    double = Double()
    async with Talk(double) as agent:
        await agent.open()
        assert (await agent.recover(Recover(Step.DEDICATED))).detail == "s2"
    assert double.methods[1] == ["initialize", "session/new"]


async def test_what_a_loaded_session_replays_is_not_shown():
    double = Double()
    double.answers["session/load"] = lambda m: [
        (0.0, text("s1", "old words")),
        *answer(m["id"], {}),
    ]
    async with Talk(double) as agent:
        await agent.open()
        await agent.recover(Recover(Step.RESPAWN))
        attempt = Attempt()
        await agent.attempt(attempt)
    assert attempt.heard == [("text", "done")]


async def test_a_step_that_fails_says_why():
    double = Double()
    async with Talk(double) as agent:
        await agent.open()
        double.answers["initialize"] = {"protocolVersion": 2}
        result = await agent.recover(Recover(Step.RESPAWN))
    assert not result.ok
    assert "version 2" in result.detail


# -- models


async def test_a_swap_is_read_back_and_survives_a_respawn():
    double = Double()
    async with Talk(double) as agent:
        await agent.open()
        result = await agent.recover(Recover(Step.SWAP, "small"))
        assert (result.ok, result.detail) == (True, "small")
        assert agent.options.model == "small"
        double.model = "big"  # a new process forgot it
        await agent.recover(Recover(Step.RESPAWN))
        assert double.model == "small"


@pytest.mark.parametrize(
    ("answers", "model", "words"),
    [
        ({}, "huge", "does not offer huge"),
        ({"session/set_config_option": {}}, "small", "kept big"),
        ({"session/new": {"sessionId": "s1"}}, "small", "no choice of model"),
    ],
)
async def test_a_swap_that_did_not_happen_is_a_failure(answers, model, words):
    async with Talk(Double(answers=answers)) as agent:
        await agent.open()
        result = await agent.recover(Recover(Step.SWAP, model))
    assert not result.ok
    assert words in result.detail


async def test_the_host_is_told_the_models_that_are_served():
    seen = []
    async with Talk(Double()) as agent:
        agent.on_options = lambda options: seen.append((options.model, options.served))
        await agent.open()
    assert seen == [("big", ("big", "small"))]


async def test_a_canary_asks_a_fresh_session_and_closes_it():
    double = Double(capabilities={"loadSession": True, "sessionCapabilities": {"close": {}}})
    double.answers["session/close"] = {}
    async with Talk(double) as agent:
        await agent.open()
        assert (await agent.recover(Recover(Step.CANARY))).ok
        await anyio.wait_all_tasks_blocked()
        closed = [m["params"] for m in double.wires[0].sent if m.get("method") == "session/close"]
        assert closed == [{"sessionId": "s2"}]
        assert agent.session_id == "s1"


async def test_a_canary_that_fails_is_a_failed_step():
    double = Double(answers={"session/prompt": fail(-32603, "overloaded")})
    async with Talk(double) as agent:
        await agent.open()
        assert not (await agent.recover(Recover(Step.CANARY))).ok


# -- silence, in virtual time

SHORT = Watchdogs(first_sign_s=10, silence_s=100, cancel_s=5, session_s=20, handshake_s=30)


def in_virtual_time(double, act, watchdogs=SHORT):
    async def main():
        async with Talk(double, watchdogs) as agent:
            return await act(agent)

    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def attempt_once(agent):
    return agent.attempt(Attempt())


def test_a_silent_agent_that_answers_a_cancel_has_stalled():
    ids = []
    double = Double()
    double.answers["session/prompt"] = lambda m: ids.append(m["id"]) or []
    double.answers["session/cancel"] = lambda m: answer(ids[0], {"stopReason": "end_turn"})
    end = in_virtual_time(double, attempt_once)
    assert (end.kind, end.cause) == (Kind.CONNECTION_LOST, Cause.STALLED)
    assert double.methods[0][-1] == "session/cancel"


def test_a_silent_agent_that_answers_nothing_is_killed_and_has_died_by_a_signal():
    double = Double(answers={"session/prompt": lambda m: []})
    end = in_virtual_time(double, attempt_once)
    assert (end.kind, end.cause, end.delivery) == (
        Kind.AGENT_DIED,
        Cause.SIGNAL,
        Delivery.SENT,
    )
    assert double.wires[0].killed


def test_a_tool_may_run_for_longer_than_an_agent_may_be_silent():
    double = Double()
    tool = {"sessionUpdate": "tool_call", "toolCallId": "1", "status": "in_progress"}
    done = {"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed"}
    double.answers["session/prompt"] = lambda m: [
        (0.0, updated("s1", tool)),
        (1800.0, updated("s1", done)),
        (1850.0, answer(m["id"], {"stopReason": "end_turn"})[0][1]),
    ]
    assert in_virtual_time(double, attempt_once) is StopReason.END_TURN


def test_an_agent_that_never_shakes_hands_is_a_start_that_timed_out():
    double = Double(answers={"initialize": lambda m: []})
    end = in_virtual_time(double, attempt_once)
    assert end.kind is Kind.AGENT_START_TIMEOUT
    assert "within 30 s" in end.title


def test_a_session_that_comes_too_late_is_closed_and_counted_and_never_used():
    double = Double(capabilities={"sessionCapabilities": {"close": {}}})
    double.answers["session/close"] = {}
    late = [(25.0, {"sessionId": "late"})]
    double.answers["session/new"] = lambda m: [
        (after, {"jsonrpc": "2.0", "id": m["id"], "result": result}) for after, result in late
    ]

    async def act(agent):
        end = await agent.attempt(Attempt())
        await anyio.sleep(10)
        return end, agent.runtime.late_answers, agent.session_id

    end, late_answers, session_id = in_virtual_time(double, act)
    assert end.kind is Kind.AGENT_START_TIMEOUT
    assert (late_answers, session_id) == (1, "")
    closed = [m["params"] for m in double.wires[0].sent if m.get("method") == "session/close"]
    assert closed == [{"sessionId": "late"}]


def test_a_canary_does_not_wait_for_ever():
    double = Double(answers={"session/prompt": lambda m: []})

    async def act(agent):
        await agent.open()
        return await agent.recover(Recover(Step.CANARY))

    watchdogs = Watchdogs(first_sign_s=0, silence_s=0)
    assert not in_virtual_time(double, act, watchdogs).ok


LOST = fail(-32002, "Resource not found: s1")


async def reset(agent):
    """Reset the session, as after a failed prompt; what the agent was asked for that."""
    sent = agent.runtime.connection.wire.sent
    before = len(sent)
    assert (await agent.recover(Recover(Step.RESET))).ok
    return [message["method"] for message in sent[before:]]


async def test_a_reset_loads_a_session_that_was_opened_here():
    double = Double(answers={"session/prompt": LOST})
    async with Talk(double) as agent:
        await agent.attempt(Attempt(prompt="one"))
        assert await reset(agent) == ["session/load"]


async def test_a_reset_does_not_load_again_what_this_process_loaded_in_vain():
    double = Double(answers={"session/prompt": LOST})
    async with Talk(double) as agent:
        agent.session_id = "s1"
        agent.memory.user("zero")
        agent.memory.agent("nothing")
        await agent.attempt(Attempt(prompt="one"))
        assert await reset(agent) == ["session/new"]
        del double.answers["session/prompt"]
        await agent.attempt(Attempt(2, prompt="one"))
    told, asked = double.prompts()[-1]
    assert "User: zero" in told
    assert "Agent: nothing" in told
    assert asked == "one"


async def test_a_reset_loads_again_what_has_answered_since_it_was_loaded():
    double = Double()
    async with Talk(double) as agent:
        agent.session_id = "s1"
        await agent.attempt(Attempt(prompt="one"))
        double.answers["session/prompt"] = LOST
        await agent.attempt(Attempt(prompt="two"))
        assert await reset(agent) == ["session/load"]


async def test_a_reset_loads_again_what_had_begun_to_answer():
    def half(message):
        return [(0.0, text("s1", "half")), *LOST(message)]

    double = Double(answers={"session/prompt": half})
    async with Talk(double) as agent:
        agent.session_id = "s1"
        await agent.attempt(Attempt(prompt="one"))
        assert await reset(agent) == ["session/load"]


async def test_a_reset_in_another_process_loads_whatever_the_last_one_had_loaded():
    double = Double(answers={"session/prompt": LOST})
    async with Talk(double) as agent:
        agent.session_id = "s1"
        await agent.attempt(Attempt(prompt="one"))
        await agent.runtime.replace()
        assert await reset(agent) == ["session/load"]
