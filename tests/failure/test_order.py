"""The order of the walk is part of the contract: each step before the ones it must beat."""

from __future__ import annotations

import pytest

from orchestrator.failure.classify import classify
from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.rule import Step
from orchestrator.failure.rules.catalogue import ALL_RULES
from orchestrator.failure.verdict import Context


def kiro(data, message="Internal error", **context):
    return classify(
        RawFailure.acp_error(-32603, message, data), speaker="kiro", context=Context(**context)
    )


ORDERED = [
    # A sentence that two steps could claim, the step that must win, the kind.
    (
        Step.STRUCTURED,
        {"errorKind": "cloud_credential_error", "message": "HTTP 503"},
        Kind.CREDENTIAL_RELOAD,
    ),
    (Step.STRUCTURED, "A prompt is already in progress (HTTP 503)", Kind.PROMPT_BUSY),
    (Step.ALLOWANCE, "monthly usage limit, rate limit exceeded (HTTP 429)", Kind.USAGE_LIMIT),
    (Step.SHAPE, "Improperly formed request HTTP 503", Kind.MALFORMED_REQUEST),
    (Step.SHAPE, "The context window overflowed, please try again", Kind.CONTEXT_OVERFLOW),
    (Step.MODEL, "The model 'm' is not available, rate limit hit", Kind.MODEL_UNAVAILABLE),
    (Step.THROTTLE, "ThrottlingException HTTP 401", Kind.RATE_LIMITED),
    (
        Step.PROPAGATION,
        "The security token included in the request is invalid HTTP 403",
        Kind.CREDENTIAL_PROPAGATION,
    ),
    (Step.ACCESS, "HTTP 401 connection reset", Kind.AUTH_REQUIRED),
    (
        Step.MODEL_LIST,
        {"errorType": "ModelRegistryUnavailableError", "message": "HTTP 503"},
        Kind.MODEL_LIST_UNAVAILABLE,
    ),
    (Step.CONNECTION, "HTTP 503 connection reset", Kind.CONNECTION_LOST),
    (Step.SERVER, "HTTP 503: failed to process the request", Kind.SERVER_ERROR),
    (Step.WRAPPER, "failed to process the request: model not found", Kind.SERVER_ERROR),
    (Step.REQUEST, "Unknown model: x", Kind.MODEL_NOT_FOUND),
    (Step.UNKNOWN, "nobody has seen this", Kind.UNKNOWN),
]


@pytest.mark.parametrize(("step", "data", "kind"), ORDERED)
def test_the_earlier_step_wins(step, data, kind):
    verdict = kiro(data)
    assert verdict.kind is kind
    decided = {rule.name: rule.step for rule in ALL_RULES}.get(verdict.rule, Step.UNKNOWN)
    assert decided is step


def test_entitlement_goes_before_model_unavailable_when_the_list_is_known():
    text = "The model 'm' is not available"
    assert kiro(text, advertised_models=("other",)).kind is Kind.MODEL_NOT_ENTITLED
    assert kiro(text, advertised_models=("M",)).kind is Kind.MODEL_UNAVAILABLE
    assert kiro(text, advertised_models=()).kind is Kind.MODEL_UNAVAILABLE
    assert kiro(text).kind is Kind.MODEL_UNAVAILABLE


def test_a_size_worded_as_a_5xx_is_a_size():
    raw = RawFailure.acp_error(-32603, "API Error: 500 Input is too long", {"errorKind": "unknown"})
    assert classify(raw, speaker="claude").kind is Kind.CONTEXT_OVERFLOW


def test_the_steps_stand_in_the_contracts_order():
    assert [step.name for step in Step] == [
        "NOTICE",
        "START",
        "STRUCTURED",
        "ENTITLEMENT",
        "ALLOWANCE",
        "SHAPE",
        "MODEL",
        "THROTTLE",
        "PROPAGATION",
        "ACCESS",
        "MODEL_LIST",
        "CONNECTION",
        "SIZE_AS_5XX",
        "SERVER",
        "WRAPPER",
        "REQUEST",
        "UNKNOWN",
    ]


def test_both_clauses_of_a_binding_must_stand_in_one_field():
    one = "Invalid `signature` in `thinking` block: this block is bound to a different conversation"
    assert kiro(one).kind is Kind.THINKING_BINDING
    split = kiro("Invalid `signature` in `thinking` block", "bound to a different conversation")
    assert split.kind is Kind.THINKING_REJECTED


def test_a_hint_never_makes_a_terminal_kind_retryable():
    raw = RawFailure.http(401, {"retry-after": "5"}, "")
    verdict = classify(raw)
    assert verdict.kind is Kind.AUTH_REQUIRED
    assert verdict.retry_after_s == 5
    assert not verdict.transient
