"""Each row of the turn table, its gates and what it costs."""

import pytest
from attrs import evolve

from orchestrator.failure.kinds import Action, Kind
from orchestrator.failure.verdict import Delivery, Refusal
from orchestrator.incident.record import Severity
from orchestrator.settings.model import Choices, Ladders, Recoveries, Settings, TurnLimits
from orchestrator.turn import (
    ROWS,
    TABLE,
    Advised,
    Began,
    CancelWait,
    Dispatch,
    DropReason,
    End,
    Evidence,
    Facts,
    Family,
    How,
    NoteCode,
    Payload,
    Publish,
    Recover,
    Send,
    SessionState,
    Started,
    State,
    Step,
    TurnMachine,
    Wait,
)
from orchestrator.turn.curve import base
from orchestrator.turn.table import PREDICATES, Word
from tests.turn.play import sent
from tests.turn.universe import IDS, NO_BUDGET, SAME, SHARED, UNKNOWN_MODELS, USER

FALLBACKS = Settings(recoveries=Recoveries(fallback_models=("m2", "m3")))
OPTED = Settings(choices=Choices(ride_out=True, resume_at_reset=True, fresh_session=True))
OUTPUT = [Evidence.TEXT, Evidence.TOOL]


def last(effects):
    return effects[-1]


def failed(effects):
    return isinstance(last(effects), End) and last(effects).outcome is How.FAILED


def test_the_table_has_every_family_once_and_every_word_has_a_meaning():
    assert [row.family for row in TABLE] == list(Family)
    used = {word for row in TABLE for word in (*row.gates, *row.when)}
    assert used == set(Word) == set(PREDICATES)


def test_a_turn_that_lands_says_nothing_else():
    play = sent()
    play.text()
    assert play.finish() == (End(How.LANDED, "end_turn", None, SessionState()),)
    assert [type(effect) for effect in play.told] == [Dispatch, Send, End]


# busy


def test_a_busy_agent_is_asked_three_times_more_on_its_own_curve():
    play = sent()
    waits = []
    for _ in range(3):
        waits.append(last(play.fail(Kind.PROMPT_BUSY)).delay)
        play.due()
        play.send()
    assert waits == [1.5, 3.0, 6.0]
    assert failed(play.fail(Kind.PROMPT_BUSY))


def test_a_busy_warning_is_worded_by_us_since_the_agents_names_a_command():
    play = sent()
    play.fail(Kind.PROMPT_BUSY)
    title = play.records[0].title
    assert title == "The agent is still busy with an earlier message. Trying again (1 of 3)."


def test_a_busy_agent_that_had_shown_text_is_asked_to_continue():
    play = sent()
    play.text()
    play.fail(Kind.PROMPT_BUSY)
    assert last(play.due()).payload is Payload.CONTINUE


# death


def test_a_death_is_answered_by_a_new_process_and_the_same_message():
    play = sent()
    assert last(play.fail(Kind.AGENT_DIED)) == Recover(Step.RESPAWN, "", Family.DEATH)
    assert play.recovered() == (Dispatch(Payload.VERBATIM, 2, ahead=True),)
    assert play.send() == (Send(2, Family.DEATH, Payload.VERBATIM),)
    assert play.machine.session.deaths == 1


def test_the_fourth_death_in_a_row_is_told_and_not_answered():
    play = sent()
    for _ in range(3):
        play.fail(Kind.AGENT_DIED)
        play.recovered()
        play.send()
    assert failed(play.fail(Kind.AGENT_DIED))
    assert play.end.session.deaths == 3


def test_deaths_of_a_session_count_on_in_its_next_turn_and_end_with_a_landing():
    play = sent(session=SessionState(deaths=2))
    play.fail(Kind.AGENT_DIED)
    play.recovered()
    play.send()
    assert last(play.finish()).session == SessionState()


def test_a_death_of_a_runtime_that_died_too_often_for_others_is_not_answered():
    play = sent()
    assert failed(play.fail(Kind.AGENT_DIED, live=SHARED))


def test_a_new_process_that_does_not_come_up_ends_the_turn():
    play = sent()
    play.fail(Kind.AGENT_DIED)
    drop, *_, end = play.recovered(ok=False)
    assert (drop.family, drop.reason) == (Family.DEATH, DropReason.DENIED)
    assert end.outcome is How.FAILED
    assert end.session.deaths == 0


