"""What a run is asked: one row per answer, for every command, the report and the optimiser."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from attrs import frozen

from orchestrator.simulate.confidence import Interval
from orchestrator.simulate.tally import Result, Tally

_MINUTE_S: Final = 60.0
_HOUR_S: Final = 3600.0


class Unit(StrEnum):
    SHARE = "share"
    SECONDS = "seconds"
    TIMES = "times"
    TURNS = "turns"


class Better(StrEnum):
    """Which way is good news."""

    MORE = "more"
    LESS = "less"
    NEITHER = "neither"


@frozen
class Measure:
    """One answer about a run."""

    name: str
    title: str
    unit: Unit
    better: Better
    read: Callable[[Tally], float | None]
    """None where the run has nothing to say: nobody recovered, there was no outage."""
    help: str
    part: bool = False
    """Part of the one above it."""


def _share(*results: Result) -> Callable[[Tally], float | None]:
    return lambda tally: sum(tally.results[r] for r in results) / tally.turns if tally.turns else 0


def _recovery(share: float) -> Callable[[Tally], float | None]:
    return lambda tally: tally.recovery.percentile(share)


def _amplification(tally: Tally) -> float | None:
    where = tally.outage if tally.outage.turns else tally.whole
    return where.amplification


_S, _M, _L, _N = Unit.SHARE, Better.MORE, Better.LESS, Better.NEITHER

_ROWS: Final = (
    Measure(
        "landed",
        "landed",
        _S,
        _M,
        lambda tally: tally.landed / tally.turns if tally.turns else 0.0,
        "share of turns that got their answer",
    ),
    Measure(
        "landed_clean",
        "at once",
        _S,
        _N,
        _share(Result.LANDED_CLEAN),
        "share of turns whose first attempt landed",
        part=True,
    ),
    Measure(
        "landed_by_retry",
        "thanks to retry",
        _S,
        _M,
        _share(Result.LANDED_AFTER_RETRY),
        "share of turns that landed because they were sent again",
        part=True,
    ),
    Measure(
        "landed_by_recovery",
        "thanks to recovery",
        _S,
        _M,
        _share(Result.LANDED_AFTER_RECOVERY),
        "share of turns that landed because something was rebuilt first",
        part=True,
    ),
    Measure(
        "failed",
        "failed",
        _S,
        _L,
        _share(Result.FAILED, Result.DENIED, Result.REFUSED),
        "share of turns that ended with an error",
    ),
    Measure(
        "denied",
        "by the retry budget",
        _S,
        _N,
        _share(Result.DENIED),
        "share of turns whose next retry the fleet's budget denied",
        part=True,
    ),
    Measure(
        "stopped",
        "stopped",
        _S,
        _N,
        _share(Result.STOPPED, Result.SUPERSEDED),
        "share of turns that the user stopped, or that gave way to a newer message",
    ),
    Measure(
        "p50_recovery",
        "time to recovery, p50",
        Unit.SECONDS,
        _L,
        _recovery(0.50),
        "half of the turns that failed and landed were back this long after their first failure",
    ),
    Measure(
        "p95_recovery",
        "time to recovery, p95",
        Unit.SECONDS,
        _L,
        _recovery(0.95),
        "19 of 20 of the turns that failed and landed were back within this time",
    ),
    Measure(
        "p99_recovery",
        "time to recovery, p99",
        Unit.SECONDS,
        _L,
        _recovery(0.99),
        "99 of 100 of the turns that failed and landed were back within this time",
    ),
    Measure(
        "amplification",
        "load in the outage",
        Unit.TIMES,
        _L,
        _amplification,
        "calls for each new turn in the outage; in the whole run, if there is no outage",
    ),
    Measure(
        "amplification_after",
        "load in the minute after",
        Unit.TIMES,
        _L,
        lambda tally: tally.after.amplification,
        "calls for each new turn in the minute behind the outage",
    ),
    Measure(
        "landed_late",
        "landed once it is over",
        _S,
        _M,
        lambda tally: tally.late.landed / tally.late.turns if tally.late.turns else None,
        "share that landed of the turns that started in the last quarter, long behind the outage",
    ),
    Measure(
        "longest_silence",
        "longest silent wait",
        Unit.SECONDS,
        _L,
        lambda tally: tally.longest_silence_s,
        "the longest time behind a failure in which a user read nothing new",
    ),
    Measure(
        "shown_twice",
        "answers begun twice",
        Unit.TURNS,
        _L,
        lambda tally: float(tally.shown_twice),
        "messages sent again as they were, behind text that the user had already read",
    ),
    Measure(
        "refunds",
        "retries taken back",
        Unit.TURNS,
        _N,
        lambda tally: float(tally.refunds),
        "retries that were decided and then not sent: nothing was counted for them",
    ),
)

MEASURES: Final[Mapping[str, Measure]] = MappingProxyType({row.name: row for row in _ROWS})
"""Every answer, by name, in the order in which it is printed."""


def in_words(unit: Unit, value: float, *, signed: bool = False) -> str:
    """A value as people read it, with its unit."""
    sign = "+" if signed and value > 0 else ""
    return sign + _SPELL[unit](value)


def with_half(measure: Measure, known: Interval | None) -> str:
    """A mean and its interval, as `12.3 % ± 0.4`."""
    if known is None:
        return "-"
    words = in_words(measure.unit, known.mean)
    half = known.half
    if not half:
        return words
    spread = _spread(measure.unit, half, known.mean)
    return f"{words} ± {spread}" if spread else words


def _spread(unit: Unit, half: float, mean: float) -> str:
    """How far off a mean may be, in the mean's own unit; empty when it would read as nothing."""
    if unit is Unit.SHARE:
        words = f"{half * 100:.1f}"
    elif unit is Unit.SECONDS and mean >= _MINUTE_S:
        words = _seconds(half)
    else:
        words = f"{half:.2f}" if unit is Unit.TIMES else f"{half:.1f}"
    return words if words.strip("0.s ") else ""


def _seconds(seconds: float) -> str:
    if abs(seconds) < _MINUTE_S:
        return f"{seconds:.1f} s"
    sign, whole = "-" if seconds < 0 else "", round(abs(seconds))
    if whole < _HOUR_S:
        return f"{sign}{whole // 60}m {whole % 60:02}s"
    return f"{sign}{whole // 3600}h {whole % 3600 // 60:02}m"


_SPELL: Final[Mapping[Unit, Callable[[float], str]]] = {
    Unit.SHARE: lambda value: f"{value * 100:.1f} %",
    Unit.SECONDS: _seconds,
    Unit.TIMES: lambda value: f"{value:.2f}x",
    Unit.TURNS: lambda value: f"{value:,.0f}",
}
