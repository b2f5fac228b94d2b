"""Replay of usage limits from a stored conversation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.incident.history import (
    SYNTHETIC,
    USAGE_LIMIT_OPENINGS,
    Author,
    Stored,
    is_usage_limit,
    replay,
)
from orchestrator.incident.record import Category, Record, Severity
from orchestrator.incident.view import Transcript

LIMIT = "You've hit your limit · resets 10:09pm (UTC)"


def user(identity, **fields):
    return Stored(Author.USER, identity, f"item {identity}", "hello", **fields)


def assistant(identity, text="Hello", model="claude-sonnet", **fields):
    return Stored(Author.ASSISTANT, identity, f"item {identity}", text, model, **fields)


def synthetic(identity, text=LIMIT, **fields):
    return assistant(identity, text, SYNTHETIC, **fields)


def limit(identity, title=LIMIT, revision=1):
    return Record(identity, revision, Category.LIMIT, Severity.ERROR, title)


def test_a_stored_usage_limit_comes_back_as_a_record_at_its_place_with_the_exact_text():
    told = replay("S", [user("u1"), synthetic("a1"), user("u2")], capable=True)
    assert told.shown == ("item u1", limit("u1:error"), "item u2")
    assert told.active == limit("u1:error")


def test_the_prose_is_not_shown_beside_its_record():
    told = replay("S", [user("u1"), synthetic("a1")], capable=True)
    assert "item a1" not in told.shown


def test_a_legacy_client_gets_the_original_transcript_and_no_record():
    told = replay("S", [user("u1"), synthetic("a1"), assistant("a2")], capable=False)
    assert told.shown == ("item u1", "item a1", "item a2")
    assert (told.records, told.active) == ((), None)


@pytest.mark.parametrize("capable", [True, False])
def test_the_sign_in_message_of_the_harness_is_skipped_for_everybody(capable):
    login = synthetic("a1", "Invalid API key · Please run /login")
    told = replay("S", [user("u1"), login, assistant("a2")], capable=capable)
    assert told.shown == ("item u1", "item a2")


def test_a_later_synthetic_line_does_not_prove_recovery():
    quiet = synthetic("a2", "No response requested.")
    told = replay("S", [user("u1"), synthetic("a1"), quiet], capable=True)
    assert told.active == limit("u1:error")
    assert told.shown == ("item u1", limit("u1:error"), "item a2")


def test_a_later_real_answer_proves_recovery_and_the_record_stays():
    told = replay("S", [synthetic("a1"), assistant("a2")], capable=True)
    assert told.active is None
    assert told.shown == (limit("S:history-error:a1"), "item a2")


def test_without_a_user_message_before_it_the_id_names_the_message_itself():
    told = replay("S", [synthetic("a1"), user("u1"), synthetic("a2")], capable=True)
    assert [record.id for record in told.records] == ["S:history-error:a1", "u1:error"]


def test_every_limit_is_replayed_under_its_own_turn_and_only_the_latest_is_active():
    messages = [user("turn-one"), synthetic("a1"), user("turn-two"), synthetic("a2")]
    told = replay("S", messages, capable=True)
    assert told.records == (limit("turn-one:error"), limit("turn-two:error"))
    assert told.active == limit("turn-two:error")


def test_two_limits_of_one_turn_are_two_revisions_of_one_incident():
    told = replay("S", [user("u1"), synthetic("a1"), synthetic("a2")], capable=True)
    assert told.records == (limit("u1:error"), limit("u1:error", revision=2))


def test_a_second_load_goes_on_from_the_revision_already_told():
    messages = [user("u1"), synthetic("a1")]
    told = replay("S", messages, capable=True, delivered={"u1:error": 4})
    assert told.active.revision == 5


def test_a_usage_limit_seen_live_and_reloaded_twice_is_one_entry():
    transcript = Transcript()
    transcript.apply(limit("u1:error"))
    for _ in range(2):
        for record in replay("S", [user("u1"), synthetic("a1")], capable=True).records:
            transcript.apply(record)
    assert transcript.records == (limit("u1:error"),)


def test_a_tool_result_is_no_turn_of_its_own():
    messages = [user("u1"), assistant("a1"), user("tool-result", prompt=False), synthetic("a2")]
    assert replay("S", messages, capable=True).records == (limit("u1:error"),)


def test_a_sub_agent_neither_tells_a_limit_nor_proves_recovery():
    messages = [
        user("u1"),
        synthetic("a1"),
        user("inner", top_level=False),
        assistant("a2", top_level=False),
        synthetic("a3", top_level=False),
    ]
    told = replay("S", messages, capable=True)
    assert told.records == (limit("u1:error"),)
    assert told.active == limit("u1:error")
    assert told.shown[-1] == "item a3"


def test_a_message_of_unknown_author_model_proves_nothing():
    told = replay("S", [user("u1"), synthetic("a1"), assistant("a2", model=None)], capable=True)
    assert told.active == limit("u1:error")


@pytest.mark.parametrize("opening", USAGE_LIMIT_OPENINGS)
def test_each_opening_of_the_harness_is_recognised(opening):
    told = replay("S", [user("u1"), synthetic("a1", f"{opening} and more")], capable=True)
    assert told.records == (limit("u1:error", f"{opening} and more"),)


def test_there_are_twelve_openings():
    assert len(set(USAGE_LIMIT_OPENINGS)) == 12


@pytest.mark.parametrize(
    "text",
    [
        "you've hit your limit",
        " You've hit your limit",
        "Sadly, You've hit your limit",
        "API Error: 429 rate limited",
        "You've hit",
        "",
    ],
)
def test_anything_else_of_the_harness_stays_prose(text):
    assert not is_usage_limit(text)
    told = replay("S", [user("u1"), synthetic("a1", text)], capable=True)
    assert told.shown == ("item u1", "item a1")


@pytest.mark.parametrize("model", ["claude-sonnet", None, "synthetic", ""])
def test_a_model_that_writes_about_its_limit_is_never_taken_for_one(model):
    told = replay("S", [user("u1"), assistant("a1", LIMIT, model)], capable=True)
    assert told.shown == ("item u1", "item a1")


def test_a_user_who_quotes_the_sentence_is_shown_as_a_user():
    quote = Stored(Author.USER, "u1", "item u1", LIMIT, SYNTHETIC)
    assert replay("S", [quote], capable=True).shown == ("item u1",)


MESSAGES = st.lists(
    st.builds(
        Stored,
        author=st.sampled_from(Author),
        id=st.sampled_from(["m1", "m2", "m3"]),
        item=st.integers(),
        text=st.sampled_from([LIMIT, "Hello", "Please run /login", ""]),
        model=st.sampled_from([SYNTHETIC, "claude", None]),
        top_level=st.booleans(),
        prompt=st.booleans(),
    ),
    max_size=12,
)


@settings(max_examples=150)
@given(MESSAGES)
def test_capable_and_legacy_clients_see_the_same_places(messages):
    capable = replay("S", messages, capable=True)
    legacy = replay("S", messages, capable=False)
    assert len(capable.shown) == len(legacy.shown)
    for new, old in zip(capable.shown, legacy.shown, strict=True):
        assert isinstance(new, Record) or new == old
    assert capable.active is None or capable.active in capable.records
    revisions = {}
    for record in capable.records:
        assert record.revision == revisions.get(record.id, 0) + 1
        revisions[record.id] = record.revision
    assert all(record.title == LIMIT for record in capable.records)
