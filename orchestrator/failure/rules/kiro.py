"""Kiro CLI and its engine: provider errors stand in `data`; `message` is boilerplate."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.rule import Rule, Scope, Step, field_is, says

_KIRO = frozenset({"kiro"})
_PROVIDER = Scope.PROVIDER

RULES: Final[tuple[Rule, ...]] = (
    says(
        # The model wrote the call, so the next answer may well be better.
        "kiro.bad_tool_call",
        Step.SHAPE,
        Kind.PARSE_ERROR,
        r"\bthe model has (?:either )?suggested tool parameters\b",
    ),
    Rule(
        "kiro.compaction_failed",
        Step.STRUCTURED,
        Kind.COMPACTION_FAILED,
        facts=tuple(
            (name, "compaction_failed")
            for name in ("type", "status", "errorkind", "errortype", "kind")
        ),
        priority=10,
    ),
    says(
        "kiro.model_not_entitled",
        Step.ENTITLEMENT,
        Kind.MODEL_NOT_ENTITLED,
        r"\bthe model '[^']+' is not available\b",
        r"\binvalid model id: ?[^ ,;'\"]+",
        scope=_PROVIDER,
        check="named_model_is_not_served",
    ),
    says(
        "kiro.improperly_formed",
        Step.SHAPE,
        Kind.MALFORMED_REQUEST,
        r"\bimproperly formed request\b",
        scope=_PROVIDER,
    ),
    says(
        "kiro.context_overflowed",
        Step.SHAPE,
        Kind.CONTEXT_OVERFLOW,
        r"\bcontext window (?:has )?overflowed\b",
        r"\bconversation is too large to continue\b",
        scope=_PROVIDER,
    ),
    says(
        "kiro.message_too_large",
        Step.SHAPE,
        Kind.MESSAGE_TOO_LARGE,
        r"\b(?:this|your|the) message is too (?:large|long|big)\b",
        r"\bcontains no text that can be shortened\b",
        scope=_PROVIDER,
        priority=5,
    ),
    says(
        "kiro.image",
        Step.SHAPE,
        Kind.IMAGE_REJECTED,
        r"\bimage_format_unsupported\b|\bimagevalidationerror\b",
        r"\bimage format (?:is )?unsupported\b",
        scope=_PROVIDER,
    ),
    says(
        "kiro.model_unavailable",
        Step.MODEL,
        Kind.MODEL_UNAVAILABLE,
        r"\bthe model '[^']+' is (?:currently |temporarily )?(?:not available|unavailable)\b",
        (
            r"\b(?:the )?model (?:you've|you have) selected is (?:temporarily |currently )?"
            r"(?:unavailable|not available)"
        ),
        scope=_PROVIDER,
    ),
    says(
        "kiro.high_traffic",
        Step.SERVER,
        Kind.OVERLOADED,
        r"\bexperiencing (?:a )?high (?:volume of )?(?:traffic|demand|load)\b",
    ),
    field_is(
        "kiro.model_list",
        Step.MODEL_LIST,
        Kind.MODEL_LIST_UNAVAILABLE,
        "errortype",
        "modelregistryunavailableerror",
    ),
    says(
        "kiro.dispatch_failure",
        Step.CONNECTION,
        Kind.CONNECTION_LOST,
        r"\bdispatch[ _-]?failure\b|\bconnector ?error\b|\bconnection[ _-]?reset(?:error)?\b",
    ),
    says(
        "kiro.retry_hint",
        Step.SERVER,
        Kind.SERVER_ERROR,
        r"\bplease try again\b|\bplease retry\b",
        speakers=_KIRO,
        priority=-30,
    ),
    says(
        "kiro.failed_to_process",
        Step.WRAPPER,
        Kind.SERVER_ERROR,
        r"\bfailed to (?:generate a response|process the request)\b",
        scope=_PROVIDER,
    ),
    says(
        "kiro.signed_out",
        Step.ACCESS,
        Kind.AUTH_REQUIRED,
        r"\b(?:kiro-cli|q) login\b|\bnot (?:logged|signed) in to kiro\b",
        speakers=_KIRO,
    ),
)
