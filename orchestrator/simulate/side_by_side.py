"""The report of `compare`: who was played, what came of each, and what to make of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from orchestrator.settings.model import Settings
from orchestrator.simulate import lines
from orchestrator.simulate.compare import Comparison
from orchestrator.simulate.measures import MEASURES, Better, Measure, with_half
from orchestrator.simulate.page import (
    Key,
    all_settings,
    contents,
    figure,
    page,
    section,
    seeds_in_words,
)
from orchestrator.simulate.policies import POLICIES
from orchestrator.simulate.tune import changes


def side_by_side(comparisons: Sequence[Comparison], settings: Mapping[str, Settings]) -> str:
    """Write the report; `settings` are those of the contenders that are not known policies."""
    first = comparisons[0]
    names = [outcome.contender for outcome in first.outcomes]
    intro = _who(names, settings) + contents([each.scenario for each in comparisons])
    sections = "\n".join(_section(each) for each in comparisons)
    used = "".join(all_settings(f"All settings of {name}", settings[name]) for name in settings)
    turns = sum(outcome.turns for each in comparisons for outcome in each.outcomes)
    seeds = seeds_in_words(first.outcomes[0].seeds)
    return page(
        "Side by side in a bad hour",
        intro,
        f"{sections}\n<section>{used}</section>",
        f"compare, {turns:,} turns, {seeds}: the same turns with the same luck for each.",
    )


def _who(names: Sequence[str], settings: Mapping[str, Settings]) -> str:
    """Each contender with its colour and what it is."""
    items = "".join(
        f'<li><i class="{lines.style(place)}"></i><b>{escape(name)}</b>'
        f"<span>{_about(name, settings)}</span></li>"
        for place, name in enumerate(names)
    )
    return f'<ul class="whos">{items}</ul>'


def _about(name: str, settings: Mapping[str, Settings]) -> str:
    if name not in settings:
        return escape(POLICIES[name].title)
    moved = list(changes(Settings(), settings[name]))
    if not moved:
        return "the built-in settings, played through the real state machine"
    return "the defaults but for " + ", ".join(
        f"<code>{escape(path)} = {escape(new)}</code>" for path, _, new in moved
    )


def _section(comparison: Comparison) -> str:
    scenario = comparison.scenario
    tallies = [outcome.together() for outcome in comparison.outcomes]
    keys = [
        (lines.style(place), outcome.contender) for place, outcome in enumerate(comparison.outcomes)
    ]
    asked: Key = ("asked", "turns begun")
    figures = [
        figure(
            "Load on the provider",
            lines.rates(scenario, tallies, lambda load: load.calls, "Calls"),
            "calls a second",
            [asked, *keys],
        ),
        figure(
            "Answers",
            lines.rates(scenario, tallies, lambda load: load.landed, "Answers"),
            "turns landed a second",
            [asked, *keys],
        ),
        figure(
            "Coming back",
            lines.came_back(tallies),
            "share of the turns in trouble that had their answer, so long after the first failure"
            "; log scale",
            keys,
        ),
    ]
    return section(scenario, comparison.verdict(), "".join(figures) + _table(comparison))


# The table ----------------------------------------------------------------------------------------


def _table(comparison: Comparison) -> str:
    names = [outcome.contender for outcome in comparison.outcomes]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    return (
        '<div class="wide"><table class="compared">\n'
        f'<thead><tr><th scope="col">Answer</th>{head}</tr></thead>\n'
        f"<tbody>{''.join(_rows(comparison))}</tbody>\n</table></div>\n"
        f'<p class="below">Bold differs from {escape(names[0])} beyond chance (95 %):'
        ' <span class="better">▲▼ for the better</span>,'
        ' <span class="worse">▲▼ for the worse</span>.</p>'
    )


def _rows(comparison: Comparison) -> Iterator[str]:
    for name, measure in MEASURES.items():
        known = [outcome.interval(name) for outcome in comparison.outcomes]
        if not any(interval is not None and (interval.mean or interval.half) for interval in known):
            continue
        kind = ' class="part"' if measure.part else ""
        cells = "".join(
            _cell(comparison, measure, place, with_half(measure, interval))
            for place, interval in enumerate(known)
        )
        yield (
            f'<tr{kind}><th scope="row" title="{escape(measure.help)}">'
            f"{escape(measure.title)}</th>{cells}</tr>"
        )


def _cell(comparison: Comparison, measure: Measure, place: int, words: str) -> str:
    gap = comparison.difference(measure.name, place) if place else None
    if gap is None or not gap.excludes_zero:
        return f"<td>{escape(words)}</td>"
    more = gap.mean > 0
    judged = "" if measure.better is Better.NEITHER else "worse"
    if measure.better is (Better.MORE if more else Better.LESS):
        judged = "better"
    arrow = "▲" if more else "▼"
    return f'<td class="{judged}"><b>{escape(words)}</b> {arrow}</td>'
