"""Classifying never raises, always gives finished text, and costs work linear in the input."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.failure.classify import classify
from orchestrator.failure.decide import built_in
from orchestrator.failure.explain import explain
from orchestrator.failure.kinds import KINDS, Kind
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.rule import Step
from orchestrator.failure.rules.catalogue import ALL_RULES
from orchestrator.failure.speakers import speaker_named
from orchestrator.failure.unwrap import MAX_TEXT
from orchestrator.failure.verdict import Context, Verdict
from orchestrator.failure.view import HINT_RULE, STATUS_RULE, open_failure
from orchestrator.failure.wording import MAX_TITLE, TITLES

MODERATE = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])

any_text = st.text(alphabet=st.characters(exclude_categories=()), max_size=200)
words = st.lists(
    st.sampled_from(
        [
            "HTTP 429",
            "rate limit",
            "{",
            "}",
            '"',
            "'",
            '{"error": {"message": "',
            "\\",
            "\n",
            "b'",
            "529",
            "stream disconnected before completion: ",
            "Internal error: ",
            "try again in ",
            "1e999",
            "resets ",
            "at ",
            "prompt is too long",
            "security token",
            "is invalid",
            "\ud800",
            "\u2028",
            "[",
            "]" * 50,
            "String(",
        ]
    ),
    max_size=20,
).map("".join)
texts = any_text | words
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
raw_failures = st.one_of(
    st.builds(RawFailure.acp_error, json_values, json_values, json_values),
    st.builds(
        RawFailure.http,
        json_values,
        st.none() | st.dictionaries(texts, texts, max_size=3),
        json_values | st.binary(max_size=80),
    ),
    st.builds(RawFailure.exception_text, texts),
    st.builds(RawFailure.exit, json_values, stderr=texts),
    st.builds(RawFailure.from_stderr, texts),
    st.builds(RawFailure.text_chunk, texts),
    st.builds(RawFailure.from_record, json_values),
    st.builds(RawFailure.from_envelope, json_values),
)
contexts = st.builds(
    Context,
    advertised_models=st.none() | st.lists(texts, max_size=3).map(tuple),
    wall_now=st.none() | st.floats(0, 4e9),
)
speakers = (
    st.sampled_from([None, "", "kiro", "kas", "claude", "codex", "gemini-cli", "nobody"]) | texts
)


def is_finished(verdict):
    assert isinstance(verdict, Verdict)
    row = KINDS[verdict.kind]
    assert verdict.title.strip()
    assert len(verdict.title) <= MAX_TITLE + 120
    assert "\n" not in verdict.title
    assert verdict.recovery is row.recovery
    assert verdict.actions == row.actions
    assert verdict.retry_after_s is None or verdict.retry_after_s >= 0
    json.dumps(verdict.raw_detail)
    assert verdict.raw_detail.isascii()


@MODERATE
@given(raw_failures, speakers, contexts)
def test_any_failure_of_any_surface_gives_a_finished_verdict(raw, speaker, context):
    is_finished(classify(raw, speaker=speaker, context=context))


@settings(parent=MODERATE, max_examples=40)
@given(raw_failures, speakers, contexts)
def test_an_explanation_ends_in_the_same_verdict(raw, speaker, context):
    explanation = explain(raw, speaker=speaker, context=context)
    assert explanation.verdict == classify(raw, speaker=speaker, context=context)
    assert [trace.step for trace in explanation.steps] == list(Step)


class HostileError(Exception):
    def __str__(self):
        raise RuntimeError("no")

    def __repr__(self):
        raise RuntimeError("no")


def nested(depth, make):
    value = "rate limit exceeded"
    for _ in range(depth):
        value = make(value)
    return value


@pytest.mark.parametrize(
    "raw",
    [
        RawFailure.exception(HostileError()),
        RawFailure.acp_error(None, None, nested(5000, lambda v: [v])),
        RawFailure.acp_error(None, None, nested(5000, lambda v: {"error": v})),
        RawFailure.acp_error(-32603, "{" * 100_000, "[" * 100_000),
        RawFailure.acp_error(-32603, '{"a":' * 100_000, '"' * 100_001),
        RawFailure.http(429, {"retry-after": "9" * 5000}, b"\xff\xfe\x00" * 1000),
        RawFailure.http(float("nan"), None, {"status": float("inf"), "code": True}),
        RawFailure.exit(10**30, stderr="\x00" * 1000),
        RawFailure.exception_text("\ud800\udfff" * 1000),
        RawFailure.text_chunk("\u202e" * 100),
        RawFailure.from_record({"category": [], "actions": {}, "title": 5, "severity": None}),
        RawFailure.from_envelope({"type": {}, "message": []}),
    ],
)
def test_hostile_input_gives_a_finished_verdict(raw):
    is_finished(classify(raw))


def test_ten_megabytes_are_read_at_both_ends():
    filler = "lorem ipsum dolor " * 600_000
    assert (
        classify(RawFailure.exception_text(filler + " rate limit exceeded")).kind
        is Kind.RATE_LIMITED
    )
    assert (
        classify(RawFailure.exception_text("HTTP 529 Overloaded " + filler)).kind is Kind.OVERLOADED
    )


def read_by_rules(text):
    """Bytes that the engine, whose work is linear in them, has to read for one text."""
    view = open_failure(RawFailure.exception_text(text), speaker_named(None), Context())
    return sum(len(sentence.plain) for sentence in view.sentences)


@pytest.mark.parametrize(
    "unit",
    [
        "word ",
        '{"message": "',
        "error: 'x' ",
        "[[[[",
        '\\"',
        'message: "a\nb" ',
        "stream disconnected before completion: ",
    ],
)
def test_twenty_times_the_text_is_at_most_twenty_times_the_work(unit):
    small = read_by_rules(unit * (50_000 // len(unit)))
    large = read_by_rules(unit * (1_000_000 // len(unit)))
    assert large <= 25 * small
    assert large <= 8 * MAX_TEXT


def test_the_rules_are_unique_and_complete():
    names = [rule.name for rule in ALL_RULES]
    assert len(names) == len(set(names))
    for rule in ALL_RULES:
        triggers = (rule.pattern, rule.facts, rule.statuses, rule.errors, rule.errnos)
        assert any(triggers), rule.name
        assert rule.kind is not None or rule.forbids or rule.name in {STATUS_RULE, HINT_RULE}, (
            rule.name
        )


def test_every_pattern_is_written_for_lower_case_text():
    import re

    for rule in ALL_RULES:
        for pattern in (rule.pattern, rule.unless):
            bare = re.sub(r"\\.", "", pattern)
            assert bare == bare.lower(), rule.name


def test_every_pattern_runs_on_an_engine_that_cannot_backtrack():
    import re2

    for rule in ALL_RULES:
        for pattern in (rule.pattern, rule.unless):
            if pattern:
                assert re2.compile(f"(?m){pattern}").search("") is None, rule.name
    assert type(built_in().matches.__self__).__module__.startswith("re2")


def test_every_kind_has_a_title():
    assert set(TITLES) == set(Kind)


def test_a_title_of_ours_names_no_command_and_no_place():
    for row in TITLES.values():
        assert "/" not in row.ours
        assert "`" not in row.ours
        assert row.ours[0] == "{" or row.ours[0].isupper()
        assert row.ours.endswith(".")
        assert len(row.ours) <= MAX_TITLE
