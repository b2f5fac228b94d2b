"""One revision of one incident: what the user is told."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from attrs import evolve, field, frozen
from attrs.validators import instance_of

from orchestrator.failure.kinds import Action, Category


class Severity(StrEnum):
    """A warning may still succeed; an error needs the user or another request."""

    WARNING = "warning"
    ERROR = "error"


class Carrier(StrEnum):
    """What a record travels on."""

    UPDATE = "update"
    """A session update."""
    RESPONSE = "response"
    """The answer to the prompt: only the terminal error of a turn."""


def _not_empty(_: object, attribute: Any, value: Any) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{attribute.name}: {value!r} is not allowed; a non-empty string is")


def _positive(_: object, __: object, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"revision: {value!r} is not allowed; a whole number of 1 or more is")


def _text(_: object, attribute: Any, value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{attribute.name}: {value!r} is not allowed; a string is")


def _actions(_: object, __: object, value: Any) -> None:
    known = isinstance(value, tuple) and all(isinstance(action, Action) for action in value)
    if not known or len(set(value)) != len(value):
        raise ValueError(f"actions: {value!r} is not allowed; a tuple of actions, each once, is")


@frozen
class Record:
    """One revision of one incident.

    The wire form is the sessionFailure record.  Raises ValueError or TypeError naming the field
    when built from something that is not one.
    """

    id: str = field(validator=_not_empty)
    """Identity of one occurrence, never of an error type."""
    revision: int = field(validator=_positive)
    category: Category = field(validator=instance_of(Category))
    severity: Severity = field(validator=instance_of(Severity))
    title: str = field(validator=_text)
    """The complete presentation: what happened and a short next step."""
    actions: tuple[Action, ...] = field(default=(), validator=_actions)
    """Ordered; empty while a recovery is in progress."""
    details: str = field(default="", validator=_text)
    """Only what is too long for the title."""

    def revised(self, **changes: Any) -> Record:
        """The next revision of the same incident."""
        return evolve(self, revision=self.revision + 1, **changes)


__all__ = ["Action", "Carrier", "Category", "Record", "Severity"]
