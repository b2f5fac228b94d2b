"""What a reader of the title can do is told once: by us while we do it, by the title at the end."""

import pytest

from orchestrator.failure.classify import classify
from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Verdict
from orchestrator.failure.wording import TITLES
from orchestrator.turn import wording
from orchestrator.turn.effects import Family

DIED = RawFailure.exit(3, stderr="TypeError: x is not a function")


@pytest.mark.parametrize(
    ("raw", "family", "title"),
    [
        (
            RawFailure.exit(-9),
            Family.DEATH,
            (
                "The agent was stopped by SIGKILL, often because the machine is short of memory."
                " Restarting the agent (1 of 3)."
            ),
        ),
        (
            DIED,
            Family.DEATH,
            (
                "The agent stopped with exit code 3. (TypeError: x is not a function)."
                " Restarting the agent (1 of 3)."
            ),
        ),
        (
            RawFailure.http(529, {}, ""),
            Family.TRANSIENT,
            "The model provider is overloaded. Trying again (1 of 3).",
        ),
        (
            RawFailure.exception(ConnectionResetError()),
            Family.TRANSIENT,
            "The connection to the model provider was reset. Trying again (1 of 3).",
        ),
    ],
)
def test_a_warning_never_asks_for_what_is_being_done(raw, family, title):
    assert wording.retrying(family, classify(raw), 1, 3) == title


def test_a_standing_warning_never_asks_for_what_is_being_done():
    verdict = classify(RawFailure.exception(ConnectionResetError()))
    told = wording.standing(Family.CONNECTION, verdict, 300.0)
    assert (
        told == "The connection to the model provider was reset. Trying again for up to 5 minutes."
    )


def test_a_wait_too_long_to_be_worth_it_names_one_time_to_try_again():
    told = wording.ended(classify(RawFailure.http(429, {}, "")), 150.0)
    assert told == "The model provider is throttling requests. Try again in 3 minutes."


def test_the_error_at_the_end_says_what_to_do():
    verdict = classify(DIED)
    assert "Start a new session." in wording.ended(verdict, None)


@pytest.mark.parametrize("title", ["", "Overloaded, try again later", "Try again."])
def test_a_providers_own_sentence_is_kept_whole(title):
    verdict = Verdict.of(Kind.OVERLOADED, title)
    assert wording.cause_of(Family.TRANSIENT, verdict) == title


@pytest.mark.parametrize("kind", Kind)
def test_what_happened_is_never_cut_from_a_title_of_ours(kind):
    title = TITLES[kind].ours.replace("{", "").replace("}", "")
    fact, _, step = title.partition(". ")
    told = wording.cause_of(Family.TRANSIENT, Verdict.of(kind, title, next_step=step))
    assert told.rstrip(".") == fact.rstrip(".")
