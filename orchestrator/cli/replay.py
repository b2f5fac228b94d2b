"""`orchestrator replay`: recorded turns once more, under their own settings or under others."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from attrs import asdict, define, field
from rich.text import Text

from orchestrator.cli.chosen import Chosen
from orchestrator.cli.codes import Exit, Halt
from orchestrator.cli.terminal import Output, columns
from orchestrator.failure.redact import terminal_line
from orchestrator.journal.reader import Journal, JournalError, RecordedTurn
from orchestrator.journal.replay import Difference, again
from orchestrator.journal.whatif import OPEN, Story, otherwise, recorded_story
from orchestrator.settings.model import Settings

_CHOSEN: Final = Chosen()
_PLAIN: Final = Output()
_MOST_SHOWN: Final = 20
"""Turns or diffs that are printed; all of them are counted."""


@define
class _Told:
    """What came of a journal."""

    turns: int = 0
    events: int = 0
    skipped: Counter[str] = field(factory=Counter)
    """Turns that could not be replayed, by reason."""
    differences: list[Difference] = field(factory=list)
    changes: list[tuple[str, Story, Story]] = field(factory=list)


def replay(
    journal: Path,
    /,
    *,
    all_: bool = False,
    chosen: Chosen = _CHOSEN,
    output: Output = _PLAIN,
) -> int:
    """Run recorded turns again, through the same state machine.

    Under the settings they ran under, recorded events must give the recorded effects, byte for
    byte; exit code 5 and a diff if not.  With --settings or --set it says which turns would have
    gone otherwise, as far as the journal knows what would have happened.

    Parameters
    ----------
    journal
        A file that the journal observer wrote; files that it put aside are read with it.
    all_
        Print every turn that differs, not only the first ones.
    """
    other = chosen.load(output).settings if chosen.settings or chosen.set_ else None
    source, told = Journal(journal), _Told()
    try:
        for turn in source.turns():
            _take(told, turn, source.settings_of(turn), other)
    except JournalError as error:
        raise Halt("unreadable_file", str(error), field="JOURNAL") from None
    if not source.counts.lines:
        raise Halt("bad_input", f"{journal}: the journal is empty", field="JOURNAL")
    if not told.turns and not told.skipped and not source.counts.headless:
        raise Halt("bad_input", f"{journal}: there is no recorded turn in it", field="JOURNAL")
    if output.json:
        output.data(_as_json(told, source, what_if=other is not None))
    elif other is None:
        _print_differences(output, told, most=None if all_ else _MOST_SHOWN)
    else:
        _print_changes(output, told, most=None if all_ else _MOST_SHOWN)
    if not output.json:
        _say_counts(output, told, source)
    return Exit.DIFFERS if told.differences else Exit.OK


def _take(
    told: _Told, turn: RecordedTurn, settings: Settings | None, other: Settings | None
) -> None:
    reason = _why_not(turn, settings)
    if reason:
        told.skipped[reason] += 1
        return
    try:
        if other is None:
            difference = again(turn, settings or Settings())
            told.differences += [difference] if difference else []
        else:
            before, after = recorded_story(turn), otherwise(turn, other)
            if not before.same_as(after):
                told.changes.append((turn.name, before, after))
    except (KeyError, ValueError):
        told.skipped["holds an event that this version does not know"] += 1
        return
    told.turns += 1
    told.events += len(turn.steps)


def _why_not(turn: RecordedTurn, settings: Settings | None) -> str:
    """Why a turn cannot be replayed; empty when it can."""
    if not turn.whole:
        return "has events missing"
    if settings is None:
        return "ran under settings that the journal does not hold"
    return "ran with waits of the host's own" if turn.curves else ""


def _print_differences(output: Output, told: _Told, most: int | None) -> None:
    for difference in told.differences[:most]:
        for line in difference.diff().splitlines():
            output.stdout.print(Text(terminal_line(line), _STYLE.get(line[:1], "")), soft_wrap=True)
    if told.differences:
        output.say(f"{len(told.differences)} of {_count(told.turns, 'turn')} differ.")
    else:
        told_ = f"{_count(told.turns, 'turn')}, {_count(told.events, 'event')}"
        output.say(f"{told_}: the same effects, byte for byte.")


_STYLE: Final = {"+": "green", "-": "red"}


def _print_changes(output: Output, told: _Told, most: int | None) -> None:
    if told.changes:
        head = ("turn", "recorded", "would have been")
        rows = [[Text(name, "bold") for name in head]]
        for name, before, after in told.changes[:most]:
            rows.append([Text(terminal_line(name)), Text(_story(before)), Text(_story(after))])
        columns(output.stdout, rows)
    output.say(f"{len(told.changes)} of {_count(told.turns, 'turn')} would have gone otherwise.")


def _story(story: Story) -> str:
    sends = "1 send" if story.sends == 1 else f"{story.sends} sends"
    if story.families:
        counts = Counter(str(family) for family in story.families)
        sends += f" ({', '.join(f'{family} {count}' for family, count in counts.items())})"
    waited = f"waits of {story.waited_s:.1f} s"
    if story.outcome == OPEN:
        return f"{sends} and {waited}, then who knows"
    return f"{story.outcome} after {sends} and {waited}"


def _say_counts(output: Output, told: _Told, source: Journal) -> None:
    counts = source.counts
    for reason, count in told.skipped.items():
        output.warn(f"{_count(count, 'turn')} left out: {reason}")
    if counts.torn:
        output.warn(f"{_count(counts.torn, 'torn line')} left out: a process died while it wrote")
    if counts.unknown:
        which = "its type" if counts.unknown == 1 else "their types"
        lines = _count(counts.unknown, "line")
        output.warn(f"{lines} left out: this version does not know {which}")
    if counts.headless:
        events = _count(counts.headless, "event")
        output.warn(f"{events} left out, of turns that began before what is kept here")


def _count(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count:,} {what}s"


def _as_json(told: _Told, source: Journal, *, what_if: bool) -> dict[str, object]:
    told_json: dict[str, object] = {
        "turns": told.turns,
        "events": told.events,
        "skipped": dict(told.skipped),
        "torn_lines": source.counts.torn,
        "unknown_lines": source.counts.unknown,
        "headless_events": source.counts.headless,
    }
    if what_if:
        return told_json | {
            "changes": [
                {"turn": name, "recorded": asdict(before), "otherwise": asdict(after)}
                for name, before, after in told.changes
            ]
        }
    return told_json | {
        "identical": not told.differences,
        "differences": [
            {"turn": d.turn, "step": d.step, "event": d.event, "diff": d.diff()}
            for d in told.differences
        ],
    }
