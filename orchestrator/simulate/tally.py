"""What a run adds up to.  Its size does not grow with the number of turns."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Final

from attrs import define, field

_RATIO: Final = math.log(1.01)
"""Neighbouring buckets of a `Spread` are 1 % apart, so a percentile is right within 1 %."""
_SMALLEST_S: Final = 0.001
BINS: Final = 240
"""Stretches of time in which load is counted."""
AFTER_S: Final = 60.0
"""How long behind an outage its echo is counted."""
_FIRST, _LONGEST = 2, 2
"""Sample turns kept of each result."""
MARKS: Final = 400
"""Marks kept of one sample turn."""


class Result(StrEnum):
    """How a turn ended, and what retrying had to do with it."""

    LANDED_CLEAN = "landed_clean"
    LANDED_AFTER_RETRY = "landed_after_retry"
    LANDED_AFTER_RECOVERY = "landed_after_recovery"
    FAILED = "failed"
    DENIED = "denied"
    """Failed because the fleet's retry budget denied the next retry."""
    REFUSED = "refused"
    STOPPED = "stopped"
    SUPERSEDED = "superseded"


LANDED: Final = (Result.LANDED_CLEAN, Result.LANDED_AFTER_RETRY, Result.LANDED_AFTER_RECOVERY)


@define(eq=False)
class Spread:
    """A distribution of seconds in logarithmic buckets."""

    counts: dict[int, int] = field(factory=dict)
    total: int = 0

    def add(self, seconds: float) -> None:
        bucket = 0 if seconds <= _SMALLEST_S else int(math.log(seconds / _SMALLEST_S) / _RATIO) + 1
        self.counts[bucket] = self.counts.get(bucket, 0) + 1
        self.total += 1

    def percentile(self, share: float) -> float | None:
        """Seconds that this share of the values stays below; None when there are no values."""
        wanted, seen = share * self.total, 0
        for bucket in sorted(self.counts):
            seen += self.counts[bucket]
            if seen >= wanted:
                return 0.0 if bucket == 0 else middle(bucket)
        return None

    def merge(self, other: Spread) -> None:
        for bucket, count in other.counts.items():
            self.counts[bucket] = self.counts.get(bucket, 0) + count
        self.total += other.total


def middle(bucket: int) -> float:
    """Seconds in the middle of a bucket."""
    return _SMALLEST_S * math.exp((bucket - 0.5) * _RATIO)


@define(eq=False)
class Load:
    """Calls that a provider got over time."""

    bin_s: float
    turns: list[int] = field(factory=lambda: [0] * (BINS + 1))
    """Turns that started, which is the load without any retry."""
    calls: list[int] = field(factory=lambda: [0] * (BINS + 1))
    landed: list[int] = field(factory=lambda: [0] * (BINS + 1))

    def bin(self, now: float) -> int:
        """Which stretch a moment is in; the last one is everything behind the scenario."""
        return min(int(now / self.bin_s), BINS)

    def merge(self, other: Load) -> None:
        for mine, theirs in (
            (self.turns, other.turns),
            (self.calls, other.calls),
            (self.landed, other.landed),
        ):
            mine[:] = [a + b for a, b in zip(mine, theirs, strict=True)]


@define(eq=False)
class Counted:
    """Turns and calls in one stretch of time, such as the outage."""

    turns: int = 0
    """Turns that started then."""
    calls: int = 0
    landed: int = 0
    """Of the turns that started then."""

    @property
    def amplification(self) -> float | None:
        """Calls for each turn that started; None when none did."""
        return self.calls / self.turns if self.turns else None

    def merge(self, other: Counted) -> None:
        self.turns += other.turns
        self.calls += other.calls
        self.landed += other.landed


class Sign(StrEnum):
    """What a mark on a sample turn's strip shows."""

    SENT = "sent"
    FAILED = "failed"
    LANDED = "landed"
    WAITS = "waits"
    RECOVERS = "recovers"
    WARNED = "warned"
    ERROR = "error"
    NOTED = "noted"
    DROPPED = "dropped"
    ACTED = "acted"
    """The user pressed Stop or wrote something."""
    ENDED = "ended"


Mark = tuple[float, Sign, str]
"""When, what, and a few words about it."""


@define(eq=False)
class Strip:
    """One sample turn."""

    index: int
    result: Result
    marks: list[Mark]

    @property
    def lasted_s(self) -> float:
        return self.marks[-1][0] - self.marks[0][0]


@define(eq=False)
class Samples:
    """A few turns of each result with their marks: the first ones, and those that took longest."""

    strips: dict[Result, list[Strip]] = field(factory=dict)

    def keep(self, strip: Strip) -> None:
        kept = self.strips.setdefault(strip.result, [])
        if len(kept) < _FIRST + _LONGEST:
            kept.append(strip)
            return
        shortest = min(range(_FIRST, _FIRST + _LONGEST), key=lambda place: kept[place].lasted_s)
        if strip.lasted_s > kept[shortest].lasted_s:
            kept[shortest] = strip


@define(eq=False)
class Tally:
    """Everything a run is judged by."""

    load: Load
    plays: int = 0
    """How often the scenario was played."""
    results: dict[Result, int] = field(factory=lambda: dict.fromkeys(Result, 0))
    recovery: Spread = field(factory=Spread)
    """Seconds from a turn's first failure to its landing, of turns that failed and landed."""
    whole: Counted = field(factory=Counted)
    outage: Counted = field(factory=Counted)
    after: Counted = field(factory=Counted)
    """The minute behind the outage."""
    late: Counted = field(factory=Counted)
    """The last quarter of a scenario with an outage: whether it ever recovers."""
    longest_silence_s: float = 0.0
    """Longest time behind a failure in which the user was told nothing new."""
    refunds: int = 0
    """Retries and recoveries that were decided and then dropped, with nothing counted."""
    shown_twice: int = 0
    """Messages that were sent again as they were, behind text that the user had already read."""
    samples: Samples = field(factory=Samples)

    @property
    def turns(self) -> int:
        return sum(self.results.values())

    @property
    def landed(self) -> int:
        return sum(self.results[result] for result in LANDED)

    def merge(self, other: Tally) -> None:
        """Take in another run of the same scenario."""
        self.plays += other.plays
        self.load.merge(other.load)
        for result, count in other.results.items():
            self.results[result] += count
        self.recovery.merge(other.recovery)
        self.whole.merge(other.whole)
        self.outage.merge(other.outage)
        self.after.merge(other.after)
        self.late.merge(other.late)
        self.longest_silence_s = max(self.longest_silence_s, other.longest_silence_s)
        self.refunds += other.refunds
        self.shown_twice += other.shown_twice
        for strips in other.samples.strips.values():
            for strip in strips:
                self.samples.keep(strip)
