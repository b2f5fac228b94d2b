"""Events, effects and session states as JSON, and events and states back.

Written by hand, because it runs at every event of every turn; read by cattrs, which is loaded when
a journal is read.  Every text is scrubbed on its way out.  A field that has its default is left
out; a reader of another version ignores the fields it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache, lru_cache
from typing import Any, Final, TypeVar, cast, get_args

import attrs

from orchestrator.failure.redact import scrub
from orchestrator.turn.effects import Effect, SessionState
from orchestrator.turn.events import Event

_TYPES: Final[Mapping[str, type]] = {kind.__name__: kind for kind in get_args(Event)}
_SHORT: Final = 4
"""Characters that no secret fits into."""

T = TypeVar("T")
_clean = lru_cache(maxsize=4096)(scrub)


def event_json(event: Event) -> dict[str, Any]:
    """An event as a JSON object; `type` names its class."""
    return {"type": type(event).__name__, **_fields(event)}


def effects_json(effects: tuple[Effect, ...]) -> list[dict[str, Any]]:
    """Effects as JSON objects, in order."""
    return [{"type": type(effect).__name__, **_fields(effect)} for effect in effects]


def state_json(state: SessionState) -> dict[str, Any]:
    """What outlives a turn, as a JSON object."""
    return _fields(state)


def line(value: Mapping[str, Any]) -> str:
    """One line of a journal, without its end.  Raises ValueError for a number that is none."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def text(value: str) -> str:
    """Return a text without secrets."""
    return value if len(value) <= _SHORT else _clean(value)


def _fields(value: Any) -> dict[str, Any]:
    kept = {}
    for name, default in _defaults(value.__class__):
        item = getattr(value, name)
        if default is attrs.NOTHING or item != default:
            kept[name] = _plain(item)
    return kept


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return _fields(value) if attrs.has(value.__class__) else value


@cache
def _defaults(kind: Any) -> tuple[tuple[str, Any], ...]:
    """The fields of a class with their defaults; all of them are frozen values."""
    found = []
    for field in attrs.fields(kind):
        default = field.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a class at run time
            default = default.factory()
        found.append((field.name, default))
    return tuple(found)


# Back ---------------------------------------------------------------------------------------------


def event_of(value: Mapping[str, Any]) -> Event:
    """Read an event back.  Raises ValueError for one that this version does not know."""
    kind = _TYPES.get(str(value.get("type")))
    if kind is None:
        raise ValueError(f"type: {str(value.get('type'))[:60]!r} is no event of this version")
    event: Event = _read(value, kind)
    return event


def state_of(value: Mapping[str, Any]) -> SessionState:
    """Read back what outlives a turn.  Raises ValueError."""
    return _read(value, SessionState)


def _read(value: Mapping[str, Any], kind: type[T]) -> T:
    try:
        return cast("T", _converter().structure(value, kind))
    except Exception as error:  # noqa: BLE001 - cattrs raises whatever a class raises
        raise ValueError(f"{kind.__name__}: {error}") from None


@cache
def _converter() -> Any:
    from cattrs import Converter  # noqa: PLC0415 - only readers need it

    converter = Converter(detailed_validation=False)
    for kind, allowed in _PRIMITIVES.items():
        converter.register_structure_hook(kind, _exactly(kind, allowed))
    return converter


_PRIMITIVES: Final[Mapping[type, tuple[type, ...]]] = {
    float: (float, int),
    int: (int,),
    bool: (bool,),
    str: (str,),
}


def _exactly(kind: type, allowed: tuple[type, ...]) -> Callable[[Any, Any], Any]:
    """Read a value of the type itself; a whole number is a number, a boolean is not."""

    def read(value: Any, asked: Any) -> Any:
        if asked is not kind:  # an enum of these
            return asked(value)
        if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
            raise TypeError(f"{value!r} is not allowed; a value of type {kind.__name__} is")
        return value

    return read
