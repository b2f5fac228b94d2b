"""The fleet: the same turns for everybody, the load as it is, and what a run adds up to."""

from itertools import pairwise

import pytest
from attrs import evolve

from orchestrator.failure.kinds import Kind
from orchestrator.settings.model import Budget, Choices, Ladders, Recoveries, Settings
from orchestrator.simulate.fleet import Fleet, play, sizes
from orchestrator.simulate.measures import MEASURES, Unit, in_words
from orchestrator.simulate.ours import machines
from orchestrator.simulate.policies import policy
from orchestrator.simulate.reading import load, names
from orchestrator.simulate.scenario import (
    Capacity,
    Fault,
    Phase,
    Scenario,
    Stretch,
    Surge,
    Throttle,
    Users,
)
from orchestrator.simulate.tally import LANDED, Result, Sign, Spread
from orchestrator.simulate.world import Arrival, Use, World, arrivals, chance

NO_RETRY = Settings(
    ladders=Ladders(transient_retries=0, connection_window_s=0, registration_retries=0)
)
DOWN = Phase(60, 120, faults=(Fault(Kind.OVERLOADED),))


def always(kind, **fault):
    return (Phase(faults=(Fault(kind, **fault),)),)


def one(scenario, settings=None, seed=1):
    """Play a scenario; the tally, and how each turn ended."""
    ended = {}
    fleet = Fleet(
        scenario,
        machines(settings or Settings()),
        seed=seed,
        watch=lambda e: ended.setdefault(e.turn.index, e),
    )
    return fleet.play(), ended


def test_the_same_seed_gives_the_same_answers_and_another_one_does_not():
    scenario = load("impatient")
    first, again, other = (play(scenario, machines(Settings()), seed=seed) for seed in (5, 5, 6))
    answers = [[m.read(tally) for m in MEASURES.values()] for tally in (first, again, other)]
    assert answers[0] == answers[1] != answers[2]


def test_everybody_meets_the_same_turns_with_the_same_luck():
    scenario = Scenario("x", duration_s=300, phases=(DOWN,))
    seen = {}
    for name, player_of in (
        ("ours", machines(Settings())),
        ("impatient", machines(NO_RETRY)),
        ("sdk", policy("anthropic-sdk")),
    ):
        turns = seen.setdefault(name, {})
        Fleet(
            scenario,
            player_of,
            seed=3,
            watch=lambda e, turns=turns: turns.setdefault(
                e.turn.index, (e.turn.at, e.turn.latency, e.turn.fate, e.turn.seed)
            ),
        ).play()
    assert seen["ours"] == seen["impatient"] == seen["sdk"]
    clean = {i for i, (at, *_) in seen["ours"].items() if not 60 <= at < 120}
    assert len(clean) > 100


def test_chance_is_even_and_depends_on_what_it_is_for():
    numbers = [chance(seed, Use.LUCK, 1) for seed in range(20_000)]
    assert all(0 <= number < 1 for number in numbers)
    assert sum(numbers) / len(numbers) == pytest.approx(0.5, abs=0.01)
    assert sum(n < 0.1 for n in numbers) / len(numbers) == pytest.approx(0.1, abs=0.01)
    assert len({chance(9, use, n) for use in Use for n in range(10)}) == 10 * len(Use)


def test_turns_start_as_often_as_the_scenario_says():
    scenario = Scenario(
        "x", rate_per_s=5, duration_s=1000, surges=(Surge(200, 400, 20), Surge(600, 800, 0, 10))
    )
    starts = [turn.at for turn in arrivals(scenario, 1, Arrival)]
    assert starts == sorted(starts)
    assert scenario.expected_turns() == pytest.approx(600 * 5 + 200 * 20 + 200 * 5)
    assert len(starts) == pytest.approx(scenario.expected_turns(), rel=0.04)
    assert sum(200 <= at < 400 for at in starts) == pytest.approx(4000, rel=0.06)
    rising = [at for at in starts if 600 <= at < 800]
    assert sum(at >= 700 for at in rising) > 2 * sum(at < 700 for at in rising)


def test_more_turns_repeat_a_scenario_and_fewer_thin_it_out():
    scenario = Scenario("x", rate_per_s=1, duration_s=100)
    assert sizes(scenario, None) == (1, 1.0)
    assert sizes(scenario, 1000) == (10, 1.0)
    assert sizes(scenario, 20) == (1, 0.2)
    assert sizes(evolve(scenario, capacity=Capacity()), 20) == (1, 1.0)
    tally = play(scenario, machines(Settings()), turns=1000)
    assert tally.turns == pytest.approx(1000, rel=0.15)
    assert tally.plays == 10