def test_a_death_behind_text_continues():
    play = sent()
    play.text()
    play.fail(Kind.AGENT_DIED)
    assert last(play.recovered()).payload is Payload.CONTINUE


# registration


def test_a_throttled_registration_waits_before_it_starts_a_new_process():
    play = sent()
    assert last(play.fail(Kind.REGISTRATION_THROTTLED)).delay == 2.0
    assert play.due() == (Recover(Step.RESPAWN, "", Family.REGISTRATION),)
    assert last(play.recovered()) == Dispatch(Payload.VERBATIM, 2, ahead=True)
    play.send()
    assert play.machine.budgets.curve == 1


@pytest.mark.parametrize("evidence", OUTPUT)
def test_a_throttled_registration_behind_output_ends_the_turn(evidence):
    play = sent()
    play.show(evidence)
    assert failed(play.fail(Kind.REGISTRATION_THROTTLED))


def test_a_throttled_registration_with_an_ambiguous_delivery_ends_the_turn():
    play = sent()
    assert failed(play.fail(Kind.REGISTRATION_THROTTLED, delivery=Delivery.AMBIGUOUS))


def test_registrations_and_plain_retries_count_on_one_curve():
    play = sent()
    play.fail_and_wait(Kind.OVERLOADED)
    play.fail_and_wait(Kind.OVERLOADED)
    assert last(play.fail(Kind.REGISTRATION_THROTTLED)).delay == 8.0


# lost session


def test_a_lost_session_is_loaded_again_once():
    play = sent()
    assert last(play.fail(Kind.SESSION_NOT_FOUND)) == Recover(Step.RESET, "", Family.LOST_SESSION)
    play.recovered()
    play.send()
    assert play.machine.session.lost == 1
    assert failed(play.fail(Kind.INNER_LOST))


def test_a_lost_session_that_is_loaded_again_continues_behind_text():
    play = sent()
    play.text()
    play.fail(Kind.SESSION_NOT_FOUND)
    assert last(play.recovered()) == Dispatch(Payload.CONTINUE, 2, ahead=True)


def test_a_new_native_session_is_never_asked_to_continue():
    play = sent()
    play.text()
    play.fail(Kind.SESSION_NOT_FOUND)
    drop, *_, end = play.recovered(detail="native-2")
    assert drop.reason is DropReason.DENIED
    assert end.outcome is How.FAILED


def test_a_new_native_session_gets_a_clean_message_verbatim():
    play = sent()
    play.fail(Kind.SESSION_NOT_FOUND)
    assert last(play.recovered(detail="native-2")).payload is Payload.VERBATIM


def test_credentials_that_are_loaded_again_are_worded_as_such():
    play = sent()
    play.fail(Kind.CREDENTIAL_RELOAD)
    assert play.records[0].title == "credential_reload. Loading the credentials again."


def test_a_lost_session_yields_to_a_message_of_the_user():
    play = sent()
    assert failed(play.fail(Kind.SESSION_NOT_FOUND, live=USER))


# thinking and image


def test_thinking_bound_to_another_conversation_discards_it_once():
    play = sent()
    assert last(play.fail(Kind.THINKING_BINDING)) == Recover(Step.DISCARD, "", Family.THINKING)
    assert last(play.recovered()).payload is Payload.VERBATIM
    play.send()
    assert play.machine.session.discard == 1
    assert failed(play.fail(Kind.THINKING_BINDING))


@pytest.mark.parametrize("evidence", list(Evidence))
def test_a_discard_for_thinking_needs_a_silent_attempt(evidence):
    play = sent()
    play.show(evidence)
    assert failed(play.fail(Kind.THINKING_BINDING))


def test_a_discard_gives_the_curve_back_whole():
    play = sent()
    play.fail_and_wait(Kind.OVERLOADED)
    play.fail(Kind.THINKING_BINDING)
    play.recovered()
    assert play.machine.budgets.curve == 1
    play.send()
    assert (play.machine.budgets.curve, play.machine.budgets.curve_start) == (0, None)


