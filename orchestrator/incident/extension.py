"""The sessionFailure extension on the wire: negotiation, encoding, decoding, carriers.

A record travels under `_meta.jetbrains.air.sessionFailure`, either on the answer to the prompt or
on a session update of any type: it is recognised by its key alone.  Both ends are strict about
what switches the extension on and lenient about what a record holds, since a reader that refuses
a newer field would hide a failure.  The peers are JavaScript, so a number has one type: `1.0` is a
version, and Python's `True`, infinities and `in` on strings are traps.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from attrs import field, frozen

from orchestrator.failure.kinds import Action, Category
from orchestrator.incident.record import Carrier, Record, Severity

CAPABILITY: Final = "sessionFailure"
VERSION: Final = 1
"""The version we speak.  A newer one is additive, so it is accepted and answered with ours."""

_PATH: Final = ("_meta", "jetbrains", "air")
_MAX_WHOLE: Final = 2**53 - 1
"""Largest whole number that every JSON peer reads exactly."""
_FIELDS: Final = frozenset(
    ("id", "revision", "category", "severity", "title", "details", "reason", "actions")
)
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_CATEGORIES: Final = {str(member): member for member in Category}
_SEVERITIES: Final = {str(member): member for member in Severity}
_ACTIONS: Final = {str(member): member for member in Action}

_E = TypeVar("_E")


# --- negotiation -------------------------------------------------------------------------------


def negotiated(capabilities: object) -> bool:
    """Whether a peer's `clientCapabilities` (or an agent's answer) switch the extension on.

    Anything that is not exactly a declaration means no, silently: the peer keeps what it had.
    """
    air = _air(capabilities)
    return air is not None and declares(air, CAPABILITY)


def declares(declaration: Mapping[str, Any], capability: str) -> bool:
    """A whole version of 1 or more, and a list that holds exactly this name."""
    names = declaration.get("capabilities")
    # A list only: `in` on the string "sessionFailure" would be true.
    named = isinstance(names, list) and capability in names
    return named and _is_version(declaration.get("version"))


def advertise(capabilities: object, result: Mapping[str, Any]) -> dict[str, Any]:
    """An `initialize` result that names the extension, for a client that knows of it.

    Real adapters answer as soon as the client's `air` is an object, even one with a bad version.
    """
    return dict(result) if _air(capabilities) is None else _naming(result)


def declare(capabilities: object) -> dict[str, Any]:
    """`clientCapabilities` that declare the extension to an agent, neighbours kept."""
    return _naming(capabilities if isinstance(capabilities, Mapping) else {})


def withdraw(part: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a declaration or an answer that no longer names the extension."""
    air = _air(part)
    names = air.get("capabilities") if air is not None else None
    if air is None or not isinstance(names, list) or CAPABILITY not in names:
        return dict(part)
    others = [name for name in names if name != CAPABILITY]
    return _placed(part, {**air, "capabilities": others} if others else _less(air, "capabilities"))


def takes_notices(capabilities: object) -> bool:
    """Whether a client declared `session.notices`: advisories reach it as `notice` updates."""
    session = capabilities.get("session") if isinstance(capabilities, Mapping) else None
    return isinstance(session, Mapping) and isinstance(session.get("notices"), Mapping)


def whole(value: object) -> int | None:
    """A JSON number without a fraction, or None: never a boolean, NaN, infinity or text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not value.is_integer():
        return None
    return int(value) if abs(value) <= _MAX_WHOLE else None


# --- encoding ----------------------------------------------------------------------------------


def encode(record: Record) -> dict[str, Any]:
    """The record as JSON, its fields in the order of the wire."""
    wire: dict[str, Any] = {
        "id": record.id,
        "revision": record.revision,
        "category": str(record.category),
        "severity": str(record.severity),
        "title": record.title,
    }
    if record.details:
        wire["details"] = record.details
    wire["actions"] = [str(action) for action in record.actions]
    return wire


def attach(part: Mapping[str, Any], record: Record) -> dict[str, Any]:
    """A copy of a result or an update that carries the record, all neighbours kept."""
    air = _air(part) or _NOTHING
    rest = _less(air, "version")
    return _placed(part, {"version": _version(air), **rest, CAPABILITY: encode(record)})


def detach(part: Mapping[str, Any]) -> dict[str, Any]:
    """A copy without the record; objects that held nothing else go with it."""
    air = _air(part)
    if air is None or CAPABILITY not in air:
        return dict(part)
    return _placed(part, _less(air, CAPABILITY))


def response(result: Mapping[str, Any], record: Record) -> dict[str, Any]:
    """The result of a prompt whose turn failed: a normal `end_turn` that carries the record."""
    return {**attach(result, record), "stopReason": "end_turn"}


def update(session_id: str, record: Record) -> dict[str, Any]:
    """Params of the `session/update` that carries a record of any other kind."""
    return {
        "sessionId": session_id,
        "update": attach({"sessionUpdate": "session_info_update"}, record),
    }


def notice(session_id: str, record: Record) -> dict[str, Any]:
    """Params of the advisory for a client that `takes_notices`."""
    shown: dict[str, Any] = {
        "sessionUpdate": "notice",
        "severity": str(record.severity),
        "title": record.title,
    }
    if record.details:
        shown["description"] = record.details
    return {"sessionId": session_id, "update": shown}


# --- decoding ----------------------------------------------------------------------------------


@frozen
class Decoded:
    """A record as a peer sent it."""

    record: Record
    reason: str = ""
    """The peer's optional machine-readable reason; never shown."""
    ignored: tuple[str, ...] = ()
    """Fields whose value could not be used; each was replaced by the harmless reading."""
    extra: Mapping[str, Any] = field(default=_NOTHING, eq=False)
    """Fields of a newer version, kept and never interpreted."""


