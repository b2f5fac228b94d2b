"""How long to wait: a pure function of the attempt number, the caller's luck and the server's hint.

The base of a wait is any tenacity wait strategy, asked for one attempt number and nothing else.
Jitter, caps and hints are ours: tenacity's jitter draws from the global `random`, its time stops
read the real clock, and its loop counts an attempt before the sleep.
"""

from __future__ import annotations

import math
from enum import StrEnum
from functools import cache, lru_cache
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, Final

from attrs import Attribute, field, frozen
from tenacity.wait import wait_base, wait_exponential

from orchestrator.settings.model import Settings

_LONGEST_S: Final = 30 * 86_400.0
"""No wait of a chat turn is longer than a month, whatever a strategy or a server says."""

_PURITY_PROBES: Final = tuple(range(1, 9))


class Ladder(StrEnum):
    """A curve by name.  An embedder may put another tenacity strategy behind each."""

    TRANSIENT = "transient"
    """Shared by every family that retries an answer or a connection: one count, several reaches."""
    BUSY = "busy"


class Pace(StrEnum):
    """Which point of its curve a wait takes."""

    NUMBERED = "numbered"
    """Retry n waits as long as the curve's n-th point."""
    FIRST = "first"
    """Always the curve's first point."""
    AT_RESET = "at reset"
    """Until a limit's reset, and up to `turn.resume_spread_s` more."""


@frozen
class Pause:
    """The wait of one family."""

    ladder: Ladder = Ladder.TRANSIENT
    pace: Pace = Pace.NUMBERED
    cap: str = "ladders.curve.cap_s"
    """Path of the setting that caps the base."""
    before_steps: bool = False
    """The wait comes before the recovery's steps; otherwise after them."""


def _pure(_: object, attribute: Attribute[Any], strategy: wait_base | None) -> None:
    """Refuse a strategy that is no pure function of the attempt number."""
    if strategy is None:
        return
    once, twice = ([_ask(strategy, n) for n in _PURITY_PROBES] for _ in range(2))
    if once != twice:
        raise ValueError(
            f"curves.{attribute.name}: {strategy!r} is not allowed; a wait that depends on the"
            " attempt number alone is (`ladders.curve.jitter` adds the jitter)"
        )
    if not all(math.isfinite(wait) and wait >= 0 for wait in once):
        raise ValueError(
            f"curves.{attribute.name}: {strategy!r} is not allowed; finite waits of 0 s or more are"
        )


@frozen
class Curves:
    """An embedder's own wait strategies, by ladder; None keeps the one from the settings.

    Raises ValueError that names the ladder when a strategy is not pure.
    """

    transient: wait_base | None = field(default=None, validator=_pure)
    busy: wait_base | None = field(default=None, validator=_pure)


def base(settings: Settings, pause: Pause, number: int, curves: Curves | None = None) -> float:
    """Seconds before retry `number` (from 1), capped, without jitter or hint."""
    cap: float = _reader(pause.cap)(settings)
    point = 1 if pause.pace is Pace.FIRST else number
    own: wait_base | None = None if curves is None else getattr(curves, pause.ladder)
    wait = _default(settings, pause.ladder, cap, point) if own is None else _ask(own, point)
    return min(max(wait, 0.0), cap)


def delay(
    settings: Settings,
    pause: Pause,
    number: int,
    luck: float,
    *,
    hint: float | None = None,
    curves: Curves | None = None,
) -> float:
    """Seconds to wait before retry `number`.

    `hint` is the seconds that the server asks for: a short one stretches the wait, a long one is
    waited for at a limit's reset only.
    """
    if pause.pace is Pace.AT_RESET:
        wait = max(hint or 0.0, 0.0) + luck * settings.turn.resume_spread_s
    else:
        plain = base(settings, pause, number, curves)
        wait = plain + luck * settings.ladders.curve.jitter * plain
        if hint is not None and hint <= settings.turn.max_server_wait_s:
            wait = max(wait, hint)
    return min(wait, _LONGEST_S)


def _default(settings: Settings, ladder: Ladder, cap: float, number: int) -> float:
    ladders = settings.ladders
    first = ladders.busy_first_s if ladder is Ladder.BUSY else ladders.curve.first_s
    return _exponential(first, ladders.curve.factor, cap, number)


@cache
def _reader(path: str) -> attrgetter[Any]:
    return attrgetter(path)


@lru_cache(maxsize=512)
def _exponential(first: float, factor: float, cap: float, number: int) -> float:
    """Ask for each point of a curve once."""
    return _ask(wait_exponential(multiplier=first, exp_base=factor, max=cap), number)


def _ask(strategy: wait_base, number: int) -> float:
    """Ask a strategy for one point.

    A real `RetryCallState` would read the clock when built; a strategy that needs more of it than
    the attempt number is not pure and fails here by name.
    """
    state: Any = SimpleNamespace(attempt_number=number)
    return float(strategy(state))