def test_an_earlier_image_is_discarded_but_not_this_turns_own():
    assert last(sent().fail(Kind.IMAGE_REJECTED)).family is Family.IMAGE
    assert failed(sent(facts=Facts(brings_image=True)).fail(Kind.IMAGE_REJECTED))


@pytest.mark.parametrize("kind", [Kind.IMAGE_REJECTED, Kind.THINKING_BINDING])
def test_a_conversation_with_sub_agents_is_never_discarded(kind):
    assert failed(sent(facts=Facts(has_subagents=True)).fail(kind))


def test_an_image_behind_text_can_not_be_replayed_verbatim_so_the_turn_ends():
    play = sent()
    play.text()
    assert failed(play.fail(Kind.IMAGE_REJECTED))


def test_three_rows_share_one_discard():
    play = sent()
    play.fail(Kind.IMAGE_REJECTED)
    play.recovered()
    play.send()
    assert failed(play.fail(Kind.THINKING_BINDING))


# fresh session


@pytest.mark.parametrize(
    ("facts", "settings"),
    [
        (Facts(subagent=True), Settings()),
        (Facts(fresh_session=True), Settings()),
        (Facts(), OPTED),
    ],
)
def test_an_overflow_moves_to_a_process_of_its_own_where_allowed(facts, settings):
    play = sent(settings, facts)
    assert last(play.fail(Kind.CONTEXT_OVERFLOW)).step is Step.DEDICATED
    play.recovered()
    play.send()
    assert failed(play.fail(Kind.CONTEXT_OVERFLOW))


def test_an_overflow_ends_a_turn_that_nobody_allowed_to_move():
    play = sent()
    play.fail(Kind.CONTEXT_OVERFLOW)
    assert play.end.outcome is How.FAILED
    assert play.machine.structural
    assert play.records[-1].actions == (Action.NEW_SESSION,)


# transient


def test_an_overload_is_tried_three_times_more_and_then_told():
    play = sent()
    for n, wait in ((1, 2.0), (2, 4.0), (3, 8.0)):
        assert last(play.fail(Kind.OVERLOADED)) == Wait(
            play.now + wait, wait, Family.TRANSIENT, n, 3, Kind.OVERLOADED
        )
        assert play.due() == (Dispatch(Payload.VERBATIM, n + 1, ahead=True),)
        assert play.send() == (Send(n + 1, Family.TRANSIENT, Payload.VERBATIM),)
    assert failed(play.fail(Kind.OVERLOADED))
    assert [record.revision for record in play.records] == [1, 2, 3, 4]
    assert play.machine.attempts == 4
    assert play.machine.waited_s == 14.0


def test_a_plain_retry_does_not_yield_to_a_message_of_the_user():
    play = sent()
    play.fail(Kind.OVERLOADED, live=USER)
    play.due(live=USER)
    assert isinstance(last(play.send(live=USER)), Send)


def test_a_spent_fleet_budget_ends_a_transient_failure():
    assert failed(sent().fail(Kind.OVERLOADED, live=NO_BUDGET))


def test_a_thought_alone_keeps_an_attempt_fresh():
    play = sent()
    play.show(Evidence.THOUGHT)
    assert last(play.fail(Kind.OVERLOADED)).family is Family.TRANSIENT


def test_a_turn_that_is_not_clean_retries_a_fresh_attempt_with_a_continue():
    play = sent()
    play.text()
    play.fail_and_wait(Kind.OVERLOADED)
    play.fail(Kind.OVERLOADED)
    assert last(play.due()) == Dispatch(Payload.CONTINUE, 3, ahead=True)


def test_an_ambiguous_delivery_is_never_replayed_verbatim():
    play = sent()
    play.fail(Kind.CONNECTION_LOST, delivery=Delivery.AMBIGUOUS)
    assert last(play.due()).payload is Payload.CONTINUE


# connection


def test_a_lost_connection_is_tried_for_five_minutes_in_thirteen_retries():
    play = sent()
    families = []
    while not play.end:
        wait = last(play.fail(Kind.CONNECTION_LOST))
        if isinstance(wait, Wait):
            families.append((wait.family, wait.limit))
            play.due()
            play.send()
    assert families == [(Family.TRANSIENT, 3)] * 3 + [(Family.CONNECTION, None)] * 10
    assert play.machine.waited_s == 300.0
    assert play.machine.budgets.sends == 4


