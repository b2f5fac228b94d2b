"""Refusals from each side, folded onto one shape."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.failure import refusal
from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Refusal, Verdict

SAID = {
    "category": "cyber",
    "explanation": "The selected model cannot continue this conversation.",
    "recommendedModel": "claude-haiku",
}
FULL = Refusal("cyber", "The selected model cannot continue this conversation.", "claude-haiku")


def metadata(**params):
    params = {"sessionId": "S", "stopReason": "CONTENT_FILTERED", **params}
    return {"jsonrpc": "2.0", "method": "_kiro.dev/metadata", "params": params}


def test_a_filtered_turn_says_why_in_its_metadata():
    assert refusal.from_metadata(metadata(refusal=SAID)) == FULL


def test_the_reason_is_also_read_from_the_stop_details():
    assert refusal.from_metadata(metadata(stopDetails={"refusal": SAID})) == FULL


def test_a_filtered_turn_without_a_reason_is_a_refusal_that_guesses_nothing():
    for silent in (metadata(), metadata(refusal=None), metadata(stopDetails=[1])):
        assert refusal.from_metadata(silent) == Refusal()


@pytest.mark.parametrize(
    "frame",
    [
        None,
        [],
        "CONTENT_FILTERED",
        metadata(stopReason="END_TURN", refusal=SAID),
        metadata(stopReason="content_filtered"),
        metadata(stopReason=["CONTENT_FILTERED"]),
        {**metadata(refusal=SAID), "method": "session/update"},
        {"method": "_kiro.dev/metadata", "params": None},
        {"method": "_kiro.dev/metadata", "params": {"contextUsagePercentage": 3.5}},
    ],
)
def test_any_other_frame_is_no_refusal(frame):
    assert refusal.from_metadata(frame) is None


def test_a_field_that_is_not_text_was_not_said():
    odd = {"category": 7, "explanation": {"a": 1}, "recommendedModel": None}
    assert refusal.read(odd) == Refusal()
    assert refusal.read("no") == Refusal()


def test_both_spellings_of_the_recommended_model_are_read():
    assert refusal.read({"recommended_model": "m"}).recommended_model == "m"


def test_a_secret_in_the_explanation_is_redacted_where_it_is_read():
    secret = "sk-ant-api03-" + "A1b2C3d4E5f6G7h8" * 5
    read = refusal.read({"explanation": f"Refused for key {secret} today"})
    assert secret not in read.explanation
    assert read.explanation.startswith("Refused for key")


def test_an_endless_explanation_is_cut():
    assert len(refusal.read({"explanation": "no " * 5000}).explanation) <= 2000


def test_the_stop_reason_alone_is_a_refusal_without_a_reason():
    assert refusal.ended("refusal") == Refusal()


@pytest.mark.parametrize("stop_reason", ["end_turn", "max_tokens", "Refusal", "", None, 3])
def test_any_other_stop_reason_is_none(stop_reason):
    assert refusal.ended(stop_reason) is None


@pytest.mark.parametrize("stop_reason", ["end_turn", "refusal"])
def test_what_the_metadata_noted_turns_even_an_end_turn_into_a_refusal(stop_reason):
    assert refusal.ended(stop_reason, FULL) == FULL


def test_a_content_refused_verdict_is_a_refusal():
    assert refusal.from_verdict(Verdict.of(Kind.CONTENT_REFUSED, "No.", refusal=FULL)) == FULL


def test_the_title_of_a_verdict_is_not_taken_for_an_explanation():
    assert refusal.from_verdict(Verdict.of(Kind.CONTENT_REFUSED, "Declined.")) == Refusal()


def test_an_error_behind_a_noted_refusal_is_that_refusal():
    bare = Verdict.of(Kind.INTERNAL_ERROR, "Internal error")
    assert refusal.from_verdict(bare, FULL) == FULL
    assert refusal.from_verdict(bare) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["refusal", "stopReason", *SAID]), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(max_examples=60)
@given(JSON)
def test_no_value_makes_reading_raise(value):
    refusal.from_metadata(value)
    refusal.from_metadata(metadata(refusal=value, stopDetails=value))
    refusal.ended(value)
