"""Wrappers: JSON in text in JSON, reprs of four languages, bytes, hard-wrapped lines."""

from __future__ import annotations

import json

import pytest

from orchestrator.failure.unwrap import MAX_TEXT, Contents, plain_text

INNER = "prompt is too long: 213462 tokens > 200000 maximum"


def sentences(value):
    contents = Contents()
    contents.add(value)
    return [s.plain.decode() for s in contents.sentences]


def wrapped(times):
    value = {"error": {"message": INNER}}
    for _ in range(times):
        value = {"error": {"message": json.dumps(value)}}
    return value


@pytest.mark.parametrize("times", [0, 1, 2, 3])
def test_json_in_json_is_opened_four_levels_deep(times):
    assert INNER in sentences(wrapped(times))


def test_the_fifth_level_stays_closed():
    assert INNER not in sentences(json.dumps(json.dumps(json.dumps(json.dumps(wrapped(2))))))


@pytest.mark.parametrize(
    "text",
    [
        f"API Error: 400 {json.dumps({'error': {'message': INNER}})}",
        f"Error code: 400 - {{'error': {{'message': '{INNER}', 'code': None}}}}",
        f"***'error': ***'message': '{INNER}'***",
        f"b'{json.dumps({'error': {'message': INNER}})}'",
        f'Some(Object {{"error": Object {{"message": String("{INNER}")}}}})',
        f'Exception(message: Optional("{INNER}"))',
        f"APIError {{ statusCode: 400, message: '{INNER}' }}",
        f'{{"error": {{"message": "{INNER}", "cut off',
        json.dumps(json.dumps({"error": {"message": INNER}})),
        f"event: error\ndata: {json.dumps({'message': INNER})}\n\n",
        f'error = {{\n  message = "{INNER}",\n  type = "x"\n}}',
    ],
)
def test_what_stands_inside_a_repr_is_found(text):
    assert any(INNER in s for s in sentences(text))


def test_a_text_wrapped_in_the_middle_of_a_word_is_joined():
    assert any("try again in 28ms" in s for s in sentences("Please try a\ngain in 28ms"))


def test_fields_that_echo_are_not_searched():
    echo = {"prompt": "HTTP 503", "messages": [{"content": "rate limit"}], "details": "odd"}
    assert sentences(echo) == ["odd"]


def test_field_names_have_one_spelling():
    contents = Contents()
    contents.add({"errorKind": "A", "error_code": "B", "http-status": 503})
    assert {("errorkind", "a"), ("errorcode", "b"), ("httpstatus", "503")} <= set(contents.facts)


def test_booleans_nan_and_infinity_are_no_numbers():
    contents = Contents()
    contents.add({"status": True, "code": float("nan"), "errno": float("inf"), "httpStatus": 1e999})
    assert contents.numbers == {}


def test_a_huge_text_is_read_at_both_ends():
    read = sentences("a" * MAX_TEXT + "b" * MAX_TEXT)
    assert max(map(len, read)) <= MAX_TEXT + 1
    assert any(s.startswith("aaa") and s.endswith("bbb") for s in read)


def test_plain_text_is_lower_case_with_single_spaces_and_straight_quotes():
    assert plain_text("You\u2019ve\n  hit\u00a0it\u200b") == "you've hit it"


def test_quoted_words_at_both_ends_are_no_wrapper():
    contents = Contents()
    contents.add('"claude-9" is not a model, try "claude-4"')
    assert [s.original for s in contents.sentences] == ['"claude-9" is not a model, try "claude-4"']
