"""Each cause of a drop, and everything a Stop, a newer message or a rebind can meet."""

import pytest
from attrs import evolve

from orchestrator.failure.kinds import Action, Kind
from orchestrator.failure.verdict import Refusal
from orchestrator.incident.record import Severity
from orchestrator.settings.model import Settings, TurnLimits
from orchestrator.turn import (
    Began,
    Cancel,
    CancelWait,
    Dispatch,
    Drop,
    Dropped,
    DropReason,
    Due,
    End,
    Facts,
    Family,
    Finished,
    How,
    Note,
    NoteCode,
    Publish,
    Rebound,
    Recover,
    Send,
    SessionState,
    State,
    Step,
    Stopped,
    StopReason,
    UserSpoke,
    Wait,
)
from tests.turn.play import Play, sent
from tests.turn.universe import MOVED, NO_BUDGET, OTHER_STOP, SAME, STOPPING, USER

OWED = Facts(owed=True, interactive=False)
STOPS = [OTHER_STOP, STOPPING, evolve(SAME, surface_stops=1)]


def waiting(kind=Kind.OVERLOADED, **kwargs):
    play = sent(**kwargs)
    play.fail(kind)
    assert play.machine.state is State.WAITING
    return play


def recovering(kind=Kind.AGENT_DIED, **kwargs):
    play = sent(**kwargs)
    play.fail(kind)
    assert play.machine.state is State.RECOVERING
    return play


def ready(kind=Kind.OVERLOADED, **kwargs):
    play = waiting(kind, **kwargs)
    play.due()
    return play


def continuing():
    """A plan that yields, in its wait."""
    play = sent()
    play.text()
    play.fail(Kind.OVERLOADED)
    return play


def kinds_of(effects):
    return [type(effect) for effect in effects]


# a Stop


def test_a_stop_during_a_backoff_drops_the_retry_and_hands_nothing_back():
    play = waiting()
    cancel, drop, note, publish, end = play.stop()
    assert isinstance(cancel, CancelWait)
    assert drop == Drop(Family.TRANSIENT, 1, DropReason.STOPPED)
    assert note.code is NoteCode.STOPPED
    assert publish.record.revision == 2
    assert publish.record.severity is Severity.ERROR
    assert publish.record.title == "overloaded. Trying again was stopped."
    assert publish.record.actions == (Action.RETRY,)
    assert (end.outcome, end.stop_reason) == (How.STOPPED, "cancelled")
    assert play.machine.budgets.curve == 0
    assert play.machine.dropped == 1


@pytest.mark.parametrize("live", STOPS)
@pytest.mark.parametrize("where", [waiting, ready, recovering])
def test_a_stop_that_only_the_world_shows_is_seen_wherever_something_is_pending(where, live):
    play = where()
    play.tell(UserSpoke(play.now, live))
    assert play.end.outcome is How.STOPPED


@pytest.mark.parametrize("live", STOPS)
def test_a_stop_is_seen_at_the_drain_and_at_the_send(live):
    assert waiting().due(live=live)[-1].outcome is How.STOPPED
    assert ready().send(live=live)[-1].outcome is How.STOPPED


@pytest.mark.parametrize("live", STOPS)
def test_a_stop_is_seen_at_the_decision_before_anything_is_decided(live):
    play = sent()
    assert kinds_of(play.fail(Kind.OVERLOADED, live=live)) == [End]
    assert play.end.outcome is How.STOPPED


def test_a_stop_in_front_of_the_first_send_sends_nothing():
    play = Play()
    note, end = play.send(live=OTHER_STOP)
    assert (note.code, end.outcome) == (NoteCode.STOPPED, How.STOPPED)
    assert play.sends == []


def test_a_turn_that_starts_into_a_stop_in_flight_is_not_dispatched():
    play = Play(live=STOPPING)
    assert play.end.outcome is How.STOPPED


