"""What a turn tells: occurrences, revisions, standing warnings, notices."""

import pytest

from orchestrator.failure.kinds import Action, Category, Kind
from orchestrator.failure.verdict import Cause, Verdict
from orchestrator.incident.record import Carrier, Severity
from orchestrator.settings.model import Choices, Settings
from orchestrator.turn import (
    ROWS,
    Advised,
    Evidence,
    Facts,
    Family,
    How,
    NoteCode,
    Publish,
    Retrying,
    SessionState,
    StopReason,
    wording,
)
from tests.turn.play import sent

OUTPUT = [Evidence.TEXT, Evidence.TOOL]


def revisions(play):
    return [(record.id, record.revision, record.severity.value) for record in play.records]


def in_window():
    """A turn whose connection has one standing warning."""
    play = sent().use_up(Kind.CONNECTION_LOST)
    play.fail_and_wait(Kind.CONNECTION_LOST)
    return play


def test_a_first_warning_offers_nothing_while_the_turn_goes_on():
    play = sent()
    play.fail(Kind.OVERLOADED)
    record = play.records[0]
    assert (record.id, record.revision) == ("turn:error", 1)
    assert (record.severity, record.actions) == (Severity.WARNING, ())
    assert record.category is Category.SERVICE


def test_a_warning_becomes_the_error_on_the_same_id():
    play = sent().use_up(Kind.OVERLOADED)
    publish, _ = play.fail(Kind.OVERLOADED)
    assert revisions(play) == [
        ("turn:error", 1, "warning"),
        ("turn:error", 2, "warning"),
        ("turn:error", 3, "warning"),
        ("turn:error", 4, "error"),
    ]
    assert publish.record.title == "overloaded."
    assert publish.record.actions == (Action.RETRY,)
    assert publish.carrier is Carrier.RESPONSE


@pytest.mark.parametrize("evidence", OUTPUT)
def test_output_behind_a_warning_ends_that_occurrence(evidence):
    play = sent()
    play.fail_and_wait(Kind.OVERLOADED)
    assert play.show(evidence) == []
    play.fail(Kind.BILLING)
    assert revisions(play) == [
        ("turn:error", 1, "warning"),
        ("turn:error:epoch:1", 1, "error"),
    ]


def test_each_later_occurrence_of_a_turn_has_its_own_id():
    play = sent()
    play.fail_and_wait(Kind.OVERLOADED)
    play.text()
    play.fail_and_wait(Kind.OVERLOADED)
    play.text()
    play.fail(Kind.OVERLOADED)
    assert [id_ for id_, *_ in revisions(play)] == [
        "turn:error",
        "turn:error:epoch:1",
        "turn:error:epoch:2",
    ]


def test_a_thought_does_not_end_an_occurrence():
    play = sent()
    play.fail_and_wait(Kind.OVERLOADED)
    play.show(Evidence.THOUGHT)
    play.fail(Kind.BILLING)
    assert revisions(play)[-1] == ("turn:error", 2, "error")


def test_a_retry_that_reads_the_same_is_not_published_again():
    play = sent(Settings(choices=Choices(ride_out=True))).use_up(Kind.OVERLOADED)
    play.fail_and_wait(Kind.OVERLOADED)
    before = len(play.records)
    play.fail_and_wait(Kind.RATE_LIMITED)
    assert len(play.records) == before


def test_whether_a_retry_is_told_never_depends_on_a_providers_wording():
    play = sent(Settings(choices=Choices(ride_out=True))).use_up(Kind.OVERLOADED)
    play.fail_and_wait(Kind.OVERLOADED)
    before = len(play.records)
    play.fail(Verdict.of(Kind.OVERLOADED, "Quite another sentence."))
    assert len(play.records) == before


def test_a_new_cause_is_told():
    play = sent()
    play.fail_and_wait(Kind.CONNECTION_LOST, cause=Cause.DNS)
    play.fail(Kind.CONNECTION_LOST, cause=Cause.RESET)
    assert len(play.records) == 2


