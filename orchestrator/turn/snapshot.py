"""A turn as plain JSON and back, at any point of its life.

Settings and session go by value, what is pending by its family's name, the verdict as data.  Times
are relative to the snapshot's own `now`, since a monotonic clock does not survive a process.
Strategies that an embedder put in place of a curve are code and have to be handed in again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

import attrs

from orchestrator.turn.state import State, TurnState
from orchestrator.turn.table import ROWS

VERSION: Final = 1

_TIMES: Final = frozenset({"wait_from", "wait_until", "stop_at", "failed_at", "curve_start"})
"""Fields, in whichever class, that are moments on the caller's clock."""

_LARGEST: Final = sys.float_info.max

_NOT_KEPT: Final = frozenset({"curves"})

_Turn = TypeVar("_Turn", bound=TurnState)
_Decoder = Callable[[Any, str, float], Any]
"""From a JSON value, its path and `now` to the value."""


def take(turn: TurnState, now: float | None = None) -> dict[str, Any]:
    """Write a turn down.

    `now` is the moment on the caller's clock; without it, the last one that the turn was told.
    """
    moment = turn.now if now is None else now
    return {"version": VERSION, **_object(turn, moment), "now": moment}


def put_back(kind: type[_Turn], data: Mapping[str, Any], now: float | None = None) -> _Turn:
    """Build the turn that `data` describes.

    `now` is the moment on this process's clock; without it, the snapshot's own.  Raises ValueError
    that names the field and what is allowed there.
    """
    if not isinstance(data, Mapping):
        raise _wrong("snapshot", data, "an object")
    if data.get("version") != VERSION:
        raise _wrong("snapshot.version", data.get("version"), str(VERSION))
    moment = _plain(float, _given(data, "now", "snapshot"), "snapshot.now") if now is None else now
    fields: Any = kind
    values = {
        name: decode(_given(data, name, "snapshot"), f"snapshot.{name}", moment)
        for name, decode in _decoders(fields).items()
    }
    values["now"] = moment
    turn = kind(values.pop("settings"), values.pop("ids"))
    for name, value in values.items():
        setattr(turn, name, value)
    for name, allowed, holds in _CONSISTENT:
        if not holds(turn):
            raise _wrong(f"snapshot.{name}", data[name], allowed)
    return turn


_CONSISTENT: Final[tuple[tuple[str, str, Callable[[TurnState], bool]], ...]] = (
    (
        "plan",
        "what is pending, where a turn waits or recovers,",
        lambda turn: turn.plan is not None or turn.state not in {State.WAITING, State.RECOVERING},
    ),
    (
        "verdict",
        "the failure behind what is pending",
        lambda turn: turn.plan is None or turn.verdict is not None,
    ),
    (
        "wait_until",
        "a moment where a turn waits, and null elsewhere,",
        lambda turn: (turn.wait_until is not None) is (turn.state is State.WAITING),
    ),
    (
        "step",
        "a step that the pending family has",
        lambda turn: 0 <= turn.step <= _steps(turn) - (turn.state is State.RECOVERING),
    ),
)
"""What must hold between fields that are each right by themselves."""


def _steps(turn: TurnState) -> int:
    return turn.step if turn.plan is None else len(ROWS[turn.plan.family].steps)


def _json(value: Any, now: float) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_json(item, now) for item in value]
    return _object(value, now) if attrs.has(type(value)) else value


def _object(value: Any, now: float) -> dict[str, Any]:
    kept = {}
    for name in _names(value.__class__):
        item = getattr(value, name)
        kept[name] = item - now if name in _TIMES and item is not None else _json(item, now)
    return kept


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(kind) if field.name not in _NOT_KEPT)


@cache
def _decoders(kind: Any) -> Mapping[str, _Decoder]:
    hints = get_type_hints(kind)
    return {
        name: _moment(hints[name]) if name in _TIMES else _decoder(hints[name])
        for name in _names(kind)
    }


def _moment(hint: Any) -> _Decoder:
    """Pick what reads a moment back, or its absence where the field allows that."""
    seconds, optional = _decoder(float), NoneType in get_args(hint)

    def read(value: Any, path: str, now: float) -> float | None:
        return None if optional and value is None else float(seconds(value, path, now)) + now

    return read


@cache
def _decoder(hint: Any) -> _Decoder:
    """Pick what reads values of a type back; the types are those of this package's own fields."""
    options = [option for option in get_args(hint) if option is not NoneType]
    if NoneType in get_args(hint):
        inner = _decoder(options[0])
        return lambda value, path, now: None if value is None else inner(value, path, now)
    if get_origin(hint) is tuple:
        inner = _decoder(options[0])
        return lambda value, path, now: tuple(
            inner(item, f"{path}[{i}]", now) for i, item in enumerate(_list(value, path))
        )
    if attrs.has(hint):
        return lambda value, path, now: _build(hint, value, path, now)
    if issubclass(hint, Enum):
        return lambda value, path, _: _member(hint, value, path)
    return lambda value, path, _: _plain(hint, value, path)


def _build(kind: Any, value: Any, path: str, now: float) -> Any:
    if not isinstance(value, Mapping):
        raise _wrong(path, value, "an object")
    values = {
        name: decode(_given(value, name, path), f"{path}.{name}", now)
        for name, decode in _decoders(kind).items()
    }
    try:
        return kind(**values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}.{error}") from None


def _member(kind: type[Enum], value: Any, path: str) -> Enum:
    try:
        return kind(value)
    except ValueError:
        raise _wrong(path, value, f"one of {', '.join(str(m.value) for m in kind)}") from None


def _plain(kind: type, value: Any, path: str) -> Any:
    """Accept a value of the type itself; a whole number is a number, a boolean is not."""
    allowed = (int, float) if kind is float else kind
    if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
        raise _wrong(path, value, f"a value of type {kind.__name__}")
    number: Any = value
    if kind is float and not -_LARGEST <= number <= _LARGEST:
        raise _wrong(path, value, "a finite number")
    return value


def _list(value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(path, value, "a list")
    return value


def _given(data: Mapping[str, Any], name: str, path: str) -> Any:
    if name not in data:
        raise ValueError(f"{path}.{name}: is missing")
    return data[name]


def _wrong(path: str, value: Any, allowed: str) -> ValueError:
    return ValueError(f"{path}: {value!r} is not allowed; {allowed} is")
