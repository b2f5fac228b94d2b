"""A turn written down and put back."""

import json

import attrs
import pytest
from tenacity.wait import wait_fixed

from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Cause, Delivery, Refusal, Verdict
from orchestrator.settings.model import Recoveries, Settings
from orchestrator.turn import Curves, Due, Family, State, TurnMachine, Wait
from tests.turn.explore import SLOTS, check_snapshot
from tests.turn.play import Play, sent
from tests.turn.universe import SAME

RICH = Verdict.of(
    Kind.CONTENT_REFUSED,
    "Declined.",
    cause=Cause.DNS,
    details="Why.",
    retry_after_s=1.5,
    resets_at=1e9,
    resets_in_s=3.0,
    delivery=Delivery.AMBIGUOUS,
    rejected_model="m1",
    refusal=Refusal("policy", "because", "m3"),
    rule="rule",
)


def through_json(machine, **kwargs):
    return TurnMachine.restore(
        json.loads(json.dumps(machine.snapshot(), allow_nan=False)), **kwargs
    )


@pytest.mark.parametrize("field", sorted(set(SLOTS) - {"curves"}))
def test_every_field_of_a_turn_survives(field):
    play = sent(Settings(recoveries=Recoveries(fallback_models=("m2",)))).use_up(Kind.OVERLOADED)
    play.text()
    play.fail(Kind.OVERLOADED)
    assert getattr(through_json(play.machine), field) == getattr(play.machine, field)


def test_a_verdict_survives_with_all_it_carries():
    play = sent()
    play.refuse(Refusal(recommended_model="m2"))
    play.machine.verdict = RICH
    assert through_json(play.machine).verdict == RICH


def test_a_snapshot_is_json_that_names_what_is_pending():
    play = sent()
    play.fail(Kind.CONNECTION_LOST)
    kept = json.loads(json.dumps(play.machine.snapshot()))
    assert kept["plan"]["family"] == "transient"
    assert kept["verdict"]["kind"] == "connection_lost"
    assert kept["state"] == "waiting"


def test_times_are_relative_to_the_snapshots_own_now():
    play = sent()
    play.fail(Kind.OVERLOADED)
    kept = play.machine.snapshot(now=play.now + 0.5)
    assert kept["wait_until"] == 1.5
    assert kept["plan"]["failed_at"] == -0.5


def test_a_wait_goes_on_where_it_stood_on_another_clock():
    play = sent()
    play.fail(Kind.OVERLOADED)
    kept = play.machine.snapshot(now=play.now + 0.5)
    woken = TurnMachine.restore(kept, now=7_000.0)
    assert woken.next_deadline() == 7_001.5
    assert woken.handle(Due(7_001.4, SAME)) == ()
    assert woken.handle(Due(7_001.5, SAME)) != ()


def test_a_window_goes_on_where_it_stood_on_another_clock():
    play = sent().use_up(Kind.CONNECTION_LOST)
    start = play.machine.budgets.curve_start
    woken = TurnMachine.restore(play.machine.snapshot(now=start + 100.0), now=0.0)
    assert woken.budgets.curve_start == -100.0


def test_a_stop_budget_survives():
    play = sent()
    play.stop()
    woken = through_json(play.machine)
    assert woken.next_deadline() == play.machine.next_deadline()


@pytest.mark.parametrize(
    "reach",
    [
        Play,
        sent,
        lambda: sent().use_up(Kind.CONNECTION_LOST),
    ],
)
def test_a_restored_turn_goes_on_as_the_one_that_was_written_down(reach):
    play = reach()
    check_snapshot(play.machine)
    twin = reach()
    twin.machine = through_json(play.machine)
    for one in (play, twin):
        if one.machine.state is State.READY:
            one.send()
        one.fail_and_wait(Kind.CONNECTION_LOST)
        one.text()
        one.finish()
    assert twin.told[-6:] == play.told[-6:]