def test_a_long_outage_has_one_standing_warning_on_the_turns_id():
    play = sent().use_up(Kind.CONNECTION_LOST)
    for _ in range(4):
        play.fail_and_wait(Kind.CONNECTION_LOST)
    assert [record.title for record in play.records] == [
        "connection_lost. Trying again (1 of 3).",
        "connection_lost. Trying again (2 of 3).",
        "connection_lost. Trying again (3 of 3).",
        "connection_lost. Trying again for up to 5 minutes.",
    ]


def test_nobody_in_front_means_no_window():
    play = sent(facts=Facts(interactive=False)).use_up(Kind.CONNECTION_LOST)
    assert failed(play.fail(Kind.CONNECTION_LOST))


@pytest.mark.parametrize(("offset", "open_"), [(299.0, True), (300.0, False)])
def test_the_window_is_open_at_299_and_closed_at_300_seconds(offset, open_):
    play = sent().use_up(Kind.CONNECTION_LOST)
    start = play.machine.budgets.curve_start
    effects = play.fail(Kind.CONNECTION_LOST, at=start + offset)
    assert isinstance(last(effects), Wait) is open_
    assert failed(effects) is not open_


def test_the_windows_waits_stop_growing_at_its_own_cap():
    curve = ROWS[Family.CONNECTION].pause
    assert [base(Settings(), curve, n) for n in (4, 5, 6, 1000, 10**6)] == [16.0, *[30.0] * 4]


# model fallback


def test_a_used_up_curve_swaps_the_model_and_names_both():
    play = sent(FALLBACKS).use_up(Kind.OVERLOADED)
    assert last(play.fail(Kind.OVERLOADED)) == Recover(Step.SWAP, "m2", Family.MODEL_FALLBACK)
    assert last(play.recovered(detail="m2")).delay == 2.0
    play.due()
    notice, send = play.send()
    assert notice.record.title == "Going on with the model m2 in place of m1."
    assert notice.record.id == "session:notice:epoch:1"
    assert send.family is Family.MODEL_FALLBACK
    assert play.machine.session.fallback_model == "m2"


def test_each_candidate_gets_one_more_retry():
    play = sent(FALLBACKS).use_up(Kind.OVERLOADED)
    play.fail(Kind.OVERLOADED)
    play.recovered()
    play.due()
    play.send()
    on_m2 = evolve(SAME, model="m2")
    assert last(play.fail(Kind.OVERLOADED, live=on_m2)).family is Family.TRANSIENT
    play.due()
    play.send()
    assert last(play.fail(Kind.OVERLOADED, live=on_m2)).target == "m3"


def test_a_failed_swap_tries_the_next_candidate_and_then_ends():
    play = sent(FALLBACKS).use_up(Kind.OVERLOADED)
    play.fail(Kind.OVERLOADED)
    drop, publish, recover = play.recovered(ok=False)
    assert (drop.family, recover.target) == (Family.MODEL_FALLBACK, "m3")
    assert publish.record.title.endswith("Trying another model (2 of 2).")
    assert failed(play.recovered(ok=False))
    assert play.machine.session.fallback_model == ""


def test_a_swap_that_silently_did_nothing_is_a_failed_one():
    play = sent(FALLBACKS).use_up(Kind.OVERLOADED)
    play.fail(Kind.OVERLOADED)
    assert last(play.recovered(ok=True, detail="m1")).target == "m3"


def test_unknown_models_are_not_swapped_to():
    play = sent(FALLBACKS).use_up(Kind.OVERLOADED)
    assert failed(play.fail(Kind.OVERLOADED, live=UNKNOWN_MODELS))


def test_a_model_that_is_not_served_is_passed_over():
    settings = Settings(recoveries=Recoveries(fallback_models=("gone", "m1", "m3")))
    play = sent(settings).use_up(Kind.OVERLOADED)
    assert last(play.fail(Kind.OVERLOADED)).target == "m3"


def test_a_hint_too_long_to_wait_for_swaps_the_model_at_once():
    play = sent(FALLBACKS)
    assert last(play.fail(Kind.RATE_LIMITED, retry_after_s=121.0)).target == "m2"
    assert last(play.recovered()).delay == 2.0
    play.due()
    play.send()
    assert play.machine.budgets.curve == 0