def test_an_early_tick_that_shows_a_stop_drops_the_retry():
    play = waiting()
    play.tell(Due(play.now, STOPPING))
    assert play.end.outcome is How.STOPPED


def test_a_stop_while_recovering_ends_at_once():
    play = recovering()
    drop, *_, end = play.stop()
    assert drop == Drop(Family.DEATH, 1, DropReason.STOPPED)
    assert end.outcome is How.STOPPED
    assert end.session.deaths == 0


def test_a_stop_offers_retry_first_and_then_what_the_kind_offers():
    play = recovering()
    play.stop()
    assert play.records[-1].actions == (Action.RETRY, Action.NEW_SESSION)


def test_a_stop_never_offers_to_retry_what_is_structural():
    play = sent(facts=Facts(subagent=True))
    play.fail(Kind.CONTEXT_OVERFLOW)
    play.stop()
    assert play.records[-1].actions == (Action.NEW_SESSION,)


def test_a_stop_of_a_hop_settles_nothing_since_nothing_was_told():
    play = sent()
    play.refuse(Refusal(recommended_model="m2"))
    assert kinds_of(play.stop()) == [Drop, Note, End]


# a Stop while an attempt runs


def test_a_soft_stop_asks_the_agent_and_waits_ten_seconds():
    play = sent()
    assert play.stop() == (Cancel(1, hard=False),)
    assert play.machine.next_deadline() == play.now + 10.0
    cancel, end = play.due()
    assert cancel == Cancel(1, hard=True)
    assert end.outcome is How.STOPPED


def test_a_tick_before_the_stop_budget_is_over_changes_nothing():
    play = sent()
    play.stop()
    assert play.tell(Due(play.now + 9.9, play.live)) == ()


@pytest.mark.parametrize("hard", [False, True])
def test_a_second_stop_is_a_hard_one(hard):
    play = sent()
    play.stop()
    assert kinds_of(play.stop(hard=hard)) == [Cancel, End]


def test_a_hard_stop_cancels_at_once():
    cancel, end = sent().stop(hard=True)
    assert (cancel.hard, end.outcome) == (True, How.STOPPED)


@pytest.mark.parametrize(
    "ending",
    [
        lambda play: play.finish(),
        lambda play: play.finish(StopReason.CANCELLED),
        lambda play: play.finish(StopReason.MAX_TURN_REQUESTS),
        lambda play: play.fail(Kind.OVERLOADED),
        lambda play: play.fail(Kind.AGENT_DIED),
        lambda play: play.fail(Kind.CANCELLED),
        lambda play: play.refuse(Refusal()),
    ],
)
def test_whatever_ends_an_attempt_behind_a_stop_ends_the_turn_as_stopped(ending):
    play = sent()
    play.stop()
    assert ending(play)[-1].outcome is How.STOPPED
    assert play.machine.next_deadline() is None


def test_text_that_still_lands_behind_a_stop_is_evidence():
    play = sent()
    play.stop()
    play.text()
    play.finish(StopReason.CANCELLED)
    assert not play.machine.clean
    assert play.end.session.poisoned_streak == 0


def test_a_stop_settles_the_warning_of_the_attempt_that_it_ends():
    play = sent()
    play.fail_and_wait(Kind.OVERLOADED)
    play.stop()
    publish, end = play.finish(StopReason.CANCELLED)
    assert publish.record.title == "overloaded. Trying again was stopped."
    assert end.outcome is How.STOPPED


def test_a_stop_that_only_the_world_shows_asks_the_agent_too():
    play = sent()
    assert play.tell(UserSpoke(play.now, OTHER_STOP)) == (Cancel(1, hard=False),)
    assert play.tell(UserSpoke(play.now, OTHER_STOP)) == ()


def test_a_wire_cancel_without_a_stop_lands_cut_short():
    end = sent().finish(StopReason.CANCELLED)[-1]
    assert (end.outcome, end.stop_reason) == (How.LANDED, "cancelled")


