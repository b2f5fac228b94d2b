"""Codex: `codexErrorInfo` in structure, its own sentences in text."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.rule import Rule, Scope, Step, field_is, says
from orchestrator.failure.verdict import Cause


def _info(kind: Kind, *names: str, priority: int = 0, step: Step = Step.STRUCTURED) -> Rule:
    return field_is(
        f"codex.info.{names[0]}", step, kind, "codexerrorinfo", *names, priority=priority
    )


RULES: Final[tuple[Rule, ...]] = (
    _info(Kind.AUTH_REQUIRED, "unauthorized"),
    _info(Kind.USAGE_LIMIT, "usagelimitexceeded"),
    _info(Kind.RATE_LIMITED, "ratelimitexceeded"),
    _info(Kind.OVERLOADED, "serveroverloaded", "flexunavailable"),
    _info(Kind.CONTEXT_OVERFLOW, "contextwindowexceeded"),
    _info(Kind.BUDGET_EXHAUSTED, "sessionbudgetexceeded", "toomanydenials"),
    _info(Kind.CONTENT_REFUSED, "cyberpolicy", "misalignmentpolicyviolation"),
    _info(Kind.SERVER_ERROR, "internalservererror", step=Step.SERVER, priority=-25),
    _info(Kind.INVALID_REQUEST, "badrequest", step=Step.REQUEST, priority=-30),
    _info(
        Kind.CONNECTION_LOST,
        "httpconnectionfailed",
        "responsestreamconnectionfailed",
        "responsestreamdisconnected",
        "responsetoomanyfailedattempts",
        step=Step.REQUEST,
        priority=-10,
    ),
    says(
        "codex.usage_limit",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        r"\bthe usage limit has been reached\b|\busage_limit_reached\b|\busage_not_included\b",
        r"\bto use codex with your chatgpt plan, upgrade\b",
        priority=5,
    ),
    field_is(
        "codex.usage_limit_type",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        "type",
        "usage_limit_reached",
        "usage_not_included",
        "usage_limit_exceeded",
        priority=15,
    ),
    says(
        "codex.stream_cut",
        Step.CONNECTION,
        Kind.CONNECTION_LOST,
        r"\bstream closed before response\.completed\b|\bstream disconnected before completion\b",
        r"\bidle timeout waiting for (?:sse|websocket)\b",
        cause=Cause.STREAM_CUT,
        priority=-10,
    ),
    says(
        "codex.unknown_404",
        Step.SERVER,
        Kind.SERVER_ERROR,
        r"\bunexpected status 404 not found: unknown error\b",
    ),
    says(
        "codex.compact_failed",
        Step.REQUEST,
        Kind.COMPACTION_FAILED,
        r"\berror running remote compact task\b|\bremote compaction failed\b",
        priority=-40,
    ),
    says(
        "codex.no_room",
        Step.SHAPE,
        Kind.CONTEXT_OVERFLOW,
        r"\bran out of room in the model's context window\b",
        scope=Scope.PROVIDER,
    ),
    says(
        "codex.policy",
        Step.SHAPE,
        Kind.CONTENT_REFUSED,
        r"\bflagged for possible cybersecurity risk\b|\bflagged for potentially high-risk\b",
        scope=Scope.PROVIDER,
    ),
)
