"""One revision of one incident, and what can't be one."""

import attrs
import pytest

from orchestrator.incident.record import Action, Category, Record, Severity

FIELDS = {
    "id": "t:error",
    "revision": 1,
    "category": Category.SERVICE,
    "severity": Severity.WARNING,
    "title": "Retrying, 1 of 3.",
}


def test_the_next_revision_is_the_same_incident_with_what_changed():
    record = Record(**FIELDS)
    ended = record.revised(severity=Severity.ERROR, title="Overloaded.", actions=(Action.RETRY,))
    assert (ended.id, ended.revision) == ("t:error", 2)
    assert (ended.severity, ended.title) == (Severity.ERROR, "Overloaded.")
    assert record.revision == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", ""),
        ("id", " "),
        ("id", None),
        ("revision", 0),
        ("revision", -1),
        ("revision", True),
        ("revision", 1.0),
        ("revision", "1"),
        ("category", "service"),
        ("severity", "error"),
        ("title", None),
        ("details", None),
        ("actions", [Action.RETRY]),
        ("actions", ("retry",)),
        ("actions", (Action.RETRY, Action.RETRY)),
    ],
)
def test_a_bad_field_cannot_be_built_and_the_error_names_it(name, value):
    with pytest.raises((ValueError, TypeError), match=name):
        Record(**{**FIELDS, name: value})


def test_a_record_cannot_be_changed():
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Record(**FIELDS).title = "x"
