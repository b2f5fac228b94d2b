"""The two tables of the machine as markdown, generated from the tables themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from orchestrator.settings.model import Settings
from orchestrator.turn.case import Counter
from orchestrator.turn.curve import Pace, base
from orchestrator.turn.machine import EVENTS, TRANSITIONS, State
from orchestrator.turn.match import limit_of, window_s
from orchestrator.turn.state import ENDS
from orchestrator.turn.table import TABLE, Row, Target


def transition_table() -> str:
    """Render which handler answers which event in which state; an empty cell is illegal."""
    states = [state for state in State if state not in ENDS]
    header = ("event", *states, "any end")
    rows = [
        (
            f"`{event.__name__}`",
            *(_handler(state, event) for state in states),
            _handler(State.LANDED, event),
        )
        for event in EVENTS
    ]
    return _table(header, rows)


def family_table(settings: Settings | None = None) -> str:
    """Render the rows of the turn table, in order, with the numbers of `settings`."""
    chosen = settings or Settings()
    return _table(tuple(_COLUMNS), [_family(row, chosen) for row in TABLE])


def _handler(state: State, event: type) -> str:
    handler = TRANSITIONS.get((state, event))
    return "" if handler is None else handler.__name__.strip("_").replace("_", " ")


def _family(row: Row, settings: Settings) -> tuple[str, ...]:
    return tuple(column(row, settings) for column in _COLUMNS.values())


def _trigger(row: Row, _: Settings) -> str:
    named = (f"recovery `{row.recovery}`",) if row.recovery else ()
    return ", ".join((*named, *(f"`{kind}`" for kind in row.kinds), *row.when))


def _budget(row: Row, settings: Settings) -> str:
    if row.window:
        return f"{row.counter} / {window_s(row, settings):g} s"
    if row.target is Target.CANDIDATE:
        return "cursor ≤ candidates"
    shared = "max(deaths, shared)" if row.counter is Counter.DEATHS else row.counter
    return f"{shared} ≤ {limit_of(row, settings)}"


def _wait(row: Row, settings: Settings) -> str:
    pause = row.pause
    if pause is None:
        return ""
    if pause.pace is Pace.AT_RESET:
        return f"until the reset + ≤ {settings.turn.resume_spread_s:g} s"
    first = f"{base(settings, pause, 1):g} s"
    text = f"first {first}" if pause.pace is Pace.FIRST else f"curve {first}"
    text += f", cap {base(settings, pause, 1000):g} s" if row.window else ""
    return f"{text}, before its step" if pause.before_steps else text


def _steps(row: Row, _: Settings) -> str:
    return ", ".join(f"{step} → {fails}" for step, fails in row.steps)


def _carries(row: Row, _: Settings) -> str:
    extra = "; in a new native session verbatim only" if row.verbatim_in_new_session else ""
    return f"{row.carries}{extra}"


def _says(row: Row, _: Settings) -> str:
    words = (("one standing warning", row.standing), ("a notice naming the model", row.target))
    return ", ".join(word for word, holds in words if holds)


_COLUMNS: Final[Mapping[str, Callable[[Row, Settings], str]]] = MappingProxyType(
    {
        "family": lambda row, _: f"`{row.family}`",
        "trigger": _trigger,
        "shown": lambda row, _: row.shown,
        "gates": lambda row, _: ", ".join(row.gates),
        "budget": _budget,
        "wait": _wait,
        "steps → if one fails": _steps,
        "payload": _carries,
        "yields": lambda row, _: "yes" if row.yields else "no",
        "rewinds": lambda row, _: row.rewind,
        "tells": _says,
    }
)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
