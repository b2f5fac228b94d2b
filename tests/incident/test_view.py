"""The receiving side: a transcript that is updated in place."""

import json
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.incident import extension
from orchestrator.incident.record import Action, Category, Record, Severity
from orchestrator.incident.view import Change, Transcript, offered

ROWS = (Path(__file__).parent / "data" / "records.jsonl").read_text().splitlines()


def record(identity="a", revision=1, title="It broke", *, actions=()):
    return Record(identity, revision, Category.SERVICE, Severity.ERROR, title, actions)


def test_a_first_record_becomes_an_entry_at_the_end():
    transcript = Transcript()
    assert transcript.apply(record("a")).change is Change.ADDED
    applied = transcript.apply(record("b"))
    assert (applied.change, applied.entry.position) == (Change.ADDED, 1)
    assert [entry.record.id for entry in transcript.entries] == ["a", "b"]
    assert len(transcript) == 2


def test_a_higher_revision_updates_its_entry_without_moving_it():
    transcript = Transcript()
    transcript.apply(record("a"))
    transcript.apply(record("b"))
    applied = transcript.apply(record("a", 3, "It broke again"))
    assert applied.change is Change.UPDATED
    assert [r.title for r in transcript.records] == ["It broke again", "It broke"]
    assert transcript.get("a").position == 0


def test_the_same_or_a_lower_revision_changes_nothing():
    transcript = Transcript()
    transcript.apply(record("a", 2, "second"))
    assert transcript.apply(record("a", 1, "first")).change is Change.IGNORED
    again = transcript.apply(record("a", 2, "second"))
    assert (again.change, again.defect) == (Change.IGNORED, "")
    assert [r.title for r in transcript.records] == ["second"]


def test_equal_titles_of_different_incidents_stay_two_entries():
    transcript = Transcript()
    transcript.apply(record("a"))
    transcript.apply(record("b"))
    assert len(transcript.entries) == 2


def test_one_revision_told_with_two_titles_is_the_senders_defect_and_the_first_is_kept():
    transcript = Transcript()
    transcript.apply(record("S:notice:e:1", 1, "first"))
    applied = transcript.apply(record("S:notice:e:1", 1, "second"))
    assert applied.change is Change.IGNORED
    assert applied.entry.record.title == "first"
    assert "S:notice:e:1" in applied.defect
    assert transcript.apply(record("S:notice:e:1", 2, "third")).defect == ""


def test_a_late_lower_revision_is_no_defect():
    transcript = Transcript()
    transcript.apply(record("a", 2, "second"))
    assert transcript.apply(record("a", 1, "first")).defect == ""


def test_the_notice_id_that_a_real_agent_used_twice_is_reported_and_nothing_is_lost():
    frames = [json.loads(line) for line in ROWS]
    reused = [
        extension.find_in_frame(row["frame"]).content.record
        for row in frames
        if row["scenario"] == "kill9_resume"
    ]
    transcript = Transcript()
    applied = [transcript.apply(one) for one in reused]
    assert [one.change for one in applied] == [Change.ADDED, Change.IGNORED]
    assert applied[1].defect
    assert "bubblewrap" in transcript.records[0].title


def test_an_unknown_incident_has_no_entry():
    assert Transcript().get("a") is None


def test_only_actions_that_are_known_and_runnable_here_are_offered_each_once_in_order():
    actions = ("new_session", "explode", Action.RETRY, "login", "retry", None, 7)
    runnable = frozenset({Action.RETRY, Action.NEW_SESSION})
    assert offered(actions, runnable) == (Action.NEW_SESSION, Action.RETRY)


def test_no_action_is_inferred_from_the_category():
    transcript = Transcript(frozenset(Action))
    access = Record("a", 1, Category.ACCESS, Severity.ERROR, "Sign in")
    assert transcript.apply(access).entry.actions == ()


def test_an_entry_offers_what_its_newest_revision_recommends():
    transcript = Transcript(frozenset({Action.RETRY}))
    assert transcript.apply(record("a", 1)).entry.actions == ()
    updated = transcript.apply(record("a", 2, actions=(Action.LOGIN, Action.RETRY)))
    assert updated.entry.actions == (Action.RETRY,)


def test_a_surface_that_can_run_nothing_offers_nothing():
    transcript = Transcript(frozenset())
    assert transcript.apply(record("a", 1, actions=tuple(Action))).entry.actions == ()


DELIVERIES = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(1, 6)), min_size=1, max_size=30
)


@settings(max_examples=300)
@given(DELIVERIES)
def test_any_order_and_repetition_ends_as_each_incidents_highest_revision(deliveries):
    # The title is a function of id and revision: an honest sender tells one revision one way.
    transcript = Transcript()
    for identity, revision in deliveries:
        applied = transcript.apply(record(identity, revision, f"{identity}{revision}"))
        assert applied.defect == ""
    highest = {}
    for identity, revision in deliveries:
        highest[identity] = max(revision, highest.get(identity, 0))
    assert [(r.id, r.revision, r.title) for r in transcript.records] == [
        (identity, revision, f"{identity}{revision}") for identity, revision in highest.items()
    ]
    assert [entry.position for entry in transcript.entries] == list(range(len(highest)))
