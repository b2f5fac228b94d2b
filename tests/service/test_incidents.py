import pytest

from orchestrator.failure.kinds import Category
from orchestrator.incident.record import Record, Severity
from orchestrator.incident.view import Change
from orchestrator.service.incidents import REVISIONS, Incidents


def record(incident_id, revision=1):
    return Record(
        incident_id, revision, Category.SERVICE, Severity.WARNING, f"told {revision} times"
    )


def test_the_same_or_a_lower_revision_changes_nothing():
    incidents = Incidents()
    assert incidents.apply(record("a", 2)) is Change.ADDED
    assert incidents.apply(record("a", 2)) is Change.IGNORED
    assert incidents.apply(record("a", 1)) is Change.IGNORED
    assert incidents.apply(record("a", 5)) is Change.UPDATED
    assert [r.revision for r in incidents.get("a").revisions] == [2, 5]


def test_the_oldest_incident_that_is_over_makes_room():
    incidents = Incidents(capacity=3)
    incidents.active = lambda: [record("a")]
    for name in "abcd":
        incidents.apply(record(name))
    assert [kept.record.id for kept in incidents.after(0)] == ["a", "c", "d"]


def test_when_all_are_active_the_oldest_of_all_makes_room():
    incidents = Incidents(capacity=2)
    incidents.active = lambda: [record(name) for name in "abc"]
    for name in "abc":
        incidents.apply(record(name))
    assert [kept.record.id for kept in incidents.after(0)] == ["b", "c"]


def test_an_incident_that_never_settles_keeps_its_first_and_its_newest_revisions():
    incidents = Incidents()
    for revision in range(1, 3 * REVISIONS):
        incidents.apply(record("a", revision))
    revisions = [r.revision for r in incidents.get("a").revisions]
    assert len(revisions) == REVISIONS
    assert revisions[0] == 1
    assert revisions[-1] == 3 * REVISIONS - 1


def test_an_active_record_that_never_went_by_is_taken_in():
    incidents = Incidents(lambda: [record("restored")])
    assert incidents.active_ids() == {"restored"}
    assert incidents.get("restored").record.revision == 1


@pytest.mark.anyio
async def test_as_a_sink_it_keeps_records_and_lets_notes_go_by():
    incidents = Incidents()
    await incidents.deliver(record("a"))
    await incidents.deliver("a note")
    assert [kept.record.id for kept in incidents.after(0)] == ["a"]
