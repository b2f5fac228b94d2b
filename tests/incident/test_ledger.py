"""The incidents of a session: ids, revisions, what is active and what clears it."""

import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from orchestrator.failure.kinds import KINDS, Category, Clears, Kind
from orchestrator.incident.ledger import (
    NOTHING_ACTIVE,
    Ledger,
    notice_id,
    session_error_id,
    turn_error_id,
)
from orchestrator.incident.record import Record, Severity


def record(id_="turn:error", revision=1, severity=Severity.ERROR, title="It failed."):
    return Record(id_, revision, Category.SERVICE, severity, title)


def ledger(*raised):
    """A ledger in which these (id, kind) are active."""
    kept = Ledger("session", "epoch")
    for id_, kind in raised:
        kept.delivered(kept.restamp(record(id_)), kind)
    return kept


def active(kept):
    return [entry.record.id for entry in kept.active]


def test_ids_say_what_they_belong_to():
    assert turn_error_id("turn") == "turn:error"
    assert turn_error_id("turn", "epoch", 2) == "turn:error:epoch:2"
    assert session_error_id("session", "epoch", 1) == "session:session-error:epoch:1"
    assert notice_id("session", "epoch", 3) == "session:notice:epoch:3"


# delivery first


def test_a_record_is_stamped_with_the_revision_behind_the_last_delivered_one():
    kept = ledger(("turn:error", Kind.OVERLOADED))
    assert kept.restamp(record(revision=9)).revision == 2
    assert kept.restamp(record("other:error", revision=9)).revision == 1


def test_a_delivery_that_fails_leaves_everything_as_it_was():
    kept = ledger(("turn:error", Kind.OVERLOADED))
    before = kept.active
    assert kept.restamp(record(revision=5)).revision == 2
    assert kept.restamp(record(revision=6)).revision == 2
    assert kept.active == before


def test_a_record_that_already_fits_is_passed_on_as_it_is():
    fitting = record()
    assert Ledger("session", "epoch").restamp(fitting) is fitting


def test_a_revision_that_was_seen_before_changes_nothing():
    kept = ledger(("turn:error", Kind.OVERLOADED))
    kept.delivered(record(revision=1, title="Another."), Kind.BILLING)
    assert [entry.record.title for entry in kept.active] == ["It failed."]


def test_a_warning_and_its_error_are_one_incident():
    kept = Ledger("session", "epoch")
    kept.delivered(kept.restamp(record(severity=Severity.WARNING)), Kind.OVERLOADED)
    kept.delivered(kept.restamp(record()), Kind.OVERLOADED)
    (entry,) = kept.active
    assert (entry.record.revision, entry.record.severity) == (2, Severity.ERROR)


def test_an_advisory_has_a_revision_and_is_never_active():
    kept = ledger(("session:notice:epoch:1", Kind.ADVISORY))
    assert kept.active == ()
    assert kept.restamp(record("session:notice:epoch:1")).revision == 2


def test_a_failure_outside_a_turn_takes_its_number_when_it_is_delivered():
    kept = Ledger("session", "epoch")
    first = kept.next_session_error_id()
    assert first == kept.next_session_error_id() == "session:session-error:epoch:1"
    kept.delivered(record(first), Kind.AGENT_DIED)
    assert kept.next_session_error_id() == "session:session-error:epoch:2"


# what clears


@pytest.mark.parametrize("kind", [kind for kind in Kind if KINDS[kind].is_failure])
def test_every_kind_is_cleared_by_its_own_policy_and_by_no_weaker_one(kind):
    clears = KINDS[kind].clears
    kept = ledger(("other:error", kind))
    mark = kept.mark()
    kept.next_attempt(mark, "turn")
    assert (active(kept) == []) is (clears is Clears.NEXT_ATTEMPT)
    kept = ledger(("other:error", kind))
    kept.landed(kept.mark(), "turn", real_answer=False)
    assert (active(kept) == []) is (clears is Clears.NEXT_ATTEMPT)
    kept = ledger(("other:error", kind))
    kept.real_answer(kept.mark(), "turn")
    assert (active(kept) == []) is (clears is not Clears.NEW_RUNTIME)
    kept = ledger(("other:error", kind))
    kept.sign_in()
    assert (active(kept) == []) is (clears is Clears.SIGN_IN)
    kept = ledger(("other:error", kind))
    kept.new_runtime()
    assert (active(kept) == []) is (clears is Clears.NEW_RUNTIME)