@frozen
class Malformed:
    """Something under the record's key that is not a record."""

    problem: str
    """The field, and what is allowed; the value itself is not repeated."""


def decode(wire: object) -> Decoded | Malformed:
    """Read what a peer put under the record's key.  Never raises.

    Identity, revision and title are what makes a record; without one of them there is none.  An
    unknown category is `unknown`.  An unknown severity is a warning: only an explicit `error` may
    turn an answered prompt into a failed one.  Unknown and repeated actions are dropped.
    """
    if not isinstance(wire, Mapping):
        return Malformed("sessionFailure: an object is allowed")
    identity, title = wire.get("id"), wire.get("title")
    revision = whole(wire.get("revision"))
    if not isinstance(identity, str) or not identity.strip():
        return Malformed("id: a non-empty string is allowed")
    if revision is None or revision < 1:
        return Malformed("revision: a whole number of 1 or more is allowed")
    if not isinstance(title, str):
        return Malformed("title: a string is allowed")
    ignored: list[str] = []
    record = Record(
        id=identity,
        revision=revision,
        category=_member(_CATEGORIES, wire, "category", Category.UNKNOWN, ignored),
        severity=_member(_SEVERITIES, wire, "severity", Severity.WARNING, ignored),
        title=title,
        actions=_actions(wire.get("actions"), ignored),
        details=_optional_text(wire, "details", ignored),
    )
    reason = _optional_text(wire, "reason", ignored)
    extra = {key: value for key, value in wire.items() if key not in _FIELDS}
    return Decoded(record, reason, tuple(ignored), MappingProxyType(extra))


@frozen
class Found:
    """A record on a frame, and what it travelled on."""

    carrier: Carrier
    content: Decoded | Malformed
    session_id: str = ""
    """Empty on a response, which names none."""


def find(part: object) -> object | None:
    """Whatever is under the record's key of a result or an update; None when nothing is."""
    air = _air(part)
    return None if air is None else air.get(CAPABILITY)


def find_in_frame(frame: object) -> Found | None:
    """The record on a JSON-RPC frame: on a response, or on a session update of any type."""
    if not isinstance(frame, Mapping):
        return None
    wire = find(frame.get("result"))
    if wire is not None:
        return Found(Carrier.RESPONSE, decode(wire))
    params = frame.get("params")
    if frame.get("method") != "session/update" or not isinstance(params, Mapping):
        return None
    wire = find(params.get("update"))
    if wire is None:
        return None
    session_id = params.get("sessionId")
    return Found(Carrier.UPDATE, decode(wire), session_id if isinstance(session_id, str) else "")


def _member(
    known: Mapping[str, _E], wire: Mapping[str, Any], name: str, otherwise: _E, ignored: list[str]
) -> _E:
    value = wire.get(name)
    if isinstance(value, str) and value in known:
        return known[value]
    ignored.append(name)
    return otherwise


def _actions(value: object, ignored: list[str]) -> tuple[Action, ...]:
    if not isinstance(value, list):
        ignored.append("actions")
        return ()
    known = [_ACTIONS[name] for name in value if isinstance(name, str) and name in _ACTIONS]
    if len(set(known)) != len(value):
        ignored.append("actions")
    return tuple(dict.fromkeys(known))


def _optional_text(wire: Mapping[str, Any], name: str, ignored: list[str]) -> str:
    value = wire.get(name)
    if value is None or isinstance(value, str):
        return value or ""
    ignored.append(name)
    return ""


# --- the path to `air` -------------------------------------------------------------------------


def _air(part: object) -> Mapping[str, Any] | None:
    """The object at `_meta.jetbrains.air`, or None when any level is something else."""
    for key in _PATH:
        if not isinstance(part, Mapping):
            return None
        part = part.get(key)
    return part if isinstance(part, Mapping) else None


def _naming(part: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that names the extension.

    The other names stay only under a version that is one: repairing a bad version would switch on
    what its peer had left off.
    """
    air = _air(part) or _NOTHING
    names = air.get("capabilities")
    valid = _is_version(air.get("version"))
    known = list(names) if valid and isinstance(names, list) else []
    listed = known if CAPABILITY in known else [*known, CAPABILITY]
    rest = _less(air, "version")
    return _placed(part, {"version": _version(air), **rest, "capabilities": listed})


def _version(air: Mapping[str, Any]) -> int:
    """The version a peer already named, or ours."""
    version = whole(air.get("version"))
    return VERSION if version is None or version < 1 else version


def _is_version(value: object) -> bool:
    version = whole(value)
    return version is not None and version >= 1


def _less(air: Mapping[str, Any], key: str) -> dict[str, Any]:
    """What is left without a key; a version that says nothing about anything goes too."""
    rest = {name: value for name, value in air.items() if name != key}
    return {} if set(rest) == {"version"} else rest


def _placed(part: Mapping[str, Any], air: dict[str, Any]) -> dict[str, Any]:
    return _replaced(part, _PATH, air)


def _replaced(
    part: Mapping[str, Any], path: tuple[str, ...], value: dict[str, Any]
) -> dict[str, Any]:
    """A copy of `part` with `value` at `path`; an empty value takes its empty parents along."""
    key, rest = path[0], path[1:]
    if rest:
        child = part.get(key)
        value = _replaced(child if isinstance(child, Mapping) else {}, rest, value)
    copy = dict(part)
    if value:
        copy[key] = value
    else:
        copy.pop(key, None)
    return copy