def test_the_stop_budget_is_a_setting():
    play = sent(Settings(turn=TurnLimits(stop_budget_s=3.0)))
    play.stop()
    assert play.machine.next_deadline() == play.now + 3.0


# a newer message


def test_a_newer_message_takes_the_place_of_a_plan_that_yields():
    play = continuing()
    effects = play.tell(UserSpoke(play.now, USER))
    assert kinds_of(effects) == [CancelWait, Drop, Note, Publish, End]
    assert effects[1].reason is DropReason.SUPERSEDED
    assert effects[2].code is NoteCode.SUPERSEDED
    assert effects[3].record.actions == ()
    assert effects[4].outcome is How.SUPERSEDED


def test_a_newer_message_is_seen_at_the_drain_and_at_the_send():
    assert continuing().due(live=USER)[-1].outcome is How.SUPERSEDED
    play = continuing()
    play.due()
    assert play.send(live=USER)[-1].outcome is How.SUPERSEDED


def test_a_newer_message_leaves_a_plain_retry_alone():
    play = waiting()
    assert play.tell(UserSpoke(play.now, USER)) == ()
    play.due(live=USER)
    assert play.send(live=USER)[-1] == Send(2, Family.TRANSIENT)


def test_a_newer_message_neither_settles_nor_closes_a_standing_warning():
    play = sent().use_up(Kind.CONNECTION_LOST)
    play.fail(Kind.CONNECTION_LOST)
    before = len(play.records)
    play.tell(UserSpoke(play.now, USER))
    assert len(play.records) == before
    assert play.machine.incidents.open.standing


# a rebind


@pytest.mark.parametrize("where", [waiting, ready, recovering])
def test_a_rebind_drops_whatever_is_pending(where):
    play = where()
    effects = play.tell(Rebound(play.now, MOVED))
    drop = next(effect for effect in effects if isinstance(effect, Drop))
    assert drop.reason is DropReason.REBOUND
    assert play.notes == [NoteCode.MOVED]
    assert play.records[-1].actions == ()
    assert play.end.outcome is How.SUPERSEDED


def test_a_rebind_is_seen_at_the_decision():
    assert sent().fail(Kind.OVERLOADED, live=MOVED)[-1].outcome is How.SUPERSEDED


def test_a_rebind_leaves_an_attempt_in_flight_alone():
    play = sent()
    assert play.tell(Rebound(play.now, MOVED)) == ()
    assert play.finish(live=MOVED)[-1].outcome is How.LANDED


def test_a_slot_that_had_no_binding_can_not_be_rebound():
    play = waiting(live=evolve(SAME, binding=""))
    assert play.tell(Rebound(play.now, MOVED)) == ()


# a lost entry, a denied one, a step that failed


@pytest.mark.parametrize("reason", [DropReason.LOST, DropReason.DENIED])
def test_an_entry_that_the_host_lost_is_dropped_with_its_reason(reason):
    play = ready()
    drop, note, publish, end = play.tell(Dropped(play.now, SAME, reason))
    assert (drop.reason, note.code) == (reason, reason.value)
    assert publish.record.actions == (Action.RETRY,)
    assert end.outcome is How.SUPERSEDED


def test_an_entry_lost_behind_a_stop_counts_as_stopped():
    play = ready()
    assert play.tell(Dropped(play.now, OTHER_STOP))[-1].outcome is How.STOPPED


def test_a_first_entry_that_was_lost_leaves_nothing_to_drop():
    play = Play()
    assert kinds_of(play.tell(Dropped(play.now, SAME))) == [Note, End]


@pytest.mark.parametrize(
    ("reason", "actions"),
    [
        (DropReason.STOPPED, (Action.RETRY,)),
        (DropReason.REBOUND, ()),
        (DropReason.LOST, (Action.RETRY,)),
        (DropReason.DENIED, (Action.RETRY,)),
    ],
)
def test_a_host_that_drops_what_was_taken_over_offers_nothing(reason, actions):
    play = ready()
    record = next(
        effect.record
        for effect in play.tell(Dropped(play.now, SAME, reason))
        if isinstance(effect, Publish)
    )
    assert record.actions == actions


