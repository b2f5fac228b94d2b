"""The open session error `{type, message}`: read leniently, written strictly, projected per peer.

`type` is an open name and `message` is what to show.  Readers of today hold the literal `unknown`
only, so a new name is written to a peer that negotiated it and to nobody else; the store keeps the
whole value and each peer gets its projection.  Every decision is a look-up of the whole name in
`TYPES`: the message is opaque, and nothing here or behind it may read it to decide something.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from attrs import field, frozen

from orchestrator.failure.kinds import KINDS, Kind
from orchestrator.failure.redact import scrub
from orchestrator.failure.verdict import Verdict
from orchestrator.incident.extension import declares, whole
from orchestrator.incident.view import one_line

CAPABILITY: Final = "openErrorTypes"
"""What a peer declares, with a version, before it is sent any name but `unknown`."""
UNKNOWN: Final = "unknown"
"""The one name that every reader has always known.  It keeps its meaning for ever."""
FALLBACK: Final = "The agent reported an error that can't be shown. Try again."
"""What is shown where there is no message."""
DISPLAY_LIMIT: Final = 1000
"""Characters of a message that are displayed; the store keeps all of it."""
EXTRA_LIMIT: Final = 16_384
"""Characters of JSON that unknown fields may take, all together."""

_STATUSES: Final = range(100, 600)
_MAX_PROVIDER_ID: Final = 120
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


# --- the registry ------------------------------------------------------------------------------


class Act(StrEnum):
    """What a client does with an error, besides showing it."""

    SHOW = "show"
    LOGIN = "login"
    CANCELLED = "cancelled"
    REFUSED = "refused"


@frozen
class TypeRow:
    """One registered name.  A new name is one new row; a new required field is a new version."""

    type: str
    kind: Kind
    """The kind that stands for it: category and actions follow from that row."""
    meaning: str
    owner: str = "orchestrator"
    """Who may change what the name means."""
    consumer: str = "session view"
    """Who acts on the name."""
    since: int = 1
    """First version of the capability that has it."""
    act: Act = Act.SHOW
    provider_said: bool = False
    """The name itself says that a provider spoke."""


_T = TypeRow
_ROWS: Final = (
    _T("provider.auth", Kind.AUTH_REQUIRED, "Sign-in is missing or rejected", act=Act.LOGIN),
    _T("provider.rate-limit", Kind.RATE_LIMITED, "A short-term limit"),
    _T("provider.quota", Kind.USAGE_LIMIT, "A spent allowance or credit"),
    _T("provider.content-filter", Kind.CONTENT_REFUSED, "The answer is no", act=Act.REFUSED),
    _T("provider.transport", Kind.CONNECTION_LOST, "Nothing answered"),
    _T("provider.internal", Kind.SERVER_ERROR, "The provider failed"),
    _T("provider.invalid-output", Kind.PARSE_ERROR, "The answer could not be used"),
    _T("provider.invalid-request", Kind.INVALID_REQUEST, "The provider rejects the request"),
    _T("agent.internal", Kind.INTERNAL_ERROR, "The adapter failed"),
    _T("agent.budget", Kind.BUDGET_EXHAUSTED, "A configured limit of the agent"),
    _T("agent.busy", Kind.PROMPT_BUSY, "Another prompt is running"),
    _T("agent.died", Kind.AGENT_DIED, "The agent's process is gone"),
    _T("agent.start", Kind.AGENT_START_FAILED, "The agent could not be started"),
    _T("agent.unsafe", Kind.AGENT_UNSAFE, "The agent would bypass the gate"),
    _T("agent.binding", Kind.BINDING_MISMATCH, "The runtime can't serve this workspace"),
    _T("agent.session", Kind.SESSION_NOT_FOUND, "The agent's session is lost or locked"),
    _T("agent.timeout", Kind.REQUEST_TIMEOUT, "A request missed its budget"),
    _T("host.exhausted", Kind.HOST_EXHAUSTED, "The host ran out of disk or memory"),
    _T("aborted", Kind.CANCELLED, "Somebody stopped it", act=Act.CANCELLED),
    _T("notice", Kind.ADVISORY, "An advisory"),
    _T(UNKNOWN, Kind.UNKNOWN, "Anything else, and all of history"),
    # Reserved: the upstream server writes them; no kind of ours is told by one.
    _T("permission.rejected", Kind.ACCESS_DENIED, "A person said no", owner="opencode"),
    _T("provider.no-route", Kind.MODEL_NOT_FOUND, "No provider serves it", owner="opencode"),
    _T(
        "provider.unknown",
        Kind.UNKNOWN,
        "The provider failed, nobody knows how",
        owner="opencode",
        provider_said=True,
    ),
    _T("tool.execution", Kind.UNKNOWN, "A tool failed", owner="opencode"),
)

TYPES: Final[Mapping[str, TypeRow]] = MappingProxyType({row.type: row for row in _ROWS})
"""Every registered name, exactly once."""


# --- values ------------------------------------------------------------------------------------


@frozen
class Envelope:
    """A session error: two fields everybody reads, and context that may be absent.

    It carries no retryable flag, counter or delay: those decisions live on their own surfaces.
    """

    type: str
    """Verbatim, compared whole and case-sensitively."""
    message: str
    """What to show; opaque to every decision."""
    provider_id: str = ""
    """Which provider to sign in to (`providerID`)."""
    status: int | None = None
    """HTTP status, 100 to 599."""
    extra: Mapping[str, Any] = field(default=_NOTHING, hash=False)
    """Fields not known here: stored and forwarded, never shown, never interpreted."""
    ignored: tuple[str, ...] = field(default=(), eq=False)
    """Fields whose value could not be used and was dropped."""


@frozen
class Unreadable:
    """What arrived is not an envelope.  A distinct value, so that it is never taken for one."""

    reason: str
    salvaged: str = ""
    """A readable message beside a bad `type`: may be shown, is not promoted to `unknown`."""


@frozen
class Reaction:
    """What to do with an error."""

    act: Act
    provider_id: str = ""
    """For a sign-in; empty means the type's own default, whatever the client last used."""


