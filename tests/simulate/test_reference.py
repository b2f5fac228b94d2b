"""Against published simulations and closed forms; see `reference.py` for the sources."""

import math
import statistics

import pytest
from attrs import evolve

from orchestrator.settings.model import Budget
from orchestrator.simulate.fleet import play
from orchestrator.simulate.ours import machines
from orchestrator.simulate.reading import load
from tests.simulate import reference as ref

# S1: milliseconds and writes, means of 100 published-parameter runs.
CONTENTION = {
    (10, "none"): (378, 51),
    (10, "expo"): (3528, 51),
    (10, "equal"): (722, 42),
    (10, "full"): (458, 39),
    (50, "none"): (1139, 691),
    (50, "expo"): (36604, 625),
    (50, "equal"): (4203, 347),
    (50, "full"): (2851, 331),
}


@pytest.mark.parametrize(("clients", "waits"), CONTENTION)
def test_contention_takes_as_long_and_as_many_writes_as_published(clients, waits):
    count = 40 if clients == 10 else 8
    runs = [ref.contention(ref.WAITS[waits], clients, seed) for seed in range(count)]
    for values, published in zip(zip(*runs, strict=True), CONTENTION[clients, waits], strict=True):
        error = statistics.stdev(values) * math.sqrt(1 / count + 1 / 100)
        assert abs(statistics.fmean(values) - published) < 4 * error + 0.01 * published


def test_jitter_beats_a_bare_exponential_curve_in_time_and_writes():
    runs = {
        name: [ref.contention(waits, 30, seed) for seed in range(5)]
        for name, waits in ref.WAITS.items()
    }
    ms = {name: statistics.fmean(run[0] for run in of) for name, of in runs.items()}
    writes = {name: statistics.fmean(run[1] for run in of) for name, of in runs.items()}
    assert ms["full"] < ms["equal"] < ms["expo"]
    assert writes["full"] < writes["expo"] < 1.05 * writes["none"]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("player", ["policy", "machine"])
def test_three_retries_land_and_load_as_the_closed_form_says(share, player):
    player_of = (
        ref.policy_of(ref.THREE) if player == "policy" else ref.machines(ref.at_once(retries=3))
    )
    landed, load, turns = ref.against_chance(share, player_of, seed=7)
    success, exact_load = ref.exactly(share)
    assert abs(landed - success) <= 4 * math.sqrt(success * (1 - success) / turns) + 1e-12
    assert abs(load - exact_load) <= 4 * ref.load_error(share, turns) + 1e-12


# S2: success rate and load of a bucket of 5 that gets a tenth back for each success.
BUCKET = {0.1: (0.9908, 1.102), 0.5: (0.5508, 1.097), 1.0: (0.0, 1.040)}


@pytest.mark.parametrize("share", BUCKET)
def test_the_machine_with_a_token_bucket_lands_and_loads_as_published(share):
    landed, load, runs = ref.hundred_clients(share, 3, ref.at_once(100, ref.BUCKET))
    clients = len(runs)
    success_error = statistics.stdev(r.landed / r.turns for r in runs) / math.sqrt(clients)
    load_error = statistics.stdev(r.whole.amplification for r in runs) / math.sqrt(clients)
    success, published_load = BUCKET[share]
    # The published figure is itself the mean of five such runs.
    wider = math.sqrt(1 + 1 / 5)
    assert abs(landed - success) <= 4 * wider * success_error + 1e-9
    assert abs(load - published_load) <= 4 * wider * load_error + 1e-3


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_token_bucket_bounds_the_load_whatever_fails(share):
    _, _, runs = ref.hundred_clients(share, 4, ref.at_once(100, ref.BUCKET))
    for tally in runs:
        bound = 1 + ref.BUCKET.landed_refill + 5 / tally.turns
        assert tally.whole.amplification <= bound


def test_a_spike_is_for_ever_without_backoff_and_passes_with_it():
    before, during, _, later = ref.goodputs(ref.spike, ref.NO_BACKOFF, 4)
    assert before > 0.95
    assert during < 0.85
    assert later < 0.6  # published: 0.39, for ever
    *_, later = ref.goodputs(ref.spike, ref.BACKOFF, 3)
    assert later > 0.95
    *_, later = ref.goodputs(ref.spike, ref.NO_RETRY, 2)
    assert later > 0.95


def test_a_ramp_is_for_ever_with_any_unbudgeted_retry():
    for waits in (ref.NO_BACKOFF, ref.BACKOFF):
        assert ref.goodputs(ref.ramp, waits, 2)[3] < 0.05
    after, later = ref.goodputs(ref.ramp, ref.NO_RETRY, 2)[2:]
    assert after > 0.5
    assert later > 1.0  # the backlog clears


@pytest.mark.parametrize("shape", ["spike", "ramp"])
def test_the_same_retries_recover_under_our_budget(shape):
    load_of = {"spike": ref.spike, "ramp": ref.ramp}[shape]
    later = ref.goodputs(load_of, ref.NO_BACKOFF, 2, Budget(enabled=True))[3]
    assert later > 0.95


@pytest.mark.parametrize("name", ["overload", "overload-ramp"])
def test_the_machine_recovers_under_a_budget_where_it_never_does_without(name):
    scenario = evolve(load(name), duration_s=80)
    late = {}
    for enabled in (False, True):
        settings = ref.Settings(budget=Budget(enabled=enabled))
        tally = play(scenario, machines(settings), seed=3)
        late[enabled] = tally.late.landed / tally.late.turns
    assert late[False] < 0.1
    assert late[True] > 0.95
