"""AWS and Bedrock: exception names in CamelCase, one of which lies for a few seconds."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.rule import Rule, Scope, Step, forbid, says

_PROVIDER = Scope.PROVIDER

RULES: Final[tuple[Rule, ...]] = (
    says(
        "aws.marketplace",
        Step.STRUCTURED,
        Kind.MODEL_NOT_ENTITLED,
        r"\bmodel access is denied\b|\baws-marketplace:(?:viewsubscriptions|subscribe)\b",
        r"\byou don't have access to the model with the specified model id\b",
        scope=_PROVIDER,
    ),
    says(
        "aws.spent",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        r"\bmonthlylimiterror\b|\bfreetierlimitexceeded\b|\bmonthly_request_count\b",
        r"\bdaily_request_count\b",
        r"\btoo many tokens per day\b",
    ),
    says(
        "aws.throttled",
        Step.THROTTLE,
        Kind.RATE_LIMITED,
        r"\bthrottl(?:e|ed|es|ing)(?:exception|error)?\b|\btoomanyrequests(?:exception)?\b",
        r"\bservicequotaexceeded(?:exception)?\b|\brequestlimitexceeded\b",
        r"\bprovisionedthroughputexceeded",
        r"\btoo many tokens, please wait\b|\brate exceeded\b|\bslowdown\b",
        unless=r"\bunthrottled\b|\bthrottle (?:body|valve|function|helper|decorator)\b",
    ),
    says(
        "aws.fresh_credential",
        Step.PROPAGATION,
        Kind.CREDENTIAL_PROPAGATION,
        r"\bsecurity token[^.]{0,80} is invalid\b",
        unless=(
            r"\binvalid ?(?:or|and|/) ?(?:is )?expired\b|\bexpired ?(?:or|and|/) ?invalid\b|\bis"
            r" expired\b"
        ),
    ),
    says(
        "aws.rejected",
        Step.ACCESS,
        Kind.AUTH_REQUIRED,
        r"\bexpiredtoken(?:exception)?\b|\binvalidsignatureexception\b",
        r"\bunrecognizedclient(?:exception)?\b",
        r"\binvalidclienttokenid\b|\bunauthorizedexception\b|\bsignaturedoesnotmatch\b",
        r"\bmissingauthenticationtoken",
        r"\bbearer token\b[^.]{0,80}\b(?:invalid|expired)\b",
        r"\bsecurity token included in the request is expired\b|\bunable to locate credentials\b",
        r"\bcould not load credentials from any providers\b",
        r"\bsso session .{0,40}(?:expired|invalid)\b",
        r"\bcredentialsprovidererror\b|\bnocredentialserror\b",
        priority=5,
    ),
    says(
        "aws.denied",
        Step.ACCESS,
        Kind.ACCESS_DENIED,
        r"\baccessdenied(?:exception)?\b|\bis not authorized to perform\b",
        r"\bnotauthorizedexception\b",
        r"\bexplicit deny\b|\boptinrequired\b",
    ),
    says(
        "aws.overflow",
        Step.SHAPE,
        Kind.CONTEXT_OVERFLOW,
        r"\binput is too long(?: for requested model)?\b",
        r"\bcontentlengthexceeds(?:exception)?\b|\bcontent_length_exceeds_threshold\b",
        scope=_PROVIDER,
    ),
    says(
        "aws.too_long_as_5xx",
        Step.SIZE_AS_5XX,
        Kind.CONTEXT_OVERFLOW,
        r"\bapi error: ?[45]\d\d .{0,40}input is too long\b",
    ),
    says(
        "aws.output_over_model",
        Step.SHAPE,
        Kind.INVALID_REQUEST,
        r"\bmaximum tokens you requested exceed",
        scope=_PROVIDER,
        priority=20,
    ),
    says(
        "aws.malformed",
        Step.SHAPE,
        Kind.MALFORMED_REQUEST,
        r"\btooluse blocks? at messages\b|\bexpected toolresult blocks\b",
        r"\bthe number of toolresult blocks\b",
        r"\btool (?:result|use) blocks? cannot be provided in the same turn\b",
        r"\bthe text field in the contentblock object\b.{0,60}is blank\b",
        r"\ba conversation must (?:start|alternate)",
        scope=_PROVIDER,
    ),
    says(
        "aws.server",
        Step.SERVER,
        Kind.SERVER_ERROR,
        r"\binternalserver(?:error|exception)\b|\binternalfailure\b",
        r"\bserviceunavailable(?:exception|error)?\b",
        r"\bmodelerrorexception\b|\bmodelstreamerrorexception\b",
        r"\bthe system encountered an unexpected error\b",
    ),
    says("aws.model_timeout", Step.SERVER, Kind.SERVER_ERROR, r"\bmodeltimeoutexception\b"),
    says(
        "aws.model_not_ready",
        Step.MODEL,
        Kind.MODEL_UNAVAILABLE,
        r"\bmodelnotreadyexception\b",
        scope=_PROVIDER,
    ),
    says(
        "aws.model_id",
        Step.REQUEST,
        Kind.MODEL_NOT_FOUND,
        r"\bmodel identifier is invalid\b|\bon-demand throughput isn.?t supported\b",
        r"\binference profile\b",
        r"\bthis model version has reached the end of its life\b",
        r"\bcould not resolve the foundation model\b",
        r"\bthe provided model .{0,40}(?:is invalid|doesn't exist|does not exist)\b",
    ),
    says(
        "aws.validation",
        Step.REQUEST,
        Kind.INVALID_REQUEST,
        r"\bvalidationexception\b",
        priority=-30,
        unless=r"request failed validation",
    ),
    forbid(
        "aws.model_id_is_no_credential",
        (Kind.CREDENTIAL_PROPAGATION,),
        r"\bmodel identifier is invalid\b|\bschema is invalid\b",
    ),
)