def test_a_turn_that_fails_all_the_time_is_sent_as_often_as_its_ladder_allows():
    scenario = Scenario("x", rate_per_s=1, duration_s=50, phases=always(Kind.OVERLOADED))
    tally, _ = one(scenario)
    assert tally.whole.amplification == 4
    assert tally.results[Result.FAILED] == tally.turns


POISON = Phase(0, 30, faults=(Fault(Kind.SERVER_ERROR, poisons=True),))
ONE_CONVERSATION = Scenario("x", rate_per_s=0.2, duration_s=300, turns_per_session=1000)


def test_a_conversation_keeps_what_broke_it_until_its_history_is_discarded():
    tally, ended = one(evolve(ONE_CONVERSATION, phases=(POISON,)))
    assert [e.result for e in list(ended.values())[:2]] == [
        Result.FAILED,  # its ladder is used up: once may be chance
        Result.LANDED_AFTER_RECOVERY,  # twice in a row, and a fresh session answers
    ]
    assert tally.results[Result.FAILED] == 1


def test_who_discards_no_history_never_lands_in_it_again():
    tally = play(evolve(ONE_CONVERSATION, phases=(POISON,)), policy("grpc"))
    assert (tally.turns > 30, tally.landed) == (True, 0)


def test_people_wait_for_an_answer_before_they_write_again():
    scenario = Scenario(
        "x", rate_per_s=1, duration_s=60, turns_per_session=30, latency_s=0, first_text_s=5
    )
    _, ended = one(scenario)
    for conversation in (0, 1):
        turns = [e for index, e in sorted(ended.items()) if index % 2 == conversation]
        assert len(turns) > 20
        assert all(before.at <= after.turn.at for before, after in pairwise(turns))
        assert any(before.at == after.turn.at for before, after in pairwise(turns))


def test_a_canary_is_a_call_and_fails_while_everything_does():
    tally, _ = one(evolve(ONE_CONVERSATION, phases=always(Kind.SERVER_ERROR)))
    assert tally.landed == 0
    # Four sends for each turn, and one canary from the second turn on.
    assert tally.whole.calls == 4 * tally.turns + (tally.turns - 1)


def test_a_blip_is_ridden_out_and_costs_what_the_curve_says():
    tally, ended = one(Scenario("x", rate_per_s=20, duration_s=90, phases=(evolve(DOWN, to_s=61),)))
    assert tally.landed == tally.turns
    rescued = [e for e in ended.values() if e.turn.sends > 1]
    assert rescued
    assert {e.turn.sends for e in rescued} == {2}
    assert tally.recovery.percentile(0.01) > 2.0


def test_output_before_a_failure_is_never_sent_again_as_it_was():
    scenario = Scenario(
        "x", duration_s=100, phases=always(Kind.OVERLOADED, share=0.5, after_output=True)
    )
    tally, _ = one(scenario)
    assert tally.shown_twice == 0
    theirs = play(scenario, policy("tenacity-default"))
    assert theirs.shown_twice > 50
    assert play(scenario, policy("anthropic-sdk")).shown_twice == 0


def test_people_who_press_stop_end_their_turns_and_nothing_stays_counted():
    scenario = Scenario(
        "x",
        duration_s=200,
        phases=always(Kind.OVERLOADED),
        users=Users(patience_s=3, stop=1.0),
    )
    tally, _ = one(scenario)
    assert tally.results[Result.STOPPED] > 0.6 * tally.turns
    assert tally.refunds > 0.5 * tally.results[Result.STOPPED]


def test_a_newer_message_goes_first_where_the_family_yields():
    world = Scenario(
        "x",
        duration_s=200,
        phases=always(Kind.OVERLOADED),
        users=Users(patience_s=60, steer=1.0),
    )
    tally, _ = one(world, Settings(choices=Choices(ride_out=True)))
    assert tally.results[Result.SUPERSEDED] > 0.7 * tally.turns


def test_a_dead_agent_is_rebuilt_by_us_and_by_nobody_else():
    scenario = Scenario("x", duration_s=300, phases=always(Kind.AGENT_DIED, share=0.5))
    tally, _ = one(scenario)
    assert tally.results[Result.LANDED_AFTER_RECOVERY] > 0.3 * tally.turns
    theirs = play(scenario, policy("tenacity-default"))
    assert theirs.landed == theirs.results[Result.LANDED_CLEAN]
    assert theirs.whole.amplification > 1.5


def test_another_model_lands_what_the_first_one_cannot():
    scenario = Scenario(
        "x",
        duration_s=100,
        phases=always(Kind.OVERLOADED),
        served=("spare",),
        healthy_models=("spare",),
    )
    settings = Settings(recoveries=Recoveries(fallback_models=("spare",)))
    tally, _ = one(scenario, settings)
    assert tally.results[Result.LANDED_AFTER_RECOVERY] == tally.turns
    assert one(scenario)[0].landed == 0


