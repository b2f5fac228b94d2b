"""`orchestrator tune`: let an optimiser turn the dials, within bounds that you set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter
from rich.text import Text

from orchestrator.cli.chosen import Chosen
from orchestrator.cli.codes import Exit, Halt
from orchestrator.cli.simulate import USUAL, check_writable, progress, scenarios_of, seeds_of
from orchestrator.cli.terminal import Output, columns
from orchestrator.settings.load import load
from orchestrator.settings.tree import nested, values
from orchestrator.simulate.measures import MEASURES
from orchestrator.simulate.objective import Objective, ObjectiveError, parse, spelled
from orchestrator.simulate.tune import DIALS, Search, Tried, as_toml, changes, dials_under

_CHOSEN: Final = Chosen()
_PLAIN: Final = Output()
_USUAL_BUDGET: Final = 60
_USUAL_OBJECTIVE: Final = "max landed subject to amplification<=6, p95_recovery<=7m"
_MOST_TRIALS: Final = 100_000
_SEEDS: Final = 3


def tune(
    *,
    objective: str = _USUAL_OBJECTIVE,
    scenario: Annotated[tuple[str, ...], Parameter(name="--scenario")] = USUAL,
    budget: int = _USUAL_BUDGET,
    vary: Annotated[tuple[str, ...], Parameter(name="--vary")] = (),
    out: Path = Path("tuned.toml"),
    turns: int | None = None,
    seed: int = 1,
    seeds: int = _SEEDS,
    chosen: Chosen = _CHOSEN,
    output: Output = _PLAIN,
) -> int:
    """Search for settings that do best in a bad hour, and write them to a file.

    It starts from your settings.  Ctrl-C ends the search and keeps the best so far.

    Parameters
    ----------
    objective
        What to push and what must hold in every scenario: min or max a measure, then "subject to"
        and bounds.  Default: max landed subject to amplification<=6, p95_recovery<=7m.
        Measures: landed, landed_late, failed, denied, stopped, p50_recovery, p95_recovery,
        p99_recovery, amplification, amplification_after, longest_silence, and more.
    scenario
        What happens: a name from `simulate --list`, a TOML file, or all.  May be repeated.
        Default: outage-5m.
    budget
        How many settings to try, from 1 to 100,000; making the best ones simpler tries a few more.
        Default: 60.
    vary
        Only turn these dials: a setting, or a table such as ladders.curve.  May be repeated.
    out
        The settings file to write, if any are better than yours; one that exists is left alone.
        Default: tuned.toml.
    turns
        Turns to play for each seed, from 1.  Default: as many as the scenario has by itself.
    seed
        The first seed, from 0; the same seed gives the same search.  Default: 1.
    seeds
        How many seeds each settings are played with, from 1 to 1,000.  Default: 3.
    """
    asked = _objective(objective)
    worlds = scenarios_of(scenario)
    plan = seeds_of(seed, seeds)
    _check(budget, out, vary)
    if find_spec("optuna") is None:
        raise ModuleNotFoundError("optuna", name="optuna")
    search = Search(
        objective=asked,
        scenarios=tuple(worlds),
        seeds=tuple(plan),
        start=chosen.load(output).settings,
        dials=dials_under(vary),
        turns=turns,
    )
    stopped = _search(search, budget, output)
    best = search.best
    if best is None:
        raise Halt("interrupted", "stopped by Ctrl-C before anything was tried")
    _tell(output, search, best)
    if best.holds and best.settings != search.start:
        _write(out, search, best)
        if not output.json:
            output.say(f"Written to {out}; try it: orchestrator compare defaults {out}")
    if stopped:
        tried = len(search.tried)
        words = f"{tried} of {budget} settings" if tried < budget else f"{tried} settings"
        output.note(f"Stopped by Ctrl-C after {words}.")
        return Exit.INTERRUPTED
    return Exit.OK if best.holds else Exit.FAILED


def _objective(text: str) -> Objective:
    try:
        return parse(text)
    except ObjectiveError as error:
        raise Halt("usage", str(error), field="--objective", hint=error.hint) from None


def _check(budget: int, out: Path, vary: Sequence[str]) -> None:
    if not 1 <= budget <= _MOST_TRIALS:
        words = f"a whole number from 1 to {_MOST_TRIALS:,}"
        raise Halt("usage", f"{budget} is not allowed; {words} is", field="--budget")
    if out.exists():
        raise Halt(
            "usage",
            f"{out} exists already, and is left alone",
            field="--out",
            hint="name another file with --out",
        )
    check_writable(out, "--out")
    for path in vary:
        if not dials_under([path]):
            raise Halt(
                "usage",
                f"{path[:60]!r} is no dial, and no table of dials",
                field="--vary",
                hint=f"dials: {', '.join(dial.path for dial in DIALS)}",
            )


def _search(search: Search, budget: int, output: Output) -> bool:
    """Search; say whether Ctrl-C ended it."""
    with progress(output, budget, "searching") as step:
        try:
            search.run(budget, lambda _: step())
            search.simplify()
        except KeyboardInterrupt:
            return True
    return False


def _tell(output: Output, search: Search, best: Tried) -> None:
    if output.json:
        output.data(_as_json(search, best))
        return
    out, asked = output.stdout, search.objective
    title = "best" if best.holds else "closest; no settings keep the bounds"
    out.print(Text(f"{asked}: {title} of {len(search.tried)}", "bold"), soft_wrap=True)
    columns(out, list(_values(search, best)))
    moved = list(changes(search.start, best.settings))
    if moved:
        out.print(Text("\nwhat to change", "bold"))
        columns(out, [[f"  {path}", old, "->", Text(new, "bold")] for path, old, new in moved])
    else:
        out.print("\nnothing to change, nothing written: what you have is the best that was found")
    front = search.front()
    if len(front) > 1:
        out.print(Text("\ntrade-offs: nothing that was tried beats these in everything", "bold"))
        columns(out, list(_front(search, front, best)))


def _values(search: Search, best: Tried) -> Iterator[list[Text | str]]:
    fresh = search.fresh(best)
    again = Tried(best.number, best.settings, fresh, 0.0, search.objective.excess(fresh))
    start = search.tried[0]
    yield ["", "found", "on fresh seeds", "before"]
    for name in search.objective.measures:
        yield [
            f"  {MEASURES[name].title}",
            Text(spelled(name, best.mean(name)), "bold"),
            spelled(name, again.mean(name)),
            spelled(name, start.mean(name)),
        ]
    if best.holds and not again.holds:
        yield ["  (on fresh seeds a bound is broken by a little: leave more room, or more --seeds)"]


def _front(search: Search, front: Sequence[Tried], best: Tried) -> Iterator[list[Text | str]]:
    names = search.objective.measures
    yield ["", *(Text(MEASURES[name].title, "dim") for name in names), ""]
    for known in front:
        mark = "best" if known is best else "" if known.holds else "breaks a bound"
        cells = [spelled(name, known.mean(name)) for name in names]
        yield [f"  #{known.number}", *cells, Text(mark, "bold" if known is best else "dim")]


def _write(out: Path, search: Search, best: Tried) -> None:
    """Write the file, and read it back: it must be the settings that were found."""
    comment = (
        "Found by `orchestrator tune`:",
        str(search.objective),
        f"in {', '.join(world.name for world in search.scenarios)}.",
        f"{len(search.tried)} settings tried, seeds {search.seeds[0]} to {search.seeds[-1]}.",
        "Everything that is not here is a default.",
    )
    try:
        with out.open("x", encoding="utf-8") as stream:
            stream.write(as_toml(best.settings, comment))
    except OSError as error:
        reason = error.strerror or str(error)
        raise Halt("unreadable_file", f"{out}: {reason}", field="--out") from None
    if load(out, environ={}).settings != best.settings:
        raise RuntimeError(f"{out} does not read back as what was found")


def _as_json(search: Search, best: Tried) -> dict[str, object]:
    return {
        "objective": str(search.objective),
        "holds": best.holds,
        "tried": len(search.tried),
        "best": _tried(search, best),
        "changes": {path: new for path, _, new in changes(search.start, best.settings)},
        "front": [_tried(search, known) for known in search.front()],
    }


def _tried(search: Search, known: Tried) -> dict[str, object]:
    return {
        "number": known.number,
        "holds": known.holds,
        "measures": {name: _finite(known.mean(name)) for name in search.objective.measures},
        "settings": nested(values(known.settings)),
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
