"""What a search is to achieve, in a line that people write.

    min p95_recovery subject to amplification<=1.3, landed>=0.99

One measure to push, and bounds that must hold in every scenario.  A number may be `1.3x`, `99%`,
`90s` or `5m`.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from attrs import frozen

from orchestrator.settings.reading import duration
from orchestrator.simulate.measures import MEASURES, Unit, in_words
from orchestrator.simulate.runs import Outcome

_LINE: Final = re.compile(
    r"\s*(?P<goal>\w+)\s+(?P<measure>\w+)\s*(?:subject\s+to\s+(?P<bounds>.+?))?\s*", re.IGNORECASE
)
_BOUND: Final = re.compile(r"\s*(?P<measure>\w+)\s*(?P<relation><=|>=|<|>)\s*(?P<number>\S+)\s*")
EXAMPLE: Final = "min p95_recovery subject to amplification<=1.3, landed>=0.99"
_LONGEST: Final = 1000


class ObjectiveError(ValueError):
    """An objective that cannot be understood; `hint` says what to write."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint or f"for example: {EXAMPLE}"


class Goal(StrEnum):
    MIN = "min"
    MAX = "max"


@frozen
class Bound:
    """One measure stays on one side of a number."""

    measure: str
    at_most: bool
    number: float
    written: str = ""
    """The number as it was asked for, such as `7m`."""

    def excess(self, outcomes: Sequence[Outcome]) -> float:
        """By how much it is broken, at worst, as a share of the number; 0 or less when it holds.

        A scenario that has nothing to say about the measure cannot break it.
        """
        known = [mean for o in outcomes if (mean := o.mean(self.measure)) is not None]
        if not known:
            return 0.0
        worst = max(known) - self.number if self.at_most else self.number - min(known)
        return worst / max(abs(self.number), 1e-9)

    def __str__(self) -> str:
        relation = "<=" if self.at_most else ">="
        return f"{self.measure}{relation}{self.written or format(self.number, 'g')}"


@frozen
class Objective:
    """What is pushed, and what must hold."""

    goal: Goal
    measure: str
    bounds: tuple[Bound, ...] = ()

    def value(self, outcomes: Sequence[Outcome]) -> float:
        """What is pushed, over all scenarios; infinitely bad where one has nothing to show."""
        means = [outcome.mean(self.measure) for outcome in outcomes]
        worst = math.inf if self.goal is Goal.MIN else -math.inf
        known = [worst if mean is None else mean for mean in means]
        return sum(known) / len(known)

    def better(self, value: float, than: float) -> bool:
        return value < than if self.goal is Goal.MIN else value > than

    def excess(self, outcomes: Sequence[Outcome]) -> float:
        """By how much the bounds are broken together; 0 when all hold."""
        return sum(max(0.0, bound.excess(outcomes)) for bound in self.bounds)

    @property
    def measures(self) -> tuple[str, ...]:
        """Everything that it speaks of, each once."""
        return tuple(dict.fromkeys((self.measure, *(bound.measure for bound in self.bounds))))

    def cost(self, measure: str, value: float) -> float:
        """A value of one of its measures, turned so that less is better."""
        if measure == self.measure:
            return value if self.goal is Goal.MIN else -value
        at_most = next(bound.at_most for bound in self.bounds if bound.measure == measure)
        return value if at_most else -value

    def __str__(self) -> str:
        bounds = f" subject to {', '.join(map(str, self.bounds))}" if self.bounds else ""
        return f"{self.goal} {self.measure}{bounds}"


def parse(text: str) -> Objective:
    """Read an objective.  Raises ObjectiveError."""
    found = _LINE.fullmatch(text[:_LONGEST])
    if found is None:
        raise ObjectiveError(f"{text[:80]!r} is not an objective")
    goal = found["goal"].lower()
    if goal not in Goal.__members__.values():
        raise ObjectiveError(f"it begins with {found['goal'][:20]!r}; min or max is allowed")
    bounds = tuple(_bound(part) for part in (found["bounds"] or "").split(",") if part.strip())
    return Objective(Goal(goal), _measure(found["measure"]), bounds)


def _bound(text: str) -> Bound:
    found = _BOUND.fullmatch(text)
    if found is None:
        raise ObjectiveError(
            f"{text.strip()[:60]!r} is not a bound",
            "a bound is MEASURE<=NUMBER or MEASURE>=NUMBER; several are separated by commas",
        )
    measure = _measure(found["measure"])
    number = _number(found["number"], measure)
    return Bound(measure, found["relation"].startswith("<"), number, found["number"])


def _measure(name: str) -> str:
    if name in MEASURES:
        return name
    close = difflib.get_close_matches(name[:40], MEASURES, n=1)
    meant = f"did you mean {close[0]}?" if close else f"there are {', '.join(MEASURES)}"
    raise ObjectiveError(f"there is no measure {name[:40]!r}", meant)


def _number(text: str, measure: str) -> float:
    """A number in the unit of its measure."""
    unit = MEASURES[measure].unit
    try:
        number = _READ[unit](text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise ObjectiveError(f"{text[:40]!r} is no number for {measure}", _SAY[unit])
    if unit is Unit.SHARE and number > 1:
        raise ObjectiveError(
            f"{measure}: {text[:40]} is more than all turns", f"write {number:g}% or a share"
        )
    return number


def _share(text: str) -> float:
    return float(text[:-1]) / 100 if text.endswith("%") else float(text)


def _seconds(text: str) -> float:
    seconds = duration(text)
    if seconds is None:
        raise ValueError(text)
    return seconds


def _times(text: str) -> float:
    return float(text.removesuffix("x"))


_READ: Final[Mapping[Unit, Callable[[str], float]]] = {
    Unit.SHARE: _share,
    Unit.SECONDS: _seconds,
    Unit.TIMES: _times,
    Unit.TURNS: float,
}
_SAY: Final = {
    Unit.SHARE: "a share of turns is a number such as 0.99 or 99%",
    Unit.SECONDS: "a time is a number of seconds, or text such as 90s or 5m",
    Unit.TIMES: "a load is a number such as 1.3 or 1.3x",
    Unit.TURNS: "a count is a number",
}


def spelled(measure: str, value: float) -> str:
    """A measure's value as people read it; nothing that is finite is said of nothing."""
    return in_words(MEASURES[measure].unit, value) if math.isfinite(value) else "-"
