"""Search the settings for those that do best in a bad hour.

The optimiser is optuna's (extra `tune`); what it may turn are the dials of the table below.  Each
trial is played with the same seeds, and what comes out best is played once more with seeds that the
search has never seen, because the best of many trials was also lucky.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

from attrs import define, field, frozen

from orchestrator.settings.document import spelled
from orchestrator.settings.model import Settings
from orchestrator.settings.tree import build, tree, values
from orchestrator.simulate.objective import Objective
from orchestrator.simulate.ours import machines
from orchestrator.simulate.runs import Contender, Outcome, run
from orchestrator.simulate.scenario import Scenario

_DIGITS: Final = 3
_MOST_OF_FRONT: Final = 8
_FRESH: Final = 1_000_000
"""Seeds of the last look begin here."""


@frozen
class Dial:
    """One setting that the search may turn, and how far."""

    path: str
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    needs: str = ""
    """Only of use while this setting is on."""

    @property
    def whole(self) -> bool:
        default = tree().leaves[self.path].default
        return isinstance(default, int) and not isinstance(default, bool)

    @property
    def switch(self) -> bool:
        return isinstance(tree().leaves[self.path].default, bool)


DIALS: Final = (
    Dial("ladders.curve.first_s", 0.25, 10, log=True),
    Dial("ladders.curve.factor", 1, 3),
    Dial("ladders.curve.cap_s", 5, 120, log=True),
    Dial("ladders.curve.jitter"),
    Dial("ladders.transient_retries", 0, 8),
    Dial("ladders.connection_window_s", 15, 1800, log=True),
    Dial("ladders.connection_cap_s", 5, 120, log=True),
    Dial("recoveries.deaths", 0, 6),
    Dial("turn.max_sends", 2, 24),
    Dial("choices.ride_out"),
    Dial("ladders.ride_out_window_s", 120, 7200, log=True, needs="choices.ride_out"),
    Dial("ladders.ride_out_cap_s", 10, 300, log=True, needs="choices.ride_out"),
    Dial("choices.resume_at_reset"),
    Dial("turn.resume_spread_s", 0, 600, needs="choices.resume_at_reset"),
    Dial("budget.enabled"),
    Dial("budget.capacity", 10, 500, log=True, needs="budget.enabled"),
    Dial("budget.retry_cost", 1, 10, needs="budget.enabled"),
    Dial("budget.landed_refill", 0.1, 3, needs="budget.enabled"),
    Dial("budget.refill_per_s", 0.05, 5, log=True, needs="budget.enabled"),
)
"""Everything that a simulation can tell apart; a row's range is where sensible answers are."""

_REPAIRS: Final = (
    ("ladders.curve.cap_s", max, "ladders.curve.first_s"),
    ("ladders.connection_cap_s", max, "ladders.curve.first_s"),
    ("ladders.ride_out_cap_s", max, "ladders.curve.first_s"),
    ("budget.retry_cost", min, "budget.capacity"),
)
"""What holds between settings, kept by moving the first one."""


