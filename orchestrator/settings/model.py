"""Every tunable, as frozen values with units in their names.  No I/O.

`Settings()` is the defaults.  A value that makes no sense cannot be built: each field says what is
allowed, and the error names the field, the value and the range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from attrs import Attribute, field, frozen

_FOREVER_S: Final = 30 * 86_400.0
"""No wait of a chat turn is longer than a month; more is a typing error."""


def _field(value: object, name: str, allowed: str) -> ValueError:
    return ValueError(f"{name}: {value!r} is not allowed; {allowed} is")


def number(low: float, high: float = _FOREVER_S) -> Callable[[Any, Attribute[Any], Any], None]:
    """Accept a finite number from `low` to `high`; never a boolean, NaN or infinity."""

    def check(_: object, attribute: Attribute[Any], value: object) -> None:
        fits = (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and math.isfinite(value)
            and low <= value <= high
        )
        if not fits:
            raise _field(value, attribute.name, f"a number from {low:g} to {high:g}")

    return check


def whole(low: int, high: int) -> Callable[[Any, Attribute[Any], Any], None]:
    """Accept a whole number from `low` to `high`; never a boolean."""

    def check(_: object, attribute: Attribute[Any], value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise _field(value, attribute.name, f"a whole number from {low} to {high}")

    return check


def boolean(_: object, attribute: Attribute[Any], value: object) -> None:
    """Accept true or false and nothing that merely looks like it."""
    if not isinstance(value, bool):
        raise _field(value, attribute.name, "true or false")


def strings(_: object, attribute: Attribute[Any], value: object) -> None:
    """Accept a tuple of non-empty strings, each once."""
    if not isinstance(value, tuple) or not all(isinstance(v, str) and v.strip() for v in value):
        raise _field(value, attribute.name, "a list of non-empty strings")
    if len(set(value)) != len(value):
        raise _field(value, attribute.name, "a list without repeats")


@frozen
class Curve:
    """How long to wait before retry n: `first_s` times `factor` to the (n-1), capped, then jitter.

    Jitter adds `luck` times `jitter` of the capped base, so a wait is never shorter than the base.
    """

    first_s: float = field(default=2.0, validator=number(0.0, 3600.0))
    factor: float = field(default=2.0, validator=number(1.0, 10.0))
    cap_s: float = field(default=60.0, validator=number(0.0, 86_400.0))
    jitter: float = field(default=0.25, validator=number(0.0, 1.0))


@frozen
class Ladders:
    """Families that wait and send again."""

    curve: Curve = field(factory=Curve)
    """Of `transient`, `connection`, `ride_out`, `registration`: one count, several reaches."""
    transient_retries: int = field(default=3, validator=whole(0, 100))
    registration_retries: int = field(default=3, validator=whole(0, 100))
    connection_window_s: float = field(default=300.0, validator=number(0.0))
    """From the failure that scheduled the curve's first retry."""
    connection_cap_s: float = field(default=30.0, validator=number(0.0, 86_400.0))
    ride_out_window_s: float = field(default=1800.0, validator=number(0.0))
    ride_out_cap_s: float = field(default=60.0, validator=number(0.0, 86_400.0))
    busy_retries: int = field(default=3, validator=whole(0, 100))
    busy_first_s: float = field(default=1.5, validator=number(0.0, 3600.0))


@frozen
class Recoveries:
    """How often each recovery may run: per turn, or per session until a turn lands."""

    deaths: int = field(default=3, validator=whole(0, 20))
    lost_session: int = field(default=1, validator=whole(0, 20))
    discard: int = field(default=1, validator=whole(0, 20))
    fresh_session: int = field(default=1, validator=whole(0, 20))
    continue_after_output: int = field(default=1, validator=whole(0, 20))
    entitlement_swap: int = field(default=1, validator=whole(0, 20))
    content_filter_hop: int = field(default=1, validator=whole(0, 20))
    resume_at_reset: int = field(default=1, validator=whole(0, 1))
    poisoned_cycles: int = field(default=2, validator=whole(1, 20))
    """Used-up curves in a row before a conversation counts as poisoned."""
    fallback_models: tuple[str, ...] = field(default=(), validator=strings)
    """Candidates of `model_fallback`, in order."""
    content_filter_model: str = field(default="")
    """Model to hop to after a refusal; empty means the one the provider recommends."""
    canary_timeout_s: float = field(default=30.0, validator=number(0.1, 600.0))


