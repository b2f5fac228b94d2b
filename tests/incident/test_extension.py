"""The sessionFailure wire against the real adapters' frames and their negotiation table."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.incident import extension
from orchestrator.incident.extension import Decoded, Malformed
from orchestrator.incident.record import Action, Carrier, Category, Record, Severity

DATA = Path(__file__).parent / "data"
NAMES = '["sessionFailure"]'


def rows(name):
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]


def air(version, names=NAMES):
    fields = [f'"version":{version}'] if version else []
    fields += [f'"capabilities":{names}'] if names else []
    return f'{{"_meta":{{"jetbrains":{{"air":{{{",".join(fields)}}}}}}}}}'


# What each variant of the live table sent as `clientCapabilities`, as text: spelling matters.
DECLARATIONS = {
    "v1": air("1"),
    "v2_newer": air("2"),
    "v1.0_float_spelling": air("1.0"),
    "v1e0": air("1e0"),
    "v1e999_infinity": air("1e999"),
    "v1.5": air("1.5"),
    "v0": air("0"),
    "v-1": air("-1"),
    "v_string_1": air('"1"'),
    "v_true": air("true"),
    "v_null": air("null"),
    "v_missing": air(None),
    "caps_missing": air("1", None),
    "caps_empty": air("1", "[]"),
    "caps_string": air("1", '"sessionFailure"'),
    "caps_object": air("1", '{"sessionFailure":{}}'),
    "caps_mixed_types": air("1", '[1,null,{"a":1},"sessionFailure"]'),
    "caps_dupes_and_unknown": air("1", '["x","sessionFailure","sessionFailure"]'),
    "caps_wrong_case": air("1", '["sessionfailure"]'),
    "legacy_nested": '{"_meta":{"jetbrains":{"air":{"sessionFailure":{"version":1}}}}}',
    "air_is_array": air("1").replace(':{"version', ':[{"version').replace("]}}}}", "]}]}}}"),
    "no_meta": "{}",
    # The declaration stood beside clientCapabilities, which themselves were empty.
    "initialize_meta_not_caps": "{}",
}
LIVE = rows("negotiation.jsonl")


@pytest.mark.parametrize("row", LIVE, ids=lambda row: f"{row['agent']}-{row['variant']}")
def test_a_declaration_switches_on_exactly_what_both_real_adapters_switch_on(row):
    capabilities = json.loads(DECLARATIONS[row["variant"]])
    assert extension.negotiated(capabilities) is row["typed_on_response"]


@pytest.mark.parametrize("row", LIVE, ids=lambda row: f"{row['agent']}-{row['variant']}")
def test_an_agent_advertises_back_exactly_where_the_real_adapters_do(row):
    capabilities = json.loads(DECLARATIONS[row["variant"]])
    answer = extension.advertise(capabilities, {"protocolVersion": 1})
    assert ("_meta" in answer) is row["agent_advertises_air"]


def test_the_live_table_covers_every_declaration():
    assert {row["variant"] for row in LIVE} == set(DECLARATIONS)


@pytest.mark.parametrize("junk", [None, True, 1, "sessionFailure", [], [{}], math.nan])
@pytest.mark.parametrize("depth", range(4))
def test_a_level_that_is_no_object_means_no(junk, depth):
    value = junk
    for key in ("air", "jetbrains", "_meta")[:depth]:
        value = {key: value}
    assert not extension.negotiated(value)


@pytest.mark.parametrize("version", [math.nan, math.inf, -math.inf, 2**60, True, False, "1", [1]])
def test_a_version_that_javascript_would_not_count_as_whole_means_no(version):
    declared = {"version": version, "capabilities": ["sessionFailure"]}
    assert not extension.negotiated({"_meta": {"jetbrains": {"air": declared}}})


def test_the_answer_stands_beside_agent_capabilities_and_names_version_one():
    answer = extension.advertise(json.loads(air("7")), {"agentCapabilities": {"loadSession": True}})
    assert answer == {
        "agentCapabilities": {"loadSession": True},
        "_meta": {"jetbrains": {"air": {"version": 1, "capabilities": ["sessionFailure"]}}},
    }


def test_declaring_keeps_what_the_client_declared():
    client = {
        "fs": {"readTextFile": True},
        "_meta": {"zed": 1, "jetbrains": {"x": 2, "air": {"version": 2, "capabilities": ["goal"]}}},
    }
    declared = extension.declare(client)
    assert extension.negotiated(declared)
    assert declared == {
        "fs": {"readTextFile": True},
        "_meta": {
            "zed": 1,
            "jetbrains": {
                "x": 2,
                "air": {"version": 2, "capabilities": ["goal", "sessionFailure"]},
            },
        },
    }
    assert client["_meta"]["jetbrains"]["air"]["capabilities"] == ["goal"]


def test_declaring_does_not_switch_on_what_a_bad_version_left_off():
    declared = extension.declare(json.loads(air("true", '["goal"]')))
    assert declared["_meta"]["jetbrains"]["air"] == {
        "version": 1,
        "capabilities": ["sessionFailure"],
    }


@pytest.mark.parametrize("capabilities", [None, [], "x", 3])
def test_declaring_on_top_of_nothing_still_declares(capabilities):
    assert extension.negotiated(extension.declare(capabilities))


def test_declaring_twice_names_it_once():
    once = extension.declare({})
    assert extension.declare(once) == once


def test_withdrawing_undoes_declaring():
    assert extension.withdraw(extension.declare({"fs": {}})) == {"fs": {}}
    assert extension.withdraw({"fs": {}}) == {"fs": {}}


def test_withdrawing_leaves_the_other_names():
    answer = json.loads(air("1", '["goal","sessionFailure"]'))
    assert extension.withdraw(answer) == json.loads(air("1", '["goal"]'))


@pytest.mark.parametrize(
    ("capabilities", "takes"),
    [
        ({"session": {"notices": {}}}, True),
        ({"session": {"notices": True}}, False),
        ({"session": []}, False),
        ({"session": {}}, False),
        ({}, False),
        (None, False),
    ],
)
def test_a_client_takes_notices_only_when_it_declared_an_object(capabilities, takes):
    assert extension.takes_notices(capabilities) is takes


# --- encoding and carriers ---------------------------------------------------------------------

RECORD = Record(
    id="turn-1:error",
    revision=2,
    category=Category.LIMIT,
    severity=Severity.ERROR,
    title="You've hit your limit · resets 5:50pm",
    actions=(Action.RETRY, Action.NEW_SESSION),
)


def test_a_record_is_written_in_the_order_of_the_wire_and_without_empty_details():
    assert json.dumps(extension.encode(RECORD), ensure_ascii=False) == (
        '{"id": "turn-1:error", "revision": 2, "category": "limit", "severity": "error", '
        '"title": "You\'ve hit your limit · resets 5:50pm", "actions": ["retry", "new_session"]}'
    )


def test_details_stand_between_title_and_actions():
    wire = extension.encode(RECORD.revised(details="The whole story."))
    assert list(wire) == ["id", "revision", "category", "severity", "title", "details", "actions"]


def test_a_record_never_carries_retry_state_or_provider_codes():
    wire = extension.encode(RECORD.revised(details="d"))
    assert not set(wire) & {
        "phase", "source", "safeMessage", "retryable", "retryAfterMs", "turnId", "attempt", "code",
    }  # fmt: skip


def test_attaching_merges_into_what_the_part_already_carries():
    part = {
        "stopReason": "end_turn",
        "_meta": {"quota": {"a": 1}, "jetbrains": {"ide": 1, "air": {"version": 1, "goal": "g"}}},
    }
    carried = extension.attach(part, RECORD)
    assert carried["_meta"]["quota"] == {"a": 1}
    assert carried["_meta"]["jetbrains"]["ide"] == 1
    assert carried["_meta"]["jetbrains"]["air"] == {
        "version": 1,
        "goal": "g",
        "sessionFailure": extension.encode(RECORD),
    }
    assert "sessionFailure" not in part["_meta"]["jetbrains"]["air"]


@pytest.mark.parametrize("meta", [None, [], "x", {"jetbrains": []}, {"jetbrains": {"air": [1]}}])
def test_attaching_to_a_broken_meta_still_carries_the_record(meta):
    assert extension.find(extension.attach({"_meta": meta}, RECORD)) == extension.encode(RECORD)


def test_detaching_gives_back_what_was_there_before():
    for part in ({"stopReason": "end_turn"}, {"_meta": {"quota": 1}, "x": 2}):
        assert extension.detach(extension.attach(part, RECORD)) == part
    assert extension.detach({"x": 1}) == {"x": 1}


def test_detaching_keeps_the_neighbours_and_their_version():
    part = {"_meta": {"jetbrains": {"air": {"version": 1, "goal": "g"}}}}
    assert extension.detach(extension.attach(part, RECORD)) == part


def test_a_failed_turn_is_a_successful_end_turn_that_carries_the_record():
    result = extension.response({"stopReason": "refusal", "usage": None}, RECORD)
    assert result["stopReason"] == "end_turn"
    found = extension.find_in_frame({"jsonrpc": "2.0", "id": 2, "result": result})
    assert found == extension.Found(Carrier.RESPONSE, Decoded(RECORD))


def test_every_other_record_is_a_session_info_update_that_sets_no_title():
    params = extension.update("S", RECORD)
    assert set(params["update"]) == {"sessionUpdate", "_meta"}
    found = extension.find_in_frame({"method": "session/update", "params": params})
    assert found == extension.Found(Carrier.UPDATE, Decoded(RECORD), "S")


def test_a_record_is_found_by_its_key_on_any_session_update():
    update = extension.attach({"sessionUpdate": "tool_call", "title": "ls"}, RECORD)
    frame = {"method": "session/update", "params": {"sessionId": 7, "update": update}}
    assert extension.find_in_frame(frame) == extension.Found(Carrier.UPDATE, Decoded(RECORD), "")


@pytest.mark.parametrize(
    "frame",
    [
        None,
        "x",
        [],
        {},
        {"result": None},
        {"result": {"_meta": {"quota": 1}}},
        {"error": {"code": -32603}},
        {"method": "session/update", "params": []},
        {"method": "session/update", "params": {"update": {"sessionUpdate": "plan"}}},
        {"method": "session/prompt", "params": extension.update("S", RECORD)},
    ],
)
def test_a_frame_without_a_record_has_none(frame):
    assert extension.find_in_frame(frame) is None


def test_an_advisory_for_a_client_that_takes_notices_is_a_notice_update():
    warning = RECORD.revised(severity=Severity.WARNING, title="Careful", details="Long", actions=())
    assert extension.notice("S", warning) == {
        "sessionId": "S",
        "update": {
            "sessionUpdate": "notice",
            "severity": "warning",
            "title": "Careful",
            "description": "Long",
        },
    }
    assert "description" not in extension.notice("S", RECORD)["update"]


# --- decoding ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row", rows("records.jsonl"), ids=lambda r: f"{r['agent']}-{r['scenario']}"
)
def test_a_record_of_a_real_adapter_decodes_and_encodes_to_the_same_text(row):
    found = extension.find_in_frame(row["frame"])
    assert isinstance(found.content, Decoded)
    assert found.content.ignored == ()
    part = row["frame"].get("result") or row["frame"]["params"]["update"]
    wire = part["_meta"]["jetbrains"]["air"]["sessionFailure"]
    assert json.dumps(extension.encode(found.content.record)) == json.dumps(wire)


@pytest.mark.parametrize(
    "row", rows("records.jsonl"), ids=lambda r: f"{r['agent']}-{r['scenario']}"
)
def test_a_real_frame_survives_detach_and_attach(row):
    frame = row["frame"]
    part = frame.get("result") or frame["params"]["update"]
    found = extension.find_in_frame(frame)
    again = extension.attach(extension.detach(part), found.content.record)
    assert again == part


WIRE = extension.encode(RECORD)


def test_unknown_fields_are_kept_apart_and_the_reason_is_read():
    decoded = extension.decode({**WIRE, "reason": "quota", "future": {"a": [1]}})
    assert decoded.record == RECORD
    assert decoded.reason == "quota"
    assert decoded.extra == {"future": {"a": [1]}}
    assert decoded.ignored == ()


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"id": ""}, "id"),
        ({"id": "  "}, "id"),
        ({"id": 7}, "id"),
        ({"revision": 0}, "revision"),
        ({"revision": True}, "revision"),
        ({"revision": 1.5}, "revision"),
        ({"revision": "1"}, "revision"),
        ({"revision": math.inf}, "revision"),
        ({"revision": math.nan}, "revision"),
        ({"revision": 2**60}, "revision"),
        ({"title": None}, "title"),
        ({"title": ["x"]}, "title"),
    ],
)
def test_without_identity_revision_and_title_there_is_no_record(change, names):
    assert extension.decode({**WIRE, **change}).problem.startswith(f"{names}:")


@pytest.mark.parametrize("wire", [None, [], "x", 1, True])
def test_what_is_no_object_is_no_record(wire):
    assert isinstance(extension.decode(wire), Malformed)


def test_a_revision_spelled_as_a_float_is_a_revision():
    revision = extension.decode({**WIRE, "revision": 3.0}).record.revision
    assert (revision, type(revision)) == (3, int)


@pytest.mark.parametrize("category", ["weather", "Limit", "", 3, None, ["limit"]])
def test_an_unknown_category_is_unknown(category):
    decoded = extension.decode({**WIRE, "category": category})
    assert decoded.record.category is Category.UNKNOWN
    assert decoded.ignored == ("category",)


@pytest.mark.parametrize("severity", ["fatal", "Error", "", 1, None, {}])
def test_only_an_explicit_error_can_fail_a_turn(severity):
    decoded = extension.decode({**WIRE, "severity": severity})
    assert decoded.record.severity is Severity.WARNING
    assert decoded.ignored == ("severity",)


def test_unknown_and_repeated_actions_are_dropped_and_the_order_is_kept():
    actions = ["new_session", "self_destruct", "retry", 7, None, "new_session", {"a": 1}]
    decoded = extension.decode({**WIRE, "actions": actions})
    assert decoded.record.actions == (Action.NEW_SESSION, Action.RETRY)
    assert decoded.ignored == ("actions",)


@pytest.mark.parametrize("actions", [None, "retry", {"retry": 1}, 3])
def test_actions_that_are_no_list_offer_nothing(actions):
    assert extension.decode({**WIRE, "actions": actions}).record.actions == ()


@pytest.mark.parametrize("name", ["details", "reason"])
def test_an_optional_text_of_another_shape_is_dropped_and_listed(name):
    decoded = extension.decode({**WIRE, name: 5})
    assert decoded.record == RECORD
    assert decoded.ignored == (name,)
    assert extension.decode({**WIRE, name: None}).ignored == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8) | st.sampled_from(sorted(WIRE)), inner, max_size=5)
    ),
    max_leaves=12,
)


@settings(max_examples=150)
@given(JSON)
def test_no_value_makes_reading_raise(value):
    extension.decode(value)
    extension.negotiated(value)
    extension.takes_notices(value)
    extension.find_in_frame(value)
    extension.find_in_frame({"result": {"_meta": {"jetbrains": {"air": value}}}})


RECORDS = st.builds(
    Record,
    id=st.text(min_size=1).filter(str.strip),
    revision=st.integers(1, 2**53 - 1),
    category=st.sampled_from(Category),
    severity=st.sampled_from(Severity),
    title=st.text(),
    actions=st.lists(st.sampled_from(Action), unique=True).map(tuple),
    details=st.text(),
)


@settings(max_examples=150)
@given(RECORDS, JSON)
def test_every_record_survives_the_wire_beside_any_neighbour(record, neighbour):
    carried = extension.attach({"_meta": {"other": neighbour}}, record)
    text = json.dumps(carried)
    assert extension.decode(extension.find(json.loads(text))) == Decoded(record)
    assert list(carried["_meta"]) == ["other", "jetbrains"]
