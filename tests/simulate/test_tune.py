"""The search: its language, its dials, and that it ends with what it has."""

import math

import pytest
from attrs import evolve

from orchestrator.settings.load import load as load_settings
from orchestrator.settings.model import Budget, Choices, Ladders, Recoveries, Settings
from orchestrator.settings.tree import build, tree, values
from orchestrator.simulate.measures import MEASURES
from orchestrator.simulate.objective import EXAMPLE, Goal, ObjectiveError, parse
from orchestrator.simulate.reading import load
from orchestrator.simulate.tune import DIALS, Search, as_toml, changes, dials_under, turned

QUICK = evolve(load("blip"), rate_per_s=3)


def search(objective, start=None, scenario=QUICK, **options):
    return Search(
        objective=parse(objective),
        scenarios=(scenario,),
        seeds=(1, 2),
        start=start or Settings(),
        **options,
    )


# The language.


def test_an_objective_reads_as_it_is_written():
    asked = parse("MIN p95_recovery  subject to amplification<=1.3x,landed >= 99%")
    assert asked.goal is Goal.MIN
    assert asked.measure == "p95_recovery"
    assert [(b.measure, b.at_most, b.number) for b in asked.bounds] == [
        ("amplification", True, 1.3),
        ("landed", False, 0.99),
    ]
    assert str(parse(EXAMPLE)) == EXAMPLE
    assert parse(str(asked)) == asked
    assert str(asked) == "min p95_recovery subject to amplification<=1.3x, landed>=99%"
    assert parse("max landed").bounds == ()
    assert parse("min longest_silence subject to p99_recovery<5m").bounds[0].number == 300


@pytest.mark.parametrize(
    ("text", "expected", "hint"),
    [
        ("", "is not an objective", "for example"),
        ("landed", "is not an objective", "for example"),
        ("maximise landed", "begins with 'maximise'; min or max is allowed", "for example"),
        ("min xyzzy", "there is no measure 'xyzzy'", "there are landed"),
        ("min p95_recvery", "there is no measure", "did you mean p95_recovery?"),
        ("min p95_recovery subject to landed", "'landed' is not a bound", "MEASURE<=NUMBER"),
        ("max landed subject to amplification<=lots", "'lots' is no number", "1.3x"),
        ("max landed subject to landed>=99", "more than all turns", "99%"),
        ("max landed subject to p95_recovery<=fast", "'fast' is no number", "5m"),
        ("max landed subject to p95_recovery<=-3", "'-3' is no number", "5m"),
        ("max landed subject to refunds<=nan", "'nan' is no number", "a count"),
    ],
)
def test_an_objective_that_is_none_says_what_to_write(text, expected, hint):
    with pytest.raises(ObjectiveError) as caught:
        parse(text)
    assert expected in str(caught.value)
    assert hint in caught.value.hint


# The dials.


class Extreme:
    """Suggests one end of every range."""

    def __init__(self, *, high):
        self.high = high

    def suggest_float(self, _, low, high, *, log=False):
        return high if self.high else low

    suggest_int = suggest_float

    def suggest_categorical(self, _, choices):
        return choices[self.high]


@pytest.mark.parametrize("high", [False, True])
def test_every_end_of_every_dial_is_a_setting_that_is_allowed(high):
    settings = turned(Settings(), DIALS, Extreme(high=high))
    assert isinstance(settings, Settings)
    assert settings.budget.enabled is high
    for dial in DIALS:
        known = values(settings)[dial.path]
        assert tree().leaves[dial.path].allowed.takes(known), dial.path


def test_every_dial_is_a_setting_and_matters_to_no_other_by_name():
    paths = [dial.path for dial in DIALS]
    assert len(set(paths)) == len(paths)
    assert set(paths) <= set(tree().leaves)
    assert {dial.needs for dial in DIALS} - {""} <= set(paths)


def test_a_dial_of_something_that_is_off_stays_where_it_was():
    settings = turned(Settings(), DIALS, Extreme(high=False))
    assert settings.budget == Budget()


