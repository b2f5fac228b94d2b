import pytest

from orchestrator.runner.budget import TokenBucket
from orchestrator.settings.model import Budget

RULE = Budget(enabled=True, capacity=10.0, retry_cost=5.0, landed_refill=1.0, refill_per_s=0.5)


def test_a_full_bucket_allows_as_many_retries_as_it_holds():
    bucket = TokenBucket(RULE)
    bucket.spend(0.0)
    assert bucket.allows(0.0)
    bucket.spend(0.0)
    assert not bucket.allows(0.0)


def test_a_landed_turn_gives_something_back_and_never_more_than_fits():
    bucket = TokenBucket(RULE)
    bucket.landed(0.0)
    assert bucket.tokens == 10.0
    bucket.spend(0.0)
    bucket.landed(0.0)
    assert bucket.tokens == 6.0


def test_time_trickles_in_and_going_backwards_takes_nothing_out():
    bucket = TokenBucket(RULE)
    bucket.spend(100.0)
    bucket.spend(100.0)
    assert not bucket.allows(109.9)
    assert bucket.allows(110.0)
    assert bucket.allows(5.0)
    assert bucket.tokens == pytest.approx(5.0)


def test_spending_never_goes_below_nothing():
    bucket = TokenBucket(RULE)
    for _ in range(9):
        bucket.spend(0.0)
    assert bucket.tokens == 0.0


def test_another_rule_keeps_how_full_it_is():
    bucket = TokenBucket(RULE)
    bucket.spend(0.0)
    bucket.change(Budget(enabled=True, capacity=100.0))
    assert bucket.tokens == 50.0
