"""One player in one scenario over several seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from attrs import frozen

from orchestrator.simulate.confidence import Interval, interval
from orchestrator.simulate.fleet import PlayerOf, play
from orchestrator.simulate.measures import MEASURES
from orchestrator.simulate.scenario import Scenario
from orchestrator.simulate.tally import Tally

SEEDS: Final = 5
"""Runs of one scenario unless told otherwise: enough for an interval, quick enough to wait for."""


@frozen
class Contender:
    """Who plays."""

    name: str
    player_of: PlayerOf


@frozen
class Outcome:
    """What came of one contender in one scenario: a tally for each seed."""

    contender: str
    scenario: Scenario
    seeds: tuple[int, ...]
    tallies: tuple[Tally, ...]

    def values(self, measure: str) -> list[float | None]:
        """The answer of each seed."""
        return [MEASURES[measure].read(tally) for tally in self.tallies]

    def interval(self, measure: str) -> Interval | None:
        return interval(self.values(measure))

    def mean(self, measure: str) -> float | None:
        known = self.interval(measure)
        return None if known is None else known.mean

    @property
    def turns(self) -> int:
        return sum(tally.turns for tally in self.tallies)

    def together(self) -> Tally:
        """All seeds as one tally, for pictures; what it starts from is not changed."""
        first = self.tallies[0]
        whole = Tally(type(first.load)(first.load.bin_s))
        for tally in self.tallies:
            whole.merge(tally)
        return whole

    def as_json(self) -> dict[str, object]:
        """The answers for programs."""
        return {
            "contender": self.contender,
            "scenario": self.scenario.name,
            "title": self.scenario.title,
            "seeds": list(self.seeds),
            "turns": self.turns,
            "measures": {name: self._measure(name) for name in MEASURES},
        }

    def _measure(self, name: str) -> dict[str, object] | None:
        known = self.interval(name)
        if known is None:
            return None
        return {
            "mean": known.mean,
            "low": None if known.half is None else known.low,
            "high": None if known.half is None else known.high,
            "values": self.values(name),
        }


def run(
    scenario: Scenario,
    contender: Contender,
    seeds: Sequence[int],
    *,
    turns: int | None = None,
    sampled: bool = False,
    done: Callable[[], None] = lambda: None,
) -> Outcome:
    """Play a scenario once for each seed; `done` is called after each."""
    tallies = []
    for place, seed in enumerate(seeds):
        sample = sampled and not place
        tallies.append(play(scenario, contender.player_of, seed=seed, turns=turns, sampled=sample))
        done()
    return Outcome(contender.name, scenario, tuple(seeds), tuple(tallies))
