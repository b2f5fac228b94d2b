"""Frames that no agent should send: whatever stands in one, the conversation goes on."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.acp.connection import Reply
from orchestrator.acp.framing import Frame
from orchestrator.acp.intake import Intake, Voice
from orchestrator.acp.options import Options
from orchestrator.acp.permission import answer_permission
from orchestrator.turn.events import StopReason
from tests.acp.doubles import Attempt, Double, Talk

WORDS = st.sampled_from(
    [
        *("agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"),
        *("notice", "session_info_update", "config_option_update", "text", "pending", "completed"),
        *("end_turn", "refusal", "max_tokens", "max_turn_requests", "cancelled", "model", "error"),
        *("", "\n\n", "\ud800", "Warning: a", "informational", "warning", "service", "allow_once"),
    ]
)
NAMES = st.sampled_from(
    [
        *("sessionUpdate", "content", "text", "type", "messageId", "_meta", "codex", "claudeCode"),
        *(
            "kind",
            "status",
            "toolCallId",
            "title",
            "description",
            "configOptions",
            "id",
            "category",
        ),
        *("options", "value", "currentValue", "stopReason", "code", "message", "data", "optionId"),
        *("error", "willRetry", "sessionFailure", "refusal", "stopDetails", "revision", "severity"),
    ]
)
NUMBERS = st.sampled_from([0, 1, -1, 1.5, float("inf"), 10**30])
VALUES = st.recursive(
    WORDS | NUMBERS | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)
VOICES = st.sampled_from(
    [Voice(), Voice("codex-acp"), Voice("claude-code-acp"), Voice("codex-acp", typed=True)]
)


@settings(max_examples=200)
@given(VOICES, st.booleans(), st.lists(OBJECTS, max_size=3), VALUES, VALUES)
def test_any_object_in_place_of_an_update_or_an_answer_is_read(
    voice, command, updates, said, error
):
    attempt = Attempt()
    intake, options = Intake(attempt, voice, is_command=command), Options()
    for update in updates:
        intake.update(update)
        intake.notification("_kiro.dev/metadata", update)
        options.learn(update)
        assert options.served is None or all(isinstance(m, str) for m in options.served)
    told = error if isinstance(error, dict) else None
    assert intake.end(Reply(said, told)) is not None
    assert all(isinstance(word, str) for heard in attempt.heard for word in heard)


@given(OBJECTS)
def test_any_object_in_place_of_a_question_is_answered(params):
    assert answer_permission(params, allow=True)["outcome"]["outcome"] in {"selected", "cancelled"}


@pytest.mark.anyio
async def test_an_id_that_can_be_none_settles_nothing_and_ends_nothing():
    def wrong(message):
        number = message["id"]
        frames = [
            {"jsonrpc": "2.0", "id": odd, "result": {"stopReason": "refusal"}}
            for odd in (number + 0.5, float("1e300"), True, None, [number], {"id": number})
        ]
        questions = [
            {"jsonrpc": "2.0", "id": odd, "method": "fs/read", "params": odd}
            for odd in (None, [1], {"a": 1}, 1.5)
        ]
        return [(0.0, frame) for frame in (*frames, *questions)] + double.say("fine")(message)

    double = Double()
    double.answers["session/prompt"] = wrong
    async with Talk(double) as agent:
        attempt = Attempt()
        assert await agent.attempt(attempt) is StopReason.END_TURN
        assert attempt.heard == [("text", "fine")]
    answered = [m for m in double.wires[0].sent if "method" not in m]
    assert answered == []


@pytest.mark.anyio
async def test_an_id_beyond_all_numbers_settles_nothing_and_ends_nothing():
    # Python reads 1e999 as an infinity, which is no whole number and can't be written either.
    double = Double()
    async with Talk(double) as agent:
        connection = await agent.open()
        for frame in ({"id": float("inf"), "result": {}}, {"id": float("inf"), "method": "x"}):
            connection._take(Frame(b"", frame))
        assert await agent.attempt(Attempt()) is StopReason.END_TURN
