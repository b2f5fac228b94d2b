"""How a failure finds its row: the walk over the turn table, and the plan a match becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from attrs import evolve

from orchestrator.settings.model import Settings
from orchestrator.turn.case import OUTPUT, Case, Plan
from orchestrator.turn.table import (
    MODELS,
    PREDICATES,
    SERVING,
    TABLE,
    Carries,
    Row,
    Shown,
    Target,
    Word,
)

_SHOWN: Final[Mapping[Shown, Callable[[int], bool]]] = MappingProxyType(
    {
        Shown.ANY: lambda _: True,
        Shown.FRESH: lambda bits: not bits & OUTPUT,
        Shown.SILENT: lambda bits: not bits,
        Shown.SHOWN: lambda bits: bool(bits & OUTPUT),
    }
)

_READ: Final[Mapping[str, Callable[[Settings], Any]]] = MappingProxyType(
    {path: attrgetter(path) for row in TABLE for path in (row.limit, row.window) if path}
)


def budget_denies(case: Case, place: int = 0) -> bool:
    """Whether nothing but the fleet's retry budget keeps a row from serving this failure."""
    if case.live.may_retry:
        return False
    allowed = evolve(case, live=evolve(case.live, may_retry=True))
    return first_match(allowed, place) is not None


def plan_for(row: Row, case: Case) -> Plan:
    """Turn a matching row into what is pending."""
    return Plan(
        family=row.family,
        number=1 + (case.cursor if row.counter is None else case.spent(row.counter)),
        limit=limit_of(row, case.settings),
        failed_at=case.at,
        curve_start=_curve_start(case),
        target=MODELS[row.target](case),
        source=case.live.model,
    )


def window_s(row: Row, settings: Settings) -> float:
    """Seconds that a family may go on from the curve's start; 0 where a count bounds it."""
    return float(_READ[row.window](settings)) if row.window else 0.0


def limit_of(row: Row, settings: Settings) -> int | None:
    """How many sends a family allows; None for a window."""
    if row.target is Target.CANDIDATE:
        return len(settings.recoveries.fallback_models)
    return int(_READ[row.limit](settings)) if row.limit else None


def _curve_start(case: Case) -> float:
    """When the curve's first retry was scheduled: this failure, when there is none yet."""
    start = case.budgets.curve_start
    return case.at if start is None else start


def first_match(case: Case, place: int = 0) -> Row | None:
    """Return the first row, from `place` on, that serves this failure; None is the end."""
    for at, row in SERVING.get(case.verdict.recovery, ()):
        if at >= place and _serves(row, case):
            return row
    return None


def _serves(row: Row, case: Case) -> bool:
    return (
        _triggered(row, case)
        and _SHOWN[row.shown](case.shown)
        and (case.clean or row.carries is not Carries.VERBATIM_ONLY)
        and not (row.yields and case.live.user_input)
        and _affordable(row, case)
        and _hold(row.gates, case)
    )


def _triggered(row: Row, case: Case) -> bool:
    return (not row.kinds or case.verdict.kind in row.kinds) and _hold(row.when, case)


def _hold(words: Iterable[Word], case: Case) -> bool:
    # A loop, as a generator for `all` would cost more than what it asks.
    for word in words:  # noqa: SIM110
        if not PREDICATES[word](case):
            return False
    return True


def _affordable(row: Row, case: Case) -> bool:
    """Below its count, or inside its window; a window is asked at the failure's own time."""
    if row.window and not case.at < _curve_start(case) + window_s(row, case.settings):
        return False
    if row.counter is None:
        return True
    limit = limit_of(row, case.settings)
    return limit is None or case.spent(row.counter) < limit
