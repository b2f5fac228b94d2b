"""The client of one conversation: what it sends, and what it makes of what comes back."""

import anyio
import pytest

from orchestrator.acp.process import WireError
from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Delivery
from orchestrator.turn.events import StopReason
from tests.acp.doubles import Attempt, Double, Talk, answer, fail, text
from tests.acp.wires import END

pytestmark = pytest.mark.anyio


# -- one prompt


async def test_a_prompt_opens_a_session_and_declares_that_failures_are_read_as_records():
    double = Double()
    async with Talk(double) as agent:
        attempt = Attempt()
        assert await agent.attempt(attempt) is StopReason.END_TURN
        assert attempt.heard == [("text", "done")]
        assert await agent.attempt(Attempt()) is StopReason.END_TURN
    assert double.methods == [["initialize", "session/new", "session/prompt", "session/prompt"]]
    first = double.wires[0].sent[0]["params"]
    assert first["clientCapabilities"]["_meta"]["jetbrains"]["air"]["capabilities"] == [
        "sessionFailure"
    ]


async def test_updates_of_another_session_or_after_the_answer_belong_to_no_prompt():
    double = Double()
    double.answers["session/prompt"] = lambda m: [
        (0.0, text("other", "not ours")),
        *double.say("ours")(m),
        (0.0, text("s1", "too late")),
    ]
    async with Talk(double) as agent:
        attempt = Attempt()
        await agent.attempt(attempt)
        await anyio.wait_all_tasks_blocked()
        assert attempt.heard == [("text", "ours")]


async def test_an_agent_that_dies_mid_turn_has_died_with_its_exit_code():
    double = Double(answers={"session/prompt": lambda m: [(0.0, text("s1", "half")), (0.0, END)]})
    async with Talk(double) as agent:
        attempt = Attempt()
        end = await agent.attempt(attempt)
    assert (end.kind, end.delivery) == (Kind.AGENT_DIED, Delivery.SENT)
    assert attempt.heard == [("text", "half")]


async def test_a_prompt_that_stalls_on_its_way_is_ambiguous():
    double = Double()
    async with Talk(double) as agent:
        await agent.open()
        stalled = RawFailure.exception(BrokenPipeError("x"), delivery=Delivery.AMBIGUOUS)
        double.wires[0].write_error = WireError(stalled)
        assert (await agent.attempt(Attempt())).delivery is Delivery.AMBIGUOUS


async def test_the_next_prompt_after_a_death_starts_a_process_and_loads_the_session():
    double = Double()
    async with Talk(double) as agent:
        await agent.attempt(Attempt())
        double.wires[0].push(END)
        await double.wires[0].ended()
        await anyio.wait_all_tasks_blocked()
        assert await agent.attempt(Attempt()) is StopReason.END_TURN
    assert double.methods[1] == ["initialize", "session/load", "session/prompt"]
    assert double.wires[1].sent[1]["params"]["sessionId"] == "s1"


# -- starting


@pytest.mark.parametrize(
    ("answers", "kind", "words"),
    [
        ({"initialize": {"protocolVersion": 2}}, Kind.UNSUPPORTED, "version 2"),
        ({"initialize": {}}, Kind.AGENT_START_FAILED, "does not speak the Agent Client Protocol"),
        ({"initialize": fail(-32601, "what?")}, Kind.AGENT_START_FAILED, "does not speak"),
        ({"session/new": {}}, Kind.AGENT_START_FAILED, "without an id"),
        ({"session/new": fail(-32000, "Authentication required")}, Kind.AUTH_REQUIRED, "Sign in"),
    ],
)
async def test_a_bad_start_is_one_sentence(answers, kind, words):
    double = Double(answers=answers)
    async with Talk(double) as agent:
        verdict = await agent.attempt(Attempt())
    assert verdict.kind is kind
    assert words in verdict.title


async def test_a_death_at_the_start_is_a_failed_start_and_no_death():
    double = Double(answers={"initialize": lambda m: [(0.0, END)]})
    async with Talk(double) as agent:
        assert (await agent.attempt(Attempt())).kind is Kind.AGENT_START_FAILED


async def test_a_start_that_cannot_work_is_not_tried_twice():
    double = Double(answers={"initialize": {"protocolVersion": 2}})
    async with Talk(double) as agent:
        first = await agent.attempt(Attempt())
        assert await agent.attempt(Attempt()) == first
    assert len(double.wires) == 1


# -- questions of the agent


async def test_permission_is_refused_and_what_is_not_offered_is_answered_politely():
    double = Double()
    options = [{"optionId": "no", "kind": "reject_once"}]
    asked = {
        "id": "q1",
        "method": "session/request_permission",
        "params": {"sessionId": "s1", "options": options},
    }
    double.answers["session/prompt"] = lambda m: [
        (0.0, asked),
        (0.0, {"id": 7, "method": "fs/read_text_file", "params": {}}),
        *double.say("done")(m),
    ]
    async with Talk(double) as agent:
        await agent.attempt(Attempt())
        await anyio.wait_all_tasks_blocked()
        answers = {m["id"]: m for m in double.wires[0].sent if "method" not in m}
    assert answers["q1"]["result"]["outcome"] == {"outcome": "selected", "optionId": "no"}
    assert answers[7]["error"]["code"] == -32601


# -- stopping


async def test_a_stop_asks_and_an_end_of_turn_behind_it_reads_as_cancelled():
    double = Double()

    ids = []
    double.answers["session/prompt"] = lambda m: ids.append(m["id"]) or []
    double.answers["session/cancel"] = lambda m: double.say("late words")(
        {"id": ids[0], "params": {"sessionId": "s1"}}
    )
    async with Talk(double) as agent, anyio.create_task_group() as tasks:
        attempt, ends = Attempt(), []

        async def send():
            ends.append(await agent.attempt(attempt))

        tasks.start_soon(send)
        await anyio.wait_all_tasks_blocked()
        await agent.cancel(attempt, hard=False)
        await anyio.wait_all_tasks_blocked()
    assert ends == [StopReason.CANCELLED]
    assert attempt.heard == [("text", "late words")]


async def test_a_stop_while_the_agent_starts_sends_nothing():
    double = Double(answers={"session/new": lambda m: []})
    async with Talk(double) as agent, anyio.create_task_group() as tasks:
        attempt, ends = Attempt(), []

        async def send():
            ends.append(await agent.attempt(attempt))

        tasks.start_soon(send)
        await anyio.wait_all_tasks_blocked()
        await agent.cancel(attempt, hard=False)
        double.wires[0].push(answer(2, {"sessionId": "s1"})[0][1])
        await anyio.wait_all_tasks_blocked()
    assert ends == [StopReason.CANCELLED]
    assert "session/prompt" not in double.methods[0]


async def test_a_hard_stop_kills_the_agent():
    double = Double(answers={"session/prompt": lambda m: []})
    async with Talk(double) as agent, anyio.create_task_group() as tasks:
        attempt, ends = Attempt(), []

        async def send():
            ends.append(await agent.attempt(attempt))

        tasks.start_soon(send)
        await anyio.wait_all_tasks_blocked()
        await agent.cancel(attempt, hard=True)
        await anyio.wait_all_tasks_blocked()
        assert double.wires[0].killed
    assert ends[0].kind is Kind.AGENT_DIED


async def test_an_attempt_that_is_cancelled_from_outside_tells_the_agent():
    double = Double(answers={"session/prompt": lambda m: []})
    async with Talk(double) as agent:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.attempt, Attempt())
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        assert double.methods[0][-1] == "session/cancel"
