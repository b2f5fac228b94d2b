"""THE table of failures: one row per kind, and everything policy needs follows from the row.

A *kind* says what went wrong in one word.  Its row says whether trying again can help, which
recovery serves it, what the user may do next and what ends the incident.  Nothing outside this
file decides any of that.  Two kinds refine their row from the failure itself: `unknown` (category
`service` when a provider spoke) and `compaction_failed` (transient by its own payload).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from attrs import field, frozen


class Category(StrEnum):
    """Broad visual group of an incident: an icon and an accessibility label, nothing else."""

    CONNECTION = "connection"
    ACCESS = "access"
    LIMIT = "limit"
    REQUEST = "request"
    SERVICE = "service"
    UNKNOWN = "unknown"


class Action(StrEnum):
    """What a user can do about an incident.  The order in a record is the order of display."""

    RETRY = "retry"
    LOGIN = "login"
    NEW_SESSION = "new_session"


class Recovery(StrEnum):
    """What serves a kind in place of the ordinary ladder."""

    BUSY = "busy"
    DEATH = "death"
    REGISTRATION = "registration"
    LOST_SESSION = "lost_session"
    CONVERSATION_DISCARD = "conversation_discard"
    FRESH_SESSION = "fresh_session"
    ENTITLEMENT_SWAP = "entitlement_swap"
    CONTENT_FILTER_HOP = "content_filter_hop"


class Clears(StrEnum):
    """What ends an incident's active state.  Clearing publishes nothing."""

    NEXT_ATTEMPT = "next_attempt"
    """The next confirmed attempt boundary."""
    REAL_ANSWER = "real_answer"
    """A landed turn with a real model's message."""
    SIGN_IN = "sign_in"
    """`SignedIn`, or a real answer."""
    NEW_RUNTIME = "new_runtime"
    """`RuntimeReplaced`: a replaced process or native session."""
    NEVER = "never"


class Kind(StrEnum):
    """What went wrong, in one word."""

    OVERLOADED = "overloaded"
    SERVER_ERROR = "server_error"
    MODEL_UNAVAILABLE = "model_unavailable"
    MODEL_LIST_UNAVAILABLE = "model_list_unavailable"
    EMPTY_RESPONSE = "empty_response"
    INTERNAL_ERROR = "internal_error"
    PARSE_ERROR = "parse_error"
    COMPACTION_FAILED = "compaction_failed"
    RATE_LIMITED = "rate_limited"
    USAGE_LIMIT = "usage_limit"
    BILLING = "billing"
    CONTEXT_OVERFLOW = "context_overflow"
    REQUEST_TOO_LARGE = "request_too_large"
    MESSAGE_TOO_LARGE = "message_too_large"
    MAX_OUTPUT_TOKENS = "max_output_tokens"
    BUDGET_EXHAUSTED = "budget_exhausted"
    AUTH_REQUIRED = "auth_required"
    ACCESS_DENIED = "access_denied"
    CREDENTIAL_PROPAGATION = "credential_propagation"
    CREDENTIAL_RELOAD = "credential_reload"
    MODEL_NOT_ENTITLED = "model_not_entitled"
    MODEL_NOT_FOUND = "model_not_found"
    INVALID_REQUEST = "invalid_request"
    MALFORMED_REQUEST = "malformed_request"
    TOOL_SCHEMA_REJECTED = "tool_schema_rejected"
    IMAGE_REJECTED = "image_rejected"
    THINKING_BINDING = "thinking_binding"
    THINKING_REJECTED = "thinking_rejected"
    CONTENT_REFUSED = "content_refused"
    PROMPT_BUSY = "prompt_busy"
    UNSUPPORTED = "unsupported"
    CONNECTION_LOST = "connection_lost"
    TLS_FAILURE = "tls_failure"
    PROXY_REFUSED = "proxy_refused"
    AGENT_DIED = "agent_died"
    INNER_LOST = "inner_lost"
    AGENT_SHUTDOWN = "agent_shutdown"
    REGISTRATION_THROTTLED = "registration_throttled"
    AGENT_NOT_FOUND = "agent_not_found"
    AGENT_START_FAILED = "agent_start_failed"
    AGENT_START_TIMEOUT = "agent_start_timeout"
    AGENT_OVERLOADED = "agent_overloaded"
    AGENT_UNSAFE = "agent_unsafe"
    BINDING_MISMATCH = "binding_mismatch"
    SESSION_NOT_FOUND = "session_not_found"
    SESSION_LOCKED = "session_locked"
    REQUEST_TIMEOUT = "request_timeout"
    HOST_EXHAUSTED = "host_exhausted"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"
    ADVISORY = "advisory"
    NOT_A_FAILURE = "not_a_failure"


