"""`orchestrator simulate`: what settings would do in a bad hour, before it comes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter
from rich.text import Text

from orchestrator.cli.chosen import Chosen
from orchestrator.cli.codes import Exit, Halt
from orchestrator.cli.terminal import Output, columns
from orchestrator.simulate import reading
from orchestrator.simulate.fleet import sizes
from orchestrator.simulate.measures import MEASURES, with_half
from orchestrator.simulate.ours import machines
from orchestrator.simulate.report import report
from orchestrator.simulate.runs import SEEDS, Contender, Outcome, run
from orchestrator.simulate.scenario import Scenario

_CHOSEN: Final = Chosen()
_PLAIN: Final = Output()
USUAL: Final = ("outage-5m",)
ALL: Final = "all"
_MOST_TURNS: Final = 100_000_000
_MOST_SEEDS: Final = 1000


def simulate(
    *,
    scenario: Annotated[tuple[str, ...], Parameter(name="--scenario")] = USUAL,
    turns: int | None = None,
    seed: int = 1,
    seeds: int = SEEDS,
    html: Path | None = None,
    list_: Annotated[bool, Parameter(name="--list")] = False,
    chosen: Chosen = _CHOSEN,
    output: Output = _PLAIN,
) -> int:
    """Play your settings in a bad hour, and see what your users and your provider would see.

    Turns are driven through the same state machine that runs in production, in virtual time.  The
    answers are means over several seeds, with 95 % intervals.

    Parameters
    ----------
    scenario
        What happens: a name from --list, a TOML file, or all.  May be repeated.
        Default: outage-5m.
    turns
        Turns to play for each seed, from 1.  Default: as many as the scenario has by itself.
    seed
        The first seed, from 0; the same seed gives the same answers.  Default: 1.
    seeds
        How many seeds, for the intervals, from 1 to 1,000.  Default: 5.
    html
        Also write a report with pictures: one file that needs nothing else.
    list_
        Only list the scenarios that are shipped.
    """
    if list_:
        return list_scenarios(output)
    loaded = chosen.load(output)
    worlds = scenarios_of(scenario)
    plan = seeds_of(seed, seeds)
    check_writable(html, "--html")
    check_turns(turns, worlds, output)
    contender = Contender("settings", machines(loaded.settings))
    with progress(output, len(worlds) * len(plan), "simulating") as done:
        outcomes = [
            run(world, contender, plan, turns=turns, sampled=html is not None, done=done)
            for world in worlds
        ]
    if html is not None:
        write_report(html, report(loaded.settings, outcomes), output)
    for outcome in outcomes:
        if output.json:
            output.data(outcome.as_json())
        else:
            _print(output, outcome)
    return Exit.OK


def list_scenarios(output: Output) -> int:
    """Print the shipped scenarios with what happens in each."""
    rows = [(name, reading.load(name).title) for name in reading.names()]
    if output.json:
        output.data([{"name": name, "title": title} for name, title in rows])
    else:
        columns(output.stdout, [[Text(name, "bold"), title] for name, title in rows])
    return Exit.OK


def scenarios_of(asked: Sequence[str]) -> list[Scenario]:
    """The scenarios that were named, each once, in order."""
    every = [name for one in asked for name in (reading.names() if one == ALL else (one,))]
    found = []
    for name in dict.fromkeys(every):
        try:
            found.append(reading.load(name))
        except reading.ScenarioError as error:
            raise Halt(
                "bad_input",
                f"the scenario {name} cannot be played",
                field="--scenario",
                problems=error.problems,
                hint="`orchestrator simulate --list` shows what is shipped",
            ) from None
    return found


def seeds_of(first: int, count: int) -> list[int]:
    """The seeds to play."""
    _between("--seeds", count, 1, _MOST_SEEDS)
    _between("--seed", first, 0, 2**53)
    return list(range(first, first + count))


def check_turns(turns: int | None, worlds: Sequence[Scenario], output: Output) -> None:
    """Say it where the number of turns cannot be met without changing what happens."""
    if turns is None:
        return
    _between("--turns", turns, 1, _MOST_TURNS)
    for world in worlds:
        repeats, _ = sizes(world, turns)
        played = round(repeats * world.expected_turns())
        if world.load_matters and abs(played - turns) > turns / 100:
            output.warn(
                f"{world.name} plays about {played:,} turns, not {turns:,}: its load is part of it"
            )


def _between(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise Halt(
            "usage",
            f"{value} is not allowed; a whole number from {low:,} to {high:,} is",
            field=name,
        )


@contextmanager
def progress(output: Output, total: int, words: str) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, nothing anywhere else."""
    if output.json or output.no_color or not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.progress import Progress  # noqa: PLC0415 - only for people who watch

    with Progress(console=output.stderr, transient=True) as bar:
        task = bar.add_task(words, total=total)
        yield lambda: bar.advance(task)


def check_writable(file: Path | None, option: str) -> None:
    """Say before long work that its result could not be written."""
    if file is None or (file.parent.is_dir() and not file.is_dir()):
        return
    wrong = f"{file} is a folder" if file.is_dir() else f"there is no folder {file.parent}"
    raise Halt("unreadable_file", wrong, field=option)


def write_report(file: Path, text: str, output: Output) -> None:
    """Write a page, and say where it is."""
    try:
        file.write_text(text, encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Halt("unreadable_file", f"{file}: {reason}", field="--html") from None
    if not output.json:
        output.say(f"Written to {file}")


def _print(output: Output, outcome: Outcome) -> None:
    world, out = outcome.scenario, output.stdout
    title = f"{world.title}." if world.title else ""
    out.print(Text.assemble((world.name, "bold"), f"  {title}"), soft_wrap=True)
    columns(out, [list(row) for row in _rows(outcome)])
    count = len(outcome.seeds)
    runs = "1 run" if count == 1 else f"{count} runs, means with 95 % intervals"
    output.say(f"{outcome.turns:,} turns in {runs}; seed {outcome.seeds[0]}.")


def _rows(outcome: Outcome) -> Iterator[tuple[Text, Text]]:
    for name, measure in MEASURES.items():
        known = outcome.interval(name)
        if known is None or (measure.part and not known.mean):
            continue
        title = f"    {measure.title}" if measure.part else f"  {measure.title}"
        style = "" if measure.part else "bold"
        yield Text(title), Text(with_half(measure, known), style)
