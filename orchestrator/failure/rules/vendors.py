"""Providers with few words of their own: routers, and vendors behind one compatible dialect."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.rule import Rule, Scope, Step, field_is, says

_PROVIDER = Scope.PROVIDER

RULES: Final[tuple[Rule, ...]] = (
    says(
        "azure.tier_for_hours",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        r"\bexceeded (?:the )?(?:token|call|request) rate limit of your current\b",
        check="waits_an_hour",
        priority=10,
    ),
    says(
        "azure.tier",
        Step.THROTTLE,
        Kind.RATE_LIMITED,
        r"\bexceeded (?:the )?(?:token|call|request) rate limit of your current\b",
    ),
    says(
        "openrouter.afford",
        Step.ALLOWANCE,
        Kind.BILLING,
        r"\brequires more credits\b|\bcan only afford\b",
        r"\bcreate a key with a higher (?:\w+ )?limit\b",
        r"\badd (?:more )?credits\b.{0,40}to continue\b|\bno credits? (?:left|remaining)\b",
        priority=10,
    ),
    says(
        "openrouter.free_day",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        r"\bfree-models-per-day\b|\badd \d+ credits to unlock\b",
        priority=25,
    ),
    says(
        "openrouter.free_minute",
        Step.THROTTLE,
        Kind.RATE_LIMITED,
        r"\bfree-models-per-min\b|\bis temporarily rate-limited upstream\b",
    ),
    says(
        "openrouter.no_endpoints",
        Step.REQUEST,
        Kind.MODEL_NOT_FOUND,
        r"\bno (?:endpoints|allowed providers|instances) (?:are )?(?:found|available)\b",
        r"\bis not a valid model id\b",
    ),
    says(
        "openrouter.upstream",
        Step.WRAPPER,
        Kind.SERVER_ERROR,
        r"\bprovider returned error\b|\bno response from (?:the )?(?:provider|upstream)\b",
        r"\bprovider disconnected\b",
        check="not_told_to_change",
        priority=-10,
    ),
    says(
        "mistral.order",
        Step.SHAPE,
        Kind.MALFORMED_REQUEST,
        r"\bexpected last role\b|\bunexpected role\b.{0,40}(?:after role|roleenum)",
        r"\bunexpected role roleenum\b|\binvalid_request_message_order\b",
        scope=_PROVIDER,
    ),
    says(
        "cloudflare.throttle",
        Step.THROTTLE,
        Kind.RATE_LIMITED,
        r"\berror(?: code)?: ?1015\b|\berror 1015\b",
    ),
    says(
        "cloudflare.denied",
        Step.ACCESS,
        Kind.ACCESS_DENIED,
        r"\berror(?: code)?: ?10(?:0[6-9]|10|12|20)\b|\berror 10(?:10|20)\b",
    ),
    says(
        "nvidia.no_function",
        Step.MODEL,
        Kind.MODEL_NOT_FOUND,
        # Its models are functions, and their names are ids.
        r"\bfunction ['\"]?[0-9a-f]{8}-[0-9a-f-]{27}['\"]?: (?:.{0,120} )?not found\b",
        scope=_PROVIDER,
    ),
    says(
        "mistral.tier_capacity",
        Step.SERVER,
        Kind.OVERLOADED,
        r"\bservice tier capacity exceeded\b|\bservice_tier_capacity_exceeded\b",
        priority=10,
    ),
    field_is(
        "mistral.codes", Step.THROTTLE, Kind.RATE_LIMITED, "code", "1300", "1302", "1303", "2062"
    ),
    field_is("glm.balance", Step.ALLOWANCE, Kind.BILLING, "code", "1113", "1112", "1008"),
    field_is(
        "glm.spent",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        "code",
        "1304",
        "1308",
        "1310",
        "2056",
        "1316",
    ),
    field_is("glm.busy", Step.STRUCTURED, Kind.OVERLOADED, "code", "1305", "1312", "1234_overload"),
    says(
        "minimax.overflow",
        Step.SHAPE,
        Kind.CONTEXT_OVERFLOW,
        r"\bcontext window exceeds limit\b",
        scope=_PROVIDER,
        priority=5,
    ),
    says(
        "kimi.overflow",
        Step.SHAPE,
        Kind.CONTEXT_OVERFLOW,
        r"\bexceeded model token limit\b|\bmodel_context_window_exceeded\b",
        scope=_PROVIDER,
        priority=5,
    ),
    field_is(
        "zai.overflow",
        Step.SHAPE,
        Kind.CONTEXT_OVERFLOW,
        "finishreason",
        "model_context_window_exceeded",
    ),
    field_is(
        "kimi.balance",
        Step.ALLOWANCE,
        Kind.BILLING,
        "type",
        "exceeded_current_quota_error",
        "insufficient_balance",
    ),
    field_is(
        "kimi.overloaded",
        Step.SERVER,
        Kind.OVERLOADED,
        "type",
        "engine_overloaded_error",
        "rate_limit_reached_error_overloaded",
    ),
    says(
        # With a throttle's status and a throttle's type beside it.
        "kimi.engine_overloaded",
        Step.THROTTLE,
        Kind.OVERLOADED,
        r"\bengine is (?:currently )?overloaded\b",
    ),
    says(
        "kimi.coding_agents",
        Step.ACCESS,
        Kind.ACCESS_DENIED,
        r"\baccess_terminated_error\b",
        (
            r"\bonly available (?:for|to) (?:\w+ ){0,3}(?:agents|clients|users|customers|members"
            r"|subscribers|organi[sz]ations)\b"
        ),
    ),
    field_is("kimi.rate", Step.THROTTLE, Kind.RATE_LIMITED, "type", "rate_limit_reached_error"),
    says(
        "databricks.limit",
        Step.THROTTLE,
        Kind.RATE_LIMITED,
        r"\brequest_limit_exceeded\b|\bexceeded workspace rate limit\b",
    ),
    says(
        "alibaba.rate",
        Step.THROTTLE,
        Kind.RATE_LIMITED,
        r"\brequest rate increased too quickly\b",
        r"\bthrottling\.(?:ratequota|burstrate|allocationquota)\b|\blimit_requests\b",
        r"\blimit_burst_rate\b",
    ),
    says(
        "volcengine.set_limit",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        r"\breached the set inference limit\b|\bsetlimitexceeded\b",
    ),
    says(
        "volcengine.overdue",
        Step.ALLOWANCE,
        Kind.BILLING,
        r"\baccountoverdueerror\b",
    ),
    says(
        "alibaba.arrears",
        Step.ALLOWANCE,
        Kind.BILLING,
        r"\barrearage\b|\baccount is in good standing\b|\boverdue-payment\b",
    ),
    says(
        "alibaba.free_quota",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        r"\ballocationquota\.freetieronly\b|\bfree tier of the model has been exhausted\b",
        r"\bfree allocated quota exceeded\b",
        priority=10,
    ),
    says(
        "alibaba.inspection",
        Step.SHAPE,
        Kind.CONTENT_REFUSED,
        r"\bdata_?inspection_?failed\b|\binappropriate content\b|\bcontent exists risk\b",
        r"\bsensitive (?:words?|content) detected\b",
        scope=_PROVIDER,
    ),
    says(
        "deepseek.balance",
        Step.ALLOWANCE,
        Kind.BILLING,
        r"\binsufficient (?:account )?balance\b",
        priority=10,
    ),
    says(
        "xai.credits",
        Step.ALLOWANCE,
        Kind.BILLING,
        r"\bused all available credits\b|\breached its monthly spending limit\b",
        r"\bdoesn't have any credits\b",
        priority=15,
    ),
    says(
        "xai.overflow",
        Step.SHAPE,
        Kind.CONTEXT_OVERFLOW,
        r"\bmaximum prompt length is\b",
        scope=_PROVIDER,
    ),
    says(
        "github_models.tokens",
        Step.SHAPE,
        Kind.REQUEST_TOO_LARGE,
        r"\brequest body too large for\b|\btokens_limit_reached\b",
        scope=_PROVIDER,
        priority=15,
    ),
    says(
        "cerebras.no_body",
        Step.SHAPE,
        Kind.CONTEXT_OVERFLOW,
        r"^\W*413 (?:status code )?\(no body\)",
        r"\bcerebras\b.{0,80}\b400 (?:status code )?\(no body\)",
        scope=_PROVIDER,
        priority=10,
    ),
)
