"""Failures told as text, held against recordings of a real adapter."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.failure.held import HeldChunks, Sight, Terminal, is_command, sight, told
from orchestrator.failure.raw import Surface

DATA = Path(__file__).parent / "data" / "codex_text_failures.jsonl"
RECORDINGS = [json.loads(line) for line in DATA.read_text().splitlines()]
ERROR = "stream disconnected before completion\n\n"


def terminal(end):
    if "error" in end:
        return Terminal.ERROR
    return Terminal.END_TURN if end["stopReason"] == "end_turn" else Terminal.OTHER


def play(row):
    """Drive a recorded prompt through the filter, as an adapter of ours does."""
    held = HeldChunks(command=is_command(row["prompt"]))
    delivered = []
    for update in row["updates"]:
        match sight(update):
            case Sight.CHUNK:
                text, message_id = update["content"]["text"], update.get("messageId")
                delivered += held.chunk(update, text, message_id)
            case Sight.CONTENT:
                delivered += held.content(update)
            case _:
                delivered += held.aside(update)
    return delivered, held.end(terminal(row["end"]))


def adapter_text(row):
    return [
        update
        for update in row["updates"]
        if update["sessionUpdate"] == "agent_message_chunk"
        and "messageId" not in update
        and not update["content"]["text"].startswith("Warning: ")
    ]


TOLD_AS_TEXT = [r for r in RECORDINGS if adapter_text(r) and "stopReason" in r["end"]]
TOLD_TWICE = [r for r in RECORDINGS if adapter_text(r) and "error" in r["end"]]
HEALTHY = [r for r in RECORDINGS if not adapter_text(r)]


@pytest.mark.parametrize("row", TOLD_AS_TEXT, ids=lambda row: row["scenario"])
def test_a_recorded_end_turn_behind_error_text_is_a_failure_with_that_text(row):
    delivered, ended = play(row)
    (chunk,) = adapter_text(row)
    assert ended.failure.surface is Surface.TEXT_CHUNK
    assert ended.failure.message == chunk["content"]["text"].strip()
    assert ended.failure.message_id is None
    assert ended.withheld == (chunk,)
    assert delivered == [update for update in row["updates"] if update is not chunk]


@pytest.mark.parametrize("row", TOLD_TWICE, ids=lambda row: row["scenario"])
def test_a_recorded_error_behind_its_own_text_is_raised_alone(row):
    delivered, ended = play(row)
    assert ended.failure is None
    assert ended.withheld == tuple(adapter_text(row))
    assert not any(update in delivered for update in adapter_text(row))


@pytest.mark.parametrize("row", HEALTHY, ids=lambda row: row["scenario"])
def test_a_recorded_prompt_without_error_text_passes_untouched(row):
    delivered, ended = play(row)
    assert delivered == row["updates"]
    assert (ended.deliver, ended.failure, ended.withheld) == ((), None, ())


def test_the_recordings_hold_all_three_kinds():
    assert [len(rows) for rows in (TOLD_AS_TEXT, TOLD_TWICE, HEALTHY)] == [21, 2, 10]


def test_text_that_names_its_item_is_the_models_and_passes():
    held = HeldChunks()
    assert held.chunk("a", ERROR, "msg_1") == ("a",)
    assert held.end(Terminal.END_TURN).failure is None


@pytest.mark.parametrize(
    "text",
    [
        "Warning: the model is new\n\n",
        "Config warning: no sandbox\n\n",
        "*Context compacted to fit*\n\n",
    ],
)
def test_a_fixed_notice_passes_and_releases_nothing(text):
    held = HeldChunks()
    assert held.chunk("error", ERROR, None) == ()
    assert held.chunk("notice", text, None) == ("notice",)
    assert held.end(Terminal.END_TURN).failure.message == ERROR.strip()


def test_every_chunk_of_a_slash_command_passes():
    held = HeldChunks(command=is_command([{"type": "text", "text": "  /status"}]))
    assert held.chunk("a", "Model: x\n\n", None) == ("a",)
    assert held.end(Terminal.END_TURN).failure is None


@pytest.mark.parametrize(
    ("prompt", "command"),
    [
        ([{"type": "text", "text": "/compact"}], True),
        ([{"type": "image"}, {"type": "text", "text": "\n /compact"}], True),
        ([{"type": "text", "text": "see /tmp"}, {"type": "text", "text": "/compact"}], False),
        ([{"type": "text", "text": None}], False),
        ([{"type": "text"}], False),
        ([], False),
        (["x", None], False),
        (None, False),
        ("/compact", False),
    ],
)
def test_a_command_is_a_prompt_whose_first_text_begins_with_a_slash(prompt, command):
    assert is_command(prompt) is command


def test_content_releases_everything_held_in_order_and_unchanged():
    held = HeldChunks()
    assert held.chunk("one", ERROR, None) == ()
    assert held.steer("steer") == ()
    assert held.chunk("two", "more", None) == ()
    assert len(held) == 3
    assert held.content("tool") == ("one", "steer", "two", "tool")
    assert held.end(Terminal.END_TURN).failure is None


def test_a_frame_of_another_session_passes_without_releasing():
    held = HeldChunks()
    held.chunk("mine", ERROR, None)
    assert held.aside("other session") == ("other session",)
    assert held.end(Terminal.END_TURN).withheld == ("mine",)


def test_a_steer_report_passes_when_nothing_is_held():
    assert HeldChunks().steer("steer") == ("steer",)


def test_a_steer_report_behind_held_text_is_withheld_with_it_so_that_the_steer_is_queued_again():
    held = HeldChunks()
    held.chunk("error", ERROR, None)
    held.steer("steer")
    assert held.end(Terminal.END_TURN).withheld == ("error", "steer")


def test_any_other_terminal_releases_what_is_held():
    held = HeldChunks()
    held.chunk("text", ERROR, None)
    ended = held.end(Terminal.OTHER)
    assert (ended.deliver, ended.failure) == (("text",), None)


def test_a_chunk_that_does_not_end_in_a_blank_line_makes_no_failure_of_the_turn():
    held = HeldChunks()
    held.chunk("one", ERROR, None)
    held.chunk("two", "and so on", None)
    ended = held.end(Terminal.END_TURN)
    assert (ended.deliver, ended.failure) == (("one", "two"), None)


def test_blank_chunks_are_no_failure():
    held = HeldChunks()
    held.chunk("blank", "\n\n", None)
    assert held.end(Terminal.END_TURN).deliver == ("blank",)


def test_repeated_messages_collapse_to_one():
    assert told([ERROR, ERROR, ERROR]).message == ERROR.strip()
    assert told([ERROR, "Quota exceeded.\n\n"]).message == f"{ERROR.strip()}\n\nQuota exceeded."


def envelope(status=503, message="Overloaded", kind="error"):
    return json.dumps({"type": kind, "status": status, "error": {"message": message}}) + "\n\n"


def test_the_adapters_envelope_is_unwrapped_and_its_status_kept():
    raw = told([envelope()])
    assert (raw.message, raw.status) == ("Overloaded (HTTP 503)", 503)


@pytest.mark.parametrize(
    "text",
    [
        envelope(status=True),
        envelope(status="503"),
        envelope(status=503.0),
        envelope(message=" "),
        envelope(message=None),
        envelope(kind="oops"),
        '{"type":"error","status":503,"error":"text"}\n\n',
        '{"error": {"message": "Invalid input", "code": "bad"}}\n\n',
        "{not json\n\n",
        "{" * 3000 + "\n\n",
    ],
)
def test_anything_else_is_kept_whole(text):
    raw = told([text])
    assert (raw.message, raw.status) == (text.strip(), None)


def test_a_status_that_is_none_of_http_is_not_kept_as_one():
    raw = told([envelope(status=7)])
    assert (raw.message, raw.status) == ("Overloaded (HTTP 7)", None)


def test_two_statuses_are_no_status():
    raw = told([envelope(503), envelope(400, "Bad")])
    assert raw.message == "Overloaded (HTTP 503)\n\nBad (HTTP 400)"
    assert raw.status is None


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ({"sessionUpdate": "agent_message_chunk", "content": {"text": "x"}}, "chunk"),
        ({"sessionUpdate": "agent_message_chunk", "content": {"type": "image"}}, "content"),
        ({"sessionUpdate": "agent_message_chunk"}, "content"),
        ({"sessionUpdate": "agent_thought_chunk", "content": {"text": "x"}}, "content"),
        ({"sessionUpdate": "tool_call"}, "content"),
        ({"sessionUpdate": "plan"}, "content"),
        ({"sessionUpdate": "something_new"}, "content"),
        ({}, "content"),
        ({"sessionUpdate": "session_info_update", "title": "t"}, "aside"),
        ({"sessionUpdate": "usage_update"}, "aside"),
        ({"sessionUpdate": ["x"]}, "content"),
    ],
)  # fmt: skip
def test_an_update_is_read_by_its_kind(update, expected):
    assert sight(update) == expected


STEPS = st.lists(
    st.sampled_from(["error", "partial", "model", "notice", "steer", "tool", "aside"]), max_size=12
)
TEXTS = {"error": ERROR, "partial": "half", "model": "Hello", "notice": "Warning: x\n\n"}


@settings(max_examples=200)
@given(STEPS, st.sampled_from(Terminal))
def test_every_frame_is_delivered_or_withheld_exactly_once(steps, end):
    held = HeldChunks()
    out = []
    for place, step in enumerate(steps):
        item = (place, step)
        if step in TEXTS:
            out += held.chunk(item, TEXTS[step], "m" if step == "model" else None)
        else:
            out += {"steer": held.steer, "tool": held.content, "aside": held.aside}[step](item)
    ended = held.end(end)
    assert sorted([*out, *ended.deliver, *ended.withheld]) == list(enumerate(steps))
    assert all(step in {"error", "partial", "steer"} for _, step in ended.withheld)
    if end is Terminal.OTHER:
        assert ended.withheld == ()
    if ended.failure is not None:
        assert end is Terminal.END_TURN
        assert "partial" not in [step for _, step in ended.withheld]
        assert ended.deliver == ()
    assert len(held) == 0
