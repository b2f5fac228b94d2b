"""The exceptions an embedder catches."""

import copy
import pickle

import pytest

from orchestrator import errors
from orchestrator.errors import ERRORS, AgentError, RuntimeFailure, error_for
from orchestrator.failure.kinds import KINDS, Action, Kind, Recovery
from orchestrator.failure.verdict import Refusal, Verdict

CLASSES = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, Exception)
]


def verdict(kind, title="It broke. Try again."):
    return Verdict.of(kind, title, retry_after_s=3.0)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_its_class_and_is_raised_as_it(kind):
    with pytest.raises((AgentError, RuntimeFailure)) as caught:
        raise error_for(verdict(kind))
    assert type(caught.value) is ERRORS[kind]


def test_the_table_names_no_kind_that_does_not_exist():
    assert set(ERRORS) == set(KINDS) == set(Kind)


def test_no_class_belongs_to_both_families():
    for cls in CLASSES:
        assert issubclass(cls, AgentError) is not issubclass(cls, RuntimeFailure)


@pytest.mark.parametrize("kind", Kind)
def test_catching_one_family_never_swallows_the_other(kind):
    error = error_for(verdict(kind))
    caught_by = [family for family in (AgentError, RuntimeFailure) if isinstance(error, family)]
    assert len(caught_by) == 1


def test_what_the_families_share_cannot_be_caught():
    shared = set(AgentError.__mro__) & set(RuntimeFailure.__mro__) - set(Exception.__mro__)
    assert shared
    assert not any(issubclass(cls, BaseException) for cls in shared)


def test_neither_family_is_the_interpreters_runtime_error():
    assert not any(issubclass(cls, RuntimeError | OSError) for cls in CLASSES)


@pytest.mark.parametrize("kind", Kind)
def test_an_error_is_the_sentence_the_user_reads_and_carries_what_policy_knows(kind):
    told = verdict(kind)
    error = error_for(told, outcome="outcome", partial_output="half an ans")
    assert str(error) == error.title == "It broke. Try again."
    assert error.verdict is told
    assert error.kind is kind
    assert error.actions == KINDS[kind].actions
    assert error.transient is KINDS[kind].transient
    assert error.structural is KINDS[kind].structural
    assert error.retry_after_s == 3.0
    assert (error.outcome, error.partial_output) == ("outcome", "half an ans")


def test_the_timeout_keeps_what_arrived_in_time():
    with pytest.raises(errors.PromptTimeoutError) as caught:
        raise error_for(verdict(Kind.REQUEST_TIMEOUT), partial_output="The answer is")
    assert caught.value.partial_output == "The answer is"


def test_a_refusal_says_why_and_stays_silent_where_nobody_said():
    refusal = Refusal(category="bio", recommended_model="other")
    told = Verdict.of(Kind.CONTENT_REFUSED, "The model declined.", refusal=refusal)
    assert error_for(told).refusal == refusal
    assert error_for(verdict(Kind.CONTENT_REFUSED)).refusal == Refusal()


@pytest.mark.parametrize(
    ("kind", "family"),
    [
        (Kind.AUTH_REQUIRED, AgentError),
        (Kind.PROMPT_BUSY, AgentError),
        (Kind.THINKING_BINDING, AgentError),
        (Kind.REQUEST_TIMEOUT, AgentError),
        (Kind.AGENT_UNSAFE, AgentError),
        (Kind.OVERLOADED, AgentError),
        (Kind.UNKNOWN, AgentError),
        (Kind.AGENT_DIED, RuntimeFailure),
        (Kind.AGENT_START_TIMEOUT, RuntimeFailure),
        (Kind.AGENT_OVERLOADED, RuntimeFailure),
        (Kind.BINDING_MISMATCH, RuntimeFailure),
        (Kind.CONNECTION_LOST, RuntimeFailure),
        (Kind.HOST_EXHAUSTED, RuntimeFailure),
    ],
)
def test_the_protocol_is_one_family_and_the_process_the_other(kind, family):
    assert issubclass(ERRORS[kind], family)


def test_a_throttled_registration_is_a_death_that_may_be_tried_again():
    error = error_for(verdict(Kind.REGISTRATION_THROTTLED))
    assert isinstance(error, errors.AgentDiedError)
    assert error.transient
    assert error.verdict.recovery is Recovery.REGISTRATION


def test_a_start_that_timed_out_is_a_request_that_timed_out():
    assert issubclass(errors.StartTimeoutError, errors.RequestTimeoutError)
    assert issubclass(errors.HostOverloadedError, errors.RequestTimeoutError)
    assert not issubclass(errors.PromptTimeoutError, errors.RequestTimeoutError)


@pytest.mark.parametrize("kind", Kind)
def test_an_error_survives_a_process_pool_and_a_copy(kind):
    error = error_for(verdict(kind), outcome=7, partial_output="x")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert (again.verdict, again.outcome, again.partial_output) == (error.verdict, 7, "x")


def test_its_repr_is_short_and_holds_no_frame():
    told = Verdict.of(Kind.AUTH_REQUIRED, "Sign in again.", raw_detail="secret frame")
    assert repr(error_for(told)) == "SignInRequiredError('Sign in again.')"
    assert error_for(told).actions == (Action.LOGIN,)
