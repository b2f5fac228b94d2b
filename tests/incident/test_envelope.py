"""The open `{type, message}` error: its vectors, its registry, its writer, its schema.

R1 to R22 in the names and comments are the requirements of the envelope.
"""

import json
import math
from pathlib import Path

import attrs
import jsonschema
import pytest

from orchestrator.failure.kinds import KINDS, Action, Category, Kind
from orchestrator.failure.verdict import Verdict
from orchestrator.incident import envelope
from orchestrator.incident.envelope import FALLBACK, TYPES, Act, Envelope, Reaction, Unreadable

# --- reading: the vectors ----------------------------------------------------------------------


def auth(**fields):
    return {"type": "provider.auth", "message": "m", **fields}


# id: (input as JSON text, ok, display, act, provider, ignored)
VECTORS = {
    "H1": ('{"type":"unknown","message":"boom"}', True, "boom", "show", "", ()),
    "H2": (
        '{"type":"unknown","message":"ProviderAuthError: 401 aborted, retry in 5s"}',
        True,
        "ProviderAuthError: 401 aborted, retry in 5s",
        "show",
        "",
        (),
    ),
    "F1": ('{"type":"provider.auth","message":"Sign in"}', True, "Sign in", "login", "", ()),
    "F2": (
        '{"type":"provider.solar-flare","message":"Try Tuesday"}',
        True,
        "Try Tuesday",
        "show",
        "",
        (),
    ),
    "F3": ('{"type":"user.abort-policy","message":"Blocked"}', True, "Blocked", "show", "", ()),
    "F4": ('{"type":"aborted","message":"Stopped"}', True, "Stopped", "cancelled", "", ()),
    "F5": ('{"type":"Aborted","message":"Stopped"}', True, "Stopped", "show", "", ()),
    "X1": (json.dumps(auth(providerID="anthropic")), True, "m", "login", "anthropic", ()),
    "X2": (json.dumps(auth(future={"a": [1]})), True, "m", "login", "", ()),
    "C1": (json.dumps(auth(providerID=7)), True, "m", "login", "", ("providerID",)),
    "C2": (json.dumps(auth(providerID="")), True, "m", "login", "", ("providerID",)),
    "C3": (json.dumps(auth(providerID=None)), True, "m", "login", "", ()),
    "C4": ('{"type":"x","message":"m","status":"503"}', True, "m", "show", "", ("status",)),
    "C5": ('{"type":"x","message":"m","status":true}', True, "m", "show", "", ("status",)),
    "C6": ('{"type":"x","message":"m","status":99}', True, "m", "show", "", ("status",)),
    "C7": ('{"type":"x","message":"m","status":503.0}', True, "m", "show", "", ()),
    "C8": ('{"type":"x","message":"m","status":1e999}', True, "m", "show", "", ("status",)),
    "M1": ('{"type":"provider.auth"}', False, FALLBACK, "show", "", None),
    "M2": ('{"type":"provider.auth","message":5}', False, FALLBACK, "show", "", None),
    "M3": ('{"type":"provider.auth","message":null}', False, FALLBACK, "show", "", None),
    "M4": ('{"message":"still readable"}', False, "still readable", "show", "", None),
    "M5": ('{"type":3,"message":"still readable"}', False, "still readable", "show", "", None),
    "M6": ('{"type":"","message":"still readable"}', False, "still readable", "show", "", None),
    "M7": ('"boom"', False, FALLBACK, "show", "", None),
    "M8": ("null", False, FALLBACK, "show", "", None),
    "M9": ("[]", False, FALLBACK, "show", "", None),
    "M10": ('{"type":"x","message":""}', True, FALLBACK, "show", "", ()),
    "M11": ('{"type":"x","message":"  \\n"}', True, FALLBACK, "show", "", ()),
}


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_reads_displays_and_acts_as_stated(name):
    text, ok, display, act, provider, ignored = VECTORS[name]
    error = envelope.read(json.loads(text))
    assert isinstance(error, Envelope if ok else Unreadable)
    assert envelope.display(error) == display
    assert envelope.reaction(error) == Reaction(Act(act), provider)
    if ok:
        assert error.ignored == ignored


def test_all_twenty_eight_vectors_are_here():
    assert len(VECTORS) == 28


def test_a_name_is_kept_verbatim_and_compared_whole():  # R1
    for name in ("Provider.Auth", "provider.auth ", "provider.authx", "provider"):
        error = envelope.read({"type": name, "message": "m"})
        assert error.type == name
        assert envelope.reaction(error).act is Act.SHOW


def test_a_readable_message_beside_a_bad_type_is_not_promoted_to_unknown():  # R3
    error = envelope.read({"message": "still readable", "type": 3})
    assert error == Unreadable("type: a non-empty string is allowed", "still readable")


def test_a_status_spelled_as_a_float_is_that_status():  # R4
    status = envelope.read({"type": "x", "message": "m", "status": 503.0}).status
    assert (status, type(status)) == (503, int)


