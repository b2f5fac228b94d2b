"""Gemini's API, AI Studio and Vertex: one sentence for three things; the quota's id tells them."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.rule import Rule, Scope, Step, field_is, says

_PROVIDER = Scope.PROVIDER
_PER_DAY = r"per_?-?day\b|perday|\bper day\b|per_model_per_day"
_PER_MINUTE = r"per_?-?minute|perminute|\bper minute\b|per_?-?second|persecond|per_minute_per"

RULES: Final[tuple[Rule, ...]] = (
    says(
        "google.spent_for_the_day",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        (
            r"(?:quota|resource_exhausted|generativelanguage|rate ?limit|limit).{0,400}(?:per_?day"
            r"|perday|per day)"
        ),
        r"(?:per_?day|perday).{0,200}(?:quota|limit)",
        r"\bdaily quota\b",
        unless=r"\(rpd\)|\(tpd\)",
        priority=20,
    ),
    Rule(
        "google.per_day_quota_id",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        check="names_a_day_quota",
        pattern=r"quota|rate ?limit|resource|exhausted",
        priority=20,
    ),
    Rule(
        "google.per_minute_quota",
        Step.ALLOWANCE,
        Kind.RATE_LIMITED,
        check="names_a_minute_quota",
        pattern=r"quota|rate ?limit|resource|exhausted",
        priority=15,
    ),
    says(
        "google.per_minute",
        Step.ALLOWANCE,
        Kind.RATE_LIMITED,
        r"\b(?:quota|limit)\b.{0,160}\bper (?:minute|second)\b",
        r"\bper (?:minute|second)\b.{0,80}\b(?:quota|limit)\b",
        unless=r"per_?day|perday|\bper (?:day|week|month)\b|requested:? \d",
        priority=12,
    ),
    says(
        "google.short_delay",
        Step.ALLOWANCE,
        Kind.RATE_LIMITED,
        r"\bexceeded your current quota\b|\bexhausted your capacity\b|\bquota exceeded for\b",
        check="waits_less_than_an_hour",
        priority=5,
    ),
    says(
        "google.spent",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        r"\bexceeded your current quota\b|\bexhausted your (?:capacity|daily|quota)\b",
        r"\bquota exceeded for (?:quota )?metric\b",
        r"\bquota (?:limit )?(?:has been )?exhausted\b",
        check="not_a_short_wait",
        priority=-5,
    ),
    field_is(
        "google.capacity", Step.STRUCTURED, Kind.OVERLOADED, "reason", "model_capacity_exhausted"
    ),
    field_is(
        "google.quota_reason",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        "reason",
        "quota_exhausted",
        "dailylimitexceeded",
        "quotaexceeded",
        "quota_exceeded",
        check="not_a_short_wait",
    ),
    field_is(
        "google.rate_reason",
        Step.THROTTLE,
        Kind.RATE_LIMITED,
        "reason",
        "rate_limit_exceeded",
        "ratelimitexceeded",
        "userratelimitexceeded",
        priority=-10,
    ),
    says(
        "google.overflow",
        Step.SHAPE,
        Kind.CONTEXT_OVERFLOW,
        r"\binput token count\b.{0,80}exceeds\b",
        r"\bexceeds the maximum number of (?:input )?tokens\b",
        scope=_PROVIDER,
        priority=5,
    ),
    says(
        "google.malformed",
        Step.SHAPE,
        Kind.MALFORMED_REQUEST,
        r"\bnumber of function response parts\b|\bfunction call turn comes immediately after\b",
        r"\bcontents(?:\[\d+\])?(?:\.parts)? must not be empty\b",
        r"\bmust include at least one parts field\b",
        r"\bunable to submit request because it must have a text parameter\b",
        r"\brequired oneof field 'data' must have one initialized field\b",
        scope=_PROVIDER,
    ),
    says(
        "google.tool_schema",
        Step.SHAPE,
        Kind.TOOL_SCHEMA_REJECTED,
        r"\bfunction_?declarations?\[?\d*\]?\.?.{0,80}(?:invalid|should|must|missing|parameters)",
        r"\bfunctiondeclaration `?.{0,80}(?:schema|parameters)",
        r"\binvalid json payload received\. unknown name .{0,80} at 'tools",
        r"\bgeneratecontentrequest\.tools\[",
        scope=_PROVIDER,
    ),
    says(
        "google.image",
        Step.SHAPE,
        Kind.IMAGE_REJECTED,
        r"\bunable to process input image\b|\bprovided image is not valid\b",
        r"\bunsupported mime type: image/",
        scope=_PROVIDER,
    ),
    says(
        "google.refused",
        Step.SHAPE,
        Kind.CONTENT_REFUSED,
        r"\bprohibited_content\b|\bblocked due to (?:safety|prohibited|recitation|other)\b",
        r"\bresponse was blocked\b",
        r"\bfinish ?reason:? '?(?:safety|recitation|prohibited_content|blocklist|spii)\b",
        scope=_PROVIDER,
    ),
    field_is(
        "google.block_reason",
        Step.SHAPE,
        Kind.CONTENT_REFUSED,
        "blockreason",
        "safety",
        "prohibited_content",
        "blocklist",
        "other",
    ),
    field_is(
        "google.finish_reason",
        Step.SHAPE,
        Kind.CONTENT_REFUSED,
        "finishreason",
        "safety",
        "recitation",
        "prohibited_content",
        "blocklist",
        "spii",
    ),
    says(
        "google.credentials",
        Step.ACCESS,
        Kind.AUTH_REQUIRED,
        (
            r"\bservice account (?:info|key|file|json)\b.{0,40}\b(?:not in the expected format"
            r"|missing|invalid)"
        ),
        r"\bcould not load the default credentials\b|\bdefault credentials were not found\b",
        r"\binsufficient authentication scopes\b",
        r"\brequest had invalid authentication credentials\b",
        r"\binvalid_grant\b|\breauth(?:entication)? (?:is )?(?:related error|needed|required)\b",
        r"\bapi key not valid\b|\bapi_key_invalid\b|\bgcloud auth\b|\bset an auth method\b",
        priority=10,
    ),
    says(
        "google.no_licence",
        Step.ACCESS,
        Kind.ACCESS_DENIED,
        r"\black an? .{0,60}\blicense\b|\bsubscription_required\b|\bvalidation_required\b",
        priority=16,
    ),
    says(
        "google.denied",
        Step.ACCESS,
        Kind.ACCESS_DENIED,
        r"\bpermission '?[\w.]*'? ?denied on resource\b|\bpermission denied on\b",
        r"\bconsumer_invalid\b",
        r"\buser location is not supported\b|\blocation is not supported for the api\b",
        r"\bservice_disabled\b|\bapi has not been used in project\b|\bit is disabled\. enable it\b",
        r"\brequires setting the google_cloud_project\b|\bapi_key_service_blocked\b",
        r"\baccount requires setting\b",
        priority=10,
    ),
    says(
        "google.high_demand",
        Step.SERVER,
        Kind.OVERLOADED,
        r"\bexperiencing high demand\b|\bmodel is overloaded\b|\bno capacity available\b",
    ),
    says(
        "google.internal",
        Step.SERVER,
        Kind.SERVER_ERROR,
        r"\ban internal error has occurred\. please retry\b|\binternal error encountered\b",
    ),
    says(
        "google.model_not_found",
        Step.REQUEST,
        Kind.MODEL_NOT_FOUND,
        r"\bmodels/[\w.-]+ is not found\b|\bpublisher model\b.{0,120}not found\b",
        r"\bis not supported for generatecontent\b",
    ),
    says(
        "google.fetching",
        Step.CONNECTION,
        Kind.CONNECTION_LOST,
        r"\berror fetching from \S+ fetch failed\b|\bexception typeerror: fetch failed\b",
        cause=None,
    ),
)
