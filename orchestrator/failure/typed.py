"""The short tables of typed failures: an agent's own record, and the open envelope.

Their type decides.  A record's category is coarse (agents file a rejected request under
`service`), so inside one category the title's wording may name the kind more closely.  An
envelope's message is opaque: nothing reads it to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from orchestrator.failure.kinds import KINDS, Kind
from orchestrator.failure.raw import Surface
from orchestrator.failure.view import View
from orchestrator.failure.walk import Finding

_BY_TYPE: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "provider.internal": Kind.SERVER_ERROR,
        "provider.invalid-output": Kind.PARSE_ERROR,
        "provider.rate-limit": Kind.RATE_LIMITED,
        "provider.quota": Kind.USAGE_LIMIT,
        "provider.auth": Kind.AUTH_REQUIRED,
        "provider.invalid-request": Kind.INVALID_REQUEST,
        "provider.no-route": Kind.MODEL_NOT_FOUND,
        "provider.content-filter": Kind.CONTENT_REFUSED,
        "provider.transport": Kind.CONNECTION_LOST,
        "provider.unknown": Kind.UNKNOWN,
        "permission.rejected": Kind.ACCESS_DENIED,
        "agent.internal": Kind.INTERNAL_ERROR,
        "agent.budget": Kind.BUDGET_EXHAUSTED,
        "agent.busy": Kind.PROMPT_BUSY,
        "agent.died": Kind.AGENT_DIED,
        "agent.start": Kind.AGENT_START_FAILED,
        "agent.unsafe": Kind.AGENT_UNSAFE,
        "agent.binding": Kind.BINDING_MISMATCH,
        "agent.session": Kind.SESSION_NOT_FOUND,
        "agent.timeout": Kind.REQUEST_TIMEOUT,
        "host.exhausted": Kind.HOST_EXHAUSTED,
        "aborted": Kind.CANCELLED,
        "notice": Kind.ADVISORY,
    }
)

_BY_REASON: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "rate_limited": Kind.RATE_LIMITED,
        "quota_exhausted": Kind.USAGE_LIMIT,
        "context_exhausted": Kind.CONTEXT_OVERFLOW,
        "budget_exhausted": Kind.BUDGET_EXHAUSTED,
        "bad_request": Kind.INVALID_REQUEST,
        "overloaded": Kind.OVERLOADED,
        "access_denied": Kind.ACCESS_DENIED,
        "auth_required": Kind.AUTH_REQUIRED,
        "internal_error": Kind.INTERNAL_ERROR,
        "transport_lost": Kind.CONNECTION_LOST,
        "worker_shutdown": Kind.AGENT_SHUTDOWN,
        "policy_denied": Kind.CONTENT_REFUSED,
        "advisory": Kind.ADVISORY,
    }
)

_BY_CATEGORY: Final[Mapping[tuple[str, frozenset[str]], Kind]] = MappingProxyType(
    {
        ("limit", frozenset({"retry"})): Kind.RATE_LIMITED,
        ("limit", frozenset({"new_session"})): Kind.CONTEXT_OVERFLOW,
        ("limit", frozenset()): Kind.USAGE_LIMIT,
        ("service", frozenset({"retry", "new_session"})): Kind.INTERNAL_ERROR,
        ("access", frozenset({"login"})): Kind.AUTH_REQUIRED,
        ("access", frozenset({"retry"})): Kind.CREDENTIAL_RELOAD,
        ("access", frozenset({"retry", "login"})): Kind.CREDENTIAL_PROPAGATION,
        ("access", frozenset()): Kind.ACCESS_DENIED,
        ("request", frozenset({"new_session"})): Kind.MALFORMED_REQUEST,
        ("request", frozenset({"retry"})): Kind.PROMPT_BUSY,
        ("request", frozenset()): Kind.INVALID_REQUEST,
        ("connection", frozenset({"new_session"})): Kind.INNER_LOST,
        ("connection", frozenset({"retry"})): Kind.CONNECTION_LOST,
        ("connection", frozenset({"retry", "new_session"})): Kind.CONNECTION_LOST,
        ("connection", frozenset()): Kind.AGENT_START_FAILED,
    }
)

_VAGUE: Final = frozenset({"service", "connection", "unknown"})
"""Categories under which agents file failures of every kind: the title's wording goes first."""


def find_typed(view: View, walk: Callable[[], Finding]) -> Finding:
    """Read the type or the category; ask the walk only inside what they leave open."""
    data = view.raw.data
    if not isinstance(data, Mapping):
        return Finding(Kind.UNKNOWN, "typed.unreadable")
    if view.raw.surface is Surface.ENVELOPE:
        name = data.get("type")
        kind = _BY_TYPE.get(name) if isinstance(name, str) else None
        return Finding(kind or Kind.UNKNOWN, f"envelope.{name}" if kind else "envelope.unknown")
    return _find_record(data, walk)


def _find_record(data: Mapping[object, object], walk: Callable[[], Finding]) -> Finding:
    if data.get("severity") == "warning":
        return Finding(Kind.ADVISORY, "record.warning")
    reason = data.get("reason")
    if isinstance(reason, str) and (by_reason := _BY_REASON.get(reason.strip().lower())):
        return Finding(by_reason, f"record.reason.{reason.strip().lower()}")
    category = data.get("category")
    actions = data.get("actions")
    names = frozenset(a for a in actions if isinstance(a, str)) if isinstance(actions, list) else ()
    key = (category if isinstance(category, str) else "", frozenset(names))
    default = _BY_CATEGORY.get(key)
    walked = walk()
    row = KINDS[walked.kind]
    if row.is_failure and walked.kind is not Kind.UNKNOWN:
        # Claude files a prompt that is too long under `request`.
        too_long = key[0] == "request" and walked.kind is Kind.CONTEXT_OVERFLOW
        if key[0] in _VAGUE or row.category == key[0] or too_long:
            return walked
    if default is None:
        return Finding(Kind.UNKNOWN, "record.unknown")
    return Finding(default, f"record.{key[0]}")
