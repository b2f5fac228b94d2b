"""The report of `simulate`: pictures, answers and the settings they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from orchestrator.settings.model import Settings
from orchestrator.simulate import charts
from orchestrator.simulate.measures import MEASURES, in_words, with_half
from orchestrator.simulate.page import all_settings, contents, figure, page, section, seeds_in_words
from orchestrator.simulate.runs import Outcome
from orchestrator.simulate.tally import Result, Strip, Tally
from orchestrator.simulate.tune import changes

_TILES: Final = (
    "landed",
    "landed_by_retry",
    "landed_by_recovery",
    "p95_recovery",
    "amplification",
    "amplification_after",
    "landed_late",
)


def report(settings: Settings, outcomes: Sequence[Outcome]) -> str:
    """Write the report of some scenarios that these settings were played in."""
    sections = "\n".join(_section(outcome) for outcome in outcomes)
    intro = _changed(settings) + contents([outcome.scenario for outcome in outcomes])
    played = all_settings("All settings used", settings)
    body = f"{sections}\n<section>{played}</section>"
    return page("What these settings do in a bad hour", intro, body, _footer(outcomes))


def _section(outcome: Outcome) -> str:
    scenario, tally = outcome.scenario, outcome.together()
    load = charts.load_over_time(tally.load, scenario.duration_s, tally.plays, scenario.outage)
    figures = [
        figure(
            "Load on the provider",
            load,
            "calls a second",
            (("turns", "new turns"), ("retries", "retries"), ("landed", "landed")),
        ),
        figure(
            "Time to recovery",
            charts.recovery(tally.recovery),
            "from a turn's first failure to its answer, of turns that came back; log scale",
        ),
        figure(
            "Sample turns",
            charts.sample_turns(_strips(tally)),
            "since the first send; the scale is squeezed to the right",
            (
                ("good", "attempt that landed"),
                ("bad", "attempt that failed"),
                ("wait", "wait"),
                ("rebuild", "rebuild"),
                ("warned", "warning shown"),
                ("error", "error shown"),
                ("acted", "the user acts"),
            ),
        ),
    ]
    inner = f"{_tiles(outcome)}\n{''.join(figures)}\n{_table(outcome)}"
    return section(scenario, _lead(outcome, tally), inner)


def _lead(outcome: Outcome, tally: Tally) -> str:
    """The picture in two sentences, for whoever reads nothing else."""
    rescued = sum(
        tally.results[r] for r in (Result.LANDED_AFTER_RETRY, Result.LANDED_AFTER_RECOVERY)
    )
    lost = tally.turns - tally.landed
    troubled = rescued + lost
    if not troubled:
        return f"All of {tally.turns:,} turns landed at once."
    told = f"Of {tally.turns:,} turns {troubled:,} ran into trouble"
    told += f"; {rescued:,} of these got their answer all the same. "
    load = outcome.mean("amplification")
    where = "In the outage" if outcome.scenario.outage else "Over the whole run"
    after = outcome.mean("amplification_after")
    told += f"{where} the provider felt {load or 0:.1f} calls for each new turn"
    return told + (f", and {after:.1f} in the minute after." if after is not None else ".")


def _tiles(outcome: Outcome) -> str:
    cells = []
    for name in _TILES:
        mean, measure = outcome.mean(name), MEASURES[name]
        if mean is None or (measure.part and not mean):
            continue
        title = measure.title if not measure.part else f"landed {measure.title}"
        words = in_words(measure.unit, mean)
        cells.append(f"<div><b>{escape(words)}</b><span>{escape(title)}</span></div>")
    return f'<div class="tiles">{"".join(cells)}</div>'


def _strips(tally: Tally) -> list[Strip]:
    """A few of each result, those that took longest last."""
    kept = [strip for strips in tally.samples.strips.values() for strip in strips]
    order = list(Result)
    return sorted(kept, key=lambda strip: (order.index(strip.result), strip.lasted_s))


def _table(outcome: Outcome) -> str:
    rows = []
    for name, measure in MEASURES.items():
        known = outcome.interval(name)
        if known is None or (measure.part and not known.mean):
            continue
        kind = ' class="part"' if measure.part else ""
        rows.append(
            f'<tr{kind}><th scope="row">{escape(measure.title)}</th>'
            f"<td>{escape(with_half(measure, known))}</td><td>{escape(measure.help)}</td></tr>"
        )
    count = len(outcome.seeds)
    runs = "one run" if count == 1 else f"{count} runs, mean and 95 % interval"
    return (
        '<div class="wide"><table class="answers">\n<thead><tr><th scope="col">Answer</th>'
        f'<th scope="col">{runs}</th><th scope="col">What it is</th></tr></thead>\n<tbody>'
        f"{''.join(rows)}</tbody>\n</table></div>"
    )


def _changed(settings: Settings) -> str:
    moved = list(changes(Settings(), settings))
    if not moved:
        return "<p>Played through the real state machine in virtual time, with the defaults.</p>"
    items = "".join(
        f"<li><code>{escape(path)} = {escape(new)}</code> <span>default {escape(old)}</span></li>"
        for path, old, new in moved
    )
    return (
        "<p>Played through the real state machine in virtual time, with the defaults but for"
        f'</p><ul class="changed">{items}</ul>'
    )


def _footer(outcomes: Sequence[Outcome]) -> str:
    turns = sum(outcome.turns for outcome in outcomes)
    return f"simulate, {turns:,} turns, {seeds_in_words(outcomes[0].seeds)}."
