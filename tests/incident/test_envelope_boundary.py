"""The open error at its capability boundary: projection, negotiation, other people's readers."""

import enum
import json
import math
from typing import Literal, get_args

import pytest

from orchestrator.incident import envelope
from orchestrator.incident.envelope import FALLBACK, Act, Envelope, Reaction

STORED = envelope.read(
    {
        "type": "provider.auth",
        "message": "m",
        "providerID": "anthropic",
        "status": 401,
        "future": 1,
    }
)


def test_a_peer_that_negotiated_nothing_gets_exactly_two_fields():  # R14, R15: it is the default
    assert json.dumps(envelope.encode(STORED)) == '{"type": "unknown", "message": "m"}'


def test_a_peer_that_negotiated_gets_the_whole_value():  # R13
    assert envelope.encode(STORED, open_types=True) == {
        "type": "provider.auth",
        "message": "m",
        "providerID": "anthropic",
        "status": 401,
        "future": 1,
    }


def test_projection_leaves_the_stored_value_alone_and_twice_is_once():  # R13, R17
    before = envelope.encode(STORED, open_types=True)
    once = envelope.project(STORED)
    assert envelope.project(once) == once
    assert envelope.encode(STORED, open_types=True) == before


def test_a_projection_read_again_is_the_historical_case():  # R17
    error = envelope.read(envelope.encode(STORED))
    assert error == Envelope("unknown", "m")
    assert envelope.reaction(error) == Reaction(Act.SHOW)


@pytest.mark.parametrize(("wire", "message"), [({"message": "still"}, "still"), (None, FALLBACK)])
def test_what_cannot_be_read_projects_to_something_that_can(wire, message):
    assert envelope.project(envelope.read(wire)) == Envelope("unknown", message)


@pytest.mark.parametrize("version", [1, 2, 1.0])
@pytest.mark.parametrize("others", [[], ["goal"], [None, 3]])
def test_open_names_are_on_for_a_whole_version_and_the_exact_name(version, others):  # R16
    names = [*others, "openErrorTypes"]
    assert envelope.negotiated({"version": version, "capabilities": names})


@pytest.mark.parametrize(
    "declaration",
    [
        *({"version": v, "capabilities": ["openErrorTypes"]}
          for v in ("1", True, 0, 1.5, math.inf, -math.inf, math.nan, None)),
        *({"version": 1, "capabilities": c}
          for c in ("openErrorTypes", [], ["openerrortypes"], None, {"openErrorTypes": 1})),
        {"version": 1},
        {"capabilities": ["openErrorTypes"]},
        None,
        [],
        "openErrorTypes",
    ],
)  # fmt: skip
def test_anything_else_means_no(declaration):  # R16
    assert not envelope.negotiated(declaration)


# --- readers of other people -------------------------------------------------------------------


class EnumOnly(enum.StrEnum):
    """What a Python generator makes of the literal."""

    UNKNOWN = "unknown"


def enum_reader(wire):
    return EnumOnly(wire["type"]), wire["message"]


Closed = Literal["unknown"]


def literal_reader(wire):
    """What a TypeScript schema decoder does; it may forbid other fields as well."""
    if wire["type"] not in get_args(Closed) or set(wire) != {"type", "message"}:
        raise ValueError(wire)
    return wire["type"], wire["message"]


def serde_like_reader(wire):
    """What a Rust enum with one variant and `deny_unknown_fields` does."""
    variants = {"unknown": lambda message: ("unknown", message)}
    if set(wire) - {"type", "message"}:
        raise KeyError(set(wire))
    return variants[wire["type"]](wire["message"])


def older_open_reader(wire):
    return {"type": str(wire["type"]), "message": str(wire["message"])}


CLOSED_READERS = [enum_reader, literal_reader, serde_like_reader]
NEW = envelope.write("provider.auth", "Sign in again.", provider_id="anthropic")


@pytest.mark.parametrize("reader", CLOSED_READERS)
@pytest.mark.parametrize("error", [Envelope("unknown", "boom"), NEW, STORED])
def test_a_closed_reader_that_negotiated_nothing_reads_old_and_new_writers(reader, error):
    wire = json.loads(json.dumps(envelope.encode(error)))
    assert list(reader(wire)) == ["unknown", error.message]


@pytest.mark.parametrize("reader", CLOSED_READERS)
def test_expected_failure_a_closed_reader_breaks_on_an_open_name_so_none_is_sent_by_default(reader):
    # R15: this incompatibility is real and stays until such readers are gone.
    with pytest.raises((ValueError, KeyError)):
        reader(envelope.encode(NEW, open_types=True))


@pytest.mark.parametrize("error", [Envelope("unknown", "boom"), NEW, STORED])
@pytest.mark.parametrize("open_types", [True, False])
def test_an_open_reader_older_than_the_field_reads_every_writer(error, open_types):
    wire = envelope.encode(error, open_types=open_types)
    assert older_open_reader(wire)["message"] == error.message


@pytest.mark.parametrize("error", [Envelope("unknown", "boom"), NEW, STORED])
def test_a_new_reader_specialises_what_a_negotiating_writer_sends(error):
    assert envelope.read(envelope.encode(error, open_types=True)) == error


def test_a_new_store_is_replayed_to_an_old_peer_by_projection():
    stored = [Envelope("unknown", "boom"), NEW, STORED]
    for reader in CLOSED_READERS:
        for error in stored:
            reader(envelope.encode(error))


def test_an_old_store_is_replayed_to_a_new_peer_without_an_upgrade():
    row = {"type": "unknown", "message": "Aborted: sign in"}
    error = envelope.read(row)
    assert envelope.encode(error, open_types=True) == row
    assert envelope.reaction(error) == Reaction(Act.SHOW)


def test_an_upgraded_peer_renegotiates_and_old_rows_stay_as_stored():
    rows = [Envelope("unknown", "old"), NEW]
    before = [envelope.encode(row) for row in rows]
    after = [envelope.encode(row, open_types=True) for row in rows]
    assert before == [
        {"type": "unknown", "message": "old"},
        {"type": "unknown", "message": "Sign in again."},
    ]
    assert after[0] == before[0]
    assert after[1]["type"] == "provider.auth"


def rewriting_reader(wire):
    """What a reader with `unknownEnumValue` echoes: the name is lost."""
    return {**wire, "type": wire["type"] if wire["type"] == "unknown" else "unknown_default"}


def test_an_echo_of_a_rewriting_reader_changes_nothing_in_the_store():  # R18
    echoed = rewriting_reader(envelope.encode(NEW, open_types=True))
    assert echoed["type"] == "unknown_default"
    assert envelope.kept(NEW, echoed) is NEW
