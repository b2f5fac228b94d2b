"""What a host or an agent may hand in; anything else is named at once, where it was handed in.

Unchecked, a wrong value would surface later: as a failure that the user is told of, or while a turn
ends.  Each check raises TypeError or ValueError with the field, the value and what is allowed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

_LONGEST_SHOWN = 60


def of(kind: type[T], field: str, value: object) -> T:
    """Let a value of this type through."""
    if isinstance(value, kind):
        return value
    raise wrong(field, value, f"a value of type {kind.__name__}")


def name(field: str, value: object) -> str:
    """Let a text through that can identify something."""
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError(f"{field}: {_shown(value)} is not allowed; a non-empty string is")


def names(field: str, value: object) -> tuple[str, ...]:
    """Let a list of texts through; one text alone is not a list of its letters."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        texts = tuple(value)
        if all(isinstance(text, str) for text in texts):
            return texts
    raise wrong(field, value, "a sequence of strings")


def prompt(value: object) -> None:
    """Let content blocks through; text needs no look."""
    if not isinstance(value, Sequence) or not all(isinstance(item, Mapping) for item in value):
        raise wrong("prompt", value, "text, or a sequence of content blocks,")


def agent(value: Any) -> None:
    """Let through what can be asked for an attempt and for a step of a recovery."""
    if not all(callable(getattr(value, method, None)) for method in ("attempt", "recover")):
        raise wrong("agent", value, "an object with the methods attempt and recover")


def wrong(field: str, value: object, allowed: str) -> TypeError:
    """The error for a value of a type that is not allowed."""
    return TypeError(f"{field}: {_shown(value)} is not allowed; {allowed} is")


def _shown(value: object) -> str:
    """A short plain value as it is, any other by its type: it may hold what nobody should read."""
    text = repr(value) if isinstance(value, str | int | float | None) else ""
    return text if 0 < len(text) <= _LONGEST_SHOWN else f"a value of type {type(value).__name__}"