def test_an_embedders_own_waits_are_handed_in_again():
    curves = Curves(transient=wait_fixed(5))
    play = sent(curves=curves)
    woken = through_json(play.machine, curves=curves)
    play.machine = woken
    effects = play.fail(Kind.OVERLOADED)
    assert effects[-1] == Wait(105.0, 5.0, Family.TRANSIENT, 1, 3, Kind.OVERLOADED)


def wrong(change):
    play = sent()
    play.fail(Kind.AGENT_DIED)
    kept = play.machine.snapshot()
    change(kept)
    with pytest.raises(ValueError, match=r"^snapshot\.") as refused:
        TurnMachine.restore(kept)
    return str(refused.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=2), "snapshot.version: 2 is not allowed; 1 is"),
        (lambda d: d.pop("clean"), "snapshot.clean: is missing"),
        (lambda d: d.pop("now"), "snapshot.now: is missing"),
        (
            lambda d: d.update(number="3"),
            "snapshot.number: '3' is not allowed; a value of type int is",
        ),
        (
            lambda d: d.update(number=True),
            "snapshot.number: True is not allowed; a value of type int is",
        ),
        (
            lambda d: d["facts"].update(owed=1),
            "snapshot.facts.owed: 1 is not allowed; a value of type bool is",
        ),
        (lambda d: d.update(plan=[]), "snapshot.plan: [] is not allowed; an object is"),
        (
            lambda d: d["settings"]["recoveries"].update(fallback_models="m2"),
            "snapshot.settings.recoveries.fallback_models: 'm2' is not allowed; a list is",
        ),
        (
            lambda d: d.update(now=float("nan")),
            "snapshot.now: nan is not allowed; a finite number is",
        ),
        (
            lambda d: d["plan"].update(failed_at=float("-inf")),
            "snapshot.plan.failed_at: -inf is not allowed; a finite number is",
        ),
        (
            lambda d: d.update(wait_from=None),
            "snapshot.wait_from: None is not allowed; a value of type float is",
        ),
        (
            lambda d: d.update(plan=None),
            (
                "snapshot.plan: None is not allowed; what is pending, where a turn waits or"
                " recovers, is"
            ),
        ),
        (
            lambda d: d.update(verdict=None),
            "snapshot.verdict: None is not allowed; the failure behind what is pending is",
        ),
        (
            lambda d: d.update(wait_until=5.0),
            (
                "snapshot.wait_until: 5.0 is not allowed; a moment where a turn waits, and null"
                " elsewhere, is"
            ),
        ),
        (
            lambda d: d.update(step=1),
            "snapshot.step: 1 is not allowed; a step that the pending family has is",
        ),
    ],
)
def test_a_snapshot_that_is_not_one_names_the_field(change, message):
    assert wrong(change) == message


@pytest.mark.parametrize("data", [None, [], "{}", 5])
def test_a_snapshot_that_is_no_object_says_so(data):
    with pytest.raises(ValueError, match=r"^snapshot: .* is not allowed; an object is$"):
        TurnMachine.restore(data)


def test_a_number_beyond_all_floats_is_refused_like_any_other():
    assert wrong(lambda d: d.update(wait_from=10**400)).endswith("a finite number is")


def test_an_unknown_family_names_the_known_ones():
    message = wrong(lambda d: d["plan"].update(family="magic"))
    assert message.startswith("snapshot.plan.family: 'magic' is not allowed; one of busy, death,")


def test_a_setting_out_of_range_is_refused_with_its_path():
    message = wrong(lambda d: d["settings"]["turn"].update(max_sends=0))
    assert message.startswith("snapshot.settings.turn.max_sends: 0 is not allowed")


def test_the_fields_of_a_turn_are_the_fields_of_a_snapshot():
    kept = sent().machine.snapshot()
    assert set(kept) == {field.name for field in attrs.fields(TurnMachine)} - {"curves"} | {
        "version"
    }
