import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.acp.framing import Frame, FrameReader, decode, encode


def values(frames):
    return [f.value for f in frames]


def test_a_line_becomes_a_frame_beside_its_own_bytes():
    reader = FrameReader()
    line = b'{"jsonrpc" : "2.0",  "id":1e0, "x":"\\u00e9"}\r\n'
    (frame,) = reader.feed(line)
    assert frame == Frame(line, {"jsonrpc": "2.0", "id": 1.0, "x": "é"})


def test_lines_that_are_not_json_are_skipped_and_counted():
    reader = FrameReader()
    frames = reader.feed(b'npm warn old\n{"id":1}\n{broken\n\n  \n\xff\xfe{}\n[1]\n')
    assert values(frames) == [{"id": 1}, [1]]
    assert reader.skipped == 3


def test_json_that_is_no_object_is_no_message():
    (frame,) = FrameReader().feed(b"[1]\n")
    assert frame.message == {}


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_what_only_python_calls_json_is_refused_both_ways(constant):
    reader = FrameReader()
    assert reader.feed(b'{"version":%s}\n' % constant.encode()) == []
    assert reader.skipped == 1
    with pytest.raises(ValueError, match="JSON"):
        encode({"version": float(constant)})


def test_a_number_that_no_double_holds_is_refused_since_it_could_not_be_written_again():
    reader = FrameReader()
    assert reader.feed(b'{"id":1e999}\n{"id":-1e999}\n{"id":1e308}\n')[0].message == {"id": 1e308}
    assert reader.skipped == 2


def test_nesting_that_would_overflow_the_stack_is_a_bad_line_and_not_an_error():
    reader = FrameReader()
    assert reader.feed(b"[" * 200_000 + b"\n") == []
    assert reader.skipped == 1


def test_a_frame_of_ten_megabytes_passes_in_pieces():
    line = encode({"data": "x" * 10_000_000})
    reader = FrameReader()
    frames = []
    for start in range(0, len(line), 65_536):
        frames += reader.feed(line[start : start + 65_536])
    assert [f.raw for f in frames] == [line]


def test_a_line_beyond_the_limit_is_dropped_and_the_next_one_is_read():
    reader = FrameReader(max_line_bytes=10)
    assert reader.feed(b'"0123456789') == []
    assert values(reader.feed(b'012345"\n{"a":1}\n')) == [{"a": 1}]
    assert reader.skipped == 1


def test_a_last_line_without_newline_counts_at_the_end():
    reader = FrameReader()
    assert reader.feed(b'{"id":1}') == []
    assert [f.raw for f in reader.end()] == [b'{"id":1}']
    assert reader.end() == []


def test_what_is_encoded_is_one_ascii_line():
    line = encode({"text": "a\nb\u2028c\ud800"})
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert decode(line) == {"text": "a\nb\u2028c\ud800"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, width=32),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60)
@given(st.lists(json_values, max_size=6), st.integers(1, 40))
def test_any_cut_of_the_stream_gives_the_same_frames(messages, step):
    lines = [
        json.dumps(m, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        for m in messages
        if m != float("inf") and m != -float("inf")
    ]
    stream = b"".join(lines)
    whole = FrameReader()
    cut = FrameReader()
    at_once = whole.feed(stream)
    in_pieces = [f for at in range(0, len(stream), step) for f in cut.feed(stream[at : at + step])]
    assert in_pieces == at_once
    assert cut.skipped == whole.skipped
