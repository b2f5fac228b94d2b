"""`orchestrator plan`: the exact waits of one family, before anybody has to wait for them."""

from __future__ import annotations

import json
import sys
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
from orchestrator.settings.load import Loaded
from orchestrator.settings.reading import duration
from orchestrator.turn.effects import Family, How
from orchestrator.turn.table import ROWS

_CHOSEN: Final = Chosen()
_PLAIN: Final = Output()
_BAR: Final = 24
_RESET_S: Final = 3600.0
"""How far away a limit's reset is when nobody says."""


def plan(
    family: Family,
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
        How long each attempt takes before it fails, for example 5s.
    hint
        How long the server asks to wait each time, for example 20s; for resume_at_reset the time
        until the limit resets (default 1h).
    """
    loaded = chosen.load(output)
    story = STORIES[family]
    told = walk(
        loaded.settings,
        story,
        chance=None if seed is None else Random(seed),
        attempt_s=_seconds(attempt, "--attempt"),
        hint_s=_RESET_S if hint is None and story.resets else _hint(hint),
    )
    if output.json:
        output.data(_as_json(family, seed, told))
    else:
        _print(output, family, told)
        output.say(_summary(family, story, told, loaded, seed))
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


def _hint(text: str | None) -> float | None:
    return None if text is None else _seconds(text, "--hint")


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
    rows: list[list[Text | str]] = [
        [Text(h, "bold") for h in ("send", "family", "retry", "waits", "at", "")]
    ]
    for sent in told.sends:
        style = "bold" if sent.family is family else ""
        rows.append(
            [
                Text(f"{sent.number:>4}"),
                Text(str(sent.family or "first send"), style),
                Text(_count(sent)),
                Text(f"{_short(sent.wait_s):>9}" if sent.family else f"{'-':>9}"),
                Text(f"{_short(sent.at_s):>9}"),
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


def _summary(family: Family, story: Story, told: Walk, loaded: Loaded, seed: int | None) -> str:
    parts = [f"{family}: {story.words}"]
    if not told.uses(family):
        need = f"it needs {story.setting}" if story.setting else "its budget is 0"
        parts.append(f"with these settings the family never sends ({need})")
    elif story.setting.startswith("choices."):
        parts.append(f"off unless {story.setting} is set or the host opts in")
    if family in told.windows:
        parts.append(f"the window closes at {_short(told.windows[family])}")
    end = "goes on" if told.outcome is None else _ENDS.get(told.outcome, str(told.outcome))
    parts.append(f"after {len(told.sends)} sends the turn {end} at {_short(told.ends_at_s)}")
    jitter = loaded.settings.ladders.curve.jitter
    if seed is None and jitter and ROWS[family].pause is not None:
        parts.append(f"shown without jitter, which adds up to {plain(jitter * 100)} % (--seed N)")
    return "; ".join(parts)


_ENDS: Final = {How.FAILED: "fails", How.REFUSED: "ends as refused", How.LANDED: "lands"}
