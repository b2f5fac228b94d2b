"""`orchestrator plan`: the exact waits of one family, before anybody has to wait for them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from random import Random
from typing import Annotated, Final

from attrs import asdict
from cyclopts import Parameter
from rich.text import Text

from orchestrator.cli.chosen import Chosen
from orchestrator.cli.codes import Exit, Halt
from orchestrator.cli.terminal import Output, columns
from orchestrator.cli.walk import STORIES, Sent, Story, Walk, walk
from orchestrator.settings.allowed import plain
from orchestrator.settings.model import Settings, TurnLimits
from orchestrator.settings.reading import duration, in_words
from orchestrator.turn.curve import Pace
from orchestrator.turn.effects import Family, How
from orchestrator.turn.table import ROWS

_CHOSEN: Final = Chosen()
_PLAIN: Final = Output()
_BAR: Final = 22
_RESET_S: Final = 3600.0
"""How far away a limit's reset is when nobody says."""


def plan(
    family: Annotated[Family, Parameter(name_transform=str.lower)],
    /,
    *,
    seed: int | None = None,
    attempt: Annotated[str, Parameter(name="--attempt")] = "0s",
    hint: Annotated[str | None, Parameter(name="--hint")] = None,
    chosen: Chosen = _CHOSEN,
    output: Output = _PLAIN,
) -> int:
    """Print the exact waits of a turn that keeps failing in the way that a family serves.

    The turn is driven through the same state machine that runs in production, with these settings,
    from its first send to its end.

    Parameters
    ----------
    family
        A row of the turn table.
    seed
        Draw the jitter with this seed.  Without it, waits are shown without jitter.
    attempt
        How long each attempt takes before it fails, for example 5s.  Default: 0s.
    hint
        How long the server asks to wait each time, for example 20s; for resume_at_reset the time
        until the limit resets (default 1h).
    """
    loaded = chosen.load(output)
    story = STORIES[family]
    hint_s = None if hint is None else _seconds(hint, "--hint")
    if hint_s is None and story.resets:
        hint_s = _RESET_S
    told = walk(
        loaded.settings,
        story,
        chance=None if seed is None else Random(seed),
        attempt_s=_seconds(attempt, "--attempt"),
        hint_s=hint_s,
    )
    if output.json:
        output.data(_as_json(family, seed, told))
        return Exit.OK
    _print(output, family, told)
    for note in _notes(family, told, loaded.settings, hint_s, seed):
        output.say(note)
    return Exit.OK


def _seconds(text: str, name: str) -> float:
    seconds = duration(text)
    if seconds is None:
        raise Halt(
            "usage",
            f"{json.dumps(text)} is not a duration",
            field=name,
            hint="for example 5s or 1m",
        )
    return seconds


def _as_json(family: Family, seed: int | None, told: Walk) -> dict[str, object]:
    return {
        "family": family,
        "seed": seed,
        "sends": [asdict(sent) for sent in told.sends],
        "window_end_s": told.windows.get(family),
        "ends_at_s": told.ends_at_s,
        "outcome": told.outcome,
    }


def _print(output: Output, family: Family, told: Walk) -> None:
    longest = max(sent.wait_s for sent in told.sends)
    head = ("send", "family", "retry", f"{'waits':>8}", f"{'at':>8}")
    rows: list[list[Text]] = [[*(Text(h, "bold") for h in head), Text()]]
    for sent in told.sends:
        waits = "-" if sent.retry is None else _short(sent.wait_s)
        rows.append(
            [
                Text(f"{sent.number:>4}"),
                Text(str(sent.family or "first send"), "bold" if sent.family is family else ""),
                Text(_count(sent)),
                Text(f"{waits:>8}"),
                Text(f"{_short(sent.at_s):>8}"),
                _bar(sent, longest),
            ]
        )
    columns(output.stdout, rows)


def _count(sent: Sent) -> str:
    if sent.retry is None:
        return ", ".join(sent.steps)
    of = f"{sent.retry} of {sent.limit}" if sent.limit is not None else str(sent.retry)
    return ", ".join((of, *sent.steps))


def _bar(sent: Sent, longest: float) -> Text:
    full = round(_BAR * sent.wait_s / longest) if longest else 0
    blocks = "-" if (sys.stdout.encoding or "").lower() not in {"utf-8", "utf8"} else "━"
    return Text(blocks * full, "cyan")


def _short(seconds: float) -> str:
    """A time for a column: `2.31s`, `3m 04s`, `1h 02m`."""
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.2f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:  # noqa: PLR2004 - an hour
        return f"{minutes}m {rest:02}s"
    return f"{minutes // 60}h {minutes % 60:02}m"


def _notes(
    family: Family, told: Walk, settings: Settings, hint_s: float | None, seed: int | None
) -> Iterator[str]:
    """What the table cannot show, a sentence each."""
    story, row, turn = STORIES[family], ROWS[family], settings.turn
    yield f"{family}: {story.words}, again and again."
    if not told.uses(family):
        yield f"With these settings the family never sends: {_why_never(story, turn, hint_s)}."
    elif story.setting.startswith("choices."):
        yield f"Off unless {story.setting} is set or the host opts in."
    if family in told.windows:
        yield f"The window closes at {_short(told.windows[family])}; the last wait may end later."
    if sum(s.family is None or ROWS[s.family].counted for s in told.sends) >= turn.max_sends:
        yield f"The cap turn.max_sends ({turn.max_sends}) ends it."
    if told.outcome is None:
        yield f"Cut here after {len(told.sends)} sends: waits of 0 s do not end a window."
    else:
        count = "1 send" if len(told.sends) == 1 else f"{len(told.sends)} sends"
        yield f"After {count} the turn {_ENDS[told.outcome]} at {_short(told.ends_at_s)}."
    if seed is None and row.pause is not None:
        jitter = settings.ladders.curve.jitter
        more = f"{plain(jitter * 100)} %" if jitter else ""
        if row.pause.pace is Pace.AT_RESET:
            more = in_words(turn.resume_spread_s)
        if more:
            yield f"Waits are shown without chance, which adds up to {more}; --seed N draws it."


def _why_never(story: Story, turn: TurnLimits, hint_s: float | None) -> str:
    if hint_s is not None and hint_s > turn.max_server_wait_s and not story.resets:
        return f"turn.max_server_wait_s ({in_words(turn.max_server_wait_s)}) is below the hint"
    if story.resets and hint_s is not None and hint_s > turn.resume_within_s:
        return f"turn.resume_within_s ({in_words(turn.resume_within_s)}) is below the hint"
    return f"it needs {story.setting}" if story.setting else "its budget is 0"


_ENDS: Final = {How.FAILED: "fails", How.REFUSED: "ends as refused"}