def test_unknown_fields_are_kept_and_forwarded_but_never_shown():  # R5
    error = envelope.read(auth(future={"a": [1]}))
    assert error.extra == {"future": {"a": [1]}}
    assert envelope.encode(error, open_types=True) == auth(future={"a": [1]})
    assert "future" not in envelope.display(error)


def test_unknown_fields_are_bounded_and_what_does_not_fit_is_listed():  # R5
    error = envelope.read(auth(small=1, big="x" * 20_000, other=[2]))
    assert error.extra == {"small": 1, "other": [2]}
    assert error.ignored == ("big",)
    many = envelope.read(auth(**{f"f{n}": "y" * 1000 for n in range(50)}))
    assert len(json.dumps(dict(many.extra))) <= envelope.EXTRA_LIMIT
    assert len(many.extra) + len(many.ignored) == 50


@pytest.mark.parametrize("value", [math.nan, math.inf, [math.nan], {"a": {1, 2}}])
def test_an_unknown_field_that_is_not_json_is_dropped_and_listed(value):  # R5
    error = envelope.read(auth(odd=value))
    assert (dict(error.extra), error.ignored) == ({}, ("odd",))


def test_context_refines_a_known_type_and_its_absence_leaves_the_default():  # R6
    with_it = envelope.read(auth(providerID="anthropic"))
    without = envelope.read(auth())
    assert envelope.reaction(with_it) == Reaction(Act.LOGIN, "anthropic")
    assert envelope.reaction(without) == Reaction(Act.LOGIN)
    other = envelope.read({"type": "provider.quota", "message": "m", "providerID": "anthropic"})
    assert envelope.reaction(other) == Reaction(Act.SHOW)


def test_history_replays_unchanged_and_is_never_upgraded_by_its_text():  # R8
    old = {"type": "unknown", "message": "ProviderAuthError: please sign in (401), aborted"}
    error = envelope.read(old)
    assert envelope.encode(error, open_types=True) == old
    assert envelope.encode(error) == old
    assert envelope.verdict(error).kind is Kind.UNKNOWN


def test_a_huge_message_is_clipped_for_display_and_whole_in_the_store():  # R9
    error = envelope.read({"type": "x", "message": "ä" * 1_000_000})
    shown = envelope.display(error)
    assert len(shown) == envelope.DISPLAY_LIMIT
    assert shown.endswith("…")
    assert len(envelope.encode(error)["message"]) == 1_000_000


@pytest.mark.parametrize(
    "char", ["\n", "\r", "\x1b", "\x00", "\u2028", "\u2029", "\u202e", "\ud800"]
)
def test_what_could_steer_a_terminal_or_forge_a_line_is_neutralised(char):  # R9
    error = envelope.read({"type": "x", "message": f"a{char}b"})
    assert envelope.display(error) == "a b"
    assert error.message == f"a{char}b"


def test_a_message_of_invisible_characters_displays_the_fallback():  # R2
    assert (
        envelope.display(envelope.read({"type": "x", "message": "\u200b\u2060\u200d"})) == FALLBACK
    )


def test_joined_emoji_and_right_to_left_words_display_as_they_are():
    text = "👩‍🚀 שלום"
    assert envelope.display(envelope.read({"type": "x", "message": text})) == text


# --- the registry ------------------------------------------------------------------------------


def test_the_registry_holds_every_type_of_the_kinds_table_and_the_reserved_ones():  # R11
    reserved = {"permission.rejected", "provider.no-route", "provider.unknown", "tool.execution"}
    assert set(TYPES) == {row.type for row in KINDS.values() if row.type} | reserved


@pytest.mark.parametrize("row", TYPES.values(), ids=lambda row: row.type)
def test_every_row_says_what_it_means_who_owns_it_who_reads_it_and_since_when(row):  # R11
    assert row.meaning
    assert row.owner
    assert row.consumer
    assert row.since >= 1
    assert row.type == row.type.lower()
    assert not any(word in row.type for word in ("error", "exception", "claude", "codex"))


@pytest.mark.parametrize("row", TYPES.values(), ids=lambda row: row.type)
def test_the_kind_that_stands_for_a_type_is_told_by_that_type(row):
    if row.owner == "orchestrator":
        assert KINDS[row.kind].type == row.type


# The join with the incident's category, written out.
CATEGORIES = {
    "provider.auth": Category.ACCESS,
    "permission.rejected": Category.ACCESS,
    "provider.rate-limit": Category.LIMIT,
    "provider.quota": Category.LIMIT,
    "provider.invalid-request": Category.REQUEST,
    "provider.no-route": Category.REQUEST,
    "provider.content-filter": Category.REQUEST,
    "provider.transport": Category.CONNECTION,
    "provider.internal": Category.SERVICE,
    "provider.invalid-output": Category.SERVICE,
    "provider.unknown": Category.SERVICE,
    "unknown": Category.UNKNOWN,
    "provider.solar-flare": Category.UNKNOWN,
}


