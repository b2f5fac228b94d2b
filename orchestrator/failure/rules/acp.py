"""What any ACP agent says in its own voice: JSON-RPC codes, session and prompt bookkeeping."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.rule import Rule, Step, field_is, says

RULES: Final[tuple[Rule, ...]] = (
    says(
        "acp.prompt_busy",
        Step.STRUCTURED,
        Kind.PROMPT_BUSY,
        (
            r"\b(?:prompt|turn|request|run|message)(?: is)? (?:already|still) (?:in progress"
            r"|running|active|being processed)"
        ),
        r"\balready (?:in progress|processing (?:a |another )?(?:prompt|turn|request|message))",
        r"\bagent is (?:already |still |currently )?(?:processing|busy|running|streaming)",
        (
            r"\b(?:another|a) (?:prompt|turn|request) is (?:already |still |currently )?(?:in"
            r" progress|running|active)"
        ),
        r"\bsession is busy\b|\bbusyerror\b",
        r"\bconcurrent prompts?\b.{0,40}not (?:allowed|supported)",
        unless=(
            r"\b(?:login|sign-?in|update|install\w*|migration|compaction|download|deployment"
            r"|operation|reauth\w*) (?:is )?already in progress"
        ),
    ),
    says(
        "acp.session_not_found",
        Step.STRUCTURED,
        Kind.SESSION_NOT_FOUND,
        (
            r"\b(?:session|thread|conversation|chat)(?: id)?(?: with (?:the )?id)?(?:"
            r" ['\"`]?[\w-]{6,80}['\"`]?)? (?:was |is )?(?:not found|not loaded|does not exist"
            r"|doesn't exist|no longer exists|unknown)\b"
        ),
        r"\b(?:unknown|invalid|no such|missing|stale) (?:session|thread)(?: ?id)?\b",
        r"^(?:\w+: )?resource not found\b|\bno \w+ session found\b",
        (
            r"\bno (?:rollout|conversation|session|previous sessions?|active session|saved session"
            r"|thread) (?:was )?found\b"
        ),
        r"\b(?:session|thread) not (?:found|loaded)\b",
        r"\bthread not loaded: ",
        r"\bcould not find (?:the )?(?:session|conversation|thread)\b",
        unless=(
            r"authori[sz]ation session|sign-?in|log ?in|oauth|browser session|ssh session|tmux"
            r" session|database session"
        ),
    ),
    Rule(
        "acp.resource_not_found",
        Step.STRUCTURED,
        Kind.SESSION_NOT_FOUND,
        facts=(("jsonrpc", "-32002"),),
        unless=r"\b(?:file|tool|model|mcp server|path)\b",
    ),
    says(
        "acp.session_locked",
        Step.STRUCTURED,
        Kind.SESSION_LOCKED,
        (
            r"\b(?:re-?read|read|acquire|obtain|take|open|create|write) (?:the |a )?(?:session"
            r" )?lock ?file\b"
        ),
        r"\bfailed to (?:acquire|obtain|get|take) (?:the |a )?(?:\w+ )?lock\b",
        r"\bsession (?:is |was )?(?:already )?(?:locked|in use|open in another|active in another)",
        (
            r"\balready (?:open|locked|in use|active) (?:in|by) another (?:process|instance"
            r"|terminal|client|window)"
        ),
        r"\block (?:is )?held by (?:another )?(?:process|pid)",
        unless=r"database is locked|package-lock|lock file at /var/lib/(?:dpkg|apt)",
    ),
    Rule(
        "acp.auth_required",
        Step.REQUEST,
        Kind.AUTH_REQUIRED,
        facts=(("jsonrpc", "-32000"),),
        priority=-40,
    ),
    says(
        "acp.unsupported",
        Step.REQUEST,
        Kind.UNSUPPORTED,
        r"\bmethod not found\b|\bmethod '?[\w/]+'? (?:is )?not (?:found|supported|implemented)",
        r"\bunsupported protocol ?version\b",
        r"\bprotocol ?version .{0,40}(?:not supported|unsupported|mismatch)",
        r"\bprotocol (?:version )?mismatch\b|\bincompatible protocol\b",
        (
            r"\b(?:operation|method|feature|capability) (?:is )?not (?:supported|implemented"
            r"|available)\b"
        ),
        r"\bdoes not (?:advertise|implement)\b.{0,60}\b(?:support|method|capabilit|session|mode)",
        r"\bdoes not support (?:session loading|this method|this operation)",
        r"\bdoes not support (?:session|fs|terminal|authenticate)/\w+",
        r"\bthis version of .{0,60} is (?:no longer|not) supported",
        r"client version .{0,40}(?:too old|not supported|outdated)",
    ),
    Rule(
        "acp.method_not_found",
        Step.REQUEST,
        Kind.UNSUPPORTED,
        facts=(("jsonrpc", "-32601"), ("jsonrpc", "-32602")),
        priority=-10,
    ),
    Rule(
        "acp.parse_error",
        Step.REQUEST,
        Kind.PARSE_ERROR,
        facts=(("jsonrpc", "-32700"),),
        priority=-10,
    ),
    Rule(
        "acp.invalid_request",
        Step.REQUEST,
        Kind.INVALID_REQUEST,
        facts=(("jsonrpc", "-32600"),),
        priority=-20,
    ),
    Rule("acp.cancelled", Step.NOTICE, Kind.CANCELLED, facts=(("jsonrpc", "-32800"),)),
    Rule(
        "acp.load_failed",
        Step.REQUEST,
        Kind.INNER_LOST,
        facts=(("jsonrpc", "-32603"),),
        check="bare_while_loading",
        priority=-20,
    ),
    Rule(
        "acp.internal_error",
        Step.REQUEST,
        Kind.INTERNAL_ERROR,
        facts=(("jsonrpc", "-32603"),),
        check="adapter_says_nothing",
        priority=-30,
    ),
    field_is(
        "acp.error_kind_auth",
        Step.ACCESS,
        Kind.AUTH_REQUIRED,
        "errorkind",
        "authentication_failed",
        "auth_required",
        "unauthorized",
        "authentication_error",
    ),
)
