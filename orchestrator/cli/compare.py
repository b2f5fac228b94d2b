"""`orchestrator compare`: settings, and known policies, side by side in the same bad hour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter
from rich.text import Text

from orchestrator.cli.chosen import Chosen, halted
from orchestrator.cli.codes import Exit, Halt
from orchestrator.cli.simulate import (
    USUAL,
    check_turns,
    check_writable,
    progress,
    scenarios_of,
    seeds_of,
    write_report,
)
from orchestrator.cli.terminal import Output, columns, sentence
from orchestrator.settings.load import SettingsError, load
from orchestrator.settings.model import Settings
from orchestrator.simulate.compare import Comparison, compared
from orchestrator.simulate.measures import MEASURES, with_half
from orchestrator.simulate.ours import machines
from orchestrator.simulate.policies import POLICIES, policy
from orchestrator.simulate.runs import SEEDS, Contender, run
from orchestrator.simulate.side_by_side import side_by_side

_CHOSEN: Final = Chosen()
_PLAIN: Final = Output()
DEFAULTS: Final = "defaults"
"""In place of a file: the built-in settings."""
_LEAST: Final = 2


def compare(
    *files: str,
    baseline: Annotated[tuple[str, ...], Parameter(name="--baseline")] = (),
    scenario: Annotated[tuple[str, ...], Parameter(name="--scenario")] = USUAL,
    turns: int | None = None,
    seed: int = 1,
    seeds: int = SEEDS,
    html: Path | None = None,
    chosen: Chosen = _CHOSEN,
    output: Output = _PLAIN,
) -> int:
    """Put settings files and known policies side by side: same turns, same luck.

    What differs from the first beyond chance (95 %) is bold on a terminal and marked with * always;
    below each scenario stands what to make of it.  Without FILES your own settings are the first.

    Parameters
    ----------
    files
        Settings files; the word defaults stands for the built-in settings.
    baseline
        A known policy beside them: none, tenacity-default, stamina-default, anthropic-sdk,
        openai-sdk, opencode, and more; a wrong name lists all.  May be repeated.
    scenario
        What happens: a name from `simulate --list`, a TOML file, or all.  May be repeated.
        Default: outage-5m.
    turns
        Turns to play for each seed, from 1.  Default: as many as the scenario has by itself.
    seed
        The first seed, from 0; the same seed gives the same answers.  Default: 1.
    seeds
        How many seeds, for the intervals, from 2 to 1,000.  Default: 5.
    html
        Also write a report with pictures: one file that needs nothing else.
    """
    settings = _settings_of(files, chosen, output)
    contenders = _contenders(settings, baseline)
    worlds = scenarios_of(scenario)
    plan = seeds_of(seed, seeds)
    if len(plan) < _LEAST:
        raise Halt(
            "usage", "1 is not allowed; 2 or more seeds show what is chance", field="--seeds"
        )
    check_writable(html, "--html")
    check_turns(turns, worlds, output)
    total = len(worlds) * len(contenders) * len(plan)
    with progress(output, total, "comparing") as done:
        comparisons = [
            compared([run(world, who, plan, turns=turns, done=done) for who in contenders])
            for world in worlds
        ]
    if html is not None:
        write_report(html, side_by_side(comparisons, settings), output)
    for place, comparison in enumerate(comparisons):
        if output.json:
            output.data(comparison.as_json())
            continue
        if place:
            output.stdout.print()
        _print(output, comparison)
    return Exit.OK


def _contenders(settings: Mapping[str, Settings], baselines: Sequence[str]) -> list[Contender]:
    found = [Contender(name, machines(each)) for name, each in settings.items()]
    for name in dict.fromkeys(baselines):
        if name not in POLICIES:
            raise Halt(
                "usage",
                f"there is no policy {name[:40]!r}",
                field="--baseline",
                hint=f"known: {', '.join(POLICIES)}",
            )
        found.append(Contender(name, policy(name)))
    if len(found) < _LEAST:
        raise Halt(
            "usage",
            "there is nothing to compare with",
            hint="name two files, or one and a policy:"
            " orchestrator compare defaults --baseline anthropic-sdk",
        )
    return found


def _settings_of(files: Sequence[str], chosen: Chosen, output: Output) -> dict[str, Settings]:
    """Each file's settings under a short name that nothing else has; without files, your own."""
    if not files:
        return {"settings": chosen.load(output).settings}
    files = list(dict.fromkeys(files))
    short = [Path(file).stem for file in files]
    taken = {DEFAULTS, *POLICIES}
    found = {}
    for file, stem in zip(files, short, strict=True):
        if file == DEFAULTS:
            found[file] = Settings()
            continue
        try:
            settings = load(file, environ={}).settings
        except SettingsError as error:
            raise halted(error.problems) from None
        found[stem if short.count(stem) == 1 and stem not in taken else file] = settings
    return found


def _print(output: Output, comparison: Comparison) -> None:
    world, out = comparison.scenario, output.stdout
    title = f"{world.title}." if world.title else ""
    out.print(Text.assemble((world.name, "bold"), f"  {title}"), soft_wrap=True)
    names = [outcome.contender for outcome in comparison.outcomes]
    columns(out, [[Text(""), *(Text(name, "bold") for name in names)], *_rows(comparison)])
    sentence(out, Text(comparison.verdict()))


def _rows(comparison: Comparison) -> Iterator[list[Text]]:
    for name, measure in MEASURES.items():
        known = [outcome.interval(name) for outcome in comparison.outcomes]
        if not any(interval is not None and (interval.mean or interval.half) for interval in known):
            continue
        cells = []
        for place, interval in enumerate(known):
            differs = place > 0 and comparison.differs(name, place)
            words = with_half(measure, interval) + (" *" if differs else "")
            cells.append(Text(words, "bold" if differs else ""))
        yield [Text(f"    {measure.title}" if measure.part else f"  {measure.title}"), *cells]
