"""What a send costs and what an end leaves: the only two places where counts change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from attrs import evolve

from orchestrator.settings.model import Settings
from orchestrator.turn.case import OF_SESSION, Budgets, Counter
from orchestrator.turn.effects import SessionState
from orchestrator.turn.table import Rewind, Row

_REWOUND: Final[Mapping[Rewind, Callable[[Budgets, int], dict[str, Any]]]] = MappingProxyType(
    {
        Rewind.TO_ZERO: lambda _, __: {"curve": 0, "curve_start": None},
        Rewind.TO_ONE_LEFT: lambda budgets, retries: {
            "curve": max(0, min(budgets.curve, retries - 1))
        },
    }
)
"""What a rewind leaves of the curve.  No row that rewinds counts on the curve itself."""


def spent(row: Row, budgets: Budgets, settings: Settings, curve_start: float) -> Budgets:
    """Count one send of a family in the turn, and rewind what the row rewinds."""
    counted: dict[str, Any] = {"sends": budgets.sends + row.counted}
    if row.counter is not None and row.counter not in OF_SESSION:
        counted[row.counter.value] = getattr(budgets, row.counter) + 1
    if row.counter is Counter.CURVE:
        counted["curve_start"] = curve_start
    if row.rewind:
        counted |= _REWOUND[row.rewind](budgets, settings.ladders.transient_retries)
    return evolve(budgets, **counted)


def charged(row: Row, session: SessionState, target: str) -> SessionState:
    """Count one send of a family in the session, and keep the model that is to stay."""
    if row.counter in OF_SESSION and row.counter is not None:
        session = evolve(session, **{row.counter.value: getattr(session, row.counter) + 1})
    return evolve(session, fallback_model=target) if row.sticky else session


def landed(session: SessionState) -> SessionState:
    """Hand back what a session counts until a turn lands; an answer also breaks a silent streak."""
    if session.lost or session.discard or session.deaths or session.poisoned_streak:
        return evolve(session, lost=0, discard=0, deaths=0, poisoned_streak=0)
    return session


def ended(session: SessionState, *, seen: bool, silent_cycle: bool) -> SessionState:
    """Count silent cycles: a turn that showed anything breaks the row, a used-up curve adds one."""
    streak = 0 if seen else session.poisoned_streak + silent_cycle
    return session if streak == session.poisoned_streak else evolve(session, poisoned_streak=streak)
