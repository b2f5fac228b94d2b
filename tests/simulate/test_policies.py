"""Known policies: how long an outage each survives, and that rows are complete."""

import pytest

from orchestrator.failure.kinds import Kind
from orchestrator.simulate.fleet import Fleet, play
from orchestrator.simulate.policies import POLICIES, envelope, policy
from orchestrator.simulate.scenario import Fault, Phase, Scenario

# Least and most seconds waited before giving up, from each system's own constants; a number of
# retries where the policy has no end.
ENVELOPES = {
    "tenacity-default": (3.0, 3.0),
    "tenacity-jitter": (15.0, 19.0),
    "backoff-expo": (0.0, 15.0),
    "hyx": (1.5, 1.5),
    "resilience4j": (1.0, 1.0),
    "polly": (6.0, 6.0),
    "cockatiel": (0.448, 1.792),
    "botocore-transient": (0.0, 0.15),
    "botocore-throttling": (0.0, 3.0),
    "grpc": (0.0, 0.7),
    "envoy": (0.0, 0.025),
    "openai-sdk": (1.125, 1.5),
    "anthropic-sdk": (1.125, 1.5),
    "vercel-ai-sdk": (6.0, 6.0),
    "langgraph": (1.5, 3.5),
    "langchain": (3.0, 5.0),
    "litellm": (1.5, 3.0),
    "dbos": (3.0, 3.0),
    "restate": (3582.35, 3582.35),
    "zed-throttle": (75.0, 75.0),
    "zed-overloaded": (20.0, 20.0),
    "codex-stream": (5.58, 6.82),
    "codex-request": (2.7, 3.3),
    "claude-code": (159.5, 199.375),
    "goose": (5.6, 8.4),
    "gemini-cli": (150.5, 279.5),
    "cline": (3.0, 3.0),
    "none": (0.0, 0.0),
}
UNBOUNDED = {"roo": (8, 1235.0), "opencode": (10, 210.0)}


@pytest.mark.parametrize("name", ENVELOPES)
def test_a_policy_survives_as_long_as_its_constants_say(name):
    assert envelope(POLICIES[name]) == pytest.approx(ENVELOPES[name], abs=0.01)


@pytest.mark.parametrize("name", UNBOUNDED)
def test_a_policy_without_end_waits_as_its_constants_say(name):
    retries, seconds = UNBOUNDED[name]
    assert envelope(POLICIES[name], retries) == pytest.approx((seconds, seconds))
    assert POLICIES[name].retries is None


def test_stamina_ends_by_its_clock_within_its_envelope():
    low, high = envelope(POLICIES["stamina-default"])
    assert (low, high) == pytest.approx((21.3, 27.3), abs=0.01)


def test_every_policy_is_checked_here():
    assert set(POLICIES) == {*ENVELOPES, *UNBOUNDED, "stamina-default"}


def waits_of(name, **fault):
    """When each attempt of one turn that always fails is sent, since its first one."""
    scenario = Scenario(
        "x", rate_per_s=1, duration_s=600, phases=(Phase(faults=(Fault(**fault),)),)
    )
    ended = []
    Fleet(scenario, policy(name), seed=1, watch=ended.append).play()
    return ended


@pytest.mark.parametrize("name", [n for n in ENVELOPES if n != "restate"])
def test_what_is_played_keeps_to_the_envelope(name):
    low, high = ENVELOPES[name]
    for ended in waits_of(name, kind=Kind.OVERLOADED, delay_s=0.0):
        assert low - 0.01 <= ended.at - ended.turn.at <= high + 0.01
        assert ended.turn.sends == POLICIES[name].retries + 1


def test_hints_are_read_as_each_system_reads_them():
    def first_wait(name, hint_s):
        return POLICIES[name].wait(1, 0.0, hint_s)

    assert first_wait("anthropic-sdk", 300) == 300
    assert first_wait("openai-sdk", 90) == 90
    assert first_wait("openai-sdk", 300) is None
    assert first_wait("vercel-ai-sdk", 300) == 2
    assert first_wait("tenacity-default", 300) == 1
    assert first_wait("opencode", 86_400) == 86_400


def test_an_endless_policy_ends_with_the_scenario():
    ended = waits_of("opencode", kind=Kind.OVERLOADED)
    assert all(e.at <= 600.5 for e in ended)
    assert max(e.turn.sends for e in ended) > 15


def test_http_clients_leave_alone_what_no_retry_can_mend():
    for kind in (Kind.AUTH_REQUIRED, Kind.INVALID_REQUEST, Kind.AGENT_DIED):
        scenario = Scenario("x", duration_s=60, phases=(Phase(faults=(Fault(kind),)),))
        assert play(scenario, policy("anthropic-sdk")).whole.amplification == 1
        assert play(scenario, policy("tenacity-default")).whole.amplification == 3
