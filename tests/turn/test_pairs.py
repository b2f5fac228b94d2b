"""Every pair of state and event type: legal, or refused with nothing changed."""

import pytest

from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Refusal, Verdict
from orchestrator.settings.model import Settings
from orchestrator.turn import (
    ENDS,
    EVENTS,
    TRANSITIONS,
    Advised,
    Began,
    Dropped,
    Due,
    Event,
    Evidence,
    Failed,
    Finished,
    IllegalEvent,
    Rebound,
    Recovered,
    Refused,
    Retrying,
    RetryNow,
    RuntimeReplaced,
    Saw,
    SignedIn,
    Started,
    State,
    Step,
    Stopped,
    TurnMachine,
    UserSpoke,
)
from tests.turn.explore import SLOTS
from tests.turn.play import Play, sent
from tests.turn.universe import IDS, MOVED, SAME

SAMPLES = {
    Started: Started(1.0, SAME),
    Began: Began(1.0, SAME),
    Saw: Saw(1, Evidence.TEXT),
    Failed: Failed(1.0, SAME, 1, Verdict.of(Kind.OVERLOADED, "Overloaded.")),
    Refused: Refused(1.0, SAME, 1, Refusal()),
    Finished: Finished(1.0, SAME, 1),
    Retrying: Retrying(1, "Reconnecting."),
    Advised: Advised("key", "Advice."),
    Due: Due(1.0, SAME),
    RetryNow: RetryNow(1.0, SAME),
    Recovered: Recovered(1.0, SAME, Step.RESPAWN, ok=True),
    Stopped: Stopped(1.0, SAME),
    UserSpoke: UserSpoke(1.0, SAME),
    Rebound: Rebound(1.0, SAME),
    Dropped: Dropped(1.0, SAME),
    SignedIn: SignedIn(1.0),
    RuntimeReplaced: RuntimeReplaced(1.0),
}


def landed():
    play = sent()
    play.finish()
    return play.machine


def failed(kind):
    play = sent()
    play.fail(kind)
    return play.machine


def revoked(live=None):
    play = Play()
    play.send(live=live) if live else play.stop()
    return play.machine


IN_STATE = {
    State.IDLE: lambda: TurnMachine(Settings(), IDS),
    State.READY: lambda: Play().machine,
    State.ATTEMPTING: lambda: sent().machine,
    State.WAITING: lambda: failed(Kind.OVERLOADED),
    State.RECOVERING: lambda: failed(Kind.AGENT_DIED),
    State.LANDED: landed,
    State.FAILED: lambda: failed(Kind.BILLING),
    State.REFUSED: lambda: failed(Kind.CONTENT_REFUSED),
    State.STOPPED: revoked,
    State.SUPERSEDED: lambda: revoked(MOVED),
}


def facts_of(machine):
    return [getattr(machine, name) for name in SLOTS if name != "incidents"]


def test_the_samples_cover_every_event_and_every_state():
    assert set(SAMPLES) == set(EVENTS) == set(Event.__args__)
    assert set(IN_STATE) == set(State)


@pytest.mark.parametrize("state", list(State))
@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_a_pair_is_legal_or_refused_with_nothing_changed(state, kind):
    machine = IN_STATE[state]()
    assert machine.state is state
    before = facts_of(machine)
    if (state, kind) in TRANSITIONS:
        assert isinstance(machine.handle(SAMPLES[kind]), tuple)
        return
    with pytest.raises(IllegalEvent) as refused:
        machine.handle(SAMPLES[kind])
    assert facts_of(machine) == before
    assert (refused.value.state, refused.value.event) == (state, SAMPLES[kind])


@pytest.mark.parametrize("state", sorted(ENDS))
def test_behind_an_end_every_event_gives_nothing(state):
    machine = IN_STATE[state]()
    before = facts_of(machine)
    assert all(machine.handle(event) == () for event in SAMPLES.values())
    assert facts_of(machine) == before


def test_an_illegal_event_names_the_legal_ones():
    with pytest.raises(IllegalEvent) as refused:
        TurnMachine(Settings(), IDS).handle(SAMPLES[Began])
    assert str(refused.value) == (
        "Began is not allowed while a turn is idle; Due, RuntimeReplaced, SignedIn, Started are"
    )


def test_exactly_these_pairs_are_illegal():
    illegal = {
        (state.value, kind.__name__)
        for state in State
        for kind in EVENTS
        if (state, kind) not in TRANSITIONS
    }
    out_of_turn = {(s, "Started") for s in ("ready", "attempting", "waiting", "recovering")}
    unasked = {(s, "Began") for s in ("idle", "attempting", "waiting", "recovering")}
    legal_at_first = ("Started", "Began", "Due", "SignedIn", "RuntimeReplaced")
    too_early = {("idle", kind.__name__) for kind in EVENTS if kind.__name__ not in legal_at_first}
    assert illegal == out_of_turn | unasked | too_early | {("attempting", "Dropped")}


@pytest.mark.parametrize("luck", [-0.1, 1.0, float("nan")])
def test_luck_outside_its_range_is_refused_by_name(luck):
    with pytest.raises(ValueError, match=r"Recovered\.luck: .* a number from 0 to below 1 is"):
        Recovered(1.0, SAME, Step.RESPAWN, ok=True, luck=luck)


@pytest.mark.parametrize("now", [float("inf"), float("nan")])
@pytest.mark.parametrize("kind", [Due, RetryNow, Stopped])
def test_a_moment_that_no_timer_can_be_set_by_is_refused_by_name(kind, now):
    with pytest.raises(ValueError, match=rf"{kind.__name__}\.now: .* finite"):
        kind(now, SAME)


@pytest.mark.parametrize("field", ["turn_id", "session_id", "epoch"])
def test_a_turn_without_a_name_is_refused(field):
    from attrs import evolve

    with pytest.raises(ValueError, match=f"{field}: ' ' is not allowed"):
        evolve(IDS, **{field: " "})
