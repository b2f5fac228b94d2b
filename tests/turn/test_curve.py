"""Waits: a pure function of the attempt number, luck and a hint."""

import random

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st
from tenacity.wait import (
    wait_chain,
    wait_exponential_jitter,
    wait_fixed,
    wait_incrementing,
    wait_random,
)

from orchestrator.failure.kinds import Kind
from orchestrator.settings.model import Recoveries, Settings
from orchestrator.turn import ROWS, Curves, Family, Ladder, Pace, Pause, delay
from orchestrator.turn.curve import base
from tests.turn.play import sent


def wait(number, luck=0.0, pause=Pause(), settings=Settings(), **kwargs):  # noqa: B008
    return delay(settings, pause, number, luck, **kwargs)


def test_the_curve_doubles_from_two_seconds():
    assert [wait(n) for n in (1, 2, 3, 4, 5, 6, 7)] == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]


def test_jitter_adds_up_to_a_quarter_of_the_capped_base():
    assert wait(1, luck=0.5) == 2.25
    assert wait(1000, luck=0.5, pause=ROWS[Family.CONNECTION].pause) == 33.75


@given(number=st.integers(1, 10**6), luck=st.floats(0.0, 1.0, exclude_max=True))
@profile(max_examples=60)
def test_a_wait_is_never_shorter_than_its_base_and_never_a_quarter_longer(number, luck):
    plain = base(Settings(), Pause(), number)
    assert plain <= wait(number, luck) <= plain * 1.25


def test_a_first_wait_stays_the_first():
    assert [wait(n, pause=Pause(pace=Pace.FIRST)) for n in (1, 2, 9)] == [2.0] * 3


@pytest.mark.parametrize(
    ("hint", "expected"), [(None, 2.0), (0.0, 2.0), (1.0, 2.0), (50.0, 50.0), (120.0, 120.0)]
)
def test_a_short_hint_stretches_a_wait(hint, expected):
    assert wait(1, hint=hint) == expected


def test_a_hint_too_long_to_wait_for_is_left_to_the_rows():
    assert wait(1, hint=120.1) == 2.0


def test_a_wait_for_a_reset_ends_up_to_a_minute_behind_it():
    pause = Pause(pace=Pace.AT_RESET)
    assert wait(1, pause=pause, hint=3600.0) == 3600.0
    assert wait(1, pause=pause, hint=3600.0, luck=0.75) == 3645.0
    assert wait(1, pause=pause, hint=-5.0) == 0.0


def test_no_wait_is_longer_than_a_month():
    assert wait(1, pause=Pause(pace=Pace.AT_RESET), hint=1e12) == 30 * 86_400.0


def test_another_strategy_takes_the_place_of_the_curve_and_the_cap_stays():
    curves = Curves(transient=wait_chain(wait_fixed(1), wait_fixed(3), wait_fixed(500)))
    assert [wait(n, curves=curves) for n in (1, 2, 3)] == [1.0, 3.0, 60.0]
    assert wait(1, curves=curves, pause=Pause(Ladder.BUSY)) == 1.5


def test_a_strategy_of_the_embedder_drives_the_machine():
    play = sent(curves=Curves(transient=wait_incrementing(5, 5), busy=wait_fixed(7)))
    assert play.fail(Kind.OVERLOADED)[-1].delay == 5.0
    play.due()
    play.send()
    assert play.fail(Kind.OVERLOADED)[-1].delay == 10.0
    play.due()
    play.send()
    assert play.fail(Kind.PROMPT_BUSY)[-1].delay == 7.0


@pytest.mark.parametrize("strategy", [wait_random(0, 1), wait_exponential_jitter()])
def test_a_strategy_with_luck_of_its_own_is_refused(strategy):
    with pytest.raises(ValueError, match=r"curves\.transient: .* attempt number alone"):
        Curves(transient=strategy)


def test_a_strategy_that_waits_backwards_is_refused():
    with pytest.raises(ValueError, match=r"curves\.busy: .* finite waits of 0 s or more"):
        Curves(busy=wait_fixed(-1))


def test_a_wait_never_draws_from_the_global_random():
    before = random.getstate()
    wait(3, luck=0.3, curves=Curves(transient=wait_fixed(2)))
    assert random.getstate() == before


def test_a_wait_behind_a_step_counts_from_the_end_of_the_step():
    play = sent(Settings(recoveries=Recoveries(fallback_models=("m2",))))
    play.use_up(Kind.RATE_LIMITED)
    play.fail(Kind.RATE_LIMITED, retry_after_s=60.0)
    play.now += 20.0
    assert play.recovered()[-1].delay == 40.0