def test_what_holds_between_settings_is_kept():
    class FirstHighCapsLow(Extreme):
        def suggest_float(self, path, low, high, *, log=False):
            return high if path == "ladders.curve.first_s" else low

    settings = turned(Settings(), DIALS, FirstHighCapsLow(high=False))
    assert settings.ladders.curve.cap_s >= settings.ladders.curve.first_s


def test_dials_are_picked_by_path_or_table():
    assert [dial.path for dial in dials_under(["ladders.transient_retries"])] == [
        "ladders.transient_retries"
    ]
    assert len(dials_under(["ladders.curve"])) == 4
    assert dials_under(["ladders.cur"]) == ()
    assert dials_under([]) == DIALS


# The search.


def test_it_starts_from_what_there_is_and_never_ends_worse():
    found = search("max landed subject to amplification<=4")
    found.run(12)
    assert len(found.tried) == 12
    assert found.tried[0].settings == Settings()
    best = found.best
    assert best.holds
    assert best.value >= found.tried[0].value


def test_the_same_seed_searches_in_the_same_way():
    values_ = []
    for _ in range(2):
        found = search("max landed subject to amplification<=4")
        found.run(8)
        values_.append([known.value for known in found.tried])
    assert values_[0] == values_[1]


def test_bounds_that_nothing_keeps_leave_the_closest():
    found = search("max landed subject to landed>=100%, amplification<=1")
    found.run(6)
    best = found.best
    assert not best.holds
    assert best.excess == min(known.excess for known in found.tried)


def test_what_makes_no_difference_is_turned_back():
    start = Settings()
    found = search("max landed")
    worse = Settings(
        ladders=Ladders(transient_retries=6, connection_cap_s=77),
        recoveries=Recoveries(deaths=1),
    )
    found._try(start)
    found._try(worse)
    simple = found.simplify()
    assert simple.settings.recoveries.deaths == start.recoveries.deaths
    assert simple.settings.ladders.connection_cap_s == start.ladders.connection_cap_s
    assert simple.settings.ladders.transient_retries == 6
    assert found.best is simple


def test_the_front_holds_nothing_that_is_beaten():
    found = search("max landed subject to amplification<=1.2")
    for retries in range(5):
        by_path = {**values(Settings()), "ladders.transient_retries": retries}
        found._try(build(by_path))
    front = found.front()
    assert found.best in front
    costs = [found._costs(known) for known in front if known is not found.best]
    assert len(front) > 2
    for mine in costs:
        assert not any(
            other != mine and all(a <= b for a, b in zip(other, mine, strict=True))
            for other in costs
        )
    assert all(math.isfinite(cost) for row in costs for cost in row)


def test_ctrl_c_keeps_the_best_so_far():
    found = search("max landed")

    def stop(at):
        if len(at.tried) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        found.run(100, stop)
    assert len(found.tried) == 3
    assert found.best is not None


def test_a_goal_that_has_nothing_to_show_is_infinitely_bad():
    found = search("min p95_recovery", start=Settings(ladders=Ladders(transient_retries=0)))
    found._try(found.start)
    assert found.tried[0].value == math.inf
    assert "p95_recovery" in MEASURES


def test_the_file_says_only_what_is_no_default_and_reads_back(tmp_path):
    settings = Settings(
        choices=Choices(ride_out=True),
        ladders=Ladders(connection_window_s=450.5, transient_retries=5),
        recoveries=Recoveries(fallback_models=("a", "b")),
    )
    file = tmp_path / "tuned.toml"
    file.write_text(as_toml(settings, ["found"]))
    assert load_settings(file, environ={}).settings == settings
    text = file.read_text()
    assert text.startswith("# found\n")
    assert "budget" not in text
    assert [path for path, _, _ in changes(Settings(), settings)] == [
        "ladders.transient_retries",
        "ladders.connection_window_s",
        "recoveries.fallback_models",
        "choices.ride_out",
    ]
