"""The example file and the JSON Schema."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from orchestrator.settings import document
from orchestrator.settings.load import load
from orchestrator.settings.model import Settings
from orchestrator.settings.reading import from_file
from orchestrator.settings.tree import nested, tree, values

VALIDATOR = Draft202012Validator(document.schema())


def test_the_example_file_is_the_defaults(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text(document.toml())
    loaded = load(file, environ={})
    assert loaded.settings == Settings()
    assert loaded.origins.keys() == tree().leaves.keys()


def test_the_example_file_explains_every_setting():
    text = document.toml()
    assert max(map(len, text.splitlines())) <= 100
    for leaf in tree().leaves.values():
        assert leaf.help in text


@given(
    st.floats(0.001, 3600), st.floats(0, 1), st.lists(st.text(min_size=1), unique=True, max_size=3)
)
def test_any_settings_survive_being_written_and_read(first_s, jitter, models):
    kept = tuple(m for m in models if m.isprintable() and m.strip())
    by_path = values(Settings()) | {
        "ladders.curve.first_s": first_s,
        "ladders.curve.jitter": jitter,
        "recoveries.fallback_models": kept,
    }
    for path in ("ladders.curve.cap_s", "ladders.connection_cap_s", "ladders.ride_out_cap_s"):
        by_path[path] = 3600.0
    lines = [f"{p} = {document.spelled(tree().leaves[p], v)}" for p, v in by_path.items()]
    read = _flat(tomllib.loads("\n".join(lines)))
    assert {p: from_file(tree().leaves[p].allowed, v) for p, v in read.items()} == by_path


def _flat(table, at=""):
    out = {}
    for key, value in table.items():
        out |= _flat(value, f"{at}{key}.") if isinstance(value, dict) else {f"{at}{key}": value}
    return out


def test_the_schema_is_a_schema_and_takes_the_defaults():
    Draft202012Validator.check_schema(document.schema())
    json.dumps(document.schema(), allow_nan=False)
    VALIDATOR.validate(nested(values(Settings())))
    VALIDATOR.validate(tomllib.loads(document.toml()))
    VALIDATOR.validate({})


@pytest.mark.parametrize(
    "wrong",
    [
        {"ladders": {"curve": {"first_s": -1}}},
        {"ladders": {"curve": {"first_s": True}}},
        {"ladders": {"curve": {"first_s": "300ms"}}},
        {"ladders": {"curve": {"zz": 1}}},
        {"ladders": 3},
        {"zz": 1},
        {"turn": {"max_sends": 1.5}},
        {"metrics": {"providers": ["a", "a"]}},
        {"metrics": {"providers": [" "]}},
        {"choices": {"ride_out": "true"}},
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(wrong):
    assert not VALIDATOR.is_valid(wrong)


_JSON = st.one_of(
    st.booleans(),
    st.integers(-10, 3_000_000),
    st.floats(-1, 1e7).filter(lambda x: x != int(x)),
    st.sampled_from(["", "5m", "1h30m", "300ms", "-1s", "model", " ", "12"]),
    st.lists(st.sampled_from(["a", "b", "", 1]), max_size=3),
)


@given(st.sampled_from(sorted(tree().leaves)), _JSON)
def test_the_schema_and_the_rules_never_disagree(path, value):
    leaf = tree().leaves[path]
    says = VALIDATOR.is_valid(nested({path: value}))
    read = from_file(leaf.allowed, value)
    if isinstance(value, str) and isinstance(read, float):
        assert says  # the range of a duration in words is beyond a schema
    else:
        assert says == leaf.allowed.takes(read)
