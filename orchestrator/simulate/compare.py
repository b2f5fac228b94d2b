"""Contenders side by side in one scenario: what differs beyond chance, and what to make of it.

All of them meet the same turns with the same luck, seed by seed, so that a difference is one of the
contenders and not of the day.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from attrs import frozen

from orchestrator.simulate.confidence import Interval, differences
from orchestrator.simulate.measures import MEASURES, Better, Measure, in_words
from orchestrator.simulate.runs import Outcome
from orchestrator.simulate.scenario import Scenario

_ALSO_COUNTS: Final = (
    "amplification",
    "amplification_after",
    "p95_recovery",
    "longest_silence",
    "shown_twice",
)
"""What stands against more turns that land."""
_RECOVERED: Final = 0.9
"""Share of turns that land once it is over, from which on an outage has been got over."""
_COLLAPSED: Final = 0.5
_NOTICEABLE: Final = 0.1
"""A load or a wait that differs by less of itself is not worth a word."""
_SHARE_POINT: Final = 0.005
"""Half a percentage point of the turns is worth a word."""


@frozen
class Comparison:
    """What came of the contenders in one scenario; the first is what the others are held to."""

    scenario: Scenario
    outcomes: tuple[Outcome, ...]

    def difference(self, measure: str, place: int, to: int = 0) -> Interval | None:
        """The paired difference of one contender to another; None where there is nothing."""
        theirs, ours = self.outcomes[place], self.outcomes[to]
        return differences(ours.values(measure), theirs.values(measure))

    def differs(self, measure: str, place: int, to: int = 0) -> bool:
        """Whether the difference is more than chance."""
        known = self.difference(measure, place, to)
        return known is not None and known.excludes_zero

    def ties(self, measure: str) -> list[int]:
        """The contenders that nobody beats in this measure beyond chance, the best first."""
        means = [outcome.mean(measure) for outcome in self.outcomes]
        known = [place for place, mean in enumerate(means) if mean is not None]
        sign = -1 if MEASURES[measure].better is Better.MORE else 1
        order = sorted(known, key=lambda place: sign * (means[place] or 0.0))
        if not order:
            return []
        best = order[0]
        return [best, *(place for place in order[1:] if not self._notable(measure, place, best))]

    def verdict(self) -> str:
        """What to make of it, in plain words."""
        return " ".join(self._sentences())

    def as_json(self) -> dict[str, object]:
        """The comparison for programs."""
        return {
            "scenario": self.scenario.name,
            "title": self.scenario.title,
            "contenders": [outcome.as_json() for outcome in self.outcomes],
            "differs": {
                outcome.contender: [name for name in MEASURES if self.differs(name, place)]
                for place, outcome in enumerate(self.outcomes)
                if place
            },
            "verdict": self.verdict(),
        }

    # Words ----------------------------------------------------------------------------------------

    def _sentences(self) -> Iterator[str]:
        collapsed = self._collapsed()
        if collapsed:
            yield self._collapse(collapsed)
        first, *rest = self.ties("landed")
        if not rest or len(rest) + 1 < len(self.outcomes):
            yield self._lands_most([first, *rest])
        else:
            yield f"All land about as many turns ({self._said('landed', first)})."
        winner = self._gentlest([first, *rest])
        price = list(self._price(winner, self._rival(winner, [first, *rest])))
        if price:
            yield f"{self._name(winner)}: {'; '.join(price)}."

    def _collapsed(self) -> list[int]:
        late = [outcome.mean("landed_late") for outcome in self.outcomes]
        if not any(share is not None and share >= _RECOVERED for share in late):
            return []
        return [p for p, share in enumerate(late) if share is not None and share < _COLLAPSED]

    def _collapse(self, places: list[int]) -> str:
        names = _listed([self._name(place) for place in places])
        back = [
            self._name(place)
            for place, outcome in enumerate(self.outcomes)
            if (outcome.mean("landed_late") or 0.0) >= _RECOVERED
        ]
        verb = "recovers" if len(places) == 1 else "recover"
        return (
            f"{names} never {verb}: long after it is over {self._said('landed_late', places[0])}"
            f" of new turns land, against {self._said('landed_late', self._place(back[0]))} with"
            f" {_listed(back)}."
        )

    def _lands_most(self, ties: list[int]) -> str:
        others = [place for place in range(len(self.outcomes)) if place not in ties]
        names = _listed([self._name(place) for place in ties])
        against = _listed(
            [f"{self._said('landed', place)} with {self._name(place)}" for place in others]
        )
        share = self._said("landed", ties[0])
        return f"Most turns land with {names}: {share}, against {against}."

    def _gentlest(self, places: list[int]) -> int:
        """Of equals the one that repeats no answer, spares the provider, and is back first."""

        def harm(place: int) -> tuple[float, float, float]:
            outcome = self.outcomes[place]
            load = (outcome.mean("amplification") or 0.0) + (
                outcome.mean("amplification_after") or 0.0
            )
            twice = outcome.mean("shown_twice") or 0.0
            return twice, load, outcome.mean("p95_recovery") or 0.0

        return min(places, key=harm)

    def _rival(self, winner: int, ties: list[int]) -> int:
        """The one that lands the most of those that land fewer, else any other equal."""
        places = [place for place in range(len(self.outcomes)) if place not in ties]
        if not places:
            return next(place for place in ties if place != winner)
        return max(places, key=lambda place: self.outcomes[place].mean("landed") or 0.0)

    def _price(self, winner: int, rival: int) -> Iterator[str]:
        """How the best one stands to its rival in what else counts."""
        for name in _ALSO_COUNTS:
            known = [self.outcomes[place].mean(name) for place in (winner, rival)]
            if None not in known and self._notable(name, rival, winner):
                yield (
                    f"{MEASURES[name].title} {self._said(name, winner)}, against"
                    f" {self._said(name, rival)} with {self._name(rival)}"
                )

    def _notable(self, measure: str, place: int, to: int) -> bool:
        """Whether a difference is beyond chance and large enough for a word."""
        if not self.differs(measure, place, to):
            return False
        gap = abs(self._gap(MEASURES[measure], place, to))
        floor = _SHARE_POINT
        if MEASURES[measure].unit is not MEASURES["landed"].unit:
            floor = _NOTICEABLE * abs(self.outcomes[to].mean(measure) or 0.0)
        return gap > floor

    def _gap(self, measure: Measure, place: int, to: int) -> float:
        known = self.difference(measure.name, place, to)
        return 0.0 if known is None else known.mean

    def _said(self, measure: str, place: int) -> str:
        mean = self.outcomes[place].mean(measure)
        return "nothing" if mean is None else in_words(MEASURES[measure].unit, mean)

    def _name(self, place: int) -> str:
        return self.outcomes[place].contender

    def _place(self, name: str) -> int:
        return [outcome.contender for outcome in self.outcomes].index(name)


def compared(outcomes: Sequence[Outcome]) -> Comparison:
    """Put outcomes of one scenario side by side."""
    return Comparison(outcomes[0].scenario, tuple(outcomes))


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
