"""How sure a mean over seeds is: Student's t intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import fmean, stdev
from typing import Final

from attrs import frozen

# Two-sided 95 % quantiles of Student's t for 1, 2, ... degrees of freedom.
# fmt: off
_T95: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)
# fmt: on
_Z95: Final = 1.960


@frozen
class Interval:
    """A mean, and how far off it may be: 95 of 100 such intervals hold the true one."""

    mean: float
    half: float | None
    """None for a single value, which says nothing about its spread."""
    count: int

    @property
    def low(self) -> float:
        return self.mean - (self.half or 0.0)

    @property
    def high(self) -> float:
        return self.mean + (self.half or 0.0)

    @property
    def excludes_zero(self) -> bool:
        """As the interval of a difference: it is more than chance."""
        return self.half is not None and not self.low <= 0.0 <= self.high


def interval(values: Iterable[float | None]) -> Interval | None:
    """The interval of the values that there are; None when there are none."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    if len(known) == 1:
        return Interval(known[0], None, 1)
    # One-sided sources such as percentiles are near enough to normal over seeds.
    half = t95(len(known) - 1) * stdev(known) / math.sqrt(len(known))
    return Interval(fmean(known), half, len(known))


def differences(ours: Iterable[float | None], theirs: Iterable[float | None]) -> Interval | None:
    """The interval of paired differences, `theirs` minus `ours`, seed by seed."""
    pairs = zip(ours, theirs, strict=True)
    return interval(None if a is None or b is None else b - a for a, b in pairs)


def t95(freedom: int) -> float:
    """How many standard errors wide a 95 % interval is on each side."""
    if freedom <= len(_T95):
        return _T95[freedom - 1]
    return _Z95 + 2.5 / freedom  # within 0.002 of the quantile from here on