@frozen
class TurnLimits:
    """Bounds of one turn over all families."""

    max_sends: int = field(default=12, validator=whole(1, 1000))
    """Sends of count-bounded families, the first one included."""
    max_server_wait_s: float = field(default=120.0, validator=number(0.0, 86_400.0))
    """A longer hint of the server is not waited for by a plain ladder."""
    stop_budget_s: float = field(default=10.0, validator=number(0.0, 600.0))
    """How long a soft Stop may take before it turns hard."""
    resume_within_s: float = field(default=86_400.0, validator=number(0.0, 604_800.0))
    """A reset further away is not waited for."""
    resume_spread_s: float = field(default=60.0, validator=number(0.0, 3600.0))
    """Up to this much after the reset, so that not everybody comes at once."""


@frozen
class Choices:
    """What waits longer than the fixed count: off until somebody asks for it."""

    ride_out: bool = field(default=False, validator=boolean)
    resume_at_reset: bool = field(default=False, validator=boolean)
    fresh_session: bool = field(default=False, validator=boolean)


@frozen
class Watchdogs:
    """Silence that counts as a failure.  The host keeps these clocks; 0 switches one off."""

    first_sign_s: float = field(default=120.0, validator=number(0.0))
    """From the send to the first sign of life of an attempt."""
    silence_s: float = field(default=600.0, validator=number(0.0))
    """Longest silence inside an attempt; progress of a running tool is life."""
    handshake_s: float = field(default=60.0, validator=number(0.0))
    session_s: float = field(default=60.0, validator=number(0.0))
    """For session/new and session/load."""
    cancel_s: float = field(default=10.0, validator=number(0.0, 600.0))
    """From a cancel to its acknowledgement; then the agent is killed."""


@frozen
class Budget:
    """Retry budget across turns, per provider: a token bucket.  Off by default."""

    enabled: bool = field(default=False, validator=boolean)
    capacity: float = field(default=100.0, validator=number(1.0, 1e6))
    """Tokens when full."""
    retry_cost: float = field(default=5.0, validator=number(0.0, 1e6))
    landed_refill: float = field(default=1.0, validator=number(0.0, 1e6))
    """Tokens that a landed turn gives back."""
    refill_per_s: float = field(default=0.5, validator=number(0.0, 1e6))
    """A floor, so that a quiet process can retry at all."""


@frozen
class Metrics:
    """What the metrics may name."""

    providers: tuple[str, ...] = field(
        default=("anthropic", "openai", "google", "bedrock", "kiro", "opencode"), validator=strings
    )
    """Values of the label `provider`; anything else is counted as `other`."""


@frozen
class Settings:
    """All of it.  Raises ValueError that names the field when fields contradict each other."""

    ladders: Ladders = field(factory=Ladders)
    recoveries: Recoveries = field(factory=Recoveries)
    turn: TurnLimits = field(factory=TurnLimits)
    choices: Choices = field(factory=Choices)
    watchdogs: Watchdogs = field(factory=Watchdogs)
    budget: Budget = field(factory=Budget)
    metrics: Metrics = field(factory=Metrics)

    def __attrs_post_init__(self) -> None:
        problems = contradictions(self)
        if problems:
            raise ValueError("; ".join(problems))


def contradictions(settings: Settings) -> list[str]:
    """What is wrong between fields that are each right by themselves."""
    ladders = settings.ladders
    checks = (
        (
            "ladders.curve.cap_s",
            ladders.curve.cap_s,
            "first_s or more",
            ladders.curve.cap_s >= ladders.curve.first_s,
        ),
        (
            "ladders.connection_cap_s",
            ladders.connection_cap_s,
            "curve.first_s or more",
            ladders.connection_cap_s >= ladders.curve.first_s,
        ),
        (
            "ladders.ride_out_cap_s",
            ladders.ride_out_cap_s,
            "curve.first_s or more",
            ladders.ride_out_cap_s >= ladders.curve.first_s,
        ),
        (
            "budget.retry_cost",
            settings.budget.retry_cost,
            "capacity or less",
            settings.budget.retry_cost <= settings.budget.capacity,
        ),
    )
    return [
        f"{path}: {value!r} is not allowed; {allowed} is"
        for path, value, allowed, ok in checks
        if not ok
    ]
