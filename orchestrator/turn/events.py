"""What a turn machine is told.  Past tense, frozen, validated when built.

Time comes in as `now` (seconds on a monotonic clock), randomness as `luck` (a number in [0, 1),
drawn by the caller), the world as `live`.  `attempt` is the number of the `Send` it belongs to;
agents answer a cancel late and dead processes report twice, so any other number is ignored.
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

from attrs import Attribute, field, frozen

from orchestrator.failure.kinds import Category
from orchestrator.failure.verdict import Refusal, Verdict
from orchestrator.turn.value import value


class Evidence(StrEnum):
    """What an attempt has shown."""

    TEXT = "text"
    THOUGHT = "thought"
    TOOL = "tool"


class StopReason(StrEnum):
    """How an agent says that an attempt ended, in the protocol's words."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURN_REQUESTS = "max_turn_requests"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"


class Step(StrEnum):
    """One thing a recovery does before the prompt is sent again."""

    RESPAWN = "respawn"
    """A new process that loads the native session."""
    RESET = "reset"
    """The native session loaded again, or a new one."""
    DISCARD = "discard"
    """A new native session with a bounded text transcript."""
    DEDICATED = "dedicated"
    """A process of its own."""
    SWAP = "swap"
    """Another model, set and read back."""
    CANARY = "canary"
    """A one-word, tool-free prompt on a fresh session of the same served model."""


class DropReason(StrEnum):
    """Why something pending was not sent."""

    STOPPED = "stopped"
    SUPERSEDED = "superseded"
    REBOUND = "rebound"
    LOST = "lost"
    DENIED = "denied"


def _moment(event: object, attribute: Attribute[Any], value: float) -> None:
    """Accept a moment that a timer can be set by; a clock that jumps is no error."""
    if not math.isfinite(value):
        name = f"{type(event).__name__}.{attribute.name}"
        raise ValueError(f"{name}: {value!r} is not allowed; a finite number of seconds is")


def _luck(event: object, attribute: Attribute[Any], value: float) -> None:
    if not 0.0 <= value < 1.0:
        name = f"{type(event).__name__}.{attribute.name}"
        raise ValueError(f"{name}: {value!r} is not allowed; a number from 0 to below 1 is")


@frozen
class Live:
    """The world as the host sees it at one moment.

    A host re-uses the same object while nothing changed.
    """

    binding: str = ""
    """The host's own key of the conversation; only the host moves it."""
    surface_stops: int = 0
    """Stops pressed on this surface; only grows."""
    session_stops: int = 0
    """Stops pressed on any surface of the session; only grows."""
    stopping: bool = False
    """A Stop is in flight now.

    A host that leaves it true stops whatever is sent next: also an owed completion that outlived
    the Stop in line, since an attempt in flight is never exempt.
    """
    user_input: bool = False
    """A steer is pending or a message the user wrote is queued."""
    model: str = ""
    served: tuple[str, ...] | None = None
    """Models the account is served; None is unknown, hence not eligible for a swap."""
    shared_deaths: int = 0
    """Deaths of a runtime that is shared with other sessions."""
    may_retry: bool = True
    """The fleet's retry budget allows one more."""


@frozen
class Facts:
    """What does not change within a turn."""

    interactive: bool = True
    """Somebody is waiting in front of it."""
    nested: bool = False
    """Runs inside another turn, which owns the recovery."""
    owed: bool = False
    """A sub-agent's completion that its parent is still owed."""
    runner_written: bool = False
    """The host wrote this text itself."""
    brings_image: bool = False
    has_subagents: bool = False
    subagent: bool = False
    resume_at_reset: bool = False
    """The user opted in to one probe after a limit's reset."""
    ride_out: bool = False
    """The user opted in to waiting out an outage."""
    fresh_session: bool = False
    """The user opted in to continuing in a fresh session after an overflow."""


@value
class Started:
    now: float
    live: Live
    facts: Facts = field(factory=Facts)


@value
class Began:
    """May I send?  Asked before a process is started, a session opened or a byte sent."""

    now: float
    live: Live


@value
class Saw:
    attempt: int
    evidence: Evidence


@value
class Failed:
    now: float = field(validator=_moment)
    live: Live
    attempt: int
    verdict: Verdict
    luck: float = field(default=0.0, validator=_luck)


@value
class Refused:
    now: float
    live: Live
    attempt: int
    refusal: Refusal


@value
class Finished:
    now: float
    live: Live
    attempt: int
    stop_reason: StopReason = StopReason.END_TURN


@value
class Retrying:
    """The agent's own progress: it is trying again by itself."""

    attempt: int
    title: str
    category: Category = Category.SERVICE


@value
class Advised:
    """An advisory of the agent.  Equal keys in a row are one notice."""

    key: str
    title: str
    category: Category = Category.UNKNOWN


@value
class Due:
    """A timer may be due.  Early, late and duplicate ticks are harmless."""

    now: float = field(validator=_moment)
    live: Live


@value
class RetryNow:
    now: float = field(validator=_moment)
    live: Live


@value
class Recovered:
    now: float = field(validator=_moment)
    live: Live
    step: Step
    ok: bool
    detail: str = ""
    """What the step reports: the new native session id, the model read back, or why it failed."""
    luck: float = field(default=0.0, validator=_luck)


@value
class Stopped:
    now: float = field(validator=_moment)
    live: Live
    hard: bool = False


@value
class UserSpoke:
    """A steer or follow-up arrived: a hint to look early."""

    now: float
    live: Live


@value
class Rebound:
    now: float
    live: Live


@value
class Dropped:
    """The host lost the queued entry."""

    now: float
    live: Live
    reason: DropReason = DropReason.LOST


@value
class SignedIn:
    now: float


@value
class RuntimeReplaced:
    now: float


Event = (
    Started
    | Began
    | Saw
    | Failed
    | Refused
    | Finished
    | Retrying
    | Advised
    | Due
    | RetryNow
    | Recovered
    | Stopped
    | UserSpoke
    | Rebound
    | Dropped
    | SignedIn
    | RuntimeReplaced
)