# continue after output


@pytest.mark.parametrize("evidence", OUTPUT)
def test_a_failure_behind_output_continues_once(evidence):
    play = sent()
    play.show(evidence)
    assert last(play.fail(Kind.OVERLOADED)).family is Family.CONTINUE_AFTER_OUTPUT
    assert last(play.due()).payload is Payload.CONTINUE
    play.send()
    play.show(evidence)
    assert failed(play.fail(Kind.OVERLOADED))


def test_a_continue_yields_to_a_message_of_the_user():
    play = sent()
    play.text()
    assert failed(play.fail(Kind.OVERLOADED, live=USER))


# entitlement swap


def test_a_model_outside_the_plan_is_swapped_for_the_first_served_one():
    play = sent()
    effects = play.fail(Kind.MODEL_NOT_ENTITLED, rejected_model="m1")
    assert last(effects) == Recover(Step.SWAP, "m2", Family.ENTITLEMENT_SWAP)
    play.recovered()
    play.send()
    assert play.machine.session.fallback_model == "m2"
    assert failed(play.fail(Kind.MODEL_NOT_ENTITLED, rejected_model="m2"))


def test_a_model_outside_the_plan_ends_the_turn_where_no_other_is_served():
    only = evolve(SAME, served=("m1",))
    assert failed(sent().fail(Kind.MODEL_NOT_ENTITLED, rejected_model="m1", live=only))


# ride out


def test_riding_out_an_overload_goes_on_for_half_an_hour_under_one_warning():
    play = sent(OPTED).use_up(Kind.OVERLOADED)
    start = play.machine.budgets.curve_start
    delays = []
    while not play.end:
        wait = last(play.fail(Kind.OVERLOADED))
        if isinstance(wait, Wait):
            delays.append(wait.delay)
            play.due()
            play.send()
    assert delays[:3] == [16.0, 32.0, 60.0]
    assert set(delays[3:]) == {60.0}
    assert play.now >= start + 1800.0
    assert [r.title for r in play.records if "30 minutes" in r.title] == [
        "overloaded. Trying again for up to 30 minutes."
    ]


def test_riding_out_is_for_overload_and_rate_limits_that_somebody_opted_in_to():
    assert failed(sent().use_up(Kind.OVERLOADED).fail(Kind.OVERLOADED))
    assert failed(sent(OPTED).use_up(Kind.SERVER_ERROR).fail(Kind.SERVER_ERROR))
    play = sent(facts=Facts(ride_out=True)).use_up(Kind.RATE_LIMITED)
    assert last(play.fail(Kind.RATE_LIMITED)).family is Family.RIDE_OUT


# poisoned


def suspect(**kwargs):
    """The second silent cycle in a row, its curve used up."""
    session = SessionState(poisoned_streak=1)
    return sent(session=session, **kwargs).use_up(Kind.SERVER_ERROR)


def test_a_second_silent_cycle_probes_and_then_discards_the_conversation():
    play = suspect()
    assert last(play.fail(Kind.SERVER_ERROR)) == Recover(Step.CANARY, "", Family.POISONED)
    assert play.recovered() == (Recover(Step.DISCARD, "", Family.POISONED),)
    assert play.recovered(detail="native-2") == (Dispatch(Payload.VERBATIM, 5, ahead=True),)
    play.send()
    assert play.machine.session.discard == 1
    assert play.machine.budgets.curve == 0


def test_a_canary_that_fails_too_acquits_the_conversation():
    play = suspect()
    play.fail(Kind.SERVER_ERROR)
    effects = play.recovered(ok=False)
    assert failed(effects)
    assert last(effects).session == SessionState(poisoned_streak=2)


def test_a_first_cycle_is_no_suspicion():
    play = sent().use_up(Kind.SERVER_ERROR)
    assert last(play.fail(Kind.SERVER_ERROR)).session.poisoned_streak == 1


@pytest.mark.parametrize("evidence", list(Evidence))
def test_anything_shown_breaks_the_silence(evidence):
    play = sent(session=SessionState(poisoned_streak=1))
    play.show(evidence)
    play.fail_and_wait(Kind.SERVER_ERROR)
    play.use_up(Kind.SERVER_ERROR) if evidence in OUTPUT else play.fail_and_wait(Kind.SERVER_ERROR)
    if evidence is Evidence.THOUGHT:
        play.fail_and_wait(Kind.SERVER_ERROR)
    assert last(play.fail(Kind.SERVER_ERROR)).session.poisoned_streak == 0