# the connection's standing warning


@pytest.mark.parametrize("evidence", OUTPUT)
def test_a_connection_that_is_back_is_told_once_as_a_last_warning(evidence):
    play = in_window()
    (publish,) = play.show(evidence)
    assert publish.record.title == wording.CONNECTION_BACK
    assert (publish.record.severity, publish.carrier) == (Severity.WARNING, Carrier.UPDATE)
    assert publish.record.revision == 5
    assert play.show(evidence) == []
    assert [type(effect).__name__ for effect in play.finish()] == ["End"]


def test_a_connection_that_is_back_is_told_at_the_finish_when_nothing_was_shown():
    play = in_window()
    publish, end = play.finish()
    assert publish.record.title == wording.CONNECTION_BACK
    assert end.outcome is How.LANDED


def test_a_thought_is_no_sign_that_the_connection_is_back():
    assert in_window().show(Evidence.THOUGHT) == []


def test_an_ordinary_warning_has_no_last_revision():
    play = sent()
    play.fail_and_wait(Kind.CONNECTION_LOST)
    assert play.text() == []


def test_a_recovery_inside_the_window_does_not_settle_the_standing_warning():
    play = in_window()
    play.fail(Kind.AGENT_DIED)
    assert play.records[-1].title == "agent_died. Restarting the agent (1 of 3)."
    play.recovered()
    play.send()
    play.fail_and_wait(Kind.CONNECTION_LOST)
    assert play.records[-1].title.endswith("Trying again for up to 5 minutes.")
    (publish,) = play.text()
    assert (publish.record.id, publish.record.title) == ("turn:error", wording.CONNECTION_BACK)


def test_a_failure_behind_the_last_revision_is_another_occurrence():
    play = in_window()
    play.text()
    play.fail(Kind.CONNECTION_LOST)
    assert revisions(play)[-1] == ("turn:error:epoch:1", 1, "warning")


def test_a_standing_warning_is_stopped_on_its_own_id():
    play = sent().use_up(Kind.CONNECTION_LOST)
    play.fail(Kind.CONNECTION_LOST)
    play.stop()
    assert play.records[-1].title == "connection_lost. Trying again was stopped."
    assert revisions(play)[-1] == ("turn:error", 5, "error")


# the agent's own progress


def test_the_agents_own_retry_is_a_warning_on_the_turns_id():
    play = sent()
    (publish,) = play.tell(Retrying(1, "Reconnecting... 1/5", Category.CONNECTION))
    assert (publish.record.id, publish.record.severity) == ("turn:error", Severity.WARNING)
    assert publish.record.category is Category.CONNECTION
    assert play.tell(Retrying(1, "Reconnecting... 1/5", Category.CONNECTION)) == ()
    play.fail(Kind.CONNECTION_LOST)
    assert revisions(play)[-1] == ("turn:error", 2, "warning")


def test_our_retries_go_on_counting_where_the_agents_own_stopped():
    play = sent()
    for number in (1, 2):
        play.tell(Retrying(1, f"Retrying, attempt {number} of 2."))
        play.tell(Retrying(1, f"Retrying, attempt {number} of 2."))
    play.fail_and_wait(Kind.OVERLOADED)
    for number in (1, 2):
        play.tell(Retrying(2, f"Retrying, attempt {number} of 2."))
    play.fail(Kind.OVERLOADED)
    assert [record.title for record in play.records] == [
        "Retrying, attempt 1 of 2.",
        "Retrying, attempt 2 of 2.",
        "overloaded. Trying again (3 of 5).",
        "Retrying, attempt 1 of 2. Retry 4 of this message.",
        "Retrying, attempt 2 of 2. Retry 5 of this message.",
        "overloaded. Trying again (6 of 7).",
    ]
    assert [record.revision for record in play.records] == [1, 2, 3, 4, 5, 6]
    assert play.machine.budgets.curve == 1


