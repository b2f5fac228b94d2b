"""One id is replaced and no other byte; where that is not certain the frame is written anew."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.acp.framing import Frame, encode
from orchestrator.acp.proxy.frames import line_of, moved, readdressed, renumbered, session_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "sessionId", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
IDS = (
    st.integers()
    | st.text(max_size=8)
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False, allow_infinity=False)
)


def frame(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return Frame(raw, json.loads(raw))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"jsonrpc":"2.0","id":1,"method":"x"}\n', '{"jsonrpc":"2.0","id":"n","method":"x"}\n'),
        ('{ "id" : 1 , "x": 1.50 }\n', '{ "id" : "n" , "x": 1.50 }\n'),
        ('{"x":"\\"id\\":1","id":1}\n', '{"x":"\\"id\\":1","id":"n"}\n'),
        ('{"id":1,"x":{"id":2}}\n', '{"id":"n","x":{"id":2}}\n'),
        ('{"id":"a","x":{"id":"ab"}}\n', '{"id":"n","x":{"id":"ab"}}\n'),
        ('{"id":1,"x":[{"id":10}]}', '{"id":"n","x":[{"id":10}]}\n'),
        ('{"x":true,"id":true}\n', '{"x":true,"id":"n"}\n'),
    ],
)
def test_only_the_id_changes(before, after):
    assert renumbered(frame(before), "n") == after.encode()


@pytest.mark.parametrize(
    "text",
    [
        '{"id":1,"x":{"id":1}}\n',
        '{"id":1.0,"x":2}\n',
        '{"id":1e2}\n',
        '{"id":null,"x":{}}\n',
        '{"\\u0069d":1}\n',
    ],
)
def test_what_is_not_certain_is_written_anew(text):
    asked = frame(text)
    assert renumbered(asked, 7) == encode({**asked.value, "id": 7})


@given(st.dictionaries(st.sampled_from(["a", "params", "result"]), JSON, max_size=3), IDS, IDS)
def test_the_meaning_is_the_frames_own_but_for_its_id(members, old, new):
    message = {**members, "id": old}
    asked = Frame(json.dumps(message).encode() + b"\n", message)
    assert json.loads(renumbered(asked, new)) == {**message, "id": new}


@given(st.sampled_from(["params", "result"]), JSON, st.text(min_size=1), st.text(min_size=1))
def test_the_meaning_is_the_frames_own_but_for_its_session(part, more, old, new):
    message = {"x": more, part: {"sessionId": old, "more": more}}
    asked = Frame(json.dumps(message).encode() + b"\n", message)
    changed = json.loads(readdressed(asked, new))
    assert changed == moved(message, new)
    assert session_of(changed) == new


def test_a_frame_that_names_no_session_names_none():
    for message in ({}, {"params": []}, {"params": {"sessionId": 7}}, {"result": None}):
        assert session_of(message) == ""
        assert moved(message, "n") == message


def test_the_last_line_of_a_stream_gets_its_newline():
    assert line_of(frame("{}")) == b"{}\n"
    assert line_of(frame("{}\n")) == b"{}\n"
