"""Lines of `classify`'s input."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.cli.rows import BadRow, read_row
from orchestrator.failure.raw import RawFailure, Surface
from orchestrator.failure.verdict import Delivery, Phase


def row(value, **options):
    line = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read_row(line, **({"speaker": None, "now": None} | options))


def test_each_surface_becomes_its_raw_failure():
    record = {"id": "x", "title": "t"}
    for surface, given_, raw in (
        (
            "acp_error",
            {"code": -32603, "message": "m", "data": {"a": 1}},
            RawFailure.acp_error(-32603, "m", {"a": 1}),
        ),
        (
            "http",
            {"status": 429, "headers": {"Retry-After": 12}, "body": "b"},
            RawFailure.http(429, {"retry-after": "12"}, "b"),
        ),
        (
            "exception",
            {"text": "t", "type": "httpx.E"},
            RawFailure.exception_text("t", type_name="httpx.E"),
        ),
        (
            "exit",
            {"exit_code": None, "signal": 9, "stderr": "s", "delivery": "sent"},
            RawFailure.exit(None, signal=9, stderr="s", delivery=Delivery.SENT),
        ),
        ("stderr", {"stderr": "s"}, RawFailure.from_stderr("s")),
        ("text_chunk", {"text": "t", "messageId": "m"}, RawFailure.text_chunk("t", message_id="m")),
        ("record", record, RawFailure.from_record(record)),
        ("envelope", {"type": "x"}, RawFailure.from_envelope({"type": "x"})),
        *((s.value, {}, None) for s in Surface),
    ):
        read = row({"surface": surface, "input": given_})
        assert raw is None or read.raw == raw
        assert read.raw.surface == surface


def test_a_signal_may_be_named():
    read = row({"surface": "exit", "input": {"signal": "SIGKILL"}})
    assert read.raw == RawFailure.exit(None, signal=9)
    with pytest.raises(BadRow, match='"SIGWHAT" is not allowed; a number or a name such as'):
        row({"surface": "exit", "input": {"signal": "SIGWHAT"}})


def test_headers_reach_the_raw_failure_in_lower_case():
    read = row({"surface": "http", "input": {"headers": {"Retry-After": 12}}})
    assert dict(read.raw.headers) == {"retry-after": "12"}


def test_a_json_rpc_answer_is_a_failure_as_it_stands():
    frame = {"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "m"}}
    read = row(frame)
    assert read.raw == RawFailure.acp_error(1, "m")
    assert read.id == 7


def test_what_the_line_says_wins_over_the_options():
    line = {
        "surface": "acp_error",
        "input": {"advertised_models": ["a"]},
        "speaker": "kiro",
        "id": "K1",
        "context": {"attachments": True, "phase": "start", "text_shown": True, "wall_now": 5},
    }
    read = row(line, speaker="codex", now=9.0)
    assert (read.speaker, read.id) == ("kiro", "K1")
    assert read.context.advertised_models == ("a",)
    assert read.context.attachments
    assert read.context.text_shown
    assert not read.context.tool_run
    assert (read.context.phase, read.context.wall_now) == (Phase.START, 5)
    bare = row({"surface": "http", "input": {}}, speaker="codex", now=9.0)
    assert (bare.speaker, bare.context.wall_now, bare.id) == ("codex", 9.0, None)
    assert bare.context.advertised_models is None


@pytest.mark.parametrize(
    ("line", "field", "message"),
    [
        (b"{", "", "not JSON: Expecting property name enclosed in double quotes at column 2"),
        (b'{"a": "\xff"}', "", "not UTF-8 at byte 7"),
        (b"[" * 100_000, "", "nested too deeply"),
        (b"1" * 5000, "", "not JSON: Exceeds the limit"),
        (b'{"surface": NaN}', "", "NaN is not JSON"),
        (b"[1]", "", "[1] is not allowed; a JSON object is"),
        (b"{}", "surface", "null is not allowed; one of acp_error, http,"),
        (b'{"surface": ["http"]}', "surface", '["http"] is not allowed'),
        (b'{"surface": "http"}', "input", "null is not allowed; an object is"),
        (b'{"surface": "http", "input": 5}', "input", "5 is not allowed; an object is"),
        (
            b'{"surface": "http", "input": {"status": "x"}}',
            "input.status",
            '"x" is not allowed; a whole number is',
        ),
        (b'{"surface": "http", "input": {"status": true}}', "input.status", "true is not allowed"),
        (b'{"surface": "http", "input": {"status": 1e999}}', "input.status", "Infinity is not"),
        (b'{"surface": "http", "input": {"status": 4.5}}', "input.status", "4.5 is not allowed"),
        (b'{"surface": "http", "input": {"headers": {"a": []}}}', "input.headers", "an object of"),
        (b'{"surface": "http", "input": {"stauts": 1}}', "input.stauts", "no such field"),
        (b'{"surface": "http", "input": {"a\\n": 1}}', "input.a\\n", "no such field"),
        (b'{"surface": "exit", "input": {"delivery": "x"}}', "input.delivery", "one of not_sent,"),
        (b'{"surface": "http", "input": {}, "speaker": 1}', "speaker", "1 is not allowed; text is"),
        (b'{"surface": "http", "input": {}, "context": 1}', "context", "an object is"),
        (
            b'{"surface": "http", "input": {}, "context": {"phase": "x"}}',
            "context.phase",
            "one of start, handshake,",
        ),
        (
            b'{"surface": "http", "input": {}, "context": {"wall_now": true}}',
            "context.wall_now",
            "true is not allowed; a number is",
        ),
    ],
)
def test_a_line_that_is_no_failure_names_the_field_and_what_is_allowed(line, field, message):
    with pytest.raises(BadRow) as caught:
        row(line)
    assert caught.value.field == field
    assert message in caught.value.message
    assert str(caught.value).isascii()
    assert str(caught.value).isprintable()


def test_a_misspelt_name_is_answered_with_the_right_one():
    for line, hint in (
        (b'{"surface": "htpp", "input": {}}', "did you mean http?"),
        (b'{"surface": "http", "input": {"stauts": 1}}', "did you mean status?"),
        (b'{"surface": "http", "input": {"zz": 1}}', "known in input: status, headers, body"),
    ):
        with pytest.raises(BadRow) as caught:
            row(line)
        assert caught.value.hint == hint


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = ["code", "message", "data", "status", "headers", "text", "type", "stderr", "exit_code"]


@given(
    st.binary(max_size=40)
    | st.fixed_dictionaries(
        {
            "surface": st.sampled_from([*Surface, "x"]) | _JSON,
            "input": st.dictionaries(st.sampled_from(_FIELDS), _JSON, max_size=3) | _JSON,
        },
        optional={"speaker": _JSON, "context": _JSON, "error": _JSON, "id": _JSON},
    ).map(lambda value: json.dumps(value).encode())
)
def test_no_line_can_break_the_reading(line):
    assert _complaint(line).isprintable()


def _complaint(line):
    try:
        row(line)
    except BadRow as error:
        return str(error)
    return ""