def test_the_agents_own_retries_do_not_use_up_ours():
    play = sent()
    for number in range(10):
        play.tell(Retrying(1, f"Retrying, attempt {number + 1} of 10."))
    play.use_up(Kind.OVERLOADED)
    assert play.end is None
    play.fail(Kind.OVERLOADED)
    assert play.end.outcome is How.FAILED
    assert play.machine.budgets.curve == 3


def test_the_agents_own_retries_are_no_recoveries():
    play = sent()
    play.tell(Retrying(1, "Retrying, attempt 1 of 2."))
    play.fail(Kind.AGENT_DIED)
    assert play.records[-1].title == "agent_died. Restarting the agent (1 of 3)."


def test_the_agents_own_retry_says_nothing_below_our_standing_warning():
    play = in_window()
    assert play.tell(Retrying(play.number, "Reconnecting... 1/5")) == ()


def test_the_agents_own_retry_says_nothing_once_it_was_asked_to_stop():
    play = sent()
    play.stop()
    assert play.tell(Retrying(1, "Reconnecting... 1/5")) == ()


def test_a_stop_settles_the_agents_own_warning():
    play = sent()
    play.tell(Retrying(1, "Reconnecting"))
    play.stop(hard=True)
    assert play.records[-1].title == "Reconnecting. Trying again was stopped."
    assert play.records[-1].actions == (Action.RETRY,)


# the end


def test_a_hint_too_long_to_wait_for_puts_the_reset_time_into_the_title():
    play = sent()
    play.fail(Kind.RATE_LIMITED, retry_after_s=121.0)
    assert play.records[-1].title == "rate_limited. Try again in 3 minutes."
    play = sent()
    play.fail(Kind.RATE_LIMITED, retry_after_s=7200.0, resets_at=1_796_000_000.0)
    assert play.records[-1].title == "rate_limited. Try again after 2026-11-30 00:53 UTC."


def test_a_hint_of_exactly_the_longest_wait_is_waited_for():
    assert sent().fail(Kind.RATE_LIMITED, retry_after_s=120.0)[-1].delay == 120.0


def test_a_reset_time_that_no_calendar_knows_is_told_as_a_span():
    play = sent(Settings(choices=Choices(resume_at_reset=True)))
    play.fail(Kind.USAGE_LIMIT, resets_in_s=7201.0, resets_at=1e30)
    assert play.records[0].title == "usage_limit. Trying once more in 3 hours."


def test_the_title_of_a_terminal_error_is_the_verdicts_own():
    play = sent()
    play.fail(Verdict.of(Kind.USAGE_LIMIT, "You have hit your limit · resets 5:50pm"))
    assert play.records[-1].title == "You have hit your limit · resets 5:50pm"


def test_a_long_explanation_stays_in_the_details():
    play = sent()
    play.fail(Verdict.of(Kind.BILLING, "Short.", details="Short. And a long story."))
    assert play.records[-1].details == "Short. And a long story."


def test_an_answer_cut_at_the_output_limit_lands_with_a_notice():
    play = sent()
    notice, end = play.finish(StopReason.MAX_TOKENS)
    assert notice.record.id == "session:notice:epoch:1"
    assert (end.outcome, end.stop_reason) == (How.LANDED, "max_tokens")
    assert end.session.notices == 1


def test_an_agent_at_its_limit_of_steps_ends_the_turn_with_an_error():
    play = sent()
    play.text()
    play.finish(StopReason.MAX_TURN_REQUESTS)
    assert play.end.verdict.kind is Kind.BUDGET_EXHAUSTED
    assert play.records[-1].actions == (Action.NEW_SESSION,)


@pytest.mark.parametrize("kind", [Kind.CANCELLED, Kind.NOT_A_FAILURE, Kind.ADVISORY])
def test_what_is_no_failure_ends_an_attempt_as_an_answer_does(kind):
    play = sent()
    play.fail(kind)
    assert play.end.outcome is How.LANDED
    assert play.records == []