def test_a_confirmed_attempt_does_not_clear_its_own_turns_incident():
    kept = ledger(("turn:error", Kind.OVERLOADED), ("turn:error:epoch:1", Kind.OVERLOADED))
    kept.next_attempt(kept.mark(), "turn")
    assert active(kept) == ["turn:error", "turn:error:epoch:1"]


def test_landing_clears_the_turns_own_at_whatever_revision():
    kept = Ledger("session", "epoch")
    mark = kept.mark()
    kept.delivered(record(severity=Severity.WARNING), Kind.AGENT_DIED)
    kept.delivered(record(revision=2, severity=Severity.WARNING), Kind.AGENT_DIED)
    kept.delivered(record("turn:error:epoch:1"), Kind.BILLING)
    kept.landed(mark, "turn")
    assert kept.active == ()


def test_a_success_spares_what_others_raised_while_the_attempt_ran():
    kept = ledger(("early:error", Kind.OVERLOADED), ("revised:error", Kind.OVERLOADED))
    mark = kept.mark()
    kept.delivered(record("revised:error", revision=2), Kind.OVERLOADED)
    kept.delivered(record("late:error"), Kind.OVERLOADED)
    kept.landed(mark, "turn")
    assert active(kept) == ["revised:error", "late:error"]


def test_a_turn_whose_name_begins_like_another_does_not_own_its_incidents():
    kept = ledger(("turn-2:error", Kind.AGENT_DIED), ("turn:errors", Kind.AGENT_DIED))
    kept.landed(kept.mark(), "turn")
    assert active(kept) == ["turn-2:error", "turn:errors"]


def test_clearing_forgets_no_revision():
    kept = ledger(("turn:error", Kind.OVERLOADED))
    kept.landed(kept.mark(), "turn")
    assert kept.restamp(record()).revision == 2


def test_of_very_many_ended_incidents_the_oldest_are_forgotten_and_active_ones_never():
    kept = ledger(("quota", Kind.USAGE_LIMIT))
    for number in range(300):
        kept.delivered(kept.restamp(record(f"turn-{number}:error")), Kind.OVERLOADED)
        kept.landed(NOTHING_ACTIVE, f"turn-{number}")
    revisions = [kept.restamp(record(f"turn-{number}:error")).revision for number in range(300)]
    assert revisions == [1] * 44 + [2] * 256
    assert kept.restamp(record("quota")).revision == 2


def test_a_quota_stays_active_through_a_local_command_until_a_real_answer():
    kept = ledger(("old:error", Kind.USAGE_LIMIT))
    kept.landed(kept.mark(), "command", real_answer=False)
    assert active(kept) == ["old:error"]
    kept.landed(kept.mark(), "turn")
    assert kept.active == ()


def test_a_mark_does_not_move_with_the_ledger():
    kept = ledger(("one:error", Kind.OVERLOADED))
    mark = kept.mark()
    kept.delivered(record("two:error"), Kind.OVERLOADED)
    assert dict(mark) == {"one:error": 1}


# restoring


def test_a_ledger_goes_on_from_the_records_that_were_stored():
    stored = [
        (record("turn:error", 3), Kind.USAGE_LIMIT),
        (record("session:session-error:epoch:1"), Kind.AGENT_DIED),
        (record("session:notice:epoch:1"), Kind.ADVISORY),
    ]
    kept = Ledger.restore("session", "epoch", stored)
    assert active(kept) == ["turn:error", "session:session-error:epoch:1"]
    assert kept.restamp(record("turn:error")).revision == 4
    assert kept.next_session_error_id() == "session:session-error:epoch:2"


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a:error", "b:error", "a:error:epoch:1"]),
            st.sampled_from([Kind.OVERLOADED, Kind.BILLING, Kind.AGENT_DIED]),
            st.booleans(),
        ),
        max_size=12,
    )
)
@profile(max_examples=60)
def test_delivered_revisions_of_an_id_are_one_two_three(steps):
    kept = Ledger("session", "epoch")
    seen = {}
    for id_, kind, arrives in steps:
        stamped = kept.restamp(record(id_))
        assert stamped.revision == seen.get(id_, 0) + 1
        if arrives:
            kept.delivered(stamped, kind)
            seen[id_] = stamped.revision
    assert {entry.record.id: entry.record.revision for entry in kept.active} == seen