def test_a_curve_that_was_not_used_up_is_no_silent_cycle():
    play = sent(session=SessionState(poisoned_streak=1))
    play.fail(Kind.SERVER_ERROR, retry_after_s=500.0)
    assert play.end.session.poisoned_streak == 1


def test_an_answer_breaks_the_row_of_silent_cycles():
    assert last(sent(session=SessionState(poisoned_streak=1)).finish()).session == SessionState()


# resume at reset


def test_a_spent_allowance_is_probed_once_behind_its_reset():
    play = sent(OPTED)
    effects = play.fail(Kind.USAGE_LIMIT, resets_in_s=7200.0, resets_at=1_796_000_000.0, luck=0.5)
    assert last(effects).delay == 7230.0
    assert play.records[0].title == "usage_limit. Trying once more after 2026-11-30 00:53 UTC."
    play.due()
    play.send()
    assert play.machine.budgets.sends == 1
    assert failed(play.fail(Kind.USAGE_LIMIT, resets_in_s=60.0))


def test_behind_the_probe_a_short_throttle_gets_the_ordinary_curve():
    play = sent(OPTED)
    play.fail_and_wait(Kind.USAGE_LIMIT, resets_in_s=7200.0)
    assert last(play.fail(Kind.RATE_LIMITED, retry_after_s=5.0)).family is Family.TRANSIENT


def test_a_throttle_with_a_long_hint_is_probed_at_its_end():
    play = sent(facts=Facts(resume_at_reset=True))
    assert last(play.fail(Kind.RATE_LIMITED, retry_after_s=600.0)).delay == 600.0


@pytest.mark.parametrize(("reset", "waits"), [(86_400.0, True), (86_401.0, False), (None, False)])
def test_only_a_reset_within_a_day_is_waited_for(reset, waits):
    effects = sent(OPTED).fail(Kind.USAGE_LIMIT, resets_in_s=reset)
    assert isinstance(last(effects), Wait) is waits


def test_without_an_opt_in_a_spent_allowance_ends_the_turn():
    effects = sent().fail(Kind.USAGE_LIMIT, resets_in_s=60.0)
    assert failed(effects)
    assert effects[0].record.actions == ()


# refusals


def test_a_refusal_hops_to_the_recommended_model_once():
    play = sent()
    assert play.refuse(Refusal(recommended_model="m3")) == (
        Recover(Step.SWAP, "m3", Family.CONTENT_FILTER_HOP),
    )
    play.recovered()
    notice, send = play.send()
    assert (notice.record.severity, send.number) == (Severity.WARNING, 2)
    end = last(play.refuse(Refusal(recommended_model="m2")))
    assert (end.outcome, end.stop_reason) == (How.REFUSED, "refusal")
    assert play.machine.session.fallback_model == ""


def test_a_configured_model_goes_before_the_recommended_one():
    settings = Settings(recoveries=Recoveries(content_filter_model="m2"))
    assert last(sent(settings).refuse(Refusal(recommended_model="m3"))).target == "m2"


@pytest.mark.parametrize(
    "refusing",
    [
        lambda play: play.refuse(Refusal()),
        lambda play: play.fail(Kind.CONTENT_REFUSED),
        lambda play: play.finish("refusal"),
    ],
    ids=["an event of its own", "a failure of that kind", "a stop reason"],
)
def test_a_refusal_is_no_failure_from_any_of_its_three_ways_in(refusing):
    play = sent()
    refusing(play)
    assert play.end.outcome is How.REFUSED
    assert play.records == []


def test_a_refusal_is_never_tried_again_on_the_same_model():
    assert isinstance(last(sent().refuse(Refusal(recommended_model="m1"))), End)


def test_a_refusal_that_follows_a_warning_settles_it():
    play = sent()
    play.fail_and_wait(Kind.OVERLOADED)
    play.refuse(Refusal(explanation="Against the policy."))
    assert [r.title for r in play.records][-1] == "Against the policy."
    assert play.records[-1].severity is Severity.ERROR
    assert play.end.verdict.refusal.explanation == "Against the policy."