# --- reading -----------------------------------------------------------------------------------


def read(wire: object) -> Envelope | Unreadable:
    """Read any JSON value.  Never raises, never invents: a bad required field is `Unreadable`."""
    if not isinstance(wire, Mapping):
        return Unreadable("an object is allowed")
    name, message = wire.get("type"), wire.get("message")
    if not isinstance(message, str):
        return Unreadable("message: a string is allowed")
    if not isinstance(name, str) or not name:
        return Unreadable("type: a non-empty string is allowed", message)
    ignored: list[str] = []
    provider_id = _optional(wire, "providerID", _provider_id, "", ignored)
    status = _optional(wire, "status", _status, None, ignored)
    extra = _bounded(wire, ignored)
    return Envelope(name, message, provider_id, status, extra, tuple(ignored))


def display(error: Envelope | Unreadable) -> str:
    """Text to show: never blank, bounded, on one line, nothing in it steers a terminal."""
    text = error.message if isinstance(error, Envelope) else error.salvaged
    cut = text.strip()[: DISPLAY_LIMIT + 1]
    safe = one_line(cut).strip()
    if not any(unicodedata.category(char)[0] not in "ZC" for char in safe):
        return FALLBACK
    return safe if len(safe) <= DISPLAY_LIMIT else safe[: DISPLAY_LIMIT - 1] + "…"


def reaction(error: Envelope | Unreadable) -> Reaction:
    """What to do, from the name alone; an unregistered name is shown."""
    row = _row(error)
    if row is None or not isinstance(error, Envelope):
        return Reaction(Act.SHOW)
    return Reaction(row.act, error.provider_id if row.act is Act.LOGIN else "")


def label(error: Envelope | Unreadable) -> str:
    """A name for metrics: one of the registered ones, or `other`."""
    row = _row(error)
    return "other" if row is None else row.type


def verdict(error: Envelope | Unreadable, *, provider_said: bool = False) -> Verdict | None:
    """What the session is told; None for what is no incident (somebody stopped it).

    `provider_said` is for a carrier that itself says so: then a name that is not registered
    belongs to the provider's service, and never becomes success.
    """
    row = _row(error)
    kind = Kind.UNKNOWN if row is None else row.kind
    if kind is Kind.CANCELLED:
        return None
    said = provider_said or (row is not None and row.provider_said)
    return Verdict.of(
        kind, scrub(display(error)), provider_said=said, rule=f"envelope.{label(error)}"
    )


def chosen(
    step: Envelope | Unreadable | None, execution: Envelope | Unreadable | None
) -> Envelope | Unreadable | None:
    """The one error of a failure told on two carriers: the step's, else the execution's."""
    return execution if step is None else step


def _row(error: Envelope | Unreadable) -> TypeRow | None:
    return TYPES.get(error.type) if isinstance(error, Envelope) else None


# --- writing -----------------------------------------------------------------------------------


