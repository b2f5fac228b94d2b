"""The classifier and the server's hints inside an ordinary tenacity `@retry`.

    @retry(
        retry=retry_if_transient(speaker="anthropic"),
        wait=wait_for_hint(wait_exponential(multiplier=2, max=30)),
        stop=stop_after_attempt(4),
    )

For functions that have no use for a turn.  What tenacity counts stays tenacity's.
"""

from __future__ import annotations

import time
from typing import Final

from tenacity import RetryCallState
from tenacity.retry import retry_base
from tenacity.wait import wait_base, wait_exponential

from orchestrator.errors import AgentError, RuntimeFailure
from orchestrator.failure.classify import classify
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Context, Verdict
from orchestrator.settings.model import TurnLimits

LONGEST_HINT_S: Final = TurnLimits().max_server_wait_s
"""A server that asks for more is not waited for, here as in a turn."""


def verdict_on(error: BaseException, *, speaker: str | None = None) -> Verdict:
    """Classify an exception; the errors of this package carry their verdict."""
    if isinstance(error, AgentError | RuntimeFailure):
        return error.verdict
    return classify(
        RawFailure.exception(error), speaker=speaker, context=Context(wall_now=time.time())
    )


class retry_if_transient(retry_base):  # noqa: N801 - spelled like tenacity's own
    """Retry when trying the identical call again can help, and soon enough."""

    def __init__(
        self, *, speaker: str | None = None, longest_hint_s: float = LONGEST_HINT_S
    ) -> None:
        self.speaker = speaker
        self.longest_hint_s = longest_hint_s

    def __call__(self, retry_state: RetryCallState) -> bool:
        error = _raised(retry_state)
        if not isinstance(error, Exception):
            return False  # it returned, or it was cancelled
        verdict = verdict_on(error, speaker=self.speaker)
        return verdict.transient and (verdict.retry_after_s or 0.0) <= self.longest_hint_s


class wait_for_hint(wait_base):  # noqa: N801 - spelled like tenacity's own
    """Wait as long as the server asks, and never less than the strategy given."""

    def __init__(
        self,
        otherwise: wait_base | None = None,
        *,
        speaker: str | None = None,
        longest_hint_s: float = LONGEST_HINT_S,
    ) -> None:
        self.otherwise = wait_exponential(multiplier=2, max=60) if otherwise is None else otherwise
        self.speaker = speaker
        self.longest_hint_s = longest_hint_s

    def __call__(self, retry_state: RetryCallState) -> float:
        base = float(self.otherwise(retry_state))
        error = _raised(retry_state)
        if not isinstance(error, Exception):
            return base
        hint = verdict_on(error, speaker=self.speaker).retry_after_s or 0.0
        return max(base, min(hint, self.longest_hint_s))


def _raised(retry_state: RetryCallState) -> BaseException | None:
    outcome = retry_state.outcome
    return outcome.exception() if outcome is not None else None
