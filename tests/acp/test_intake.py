import pytest
from attrs import define, field

from orchestrator.acp.connection import Reply
from orchestrator.acp.intake import Intake, Voice
from orchestrator.failure.kinds import Category, Kind
from orchestrator.failure.raw import RawFailure, Surface
from orchestrator.failure.verdict import Refusal
from orchestrator.turn.events import StopReason

CLAUDE = Voice("claude-agent-acp", typed=False)
CODEX = Voice("codex-acp", typed=False)
TYPED = Voice("codex-acp", typed=True)
END_TURN = Reply({"stopReason": "end_turn"})


@define
class Ear:
    heard: list = field(factory=list)

    def text(self, chunk):
        self.heard.append(("text", chunk))

    def thought(self):
        self.heard.append("thought")

    def tool(self):
        self.heard.append("tool")

    def retrying(self, title, category):
        self.heard.append(("retrying", title, category))

    def advise(self, key, title):
        self.heard.append(("advise", title))


def intake(voice=TYPED, **more):
    return Intake(Ear(), voice, **more)


def chunk(text, message_id="m1", **more):
    content = {"type": "text", "text": text}
    ids = {"messageId": message_id} if message_id else {}
    return {"sessionUpdate": "agent_message_chunk", "content": content, **ids, **more}


def record(severity="error", identity="t:error", title="Down", category="service", revision=1):
    wire = {
        "id": identity,
        "revision": revision,
        "category": category,
        "severity": severity,
        "title": title,
        "actions": [],
    }
    return {"_meta": {"jetbrains": {"air": {"version": 1, "sessionFailure": wire}}}}


def test_text_and_an_end_of_turn_is_landed():
    ear = intake()
    ear.update(chunk("Hello"))
    assert ear.end(END_TURN) is StopReason.END_TURN
    assert ear.listener.heard == [("text", "Hello")]


def test_an_end_of_turn_with_nothing_said_or_done_is_an_empty_response():
    ear = intake()
    ear.update({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}})
    ear.update({"sessionUpdate": "usage_update", "used": 1, "size": 2})
    assert ear.end(END_TURN).kind is Kind.EMPTY_RESPONSE
    assert ear.listener.heard == ["thought"]


def test_a_tool_alone_is_an_answer():
    ear = intake()
    ear.update({"sessionUpdate": "tool_call", "toolCallId": "1", "status": "completed"})
    assert ear.end(END_TURN) is StopReason.END_TURN


