"""HTTP and gRPC statuses: what a number or a code name says by itself."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.rule import Rule, Step, forbid, status_is
from orchestrator.failure.verdict import Cause
from orchestrator.failure.view import HINT_RULE, HINT_WORDING, STATUS_RULE, STATUS_WORDING

RULES: Final[tuple[Rule, ...]] = (
    # These two only find places to look: numbers that are statuses, and words about waiting.
    Rule(STATUS_RULE, Step.UNKNOWN, None, pattern=STATUS_WORDING),
    Rule(HINT_RULE, Step.UNKNOWN, None, pattern=HINT_WORDING),
    status_is("status.402", Step.ALLOWANCE, Kind.BILLING, 402, priority=-20),
    status_is("status.413", Step.SHAPE, Kind.REQUEST_TOO_LARGE, 413, priority=-20),
    status_is("status.429", Step.THROTTLE, Kind.RATE_LIMITED, 429, priority=-20),
    status_is(
        "status.429_for_hours",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        429,
        check="waits_an_hour",
        priority=-20,
    ),
    status_is("status.401", Step.ACCESS, Kind.AUTH_REQUIRED, 401, priority=-20),
    status_is(
        "status.403_rejects_credentials",
        Step.ACCESS,
        Kind.AUTH_REQUIRED,
        403,
        speakers=frozenset({"kiro", "claude"}),
        priority=-20,
    ),
    status_is("status.403", Step.ACCESS, Kind.ACCESS_DENIED, 403, 451, priority=-30),
    forbid(
        # A gateway hands on a 403 and says itself that the server is at fault.
        "status.403_of_a_server_error",
        (Kind.ACCESS_DENIED,),
        facts=tuple(("type", name) for name in ("server_error", "api_error", "internal_error")),
    ),
    status_is("status.407", Step.CONNECTION, Kind.PROXY_REFUSED, 407),
    status_is(
        "status.408", Step.CONNECTION, Kind.CONNECTION_LOST, 408, 499, 598, 599, cause=Cause.TIMEOUT
    ),
    status_is("status.529", Step.SERVER, Kind.OVERLOADED, 529, priority=-10),
    status_is(
        "status.5xx",
        Step.SERVER,
        Kind.SERVER_ERROR,
        *(500, 502, 503, 504, 509, 520, 521, 522, 523, 524, 525, 526, 527, 530, 425),
        priority=-20,
    ),
    status_is("status.404", Step.REQUEST, Kind.INVALID_REQUEST, 404, priority=-30),
    status_is("status.426", Step.REQUEST, Kind.UNSUPPORTED, 426, 505, priority=-20),
    status_is(
        "status.4xx", Step.REQUEST, Kind.INVALID_REQUEST, 400, 405, 409, 410, 415, 422, priority=-30
    ),
    # gRPC code names, which Google and many gateways put beside or in place of the number.
    Rule(
        "grpc.unauthenticated",
        Step.ACCESS,
        Kind.AUTH_REQUIRED,
        pattern=r"\(?status: ?unauthenticated",
        facts=(("status", "unauthenticated"), ("code", "unauthenticated")),
        priority=-15,
    ),
    Rule(
        "grpc.permission_denied",
        Step.ACCESS,
        Kind.ACCESS_DENIED,
        pattern=r"\bpermission_denied\b",
        facts=(("status", "permission_denied"), ("code", "permission_denied")),
        priority=-15,
    ),
    Rule(
        "grpc.resource_exhausted",
        Step.THROTTLE,
        Kind.RATE_LIMITED,
        pattern=r"\bresource[_ ](?:has been )?exhausted\b",
        facts=(("status", "resource_exhausted"), ("code", "resource_exhausted")),
        priority=-15,
    ),
    Rule(
        "grpc.deadline_exceeded",
        Step.SERVER,
        Kind.SERVER_ERROR,
        pattern=r"\bdeadline_exceeded\b",
        facts=(("status", "deadline_exceeded"),),
        priority=-15,
        cause=Cause.TIMEOUT,
    ),
    Rule(
        "grpc.unavailable",
        Step.SERVER,
        Kind.SERVER_ERROR,
        pattern=r"status: ?unavailable\b|code ?= ?unavailable\b",
        facts=(("status", "unavailable"), ("code", "unavailable")),
        priority=-15,
    ),
    Rule(
        "grpc.internal",
        Step.SERVER,
        Kind.SERVER_ERROR,
        pattern=r"code ?= ?(?:internal|aborted)\b",
        facts=(("status", "internal"), ("status", "aborted"), ("status", "data_loss")),
        priority=-15,
    ),
    Rule(
        "grpc.unimplemented",
        Step.REQUEST,
        Kind.UNSUPPORTED,
        pattern=r"code ?= ?unimplemented\b",
        facts=(("status", "unimplemented"),),
        priority=-15,
    ),
    Rule(
        "grpc.invalid_argument",
        Step.REQUEST,
        Kind.INVALID_REQUEST,
        pattern=r"code ?= ?invalidargument\b",
        facts=(
            ("status", "invalid_argument"),
            ("status", "failed_precondition"),
            ("status", "out_of_range"),
            ("status", "not_found"),
        ),
        priority=-25,
    ),
)