@pytest.mark.parametrize("name", CATEGORIES)
def test_a_type_joins_the_category_by_table(name):  # R20
    assert envelope.verdict(Envelope(name, "m")).category is CATEGORIES[name]


def test_a_stop_is_no_incident():  # R20
    assert envelope.verdict(Envelope("aborted", "Stopped")) is None


@pytest.mark.parametrize("name", ["unknown", "provider.solar-flare", "Aborted"])
def test_a_name_nobody_knows_is_the_services_when_the_carrier_speaks_for_it(name):  # R20
    verdict = envelope.verdict(Envelope(name, "m"), provider_said=True)
    assert (verdict.kind, verdict.category) == (Kind.UNKNOWN, Category.SERVICE)


@pytest.mark.parametrize("wire", [None, [], {"type": "provider.auth"}])
def test_what_cannot_be_read_never_becomes_success(wire):  # R20
    verdict = envelope.verdict(envelope.read(wire))
    assert verdict.kind is Kind.UNKNOWN
    assert verdict.title == FALLBACK


def test_one_failure_on_two_carriers_is_one_incident_and_the_step_comes_first():  # R21
    step, execution = Envelope("provider.auth", "a"), Envelope("unknown", "b")
    assert envelope.chosen(step, execution) is step
    assert envelope.chosen(None, execution) is execution
    assert envelope.chosen(None, None) is None
    unreadable = envelope.read({"message": "m"})
    assert envelope.chosen(unreadable, execution) is unreadable


def test_the_title_is_the_message_and_the_actions_are_the_policys():  # R22
    verdict = envelope.verdict(Envelope("provider.quota", "Sign in or retry later"))
    assert verdict.title == "Sign in or retry later"
    assert verdict.actions == ()
    assert envelope.verdict(Envelope("provider.auth", "Boom")).actions == (Action.LOGIN,)


def test_a_secret_in_a_foreign_message_does_not_reach_the_title():  # R22
    secret = "sk-ant-api03-" + "A1b2C3d4E5f6G7h8" * 5
    assert secret not in envelope.verdict(Envelope("unknown", f"key {secret} is bad")).title


# --- writing -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("", "m"), "type"),
        (("ProviderAuthError", "m"), "type"),
        (("provider.solar-flare", "m"), "type"),
        (("provider.auth", ""), "message"),
        (("provider.auth", " \n"), "message"),
        (("provider.auth", "key sk-ant-api03-" + "A1b2C3d4E5f6G7h8" * 5), "message"),
    ],
)
def test_the_writer_refuses_what_it_must_never_write(arguments, names):  # R10
    with pytest.raises(ValueError, match=f"^{names}:"):
        envelope.write(*arguments)


@pytest.mark.parametrize(
    ("context", "names"),
    [
        ({"provider_id": "  "}, "provider_id"),
        ({"provider_id": "x" * 200}, "provider_id"),
        ({"status": 99}, "status"),
        ({"status": True}, "status"),
        ({"status": 600}, "status"),
    ],
)
def test_the_writer_refuses_context_of_the_wrong_shape(context, names):  # R10
    with pytest.raises(ValueError, match=f"^{names}:"):
        envelope.write("provider.auth", "m", **context)


@pytest.mark.parametrize("kind", [kind for kind, row in KINDS.items() if row.type])
def test_every_verdict_that_is_told_has_its_envelope(kind):
    error = envelope.from_verdict(Verdict.of(kind, "It broke. Try again."))
    assert error == Envelope(KINDS[kind].type, "It broke. Try again.")


def test_what_is_no_failure_has_no_envelope():
    with pytest.raises(ValueError, match=r"^type:"):
        envelope.from_verdict(Verdict.of(Kind.NOT_A_FAILURE, "All is well."))


def test_it_carries_no_retry_state():  # R12
    names = {field.name for field in attrs.fields(Envelope)}
    assert names == {"type", "message", "provider_id", "status", "extra", "ignored"}


# --- the published schema ----------------------------------------------------------------------


def keywords(schema):
    if isinstance(schema, dict):
        for name, value in schema.items():
            yield name
            yield from keywords(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from keywords(value)


def test_the_schema_is_open_and_requires_exactly_two_fields():  # R19
    schema = dict(envelope.SCHEMA)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["properties"]["type"]["type"] == "string"
    assert not {"enum", "const", "pattern", "oneOf", "anyOf"} & set(keywords(schema))
    assert schema["additionalProperties"] is True
    assert sorted(schema["required"]) == ["message", "type"]


def test_the_schema_that_ships_as_a_file_is_this_one():  # R19
    path = Path(envelope.__file__).with_name("session-error.schema.json")
    assert json.loads(path.read_text()) == dict(envelope.SCHEMA)


@pytest.mark.parametrize("name", VECTORS)
def test_the_schema_accepts_exactly_what_the_reader_accepts(name):  # R19
    text, ok, *_ = VECTORS[name]
    validator = jsonschema.Draft202012Validator(dict(envelope.SCHEMA))
    assert validator.is_valid(json.loads(text)) is ok
