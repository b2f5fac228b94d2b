"""What the model itself refuses."""

import pytest

from orchestrator.settings.model import BOUNDS, Budget, Curve, Ladders, Metrics, Settings
from orchestrator.settings.tree import tree


@pytest.mark.parametrize(
    "value", [-1, 0, True, float("nan"), float("inf"), "2", None, 10**400], ids=lambda v: str(v)[:9]
)
def test_a_curve_that_makes_no_sense_cannot_be_built(value):
    with pytest.raises(
        ValueError, match=r"^first_s: .* is not allowed; a number from 0.001 to 3600"
    ):
        Curve(first_s=value)


def test_a_value_that_cannot_even_be_printed_is_refused_in_words():
    with pytest.raises(ValueError, match="first_s: a number this long is not allowed"):
        Curve(first_s=10**5000)


def test_a_list_is_a_tuple_of_different_texts():
    for wrong in (["a"], ("a", "a"), ("",), (1,), "a"):
        with pytest.raises(ValueError, match="providers"):
            Metrics(providers=wrong)


def test_settings_that_contradict_each_other_cannot_be_built():
    with pytest.raises(ValueError, match="cap_s: 60 is not allowed; 70 or more") as caught:
        Settings(ladders=Ladders(curve=Curve(first_s=70)), budget=Budget(retry_cost=1000))
    assert "budget.retry_cost: 1000 is not allowed; 100 or less" in str(caught.value)


def test_every_bound_is_between_settings_that_exist():
    for bound in BOUNDS:
        assert {bound.path, bound.other} <= tree().leaves.keys()
