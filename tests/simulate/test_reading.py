"""Scenarios from files."""

import pytest

from orchestrator.failure.kinds import Kind
from orchestrator.simulate.reading import SHIPPED, ScenarioError, load, names, parse

RIGHT = """
name = "mine"
duration_s = "10m"

[[phases]]
from_s = "1m"
to_s = 90
faults = [{ kind = "overloaded", share = 0.5, hint_s = 8 }]
"""


def problems(text):
    with pytest.raises(ScenarioError) as caught:
        parse(text, "mine.toml")
    return caught.value.problems


def test_a_file_is_read_with_durations_as_people_write_them():
    scenario = parse(RIGHT, "mine.toml")
    assert scenario.duration_s == 600
    (phase,) = scenario.phases
    assert (phase.from_s, phase.to_s) == (60, 90)
    (fault,) = phase.faults
    assert (fault.kind, fault.share, fault.hint_s) == (Kind.OVERLOADED, 0.5, 8)


def test_one_reading_names_every_problem_with_its_path():
    found = problems(
        """
        name = 3
        rate_per_s = "x"
        duraton_s = 4
        [[phases]]
        from_s = 10
        to_s = 5
        [[phases]]
        faults = [{ kind = "overlaoded", share = true, delay_s = "300ms" }, { knd = "x" }]
        [users]
        stop = 0.8
        steer = 0.5
        [capacity]
        kind = "cancelled"
        """
    )
    told = "\n".join(found)
    assert "name: 3 is not allowed" in told
    assert 'rate_per_s: "x" is not allowed; a number from 0.001' in told
    assert "duraton_s: no such key; did you mean duration_s?" in told
    assert "phases[0]: to_s: 5 is not allowed; more than 10" in told
    assert "did you mean overloaded?" in told
    assert "phases[1].faults[0].share: true is not allowed" in told
    assert 'write "0.5s" for 500 ms' in told
    assert "phases[1].faults[1].kind: is missing" in told
    assert "phases[1].faults[1]: knd: no such key; did you mean kind?" in told
    assert "users: steer: 0.5 is not allowed" in told
    assert 'capacity.kind: "cancelled" is not allowed' in told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name = ", "not valid TOML"),
        ("name = 'x'\nphases = 3", "phases: 3 is not allowed; a list of tables is"),
        ("name = 'x'\nphases = [3]", "phases[0]: 3 is not allowed; a table is"),
        ("name = 'x'\nusers = 'many'", 'users: "many" is not allowed; a table is'),
        ("name = 'x'\ninteractive = 1", "interactive: 1 is not allowed; true or false is"),
        ("name = 'x'\nrate_per_s = nan", "rate_per_s: NaN is not allowed"),
        (
            "name = 'x'\n[[phases]]\nfaults = [{kind='unknown'}, {kind='unknown', share=0.1}]",
            "phases[0]: faults: shares that add up to 1.1 are not allowed; at most 1 is",
        ),
        (
            "name = 'x'\n[[phases]]\nto_s = 50\nevery_s = 20",
            "phases[0]: to_s: 50 is not allowed; 20 or less",
        ),
    ],
)
def test_nothing_is_coerced_and_nothing_contradicts(text, expected):
    assert any(expected in problem for problem in problems(text)), problems(text)


def test_a_file_that_is_none_says_why(tmp_path):
    with pytest.raises(ScenarioError, match="cannot be read: No such file"):
        load(str(tmp_path / "none.toml"))
    with pytest.raises(ScenarioError, match="did you mean overload"):
        load("overlod")
    with pytest.raises(ScenarioError, match=r"throttle\. Or name a file"):
        load("x")
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b'name = "\xe9"')
    with pytest.raises(ScenarioError, match="byte 8 is not UTF-8"):
        load(str(latin))
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(ScenarioError, match="larger than 1 MiB"):
        load(str(large))


def test_a_file_without_a_name_is_called_after_its_file(tmp_path):
    file = tmp_path / "my-hour.toml"
    file.write_text("duration_s = 60")
    assert load(str(file)).name == "my-hour"


@pytest.mark.parametrize("name", names())
def test_every_shipped_scenario_reads_and_says_what_happens(name):
    scenario = load(name)
    assert scenario.name == name
    assert scenario.title
    assert 2000 < scenario.expected_turns() < 6000  # quick enough to wait for, enough to judge by


def test_the_scenarios_asked_for_are_all_shipped():
    assert set(names()) >= {
        "steady",
        "blip",
        "outage-5m",
        "outage-1h",
        "overload",
        "throttle",
        "flapping",
        "brown-out",
        "crash-loop",
        "spent-limit",
        "impatient",
    }
    assert SHIPPED.is_dir()