def write(name: str, message: str, *, provider_id: str = "", status: int | None = None) -> Envelope:
    """Build an error of ours.  Strict, since a bad one is a bug here: raises ValueError."""
    row = TYPES.get(name)
    if row is None:
        raise ValueError(f"type: {name!r} is not allowed; a registered name is")
    if not message.strip() or scrub(message) != message:
        raise ValueError("message: a blank or unredacted text is not allowed; a redacted one is")
    if provider_id and _provider_id(provider_id) is None:
        raise ValueError(f"provider_id: {provider_id!r} is not allowed; a short name is")
    if status is not None and _status(status) is None:
        raise ValueError(f"status: {status!r} is not allowed; a whole number from 100 to 599 is")
    return Envelope(name, message, provider_id, status)


def from_verdict(failure: Verdict) -> Envelope:
    """The error that tells a verdict.  Raises ValueError for what is not an error at all."""
    return write(KINDS[failure.kind].type, failure.title)


def negotiated(declaration: object) -> bool:
    """Whether a peer's `{version, capabilities}` says that it reads open names.  Default: no."""
    return isinstance(declaration, Mapping) and declares(declaration, CAPABILITY)


def project(error: Envelope | Unreadable) -> Envelope:
    """The error as a peer that negotiated nothing may see it; the stored value stays as it is."""
    if isinstance(error, Unreadable):
        return Envelope(UNKNOWN, error.salvaged or FALLBACK)
    return Envelope(UNKNOWN, error.message)


def encode(error: Envelope, *, open_types: bool = False) -> dict[str, Any]:
    """The error as JSON: whole for a peer that negotiated, else exactly two fields.

    A closed reader may forbid any other field, so it gets none.
    """
    if not open_types:
        return {"type": UNKNOWN, "message": error.message}
    wire: dict[str, Any] = {"type": error.type, "message": error.message}
    if error.provider_id:
        wire["providerID"] = error.provider_id
    if error.status is not None:
        wire["status"] = error.status
    return {**wire, **error.extra}


def kept(stored: Envelope, echoed: object) -> Envelope:  # noqa: ARG001 - that is the rule
    """What to store when a client sends an error back: what was stored.

    A generated reader rewrites names it does not know, so nothing is taken from an echo.
    """
    return stored


SCHEMA: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "SessionError",
        "description": "An error of a session. Read `type` as an open name; show `message`.",
        "type": "object",
        "required": ["type", "message"],
        "properties": {
            "type": {
                "type": "string",
                "minLength": 1,
                "description": "An open name. Treat one you do not know as `unknown`.",
            },
            "message": {"type": "string", "description": "What to show. Never parse it."},
            "providerID": {"description": "A string where usable; drop any other value."},
            "status": {"description": "100 to 599 where usable; drop any other value."},
        },
        "additionalProperties": True,
    }
)
"""For clients that generate their readers: open on purpose, context unconstrained on purpose."""

_KNOWN: Final = frozenset(SCHEMA["properties"])


# --- fields ------------------------------------------------------------------------------------


def _optional(
    wire: Mapping[str, Any], name: str, usable: Any, absent: Any, ignored: list[str]
) -> Any:
    """A context field; null is absent, and a value of the wrong shape is dropped and listed."""
    value = wire.get(name)
    if value is None:
        return absent
    found = usable(value)
    if found is None:
        ignored.append(name)
        return absent
    return found


def _provider_id(value: object) -> str | None:
    fits = isinstance(value, str) and value.strip() and len(value) <= _MAX_PROVIDER_ID
    return str(value) if fits else None


def _status(value: object) -> int | None:
    status = whole(value)
    return status if status in _STATUSES else None


def _bounded(wire: Mapping[str, Any], ignored: list[str]) -> Mapping[str, Any]:
    """Unknown fields as long as their JSON fits; what does not fit is dropped and listed."""
    kept_fields: dict[str, Any] = {}
    room = EXTRA_LIMIT
    for name, value in wire.items():
        if name in _KNOWN:
            continue
        size = _size(name, value)
        if size is None or size > room:
            ignored.append(str(name)[:DISPLAY_LIMIT])
            continue
        room -= size
        kept_fields[name] = value
    return MappingProxyType(kept_fields) if kept_fields else _NOTHING


def _size(name: object, value: object) -> int | None:
    """Characters of the field as JSON; None for what is not JSON (NaN, infinities, deep nests)."""
    if not isinstance(name, str):
        return None
    try:
        return len(json.dumps({name: value}, allow_nan=False))
    except (ValueError, TypeError, RecursionError):
        return None