# the terminal row


@pytest.mark.parametrize(
    "kind",
    [Kind.AUTH_REQUIRED, Kind.BILLING, Kind.MALFORMED_REQUEST, Kind.TLS_FAILURE, Kind.UNKNOWN],
)
def test_what_no_row_serves_is_told_and_ends_the_turn(kind):
    play = sent()
    publish, end = play.fail(kind)
    assert isinstance(publish, Publish)
    assert publish.record.id == "turn:error"
    assert publish.record.severity is Severity.ERROR
    assert publish.carrier == "response"
    assert (end.outcome, end.stop_reason) == (How.FAILED, "end_turn")


@pytest.mark.parametrize("kind", [Kind.OVERLOADED, Kind.AGENT_DIED, Kind.THINKING_BINDING])
def test_a_nested_turn_leaves_every_recovery_to_the_turn_around_it(kind):
    play = sent(facts=Facts(nested=True))
    play.fail(kind)
    assert play.notes == [NoteCode.NESTED]
    assert play.end.outcome is How.FAILED


def test_a_turn_at_its_cap_gives_up_with_a_note():
    play = sent(Settings(turn=TurnLimits(max_sends=3)))
    play.fail_and_wait(Kind.OVERLOADED)
    play.fail_and_wait(Kind.OVERLOADED)
    play.fail(Kind.AGENT_DIED)
    assert play.notes == [NoteCode.SEND_CAP]
    assert len(play.sends) == 3


def test_families_together_never_send_more_than_twelve_times():
    settings = Settings(
        ladders=Ladders(transient_retries=50, busy_retries=50), recoveries=Recoveries(deaths=20)
    )
    play = sent(settings)
    while not play.end:
        kind = (Kind.OVERLOADED, Kind.AGENT_DIED, Kind.PROMPT_BUSY)[play.number % 3]
        play.fail(kind)
        if play.machine.state is State.RECOVERING:
            play.recovered()
        elif play.machine.state is State.WAITING:
            play.due()
        if not play.end:
            play.send()
    assert len(play.sends) == 12


def test_a_verdict_that_names_a_recovery_is_served_by_that_row_alone():
    play = sent(FALLBACKS)
    for _ in range(3):
        play.fail_and_wait(Kind.PROMPT_BUSY)
    assert failed(play.fail(Kind.PROMPT_BUSY))


# retry now


def test_retry_now_cuts_a_wait_short_and_counts():
    play = sent()
    play.fail(Kind.RATE_LIMITED, retry_after_s=100.0)
    assert play.retry_now() == (CancelWait(), Dispatch(Payload.VERBATIM, 2, ahead=True))
    play.send()
    assert play.machine.budgets.curve == 1
    assert play.machine.waited_s == 0.0


def test_retry_now_in_front_of_a_step_starts_the_step():
    play = sent()
    play.fail(Kind.REGISTRATION_THROTTLED)
    assert play.retry_now() == (CancelWait(), Recover(Step.RESPAWN, "", Family.REGISTRATION))


# a turn that goes on from another


def test_a_turn_that_goes_on_from_what_another_showed_never_sends_verbatim():
    machine = TurnMachine(Settings(), IDS)
    machine.clean = False
    assert machine.handle(Started(0.0, SAME)) == (Dispatch(Payload.CONTINUE, 1),)
    assert machine.handle(Began(0.0, SAME)) == (Send(1, payload=Payload.CONTINUE),)


# what an outcome is made of


def test_the_last_record_of_a_failure_is_at_hand():
    play = sent()
    assert play.machine.record is None
    play.fail(Kind.OVERLOADED)
    assert play.machine.record == play.records[-1]
    play.tell(Advised("key", "A notice."))
    assert play.machine.record == play.records[0]


def test_a_turn_counts_its_sends_its_drops_and_the_time_it_waited():
    play = sent()
    play.fail_and_wait(Kind.OVERLOADED)
    play.fail(Kind.OVERLOADED)
    play.now += 1.0
    play.stop()
    machine = play.machine
    assert (machine.attempts, machine.dropped, machine.waited_s) == (2, 1, 3.0)
    assert machine.pending is None
    assert machine.next_deadline() is None
