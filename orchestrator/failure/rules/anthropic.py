"""Anthropic's API and Claude Code's own sentences."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.rule import Rule, Scope, Step, field_is, says

_CLAUDE = frozenset({"claude"})
_PROVIDER = Scope.PROVIDER

RULES: Final[tuple[Rule, ...]] = (
    field_is(
        "claude.cloud_credential",
        Step.STRUCTURED,
        Kind.CREDENTIAL_RELOAD,
        "errorkind",
        "cloud_credential_error",
        priority=30,
    ),
    field_is("claude.overloaded", Step.STRUCTURED, Kind.OVERLOADED, "errorkind", "overloaded"),
    field_is(
        "claude.max_output",
        Step.STRUCTURED,
        Kind.MAX_OUTPUT_TOKENS,
        "errorkind",
        "max_output_tokens",
    ),
    says(
        "anthropic.thinking_binding",
        Step.STRUCTURED,
        Kind.THINKING_BINDING,
        r"invalid `?signature`? in `?thinking`? block.*bound to a different conversation",
        r"bound to a different conversation.*invalid `?signature`? in `?thinking`? block",
        scope=_PROVIDER,
        priority=20,
    ),
    says(
        "claude.usage_limit",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        r"\byou'?(?:ve| have) (?:hit|reached|exceeded) your (?:[\w-]+ ){0,3}limit\b",
        r"\bclaude (?:ai )?usage limit reached\b",
        r"\b(?:out of|reached your) (?:extra )?usage\b",
        r"\bseat type doesn't include (?:extra )?usage\b",
        r"\busage allocation has been disabled\b",
        r"\bgroup's usage limit is set to\b",
        unless=(
            r"\byour (?:\w+ )?(?:rate|context|token|tokens|output|spend\w*|context window|tool"
            r" call|concurren\w+(?: \w+)?) limit\b|rate limit that restricts"
        ),
        priority=5,
    ),
    says(
        "claude.credits",
        Step.ALLOWANCE,
        Kind.BILLING,
        r"\bout of usage credits\b|\brequires? usage credits\b|\bdoesn't include usage credits\b",
        r"\bout of usage . (?:add funds|contact your admin)",
        r"\breached your specified api usage limits?\b",
        priority=10,
    ),
    field_is(
        "claude.billing",
        Step.ALLOWANCE,
        Kind.BILLING,
        "errorkind",
        "billing_error",
        "account_on_hold",
        "out_of_credits",
    ),
    field_is("anthropic.billing_error", Step.ALLOWANCE, Kind.BILLING, "type", "billing_error"),
    says(
        "anthropic.thinking",
        Step.SHAPE,
        Kind.THINKING_REJECTED,
        r"\b`?signature`? in `?thinking`?\b",
        (
            r"\b`?(?:thinking|redacted_thinking)`? blocks?\b.{0,80}(?:cannot be modified|must"
            r" remain|must be passed back|expected|is required|not allowed|invalid)"
        ),
        r"\bthinking\.signature\b|\bthinking\.thinking: ",
        r"\bexpected `?thinking`? or `?redacted_thinking`?",
        r"\bmust start with a thinking block\b|\bfirst block must be [`'\"]?thinking\b",
        r"\bthought[ _]?signature\b.{0,60}(?:missing|invalid|not valid|corrupt)",
        r"(?:missing|invalid|corrupted) (?:a )?thought[ _]?signature",
        r"\breasoning_content\b.{0,60}must be passed back",
        (
            r"\bencrypted[_ ]content\b.{0,200}(?:could not be (?:verified|decrypted|parsed)"
            r"|was not issued)"
        ),
        r"\binvalid_encrypted_content\b",
        r"\bthinking block\b.{0,60}(?:different conversation|different model)",
        scope=_PROVIDER,
        priority=10,
    ),
    says(
        "anthropic.tool_pairing",
        Step.SHAPE,
        Kind.MALFORMED_REQUEST,
        r"`?tool_use`? ids? (?:were |was )?found without `?tool_result`?",
        r"`?tool_use`? blocks? must be (?:immediately )?followed by\b",
        r"\bdid not find \d+ `?tool_result`? block|\bmatching number of `?tool_(?:result|use)`?",
        r"`?tool_result`? blocks?\b.{0,120}(?:corresponding|previous message|preceding)",
        r"unexpected `?tool_use_id`? found",
        r"\beach `?tool_use`? block must have a (?:corresponding|single)",
        r"\b`?tool_use`? ids must be unique\b",
        r"\btext content blocks must (?:be non-empty|contain non-whitespace)",
        r"\ball messages must have non-empty content\b",
        r"\bfinal assistant content cannot end with trailing whitespace\b",
        r"\bfirst message must use the \"?user\"? role\b|\broles must alternate\b",
        # Half of a character that a tool wrote stays in the conversation.
        r"\brequest body is not valid json\b|\bno (?:low|high) surrogate in string\b",
        r"\b(?:lone|unpaired|invalid) (?:\w+ )?surrogate\b",
        r"\bcache_control\b.{0,60}(?:empty|cannot be set)|\bblocks with cache_control\b",
        scope=_PROVIDER,
    ),
    says(
        "anthropic.tool_schema",
        Step.SHAPE,
        Kind.TOOL_SCHEMA_REJECTED,
        r"\btools\.\d+\.(?:\w+\.)?(?:input_schema|name|parameters|description)\b",
        r"\binput_schema\b.{0,80}(?:invalid|not valid|does not support|must)",
        scope=_PROVIDER,
    ),
    says(
        "anthropic.image",
        Step.SHAPE,
        Kind.IMAGE_REJECTED,
        r"\bcould not process (?:the )?image\b|\bimage does not match the provided media type\b",
        r"\bimage(?:\.source)?\.?\w*\b.{0,40}exceeds? \d+ ?mb\b",
        r"\bimage exceeds \d+ ?[mk]b maximum\b",
        r"\bimage dimensions? exceed|\bdimensions? exceed max allowed size\b",
        r"\bexceeds the dimension limit\b",
        r"\bimage was specified using the image/",
        r"\bimage\.source\.(?:base64|media_type)\b",
        scope=_PROVIDER,
        priority=5,
    ),
    says(
        "claude.refused",
        Step.SHAPE,
        Kind.CONTENT_REFUSED,
        r"\bunable to respond to this request, which appears to violate\b",
        r"\boutput blocked by content filtering policy\b",
        scope=_PROVIDER,
    ),
    says(
        "claude.max_output_text",
        Step.SHAPE,
        Kind.MAX_OUTPUT_TOKENS,
        r"\bexceeded the [\d,]+ output token maximum\b",
        scope=_PROVIDER,
    ),
    says(
        "anthropic.overloaded",
        Step.SERVER,
        Kind.OVERLOADED,
        r"\boverloaded(?:[_ ]error)?\b",
    ),
    field_is(
        "anthropic.overloaded_error", Step.SERVER, Kind.OVERLOADED, "type", "overloaded_error"
    ),
    says(
        "anthropic.rate_limit",
        Step.THROTTLE,
        Kind.RATE_LIMITED,
        r"\brate_limit_error\b",
        priority=-10,
    ),
    field_is(
        "claude.rate_limit",
        Step.THROTTLE,
        Kind.RATE_LIMITED,
        "errorkind",
        "rate_limit",
        "rate_limited",
        priority=-10,
    ),
    field_is(
        "anthropic.rate_limit_error",
        Step.THROTTLE,
        Kind.RATE_LIMITED,
        "type",
        "rate_limit_error",
        "rate_limited",
        priority=-10,
    ),
    field_is(
        "anthropic.authentication_error",
        Step.ACCESS,
        Kind.AUTH_REQUIRED,
        "type",
        "authentication_error",
        "unauthorized",
        "unauthorized_error",
    ),
    says(
        "anthropic.oauth_not_allowed",
        Step.ACCESS,
        Kind.AUTH_REQUIRED,
        r"\boauth authentication is currently not (?:allowed|supported)\b",
        r"\bplease run /login\b|\brun /login\b",
        # Claude Code writes that behind every 403, also where no sign-in helps.
        unless=r"\black a .{0,60}\blicense\b|\bsubscription_required\b",
        priority=15,
    ),
    field_is(
        "claude.oauth_org", Step.ACCESS, Kind.AUTH_REQUIRED, "errorkind", "oauth_org_not_allowed"
    ),
    says(
        "claude.org_disabled",
        Step.ACCESS,
        Kind.ACCESS_DENIED,
        r"\borgani[sz]ation has (?:been )?disabled\b",
        (
            r"\b(?:this )?(?:organi[sz]ation|account|workspace) has been (?:disabled|suspended"
            r"|banned|deactivated)\b"
        ),
        r"\bsubscription access for claude code\b",
        priority=10,
    ),
    field_is(
        "claude.verification",
        Step.ACCESS,
        Kind.ACCESS_DENIED,
        "errorkind",
        "verification_required",
        "access_denied",
    ),
    field_is(
        "anthropic.permission_error",
        Step.ACCESS,
        Kind.ACCESS_DENIED,
        "type",
        "permission_error",
        "forbidden",
        "request_forbidden",
        priority=-10,
    ),
    says(
        "claude.try_your_request_again",
        Step.SERVER,
        Kind.SERVER_ERROR,
        r"\btry your request again\b",
        speakers=_CLAUDE,
        priority=-30,
    ),
    field_is(
        "anthropic.api_error", Step.SERVER, Kind.SERVER_ERROR, "type", "api_error", priority=-25
    ),
    field_is(
        "claude.server_error",
        Step.SERVER,
        Kind.SERVER_ERROR,
        "errorkind",
        "server_error",
        priority=-25,
    ),
    says(
        # Axios for "the server answered 4xx": at start this is how a blocked country looks.
        "claude.start_rejected",
        Step.ACCESS,
        Kind.ACCESS_DENIED,
        r"\bfailed to connect to \S+: err_bad_request\b",
    ),
    says(
        # A note that Claude Code adds to every failed start: it counts when nothing else does.
        "claude.maybe_another_country",
        Step.REQUEST,
        Kind.ACCESS_DENIED,
        r"\bmight not be available in your country\b",
        priority=-40,
    ),
    says(
        "anthropic.model_not_found",
        Step.REQUEST,
        Kind.MODEL_NOT_FOUND,
        r"^(?:\S+: )*model: [\w.:@/-]+$",
        r"\bthere's an issue with the selected model\b",
        scope=_PROVIDER,
    ),
    field_is(
        "claude.model_not_found", Step.REQUEST, Kind.MODEL_NOT_FOUND, "errorkind", "model_not_found"
    ),
    field_is(
        "claude.invalid_request",
        Step.REQUEST,
        Kind.INVALID_REQUEST,
        "errorkind",
        "invalid_request",
        "bad_request",
        priority=-30,
    ),
    field_is(
        "anthropic.invalid_request",
        Step.REQUEST,
        Kind.INVALID_REQUEST,
        "type",
        "invalid_request_error",
        priority=-30,
    ),
)
