"""Gemini CLI's own sentences."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.rule import Rule, Step, says

RULES: Final[tuple[Rule, ...]] = (
    says(
        "gemini_cli.quota",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        r"\byou have reached your daily\b.{0,60}quota\b|\bdaily \S+ quota limit\b",
        r"\busage limit reached for (?:all )?\S+ ?\S* models?\b",
        priority=10,
    ),
    says(
        "gemini_cli.login",
        Step.ACCESS,
        Kind.AUTH_REQUIRED,
        r"\bplease set an auth method\b|\bfailed to sign in\b|\bmust specify the gemini_api_key\b",
    ),
    says(
        "gemini_cli.invalid_stream",
        Step.SERVER,
        Kind.EMPTY_RESPONSE,
        (
            r"\bmodel stream (?:was invalid or )?(?:completed|ended) without (?:valid content|a"
            r" finish reason|any content)\b"
        ),
        r"\bmodel stream ended with (?:an )?(?:invalid chunk|empty response)\b",
        r"\bno_finish_reason\b|\bno_response_text\b",
    ),
    says(
        "gemini_cli.turn_limit",
        Step.ALLOWANCE,
        Kind.BUDGET_EXHAUSTED,
        r"\breached max session turns\b|\bmaxsessionturns\b",
    ),
    says(
        "gemini_cli.loop",
        Step.ALLOWANCE,
        Kind.BUDGET_EXHAUSTED,
        r"\bpotential loop was detected\b.{0,80}\bhalted\b",
    ),
)