def test_a_step_that_failed_counts_as_denied():
    play = recovering()
    assert play.recovered(ok=False)[0] == Drop(Family.DEATH, 1, DropReason.DENIED)


# the fleet's retry budget


def test_a_retry_that_the_budget_denies_at_the_decision_ends_the_turn_with_its_reason():
    play = sent()
    note, publish, end = play.fail(Kind.OVERLOADED, live=NO_BUDGET)
    assert note.code is NoteCode.RETRY_BUDGET
    assert publish.record.severity is Severity.ERROR
    assert end.outcome is How.FAILED


def test_a_failure_that_no_row_would_serve_does_not_blame_the_budget():
    play = sent()
    assert kinds_of(play.fail(Kind.BILLING, live=NO_BUDGET)) == [Publish, End]


def test_a_retry_that_others_used_up_the_budget_for_is_dropped_and_the_turn_ends_as_it_failed():
    play = ready()
    drop, note, publish, end = play.send(NO_BUDGET)
    assert (drop.family, drop.reason) == (Family.TRANSIENT, DropReason.DENIED)
    assert note.code is NoteCode.RETRY_BUDGET
    assert publish.record.actions == (Action.RETRY,)
    assert (end.outcome, end.session) == (How.FAILED, SessionState())


# several at once


@pytest.mark.parametrize(
    ("live", "reason", "code", "outcome"),
    [
        (evolve(OTHER_STOP, user_input=True), "stopped", NoteCode.SUPERSEDED, How.STOPPED),
        (evolve(MOVED, user_input=True), "superseded", NoteCode.SUPERSEDED, How.SUPERSEDED),
        (evolve(MOVED, session_stops=1), "stopped", NoteCode.STOPPED, How.STOPPED),
    ],
)
def test_superseded_beats_stopped_beats_moved_in_what_is_told(live, reason, code, outcome):
    play = continuing()
    effects = play.due(live=live)
    assert effects[1].reason == reason
    assert play.notes == [code]
    assert play.end.outcome is outcome
    assert play.records[-1].actions == ()


def test_a_drop_leaves_the_session_as_the_last_send_left_it():
    play = sent(session=SessionState(lost=0, deaths=1))
    play.fail(Kind.AGENT_DIED)
    play.recovered()
    play.send()
    after_send = play.machine.session
    play.fail(Kind.SESSION_NOT_FOUND)
    assert play.stop()[-1].session == after_send == SessionState(deaths=2)


# owed completions


@pytest.mark.parametrize("live", [*STOPS, MOVED, USER])
def test_nothing_soft_revokes_a_clean_owed_completion_in_line_or_in_a_wait(live):
    play = Play(facts=OWED)
    assert play.told == [Dispatch("verbatim", 1, ahead=True)]
    play.stop()
    assert play.send(live=live)[-1] == Send(1)
    play = waiting(facts=OWED)
    assert play.tell(UserSpoke(play.now, live)) == ()
    assert isinstance(play.due(live=live)[-1], Dispatch)
    assert isinstance(play.send(live=live)[-1], Send)


def test_an_owed_completion_that_yields_goes_ahead_of_a_newer_message():
    opted = Facts(owed=True, resume_at_reset=True)
    play = sent(facts=opted)
    play.fail(Kind.USAGE_LIMIT, resets_in_s=60.0)
    assert play.due(live=USER)[-1].ahead
    assert isinstance(play.send(live=USER)[-1], Send)


def test_a_hard_stop_ends_an_owed_completion():
    play = waiting(facts=OWED)
    assert play.stop(hard=True)[-1].outcome is How.STOPPED
    assert Play(facts=OWED).stop(hard=True)[-1].outcome is How.STOPPED


