"""The client of one conversation: what it sends, and what it makes of what comes back."""

import anyio
import pytest
import trio
import trio.testing
from attrs import define, evolve, field

from orchestrator.acp.agent import AcpAgent
from orchestrator.acp.process import Command, Exit, WireError
from orchestrator.acp.runtime import Runtime
from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Cause, Delivery
from orchestrator.settings.model import Watchdogs
from orchestrator.turn.effects import Payload, Recover
from orchestrator.turn.events import Step, StopReason
from tests.acp.wires import END, MemoryWire

pytestmark = pytest.mark.anyio

MODEL = {
    "id": "model",
    "category": "model",
    "currentValue": "big",
    "options": [{"value": "big"}, {"value": "small"}],
}


@define(eq=False)
class Attempt:
    """An attempt of the runner, without the runner."""

    number: int = 1
    payload: Payload = Payload.VERBATIM
    prompt: object = "fix the tests"
    heard: list = field(factory=list)

    def text(self, chunk):
        self.heard.append(("text", chunk))

    def thought(self):
        self.heard.append("thought")

    def tool(self):
        self.heard.append("tool")

    def retrying(self, title, category):
        self.heard.append(("retrying", title))

    def advise(self, key, title):
        self.heard.append(("advise", title))


CONTINUED = Attempt(2, Payload.CONTINUE, "Please continue.")


@define(eq=False)
class Double:
    """An agent in memory.  Change `answers` to make it behave."""

    capabilities: dict = field(factory=lambda: {"loadSession": True})
    answers: dict = field(factory=dict)
    """Method to what follows: a result, or a function of the message to delayed frames."""
    model: str = "big"
    sessions: int = 0
    wires: list = field(factory=list)

    def spawn(self, command):
        self.wires.append(MemoryWire(self.take, Exit(3)))
        return self.wires[-1]

    def take(self, message):
        method, number = message.get("method"), message.get("id")
        known = {
            "initialize": {"protocolVersion": 1, "agentCapabilities": self.capabilities},
            "session/load": self.options,
            "session/prompt": self.say("done"),
            **self.answers,
        }
        if method == "session/new" and method not in self.answers:
            self.sessions += 1
            return answer(number, {"sessionId": f"s{self.sessions}", **self.options})
        if method == "session/set_config_option" and method not in self.answers:
            self.model = message["params"]["value"]
            return answer(number, self.options)
        what = known.get(method)
        if callable(what):
            return what(message)
        return answer(number, what) if number is not None and what is not None else []

    @property
    def options(self):
        return {"configOptions": [{**MODEL, "currentValue": self.model}]}

    def say(self, *words, end="end_turn"):
        def frames(message):
            session = message["params"]["sessionId"]
            texts = [(0.0, text(session, word)) for word in words]
            return [*texts, *answer(message["id"], {"stopReason": end})]

        return frames

    @property
    def methods(self):
        return [wire.methods() for wire in self.wires]

    def prompts(self):
        """The text blocks of every prompt, over all processes."""
        sent = [message for wire in self.wires for message in wire.sent]
        return [
            [block["text"] for block in message["params"]["prompt"]]
            for message in sent
            if message.get("method") == "session/prompt"
        ]


def answer(number, result):
    return [(0.0, {"jsonrpc": "2.0", "id": number, "result": result})]


def fail(code, message, data=None):
    def frames(request):
        error = {"code": code, "message": message, "data": data}
        return [(0.0, {"jsonrpc": "2.0", "id": request["id"], "error": error})]

    return frames


def text(session, word):
    update = {
        "sessionUpdate": "agent_message_chunk",
        "messageId": "m",
        "content": {"type": "text", "text": word},
    }
    return updated(session, update)


def updated(session, update):
    params = {"sessionId": session, "update": update}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


class Talk:
    """A conversation with a double."""

    def __init__(self, double, watchdogs=None, **more):
        self.runtime = Runtime(
            Command(("/bin/double",), "/project"),
            watchdogs or Watchdogs(),
            spawn=double.spawn,
            wall=lambda: 0.0,
            **more,
        )
        self.agent = AcpAgent(self.runtime)

    async def __aenter__(self):
        await self.runtime.__aenter__()
        return self.agent

    async def __aexit__(self, *exc):
        return await self.runtime.__aexit__(*exc)


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


# -- recoveries


async def test_a_respawn_loads_the_session_and_a_continue_is_told_what_was_cut_off():
    double = Double(answers={"session/prompt": lambda m: [(0.0, text("s1", "half")), (0.0, END)]})
    async with Talk(double) as agent:
        await agent.attempt(Attempt())
        del double.answers["session/prompt"]
        result = await agent.recover(Recover(Step.RESPAWN))
        assert (result.ok, result.detail) == (True, "s1")
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
        assert (await agent.recover(Recover(Step.RESPAWN))).detail == "s1"
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