@frozen
class KindRow:
    """One kind and everything that follows from it."""

    kind: Kind
    category: Category
    type: str
    """Name in the open `{type, message}` envelope; empty for what never reaches one."""
    actions: tuple[Action, ...] = ()
    transient: bool = False
    """The identical request may succeed later."""
    network_path: bool = False
    """Nothing answered: DNS, TCP, TLS, a proxy or a cut stream."""
    structural: bool = False
    """The identical message in the identical conversation can't succeed."""
    recovery: Recovery | None = None
    clears: Clears = Clears.NEXT_ATTEMPT
    is_failure: bool = field(default=True, kw_only=True)
    """False for what must never enter the machine as a failure."""


_RETRY = (Action.RETRY,)
_LOGIN = (Action.LOGIN,)
_NEW = (Action.NEW_SESSION,)
_RETRY_OR_LOGIN = (Action.RETRY, Action.LOGIN)
_RETRY_OR_NEW = (Action.RETRY, Action.NEW_SESSION)

_SERVICE, _LIMIT, _ACCESS = Category.SERVICE, Category.LIMIT, Category.ACCESS
_REQUEST, _CONNECTION, _UNKNOWN = Category.REQUEST, Category.CONNECTION, Category.UNKNOWN

_R = KindRow
_ROWS: Final[tuple[KindRow, ...]] = (
    _R(Kind.OVERLOADED, _SERVICE, "provider.internal", _RETRY, transient=True),
    _R(Kind.SERVER_ERROR, _SERVICE, "provider.internal", _RETRY, transient=True),
    _R(Kind.MODEL_UNAVAILABLE, _SERVICE, "provider.internal", _RETRY, transient=True),
    _R(Kind.MODEL_LIST_UNAVAILABLE, _SERVICE, "provider.internal", _RETRY_OR_LOGIN, transient=True),
    _R(Kind.EMPTY_RESPONSE, _SERVICE, "provider.invalid-output", _RETRY, transient=True),
    _R(Kind.INTERNAL_ERROR, _SERVICE, "agent.internal", _RETRY_OR_NEW),
    _R(Kind.PARSE_ERROR, _SERVICE, "provider.invalid-output", _RETRY),
    _R(Kind.COMPACTION_FAILED, _SERVICE, "agent.internal", _RETRY_OR_NEW),
    _R(Kind.RATE_LIMITED, _LIMIT, "provider.rate-limit", _RETRY, transient=True),
    _R(Kind.USAGE_LIMIT, _LIMIT, "provider.quota", clears=Clears.REAL_ANSWER),
    _R(Kind.BILLING, _LIMIT, "provider.quota", clears=Clears.REAL_ANSWER),
    _R(
        Kind.CONTEXT_OVERFLOW,
        _LIMIT,
        "provider.invalid-request",
        _NEW,
        structural=True,
        recovery=Recovery.FRESH_SESSION,
    ),
    _R(Kind.REQUEST_TOO_LARGE, _LIMIT, "provider.invalid-request", _NEW, structural=True),
    _R(Kind.MESSAGE_TOO_LARGE, _LIMIT, "provider.invalid-request", structural=True),
    _R(Kind.MAX_OUTPUT_TOKENS, _LIMIT, "provider.invalid-output"),
    _R(Kind.BUDGET_EXHAUSTED, _LIMIT, "agent.budget", _NEW),
    _R(Kind.AUTH_REQUIRED, _ACCESS, "provider.auth", _LOGIN, clears=Clears.SIGN_IN),
    _R(Kind.ACCESS_DENIED, _ACCESS, "provider.auth"),
    _R(Kind.CREDENTIAL_PROPAGATION, _ACCESS, "provider.auth", _RETRY_OR_LOGIN, transient=True),
    _R(
        Kind.CREDENTIAL_RELOAD,
        _ACCESS,
        "provider.auth",
        _RETRY,
        recovery=Recovery.LOST_SESSION,
    ),
    _R(Kind.MODEL_NOT_ENTITLED, _ACCESS, "provider.auth", recovery=Recovery.ENTITLEMENT_SWAP),
    _R(Kind.MODEL_NOT_FOUND, _REQUEST, "provider.invalid-request"),
    _R(Kind.INVALID_REQUEST, _REQUEST, "provider.invalid-request"),
    _R(Kind.MALFORMED_REQUEST, _REQUEST, "provider.invalid-request", _NEW, structural=True),
    _R(Kind.TOOL_SCHEMA_REJECTED, _REQUEST, "provider.invalid-request", structural=True),
    _R(
        Kind.IMAGE_REJECTED,
        _REQUEST,
        "provider.invalid-request",
        _NEW,
        structural=True,
        recovery=Recovery.CONVERSATION_DISCARD,
    ),
    _R(
        Kind.THINKING_BINDING,
        _REQUEST,
        "provider.invalid-request",
        _NEW,
        recovery=Recovery.CONVERSATION_DISCARD,
    ),
    _R(Kind.THINKING_REJECTED, _REQUEST, "provider.invalid-request", _NEW, structural=True),
    _R(
        Kind.CONTENT_REFUSED,
        _REQUEST,
        "provider.content-filter",
        recovery=Recovery.CONTENT_FILTER_HOP,
    ),
    _R(Kind.PROMPT_BUSY, _REQUEST, "agent.busy", _RETRY, transient=True, recovery=Recovery.BUSY),
    _R(Kind.UNSUPPORTED, _REQUEST, "provider.invalid-request"),
    _R(
        Kind.CONNECTION_LOST,
        _CONNECTION,
        "provider.transport",
        _RETRY,
        transient=True,
        network_path=True,
    ),
    _R(Kind.TLS_FAILURE, _CONNECTION, "provider.transport", network_path=True),
    _R(Kind.PROXY_REFUSED, _CONNECTION, "provider.transport", network_path=True),
    _R(
        Kind.AGENT_DIED,
        _CONNECTION,
        "agent.died",
        _NEW,
        recovery=Recovery.DEATH,
        clears=Clears.NEW_RUNTIME,
    ),
    _R(
        Kind.INNER_LOST,
        _CONNECTION,
        "agent.died",
        _NEW,
        recovery=Recovery.LOST_SESSION,
        clears=Clears.NEW_RUNTIME,
    ),
    _R(Kind.AGENT_SHUTDOWN, _CONNECTION, "agent.died", _NEW, clears=Clears.NEW_RUNTIME),
    _R(
        Kind.REGISTRATION_THROTTLED,
        _CONNECTION,
        "agent.died",
        _RETRY,
        transient=True,
        recovery=Recovery.REGISTRATION,
    ),
    _R(Kind.AGENT_NOT_FOUND, _CONNECTION, "agent.start", clears=Clears.NEW_RUNTIME),
    _R(Kind.AGENT_START_FAILED, _CONNECTION, "agent.start", clears=Clears.NEW_RUNTIME),
    _R(Kind.AGENT_START_TIMEOUT, _CONNECTION, "agent.start", _NEW, clears=Clears.NEW_RUNTIME),
    _R(Kind.AGENT_OVERLOADED, _CONNECTION, "agent.start", clears=Clears.NEW_RUNTIME),
    _R(Kind.AGENT_UNSAFE, _ACCESS, "agent.unsafe", clears=Clears.NEW_RUNTIME),
    _R(Kind.BINDING_MISMATCH, _REQUEST, "agent.binding", _NEW, clears=Clears.NEW_RUNTIME),
    _R(
        Kind.SESSION_NOT_FOUND,
        _CONNECTION,
        "agent.session",
        _NEW,
        recovery=Recovery.LOST_SESSION,
        clears=Clears.NEW_RUNTIME,
    ),
    _R(Kind.SESSION_LOCKED, _CONNECTION, "agent.session", _RETRY_OR_NEW, transient=True),
    _R(Kind.REQUEST_TIMEOUT, _CONNECTION, "agent.timeout", _RETRY),
    _R(Kind.HOST_EXHAUSTED, _UNKNOWN, "host.exhausted"),
    _R(Kind.UNKNOWN, _UNKNOWN, "unknown", _RETRY),
    _R(Kind.CANCELLED, _UNKNOWN, "aborted", is_failure=False),
    _R(Kind.ADVISORY, _UNKNOWN, "notice", clears=Clears.NEVER, is_failure=False),
    _R(Kind.NOT_A_FAILURE, _UNKNOWN, "", is_failure=False),
)

KINDS: Final[Mapping[Kind, KindRow]] = MappingProxyType({row.kind: row for row in _ROWS})
"""Every kind, exactly once, in the order of the design's table."""