def test_a_spent_limit_is_waited_for_where_that_was_chosen():
    fault = Fault(Kind.USAGE_LIMIT, resets_at_s=500)
    scenario = Scenario("x", duration_s=400, rate_per_s=1, phases=(Phase(0, 500, faults=(fault,)),))
    tally, ended = one(scenario, Settings(choices=Choices(resume_at_reset=True)))
    assert tally.landed == tally.turns
    assert all(500 <= e.at <= 600 for e in ended.values())
    assert one(scenario)[0].landed == 0


def test_a_throttle_lets_through_what_it_says_and_names_the_wait():
    scenario = Scenario("x", rate_per_s=10, duration_s=60, throttle=Throttle(2, 5, hint_s=30))
    tally = play(scenario, machines(NO_RETRY))
    assert tally.landed == pytest.approx(5 + 2 * 60, abs=3)
    _, ended = one(evolve(scenario, rate_per_s=3))
    waited = [e.turn for e in ended.values() if e.turn.sends == 2]
    assert waited
    assert all(turn.sent_at - turn.at >= 30 for turn in waited)


def test_a_provider_with_capacity_slows_down_and_works_on_for_nobody():
    world = World(Scenario("x", capacity=Capacity(1.0, 0.5, timeout_s=2.0)))
    turn = Arrival(0, 0.0, 0.5, 0.5, 1)
    answers = [world.answer(turn, 1, 0.0) for _ in range(4)]
    assert [after for after, _ in answers] == [1.5, 2.0, 2.0, 2.0]
    assert [fault is None for _, fault in answers] == [True, True, False, False]
    assert world.busy(2.2) == 2  # those that timed out are still being worked on
    assert world.busy(3.1) == 0


def test_the_outage_and_the_minute_behind_it_are_counted_apart():
    scenario = Scenario("x", duration_s=300, phases=(DOWN,), outage=Stretch(60, 120))
    tally, _ = one(scenario)
    assert tally.outage.turns == pytest.approx(120, rel=0.3)
    assert tally.outage.amplification > 2.5
    assert 1.0 <= tally.after.amplification < 2
    assert tally.late.landed == tally.late.turns > 0
    assert MEASURES["amplification"].read(tally) == tally.outage.amplification


def test_a_budget_denies_and_says_so():
    scenario = Scenario("x", rate_per_s=20, duration_s=60, phases=always(Kind.OVERLOADED))
    tally, _ = one(scenario, Settings(budget=Budget(enabled=True)))
    assert tally.results[Result.DENIED] > 0.9 * tally.turns
    assert tally.results[Result.FAILED] + tally.results[Result.DENIED] == tally.turns
    tokens = 100 + 0.5 * 80
    assert tally.whole.calls - tally.turns <= tokens / 5 + 1


def test_nothing_is_lost_in_any_shipped_scenario():
    for name in names():
        if name.startswith("overload"):
            continue  # heavy, and played elsewhere
        tally = play(load(name), machines(Settings()), turns=300)
        assert tally.turns == tally.whole.turns, name
        assert sum(tally.results[r] for r in LANDED) == tally.landed, name
        assert tally.whole.calls >= tally.turns, name


def test_sample_turns_tell_a_whole_story():
    tally = play(load("impatient"), machines(Settings()), sampled=True)
    for strips in tally.samples.strips.values():
        assert 1 <= len(strips) <= 4
        for strip in strips:
            times = [when for when, _, _ in strip.marks]
            assert times == sorted(times)
            signs = [sign for _, sign, _ in strip.marks]
            assert signs[0] is Sign.SENT
            assert signs[-1] in (Sign.LANDED, Sign.ENDED)
            assert Sign.WARNED in signs or Sign.ERROR in signs


def test_a_percentile_is_right_within_its_buckets():
    spread = Spread()
    for value in range(1, 1001):
        spread.add(value / 10)
    for share in (0.5, 0.95, 0.99):
        assert spread.percentile(share) == pytest.approx(share * 100, rel=0.01)
    assert Spread().percentile(0.5) is None


@pytest.mark.parametrize(
    ("unit", "value", "words"),
    [
        (Unit.SHARE, 0.1234, "12.3 %"),
        (Unit.SECONDS, 2.25, "2.2 s"),
        (Unit.SECONDS, 61, "1m 01s"),
        (Unit.SECONDS, 3720, "1h 02m"),
        (Unit.TIMES, 1.3, "1.30x"),
        (Unit.TURNS, 12345, "12,345"),
    ],
)
def test_answers_read_as_people_speak(unit, value, words):
    assert in_words(unit, value) == words


def test_every_measure_answers_or_says_that_there_is_nothing():
    empty = play(Scenario("x", duration_s=1, rate_per_s=0.001), machines(Settings()))
    assert empty.turns == 0
    for measure in MEASURES.values():
        assert measure.read(empty) in (None, 0.0)
        assert measure.help