def test_an_owed_completion_in_flight_is_not_exempt():
    play = sent(facts=OWED)
    assert play.stop() == (Cancel(1, hard=False),)
    play = sent(facts=OWED)
    assert play.fail(Kind.OVERLOADED, live=OTHER_STOP)[-1].outcome is How.STOPPED


def test_a_stop_that_an_owed_completion_outlived_does_not_end_its_attempt():
    play = Play(facts=OWED)
    play.send(live=OTHER_STOP)
    assert play.finish(live=OTHER_STOP)[-1].outcome is How.LANDED


def test_a_step_behind_a_wait_is_not_ended_by_a_stop_that_the_wait_outlived():
    play = waiting(Kind.REGISTRATION_THROTTLED, facts=OWED)
    assert isinstance(play.due(live=OTHER_STOP)[-1], Recover)
    assert isinstance(play.recovered(live=OTHER_STOP)[-1], Dispatch)
    assert isinstance(play.send(live=OTHER_STOP)[-1], Send)


def test_an_owed_completion_that_is_not_clean_is_revoked_like_anything_else():
    play = sent(facts=OWED)
    play.text()
    play.fail(Kind.OVERLOADED)
    assert play.stop()[-1].outcome is How.STOPPED


def test_text_that_the_host_wrote_itself_is_never_owed():
    play = waiting(facts=evolve(OWED, runner_written=True))
    assert play.stop()[-1].outcome is How.STOPPED


def test_an_owed_completion_that_is_recovering_ends_at_a_stop():
    play = recovering(facts=OWED)
    assert play.stop()[-1].outcome is How.STOPPED


def test_an_owed_completion_may_start_into_a_stop_in_flight():
    play = Play(facts=OWED, live=STOPPING)
    assert play.send(live=SAME)[-1] == Send(1)


# what is late or twice


def test_news_of_another_attempt_is_ignored():
    play = sent()
    play.fail_and_wait(Kind.OVERLOADED)
    late = Finished(play.now, play.live, 1)
    assert play.tell(late) == ()
    assert play.machine.state is State.ATTEMPTING


def test_late_news_that_shows_a_stop_is_still_a_look_at_the_world():
    play = waiting()
    play.tell(Finished(play.now, OTHER_STOP, 1))
    assert play.end.outcome is How.STOPPED


def test_a_step_reported_twice_counts_once():
    play = sent(session=SessionState(poisoned_streak=1)).use_up(Kind.SERVER_ERROR)
    play.fail(Kind.SERVER_ERROR)
    play.recovered(step=Step.CANARY)
    assert play.recovered(step=Step.CANARY) == ()
    assert play.recovered(step=Step.DISCARD)[-1] == Dispatch("verbatim", 5, ahead=True)


def test_ticks_early_late_and_twice_are_harmless():
    play = waiting()
    assert play.tell(Due(play.now + 1.9, SAME)) == ()
    assert isinstance(play.tell(Due(play.now + 86_400.0, SAME))[-1], Dispatch)
    assert play.tell(Due(play.now + 86_400.0, SAME)) == ()


def test_a_clock_that_goes_backwards_waits_and_counts_nothing_below_zero():
    play = waiting()
    assert play.tell(Due(-1e9, SAME)) == ()
    play.retry_now()
    assert play.machine.waited_s == 0.0
    play.send()
    assert isinstance(play.fail(Kind.OVERLOADED, at=-1e6)[-1], Wait)


def test_nothing_is_answered_behind_the_end():
    play = sent()
    play.finish()
    for event in (
        Began(play.now, SAME),
        Due(play.now, STOPPING),
        Stopped(play.now, SAME, hard=True),
        Finished(play.now, SAME, 1),
    ):
        assert play.tell(event) == ()


def test_a_recovery_that_a_stop_overtook_is_not_gone_on_with():
    play = recovering()
    effects = play.recovered(live=OTHER_STOP)
    assert Recover not in kinds_of(effects)
    assert effects[-1].outcome is How.STOPPED
