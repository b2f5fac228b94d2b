"""What a row of the turn table may ask about one failure, and what a turn has spent so far."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from orchestrator.failure.verdict import Verdict
from orchestrator.settings.model import Settings
from orchestrator.turn.effects import Family, SessionState
from orchestrator.turn.events import Evidence, Facts, Live
from orchestrator.turn.value import value

TEXT: Final = 1
TOOL: Final = 2
THOUGHT: Final = 4
OUTPUT: Final = TEXT | TOOL
"""What makes a replay visible or dangerous; a thought alone does neither."""

EVIDENCE_BIT: Final = {Evidence.TEXT: TEXT, Evidence.TOOL: TOOL, Evidence.THOUGHT: THOUGHT}


class Counter(StrEnum):
    """Where a family's sends are counted: the name of a field of `Budgets` or `SessionState`."""

    CURVE = "curve"
    BUSY = "busy"
    FRESH = "fresh"
    CONTINUED = "continued"
    ENTITLEMENT = "entitlement"
    RESUME = "resume"
    HOP = "hop"
    LOST = "lost"
    DISCARD = "discard"
    DEATHS = "deaths"


OF_SESSION: Final = frozenset({Counter.LOST, Counter.DISCARD, Counter.DEATHS})
"""Counted in the session until a turn lands; everything else is counted in the turn."""


@value
class Budgets:
    """What the turn has spent.  Replaced only together with a `Send`."""

    sends: int = 0
    """Sends of count-bounded families, the first one included."""
    curve: int = 0
    curve_start: float | None = None
    """`now` of the failure that scheduled the curve's first retry."""
    busy: int = 0
    fresh: int = 0
    continued: int = 0
    entitlement: int = 0
    resume: int = 0
    hop: int = 0


def hint_of(verdict: Verdict) -> float | None:
    """Seconds the server asks to wait, or None."""
    return verdict.resets_in_s if verdict.retry_after_s is None else verdict.retry_after_s


def reset_of(verdict: Verdict) -> float | None:
    """Seconds until a limit's reset, or None when unknown."""
    return verdict.retry_after_s if verdict.resets_in_s is None else verdict.resets_in_s


@value
class Plan:
    """A decided retry or recovery: what its send will cost and what comes before it."""

    family: Family
    number: int
    """Which of the family's sends it would be, from 1."""
    limit: int | None
    """How many the family allows; None for a window."""
    failed_at: float
    """`now` of the failure; windows and a re-decision are asked at it."""
    curve_start: float
    target: str = ""
    """Model that a swap sets."""
    source: str = ""
    """Model that the swap replaces."""


@value
class Case:
    """One failure and everything a row may ask about it."""

    settings: Settings
    facts: Facts
    live: Live
    verdict: Verdict
    session: SessionState
    budgets: Budgets
    at: float
    """`now` of the failure."""
    shown: int = 0
    """Evidence bits of the attempt that failed."""
    seen: int = 0
    """Evidence bits of the whole turn."""
    clean: bool = True
    cursor: int = 0
    """Position in `recoveries.fallback_models`."""

    @property
    def hint_is_long(self) -> bool:
        """The server asks for more than a plain ladder waits."""
        hint = hint_of(self.verdict)
        return hint is not None and hint > self.settings.turn.max_server_wait_s

    @property
    def used_up(self) -> bool:
        """The curve's retries were really sent; a hint that closes it does not use it up."""
        return self.budgets.curve >= max(1, self.settings.ladders.transient_retries)

    def spent(self, counter: Counter) -> int:
        spent: int = getattr(self.session if counter in OF_SESSION else self.budgets, counter)
        return spent
