"""Side by side: what differs beyond chance, and the words for it."""

import pytest
from attrs import evolve

from orchestrator.settings.model import Budget, Settings
from orchestrator.simulate.compare import compared
from orchestrator.simulate.confidence import differences, interval, t95
from orchestrator.simulate.ours import machines
from orchestrator.simulate.policies import policy
from orchestrator.simulate.reading import load
from orchestrator.simulate.runs import Contender, run

SEEDS = (1, 2)


def comparison(name, *contenders, duration_s=None):
    scenario = load(name)
    if duration_s:
        scenario = evolve(scenario, duration_s=duration_s)
    return compared([run(scenario, contender, SEEDS) for contender in contenders])


DEFAULTS = Contender("defaults", machines(Settings()))
BUDGET = Contender("budget", machines(Settings(budget=Budget(enabled=True))))
SDK = Contender("anthropic-sdk", policy("anthropic-sdk"))
TENACITY = Contender("tenacity-default", policy("tenacity-default"))


def test_an_interval_is_students():
    known = interval([1.0, 2.0, 3.0])
    assert known.mean == 2
    assert known.half == pytest.approx(4.303 * 1.0 / 3**0.5)
    assert interval([5.0]).half is None
    assert interval([None, None]) is None
    assert interval([None, 1.0, 1.0]).count == 2
    assert t95(1) == 12.706
    assert t95(60) == pytest.approx(2.0003, abs=0.002)
    assert t95(1000) == pytest.approx(1.9623, abs=0.002)


def test_paired_differences_see_what_lies_beside_the_noise_of_days():
    days = [10.0, 20.0, 30.0, 40.0]
    assert differences(days, [d + 1 for d in days]).excludes_zero
    assert not differences(
        days, [d + e for d, e in zip(days, (1, -1, 1, -1), strict=True)]
    ).excludes_zero


def test_a_contender_never_differs_from_itself():
    same = comparison("blip", DEFAULTS, Contender("again", DEFAULTS.player_of))
    assert not any(same.differs(measure, 1) for measure in ("landed", "amplification"))
    assert same.verdict().startswith("All land about as many turns")


def test_a_collapse_is_called_one_and_a_budget_prevents_it():
    told = comparison("overload", DEFAULTS, BUDGET, duration_s=70)
    assert told.differs("landed", 1)
    verdict = told.verdict()
    assert "defaults never recovers: long after it is over 0.0 % of new turns land" in verdict
    assert "against 100.0 % with budget" in verdict
    assert "Most turns land with budget" in verdict


def test_the_best_is_named_with_its_price():
    verdict = comparison("outage-5m", DEFAULTS, SDK, duration_s=800).verdict()
    assert "Most turns land with defaults" in verdict
    assert "load in the outage 4." in verdict
    assert "with anthropic-sdk" in verdict


def test_answers_begun_twice_break_a_tie():
    told = comparison("steady", TENACITY, DEFAULTS)
    assert set(told.ties("landed")) == {0, 1}
    assert "defaults:" in told.verdict()
    assert "answers begun twice 0, against" in told.verdict()


def test_a_comparison_for_programs_says_what_differs():
    told = comparison("blip", DEFAULTS, SDK).as_json()
    assert told["scenario"] == "blip"
    assert "landed" in told["differs"]["anthropic-sdk"]
    assert [c["contender"] for c in told["contenders"]] == ["defaults", "anthropic-sdk"]
    assert told["verdict"]