class TrialLike(Protocol):
    """What is used of an optuna trial."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float: ...
    def suggest_int(self, name: str, low: int, high: int) -> int: ...
    def suggest_categorical(self, name: str, choices: Sequence[bool]) -> bool: ...


@frozen(eq=False)
class Tried:
    """One set of settings, and what came of it."""

    number: int
    settings: Settings
    outcomes: tuple[Outcome, ...]
    value: float
    excess: float
    """By how much the bounds are broken; 0 when all hold."""

    @property
    def holds(self) -> bool:
        return self.excess <= 0

    def mean(self, measure: str) -> float:
        """A measure over all scenarios; infinite where one has nothing to say."""
        means = [outcome.mean(measure) for outcome in self.outcomes]
        known = [math.inf if mean is None else mean for mean in means]
        return sum(known) / len(known)


@define(eq=False)
class Search:
    """A search while it runs: what was tried, and the best so far."""

    objective: Objective
    scenarios: tuple[Scenario, ...]
    seeds: tuple[int, ...]
    start: Settings
    dials: tuple[Dial, ...] = DIALS
    turns: int | None = None
    tried: list[Tried] = field(factory=list)
    simplest: Tried | None = None
    """The best without what makes no difference, once that was looked for."""

    def run(self, budget: int, done: Callable[[Search], None] = lambda _: None) -> None:
        """Try so many settings, the start first.  Ctrl-C goes through; what was tried stays."""
        import optuna  # noqa: PLC0415 - an extra; without it nothing else is missing

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=self.seeds[0], multivariate=True)
        study = optuna.create_study(sampler=sampler)
        self._try(self.start)
        done(self)
        while len(self.tried) < budget:
            trial = study.ask()
            known = self._try(turned(self.start, self.dials, trial))
            for bound in self.objective.bounds:
                trial.set_constraint(str(bound), bound.excess(known.outcomes))
            # An optimiser can't rank infinities; far worse than anything real is enough.
            cost = self.objective.cost(self.objective.measure, known.value)
            study.tell(trial, max(-_ENDLESS, min(_ENDLESS, cost)))
            done(self)

    def simplify(self) -> Tried | None:
        """Turn back every dial of the best that makes no difference; the best that is left.

        Chance turns dials that nothing depends on; nobody should have to wonder about those.
        """
        best = self.best
        if best is None:
            return None
        for dial in self.dials:
            by_path = values(best.settings)
            if by_path[dial.path] == values(self.start)[dial.path]:
                continue
            by_path[dial.path] = values(self.start)[dial.path]
            try:
                settings = build(by_path)
            except ValueError:  # it would contradict another one
                continue
            known = self._try(settings)
            as_good = known.excess <= best.excess and not self._clearly_worse(known, best)
            if as_good and self._strain(known) <= _MUCH * self._strain(best):
                best = known
        self.simplest = best
        return best

    def _strain(self, known: Tried) -> float:
        """How far the bounds are used up, together: of equals the one with more room is better."""
        return sum(1.0 + bound.excess(known.outcomes) for bound in self.objective.bounds)

    def _clearly_worse(self, known: Tried, best: Tried) -> bool:
        cost, least = (self.objective.cost(self.objective.measure, k.value) for k in (known, best))
        return cost > least + _NEGLIGIBLE * abs(least)

    def _try(self, settings: Settings) -> Tried:
        outcomes = played(self.scenarios, settings, self.seeds, self.turns)
        known = Tried(
            len(self.tried),
            settings,
            outcomes,
            self.objective.value(outcomes),
            self.objective.excess(outcomes),
        )
        self.tried.append(known)
        return known

    @property
    def best(self) -> Tried | None:
        """The best that keeps the bounds, else the one that comes closest to them."""
        best = self.simplest
        for known in () if best else self.tried:
            if best is None or self._beats(known, best):
                best = known
        return best

    def front(self) -> list[Tried]:
        """Those that nothing beats in all that the objective speaks of, the best goal first.

        The best is always among them, though it may be a little plainer than what beats it.
        """
        costs = {id(known): self._costs(known) for known in self.tried}
        kept: list[Tried] = []
        for known in self.tried:
            mine = costs[id(known)]
            beaten = any(
                costs[id(other)] != mine
                and all(a <= b for a, b in zip(costs[id(other)], mine, strict=True))
                for other in self.tried
            )
            twin = mine in [costs[id(other)] for other in kept]
            if not beaten and not twin and math.isfinite(mine[0]):
                kept.append(known)
        kept.sort(key=lambda known: costs[id(known)])
        shown, best = _spread(kept, _MOST_OF_FRONT), self.best
        if best is not None and best not in shown:
            shown = sorted([*shown, best], key=lambda known: costs[id(known)])
        return shown

    def fresh(self, known: Tried) -> tuple[Outcome, ...]:
        """Play settings with seeds that the search has not seen."""
        seeds = tuple(_FRESH + seed for seed in self.seeds)
        return played(self.scenarios, known.settings, seeds, self.turns)

    def _beats(self, known: Tried, best: Tried) -> bool:
        if known.holds and best.holds:
            if self._clearly_worse(best, known) or self._clearly_worse(known, best):
                return self.objective.better(known.value, best.value)
            return self._strain(known) < self._strain(best)
        return known.excess < best.excess

    def _costs(self, known: Tried) -> tuple[float, ...]:
        cost = self.objective.cost
        return tuple(cost(name, known.mean(name)) for name in self.objective.measures)


_ENDLESS: Final = 1e12
_NEGLIGIBLE: Final = 0.001
"""A goal that is missed by this share of itself is as good."""
_MUCH: Final = 1.02
"""A plainer answer may use up so much more of the bounds."""


def _spread(kept: list[Tried], most: int) -> list[Tried]:
    """At most so many, evenly spread, both ends included."""
    if len(kept) <= most:
        return kept
    step = (len(kept) - 1) / (most - 1)
    return [kept[round(place * step)] for place in range(most)]


def played(
    scenarios: Sequence[Scenario], settings: Settings, seeds: Sequence[int], turns: int | None
) -> tuple[Outcome, ...]:
    """Play settings in each scenario."""
    contender = Contender("settings", machines(settings))
    return tuple(run(scenario, contender, seeds, turns=turns) for scenario in scenarios)


def turned(start: Settings, dials: Sequence[Dial], trial: TrialLike) -> Settings:
    """Settings with the dials where the optimiser puts them."""
    by_path = values(start)
    for dial in dials:
        # Each is asked for, wanted or not: the optimiser learns from a space that stays the same.
        suggested = _suggested(dial, trial)
        if not dial.needs or by_path[dial.needs]:
            by_path[dial.path] = suggested
    varied = {dial.path for dial in dials}
    for path, keep, other in _REPAIRS:
        if varied & {path, other}:
            by_path[path] = keep(_number(by_path[path]), _number(by_path[other]))
    return build(by_path)


def _suggested(dial: Dial, trial: TrialLike) -> object:
    if dial.switch:
        return trial.suggest_categorical(dial.path, (False, True))
    if dial.whole:
        return trial.suggest_int(dial.path, int(dial.low), int(dial.high))
    # Settings are read by people: three digits are enough of any number.
    number = trial.suggest_float(dial.path, dial.low, dial.high, log=dial.log)
    return float(f"{number:.{_DIGITS}g}")


def _number(value: Any) -> float:
    return float(value)


def dials_under(prefixes: Sequence[str]) -> tuple[Dial, ...]:
    """The dials whose path is one of these, or below one; all when none is named."""
    return tuple(
        dial
        for dial in DIALS
        if not prefixes
        or any(dial.path == prefix or dial.path.startswith(f"{prefix}.") for prefix in prefixes)
    )


def changes(settings: Settings, other: Settings) -> Iterator[tuple[str, str, str]]:
    """What differs: the path, and both values as a settings file spells them."""
    before, after = values(settings), values(other)
    for path, leaf in tree().leaves.items():
        if before[path] != after[path]:
            yield path, spelled(leaf, before[path]), spelled(leaf, after[path])


def as_toml(settings: Settings, comment: Sequence[str]) -> str:
    """A settings file that says only what is not a default."""
    tables: dict[str, list[str]] = {}
    for path, _, value in changes(Settings(), settings):
        table, _, name = path.rpartition(".")
        tables.setdefault(table, []).append(f"# {tree().leaves[path].help}")
        tables[table].append(f"{name} = {value}")
    lines = [f"# {line}" for line in comment]
    for table in tree().sections:
        if table in tables:
            lines += ["", f"[{table}]", *tables[table]]
    return "\n".join(lines) + "\n"