def test_tools_are_open_until_they_are_over():
    ear = intake()
    ear.update({"sessionUpdate": "tool_call", "toolCallId": "1"})
    ear.update({"sessionUpdate": "tool_call", "toolCallId": "2", "status": "in_progress"})
    assert ear.open_tools == {"1", "2"}
    ear.update({"sessionUpdate": "tool_call_update", "toolCallId": "1", "title": "still on it"})
    assert ear.open_tools == {"1", "2"}
    ear.update({"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "failed"})
    ear.update({"sessionUpdate": "tool_call_update", "toolCallId": "2", "status": "completed"})
    assert ear.open_tools == set()


def test_a_json_rpc_error_of_any_code_is_a_failure():
    raw = intake().end(Reply(error={"code": 1001, "message": "killed", "data": {"signal": 9}}))
    assert (raw.surface, raw.code, raw.data) == (Surface.ACP_ERROR, 1001, {"signal": 9})


def test_an_error_record_on_an_end_of_turn_is_a_failure():
    ear = intake()
    ear.update(chunk("partial"))
    raw = ear.end(Reply({"stopReason": "end_turn", **record()}))
    assert raw == RawFailure.from_record(record()["_meta"]["jetbrains"]["air"]["sessionFailure"])


def test_a_warning_record_on_an_answer_fails_nothing():
    ear = intake()
    ear.update(chunk("fine"))
    assert ear.end(Reply({"stopReason": "end_turn", **record("warning")})) is StopReason.END_TURN


def test_the_agents_own_retries_are_progress_under_whatever_id_they_come():
    ear = intake()
    for identity in ("s:session-error:e:1", "s:session-error:e:2", "t:error"):
        update = {"sessionUpdate": "session_info_update"}
        ear.update(update | record("warning", identity, "Retrying", "limit"))
    assert ear.listener.heard == [("retrying", "Retrying", Category.LIMIT)] * 3


@pytest.mark.parametrize(
    "update",
    [
        {"sessionUpdate": "session_info_update"} | record("warning", "s:notice:e:1", "Old config"),
        {"sessionUpdate": "notice", "severity": "warning", "title": "Old config"},
        chunk("**Warning:** Old config", "", _meta={"claudeCode": {"kind": "informational"}}),
    ],
)
def test_advisories_are_notices_however_they_come(update):
    ear = intake()
    ear.update(update)
    (heard,) = ear.listener.heard
    assert heard[0] == "advise"
    assert heard[1].endswith("Old config")
    assert not ear.said


def test_an_error_record_in_the_middle_ends_nothing_and_is_shown():
    ear = intake()
    ear.update({"sessionUpdate": "session_info_update"} | record(title="Worker shut down"))
    ear.update(chunk("still here"))
    assert ear.listener.heard[0] == ("advise", "Worker shut down")
    assert ear.end(END_TURN) is StopReason.END_TURN


def test_codex_tells_its_retries_without_records_too():
    ear = intake(CODEX)
    error = {"message": "Reconnecting... 1/2", "willRetry": True}
    ear.update({"sessionUpdate": "session_info_update", "_meta": {"codex": {"error": error}}})
    assert ear.listener.heard == [("retrying", "Reconnecting... 1/2", Category.CONNECTION)]


def test_codex_text_without_an_id_right_before_the_end_is_the_failure():
    ear = intake(CODEX)
    ear.update(chunk("partial"))
    ear.update(chunk("exceeded retry limit, last status: 429\n\n", ""))
    ear.update({"sessionUpdate": "session_info_update", "title": "hello"})
    raw = ear.end(END_TURN)
    assert raw.surface is Surface.TEXT_CHUNK
    assert "429" in raw.message
    assert ear.listener.heard == [("text", "partial")]


def test_codex_text_without_an_id_before_more_content_was_text():
    ear = intake(CODEX)
    ear.update(chunk("a word from the adapter\n\n", ""))
    ear.update(chunk("and the model"))
    assert ear.end(END_TURN) is StopReason.END_TURN
    assert [text for _, text in ear.listener.heard] == [
        "a word from the adapter\n\n",
        "and the model",
    ]


def test_codex_fixed_notices_are_advisories():
    ear = intake(CODEX)
    ear.update(chunk("Warning: Model metadata not found.\n\n", ""))
    assert ear.listener.heard == [("advise", "Model metadata not found.")]
    assert ear.end(END_TURN).kind is Kind.EMPTY_RESPONSE


def test_what_codex_answers_to_a_slash_command_is_text():
    ear = intake(CODEX, is_command=True)
    ear.update(chunk("Model: lab\n\n", ""))
    assert ear.end(END_TURN) is StopReason.END_TURN
    assert ear.listener.heard == [("text", "Model: lab\n\n")]


def test_text_held_when_the_agent_dies_was_text():
    ear = intake(CODEX)
    ear.update(chunk("half a sentence", ""))
    ear.lose()
    assert ear.listener.heard == [("text", "half a sentence")]


def test_an_agent_that_tells_failures_as_records_has_nothing_held():
    ear = intake(TYPED)
    ear.update(chunk("text without an id\n\n", ""))
    assert ear.end(END_TURN) is StopReason.END_TURN


def test_claude_repeats_its_error_as_text_and_the_text_is_not_shown():
    ear = intake(CLAUDE)
    ear.update(chunk("API Error: 529 Overloaded", "uuid"))
    raw = ear.end(
        Reply(error={"code": -32603, "message": "Internal error: API Error: 529 Overloaded"})
    )
    assert raw.message.endswith("Overloaded")
    assert ear.listener.heard == []


def test_claude_words_a_missing_sign_in_as_text_that_is_not_shown():
    ear = intake(CLAUDE)
    ear.update(chunk("Invalid API key · Fix external API key", "uuid"))
    ear.end(Reply(error={"code": -32000, "message": "Authentication required"}))
    assert ear.listener.heard == []


def test_claude_text_that_is_not_its_error_is_shown():
    ear = intake(CLAUDE)
    ear.update(chunk("Let me look.", "m1"))
    ear.update(chunk("Found ", "m2"))
    ear.update(chunk("it.", "m2"))
    ear.end(Reply(error={"code": -32603, "message": "Internal error: API Error: 500"}))
    assert ear.listener.heard == [("text", "Let me look."), ("text", "Found "), ("text", "it.")]


def test_a_refusal_is_no_failure_however_it_is_told():
    assert intake().end(Reply({"stopReason": "refusal"})) == Refusal()
    ear = intake()
    told = {"stopReason": "CONTENT_FILTERED", "refusal": {"category": "weapons"}}
    ear.notification("_kiro.dev/metadata", told)
    ear.update(chunk("The selected model cannot continue."))
    assert ear.end(END_TURN) == Refusal(category="weapons")


def test_a_refusal_told_before_an_error_wins_over_it():
    ear = intake()
    ear.notification("_kiro.dev/metadata", {"stopReason": "CONTENT_FILTERED"})
    assert ear.end(Reply(error={"code": -32603, "message": "Internal error"})) == Refusal()


@pytest.mark.parametrize("reason", ["max_tokens", "cancelled"])
def test_other_stop_reasons_are_passed_on(reason):
    assert intake().end(Reply({"stopReason": reason})) == reason


def test_too_many_steps_is_a_failure():
    assert intake().end(Reply({"stopReason": "max_turn_requests"})).kind is Kind.BUDGET_EXHAUSTED


@pytest.mark.parametrize("result", [None, {}, [], {"stopReason": "brand_new"}, {"stopReason": 7}])
def test_an_end_nobody_knows_is_judged_by_what_was_shown(result):
    assert intake().end(Reply(result)).kind is Kind.EMPTY_RESPONSE
    ear = intake()
    ear.update(chunk("text"))
    assert ear.end(Reply(result)) is StopReason.END_TURN


def test_an_image_counts_as_said():
    ear = intake()
    ear.update({"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": ""}})
    assert ear.end(END_TURN) is StopReason.END_TURN
    assert ear.listener.heard == [("text", "[image]")]


def test_an_update_of_a_kind_nobody_knows_says_nothing():
    ear = intake()
    ear.update({"sessionUpdate": "from_the_future"})
    ear.update({})
    ear.update({"sessionUpdate": "session_info_update"} | record("warning", revision="x"))
    assert ear.listener.heard == []


@pytest.mark.parametrize(
    ("voice", "update", "lives"),
    [
        (CODEX, chunk("Hello"), True),
        (CODEX, chunk("Warning: Model metadata not found\n\n", message_id=None), False),
        (
            CODEX,
            {"sessionUpdate": "session_info_update", **record("warning", "s:notice:e:1")},
            False,
        ),
        (CLAUDE, chunk("Hello", message_id=None), True),
        (CLAUDE, chunk("Old mode", _meta={"claudeCode": {"kind": "informational"}}), False),
        (TYPED, {"sessionUpdate": "session_info_update", **record("warning")}, True),
        (TYPED, {"sessionUpdate": "session_info_update", "title": "Tests"}, False),
        (TYPED, {"sessionUpdate": "available_commands_update", "availableCommands": []}, False),
        (TYPED, {"sessionUpdate": "usage_update", "used": 1, "size": 2}, False),
        (TYPED, {"sessionUpdate": "current_mode_update", "currentModeId": "ask"}, False),
        (TYPED, {"sessionUpdate": "config_option_update", "configOptions": []}, False),
        (TYPED, {"sessionUpdate": "notice", "title": "Old version"}, False),
        (TYPED, {"sessionUpdate": "user_message_chunk", "content": {"type": "text"}}, False),
        (TYPED, {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text"}}, True),
        (TYPED, {"sessionUpdate": "tool_call", "toolCallId": "t"}, True),
        (TYPED, {"sessionUpdate": "plan", "entries": []}, True),
        (TYPED, {"sessionUpdate": "of_tomorrow"}, True),
    ],
)
def test_only_what_the_model_says_or_does_shows_that_it_lives(voice, update, lives):
    ear = intake(voice)
    ear.update(update)
    assert ear.lives is lives


def test_the_agents_own_retry_shows_life_once_and_not_when_it_is_told_again():
    ear = intake()
    seen = []
    for title in ("Reconnecting... 1/5", "Reconnecting... 2/5", "Reconnecting... 2/5"):
        ear.update({"sessionUpdate": "session_info_update", **record("warning", title=title)})
        seen.append(ear.lives)
    assert seen == [True, True, False]


def test_messages_are_counted_by_their_ids_until_a_tool_or_a_plan():
    ear = intake()
    counts = []
    for update in (
        chunk("a", "m1"),
        chunk("b", "m1"),
        chunk("c", "m2"),
        chunk("d", message_id=None),
        {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text"}},
        chunk("e", "m3"),
        {"sessionUpdate": "tool_call", "toolCallId": "t", "status": "in_progress"},
        chunk("of a subagent", "m4"),
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"},
        chunk("f", "m5"),
        {"sessionUpdate": "plan", "entries": []},
    ):
        ear.update(update)
        counts.append(ear.messages)
    assert counts == [1, 1, 2, 2, 2, 3, 0, 0, 0, 1, 0]
