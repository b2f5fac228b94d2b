"""opencode and the AI SDK it stands on."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.rule import Rule, Step, field_is, forbid, says

RULES: Final[tuple[Rule, ...]] = (
    field_is(
        "opencode.overflow",
        Step.STRUCTURED,
        Kind.CONTEXT_OVERFLOW,
        "errorname",
        "contextoverflowerror",
    ),
    field_is(
        "opencode.overflow_name",
        Step.STRUCTURED,
        Kind.CONTEXT_OVERFLOW,
        "name",
        "contextoverflowerror",
    ),
    field_is("opencode.auth", Step.ACCESS, Kind.AUTH_REQUIRED, "errorname", "providerautherror"),
    field_is("opencode.auth_name", Step.ACCESS, Kind.AUTH_REQUIRED, "name", "providerautherror"),
    field_is(
        "opencode.output",
        Step.STRUCTURED,
        Kind.MAX_OUTPUT_TOKENS,
        "errorname",
        "messageoutputlengtherror",
    ),
    field_is(
        "opencode.output_name",
        Step.STRUCTURED,
        Kind.MAX_OUTPUT_TOKENS,
        "name",
        "messageoutputlengtherror",
    ),
    field_is("opencode.aborted", Step.NOTICE, Kind.CANCELLED, "name", "messageabortederror"),
    says(
        "opencode.free_usage",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        r"\bfreeusagelimiterror\b|\bfree usage exceeded\b|\bgousagelimiterror\b",
        r"\bsubscriptionusagelimiterror\b",
    ),
    says(
        "opencode.no_credits",
        Step.ALLOWANCE,
        Kind.BILLING,
        # With a 401 in front, as its missing models.
        r"\bcreditserror\b|\bno payment method\b|\bmonthlylimiterror\b.{0,80}spend",
    ),
    forbid("opencode.401_for_a_model", (Kind.AUTH_REQUIRED,), facts=(("type", "modelerror"),)),
    field_is("opencode.free_tier", Step.ACCESS, Kind.ACCESS_DENIED, "type", "freetiererror"),
    says(
        "aisdk.empty",
        Step.SERVER,
        Kind.EMPTY_RESPONSE,
        r"\bai_nooutputgeneratederror\b|\bno output generated\b|\bai_emptyresponsebodyerror\b",
        r"\bempty response body\b",
    ),
    says(
        "aisdk.invalid_prompt",
        Step.SHAPE,
        Kind.MALFORMED_REQUEST,
        r"\bai_invalidprompterror\b|\bai_missingtoolresultserror\b",
        r"\btool results? (?:is|are) missing for tool calls?\b",
    ),
    says(
        "aisdk.no_such_model",
        Step.REQUEST,
        Kind.MODEL_NOT_FOUND,
        r"\bmodelunavailableerror\b|\bai_nosuchmodelerror\b|\bprovidermodelnotfounderror\b",
    ),
    says("aisdk.no_key", Step.ACCESS, Kind.AUTH_REQUIRED, r"\bai_loadapikeyerror\b"),
    says(
        "aisdk.parse",
        Step.REQUEST,
        Kind.PARSE_ERROR,
        r"\bai_jsonparseerror\b|\bai_typevalidationerror\b|\bai_invalidresponsedataerror\b",
        r"\bjson parsing failed: text:",
        priority=-10,
    ),
)