# notices


def test_equal_notices_in_a_row_are_one():
    play = sent()
    play.tell(Advised("config", "A warning."))
    assert play.tell(Advised("config", "A warning.")) == ()
    play.tell(Advised("config", "The same, in other words."))
    play.tell(Advised("model", "Another."))
    play.tell(Advised("config", "A warning."))
    assert revisions(play) == [
        ("session:notice:epoch:1", 1, "warning"),
        ("session:notice:epoch:1", 2, "warning"),
        ("session:notice:epoch:2", 1, "warning"),
        ("session:notice:epoch:3", 1, "warning"),
    ]


def test_a_notice_behind_another_record_is_a_new_one():
    play = sent()
    play.tell(Advised("config", "A warning."))
    play.fail(Kind.OVERLOADED)
    play.tell(Advised("config", "A warning."))
    assert revisions(play)[-1] == ("session:notice:epoch:2", 1, "warning")


def test_notices_are_numbered_on_through_the_session():
    play = sent(session=SessionState(notices=7))
    play.tell(Advised("config", "A warning."))
    assert play.records[0].id == "session:notice:epoch:8"
    assert play.stop(hard=True)[-1].session.notices == 8


def test_a_notice_never_touches_the_revision_of_a_failure():
    play = sent()
    play.fail_and_wait(Kind.OVERLOADED)
    play.tell(Advised("config", "A warning."))
    play.fail(Kind.BILLING)
    assert revisions(play)[-1] == ("turn:error", 2, "error")


def test_a_notice_is_told_wherever_a_turn_is():
    play = sent()
    play.fail(Kind.AGENT_DIED)
    assert isinstance(play.tell(Advised("config", "A warning."))[0], Publish)


# wording


@pytest.mark.parametrize("family", list(Family))
def test_every_family_has_words_for_what_it_does(family):
    verdict = Verdict.of(Kind.OVERLOADED, "Overloaded")
    if ROWS[family].standing:
        assert wording.standing(family, verdict, 300.0).startswith("Overloaded. Trying")
    else:
        assert wording.retrying(family, verdict, 1, 3).endswith("(1 of 3).")
        assert "(1 of 1)" not in wording.retrying(family, verdict, 1, 1)


def test_every_note_has_one_line():
    assert set(wording.NOTES) == set(NoteCode)
    assert all("\n" not in text and text.endswith(".") for text in wording.NOTES.values())


def test_no_title_names_a_command():
    texts = [*wording.NOTES.values(), wording.ANSWER_CUT, wording.TURN_LIMIT, wording.DECLINED]
    assert not [text for text in texts if "/" in text or "`" in text]


@pytest.mark.parametrize(
    ("title", "joined"),
    [
        ("It failed", "It failed. Go on."),
        ("It failed.", "It failed. Go on."),
        ("Really?", "Really? Go on."),
        (" Wait… ", "Wait… Go on."),
        ("", "Go on."),
    ],
)
def test_a_sentence_is_put_behind_any_title(title, joined):
    assert wording.joined(title, "Go on.") == joined


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.0, "0 seconds"),
        (0.2, "1 second"),
        (59.0, "59 seconds"),
        (60.0, "1 minute"),
        (61.0, "2 minutes"),
        (3600.0, "60 minutes"),
        (3601.0, "2 hours"),
    ],
)
def test_a_span_is_told_in_whole_units_and_never_too_short(seconds, told):
    verdict = Verdict.of(Kind.RATE_LIMITED, "Slow down.")
    assert wording.ended(verdict, seconds) == f"Slow down. Try again in {told}."


def test_a_subagents_fresh_session_is_told_as_such():
    play = sent(facts=Facts(subagent=True))
    play.fail(Kind.CONTEXT_OVERFLOW)
    assert play.records[0].title == "context_overflow. Starting a fresh session for this message."
