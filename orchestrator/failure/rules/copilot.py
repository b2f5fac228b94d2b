"""GitHub Copilot, in the editor and on the command line."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.rule import Rule, Step, field_is, says
from orchestrator.failure.verdict import Cause

RULES: Final[tuple[Rule, ...]] = (
    field_is(
        "copilot.quota_code",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        "code",
        "quota_exceeded",
        "agent_mode_limit_exceeded",
        "free_quota_exceeded",
        "quotaexceeded",
    ),
    says(
        "copilot.quota",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        r"\byou have no quota\b|\bpremium request allowance\b|\bquota_exceeded\b",
        r"\brate limit that restricts the number of copilot model requests\b",
        check="not_a_short_wait",
    ),
    says(
        "copilot.throttle",
        Step.THROTTLE,
        Kind.RATE_LIMITED,
        r"\brate limit that restricts the number\b|\buser_(?:global|model)_rate_limited\b",
        r"\buser_weekly_rate_limited\b",
    ),
    says("copilot.weekly", Step.ALLOWANCE, Kind.USAGE_LIMIT, r"\buser_weekly_rate_limited\b"),
    says(
        "copilot.no_response",
        Step.SERVER,
        Kind.EMPTY_RESPONSE,
        r"\bno response was returned\b|\b(?:did not|didn't) return (?:a|any) response\b",
    ),
    says(
        "copilot.offline",
        Step.CONNECTION,
        Kind.CONNECTION_LOST,
        r"\bnot connected to the internet\b",
        cause=Cause.UNREACHABLE,
    ),
    says(
        "copilot.overflow",
        Step.SHAPE,
        Kind.CONTEXT_OVERFLOW,
        r"\bmodel_max_prompt_tokens_exceeded\b|\bprompt token count of [\d,]+ exceeds\b",
        priority=5,
    ),
    says(
        "copilot.login",
        Step.ACCESS,
        Kind.AUTH_REQUIRED,
        r"\bnot (?:logged|signed) in to (?:github|copilot)\b",
        r"\bgithub (?:copilot )?login (?:failed|required)\b|\bbad credentials\b",
    ),
    says(
        "copilot.no_seat",
        Step.ACCESS,
        Kind.ACCESS_DENIED,
        r"\bno (?:access to|active) (?:github )?copilot\b",
        r"\bnot authorized to use this copilot feature\b",
        (
            r"\bcopilot .{0,40}(?:disabled by|not enabled for) your (?:organi[sz]ation|admin\w*"
            r"|enterprise)\b"
        ),
        r"\baccess denied by policy settings\b",
        priority=10,
    ),
    says(
        "copilot.model",
        Step.REQUEST,
        Kind.MODEL_NOT_FOUND,
        r"\bmodel_not_supported\b|\bthe requested model is not supported\b",
    ),
)
