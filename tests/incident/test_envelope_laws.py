"""Laws of the open error, for any value; above all that its message decides nothing."""

import ast
import json
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orchestrator
from orchestrator.incident import envelope
from orchestrator.incident.envelope import TYPES, Envelope

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "message", "providerID", "status", "other"]), inner, max_size=5
        )
    ),
    max_leaves=10,
)
NAMES = st.sampled_from([*TYPES, "provider.solar-flare", "Aborted"])
ENVELOPES = st.builds(
    Envelope,
    type=NAMES | st.text(min_size=1, max_size=20),
    message=st.text(max_size=50),
    provider_id=st.sampled_from(["", "anthropic"]),
    status=st.none() | st.integers(100, 599),
    extra=st.dictionaries(
        st.sampled_from(["future", "trace"]),
        st.none() | st.booleans() | st.text(max_size=5) | st.lists(st.integers(), max_size=2),
        max_size=2,
    ),
)


@settings(max_examples=200)
@given(JSON)
def test_reading_never_raises_and_something_is_always_shown(value):
    error = envelope.read(value)
    shown = envelope.display(error)
    assert shown.strip()
    assert len(shown) <= envelope.DISPLAY_LIMIT
    assert "\n" not in shown
    assert envelope.label(error) in {*TYPES, "other"}
    envelope.verdict(error)
    envelope.encode(envelope.project(error))


@settings(max_examples=150)
@given(ENVELOPES)
def test_what_is_written_openly_reads_back_equal(error):
    assert envelope.read(json.loads(json.dumps(envelope.encode(error, open_types=True)))) == error


@settings(max_examples=150)
@given(ENVELOPES)
def test_projection_is_idempotent(error):
    once = envelope.project(error)
    assert envelope.project(once) == once
    assert envelope.encode(once, open_types=True) == envelope.encode(error)


TRAPS = st.sampled_from(
    ["401 Unauthorized", "aborted", "rate limit, retry in 5s", "sign in", "Overloaded", ""]
)


@settings(max_examples=150)
@given(ENVELOPES, st.text(max_size=30) | TRAPS, st.booleans())
def test_the_message_decides_nothing(error, message, provider_said):  # R7
    other = attrs.evolve(error, message=message)
    assert envelope.reaction(error) == envelope.reaction(other)
    assert envelope.label(error) == envelope.label(other)
    one, two = (envelope.verdict(e, provider_said=provider_said) for e in (error, other))
    if one is None or two is None:
        assert one is two is None
    else:
        assert attrs.evolve(one, title="") == attrs.evolve(two, title="")


PACKAGE = Path(orchestrator.__file__).parent
DECIDING = ("errors.py", "incident", "turn", "runner.py", "metrics.py", "simulate", "sinks")
"""Rooms that hold verdicts, records and envelopes and act on them."""
READING = {"lower", "upper", "casefold", "startswith", "endswith", "find", "index", "count"}


def texts_read(tree):
    """Expressions that look into a `.message` or a `.title` to decide something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            looked_into = any(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
            if looked_into and any(is_text(side) for side in sides[1:]):
                yield node
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            on_text = node.func.attr in READING and is_text(node.func.value)
            matches = node.func.attr in {"search", "match", "fullmatch", "findall"}
            if on_text or (matches and any(is_text(argument) for argument in node.args)):
                yield node


def is_text(node):
    return isinstance(node, ast.Attribute) and node.attr in {"message", "title", "salvaged"}


def test_no_room_that_decides_looks_into_a_message_or_title():  # R7
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] in DECIDING
        for node in texts_read(ast.parse(path.read_text()))
    ]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "'abort' in error.message",
        "error.message.lower()",
        "re.search('401', verdict.title)",
        "record.title.startswith('x')",
    ],
)
def test_that_check_can_fail(code):
    assert list(texts_read(ast.parse(code)))
