"""Every tunable, as frozen values with units in their names.  No I/O.

`Settings()` is the defaults.  A value that makes no sense cannot be built: each field says what is
allowed, and the error names the field, the value and the range.  What a field is for stands beside
it as data (`metadata["help"]`), so that the example file and the JSON Schema can print it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter, ge, le
from typing import Any, Final

from attrs import field, frozen

from orchestrator.settings.allowed import (
    Allowed,
    Number,
    Seconds,
    Text,
    Texts,
    Whole,
    YesNo,
    plain,
    sentence,
)


def _tunable(default: object, allowed: Allowed, help_: str) -> Any:
    """One setting: its default, its rule and its line of help."""
    return field(default=default, validator=allowed, metadata=_help(help_))


def _help(text: str) -> dict[str, str]:
    """The line of help of a table of settings inside another."""
    return {"help": text}


@frozen
class Curve:
    """How long to wait before retry n: `first_s` times `factor` to the (n-1), capped, then jitter.

    Jitter adds `luck` times `jitter` of the capped base, so a wait is never shorter than the base.
    """

    first_s: float = _tunable(
        2.0, Seconds(0.001, 3600), "Wait before the first retry; 0 would make a window a storm."
    )
    factor: float = _tunable(2.0, Number(1, 10), "Each wait is this many times the one before.")
    cap_s: float = _tunable(60.0, Seconds(0, 86_400), "No wait's base grows beyond this.")
    jitter: float = _tunable(0.25, Number(0, 1), "Up to this share of the base is added by chance.")


@frozen
class Ladders:
    """Families that wait and send again."""

    curve: Curve = field(
        factory=Curve,
        metadata=_help(
            "Waits of transient, connection, ride_out, registration: one count, several reaches."
        ),
    )
    transient_retries: int = _tunable(3, Whole(0, 100), "After a provider's transient error.")
    registration_retries: int = _tunable(
        3, Whole(0, 100), "After an agent died because its registration was throttled."
    )
    connection_window_s: float = _tunable(
        300.0, Seconds(0), "Keep trying this long while nothing answers, from the first failure on."
    )
    connection_cap_s: float = _tunable(
        30.0, Seconds(0, 86_400), "Longest base wait while nothing answers."
    )
    ride_out_window_s: float = _tunable(
        1800.0, Seconds(0), "Wait out an overload this long, where ride_out was chosen."
    )
    ride_out_cap_s: float = _tunable(
        60.0, Seconds(0, 86_400), "Longest base wait while an overload is waited out."
    )
    busy_retries: int = _tunable(
        3, Whole(0, 100), "While the agent says that another prompt is running."
    )
    busy_first_s: float = _tunable(
        1.5, Seconds(0, 3600), "Wait before the first retry while it is busy."
    )


@frozen
class Recoveries:
    """How often each recovery may run: per turn, or per session until a turn lands."""

    deaths: int = _tunable(3, Whole(0, 20), "Respawns after the agent's process died.")
    lost_session: int = _tunable(1, Whole(0, 20), "Reloads of a session the agent lost.")
    discard: int = _tunable(1, Whole(0, 20), "New sessions with a bounded text transcript.")
    fresh_session: int = _tunable(1, Whole(0, 20), "Fresh sessions after a context overflow.")
    continue_after_output: int = _tunable(
        1, Whole(0, 20), "Continues after a failure behind text or a tool."
    )
    entitlement_swap: int = _tunable(1, Whole(0, 20), "Swaps away from a model not in the plan.")
    content_filter_hop: int = _tunable(1, Whole(0, 20), "Hops to another model after a refusal.")
    resume_at_reset: int = _tunable(
        1, Whole(0, 1), "Probes after a usage limit's reset, where resume_at_reset was chosen."
    )
    poisoned_cycles: int = _tunable(
        2, Whole(1, 20), "Used-up curves in a row before a conversation counts as poisoned."
    )
    fallback_models: tuple[str, ...] = _tunable(
        (), Texts(), "Models to fall back to when the curve is used up, in order."
    )
    content_filter_model: str = _tunable(
        "", Text(), "Model to hop to after a refusal; empty: the one the provider recommends."
    )
    canary_timeout_s: float = _tunable(
        30.0, Seconds(0.1, 600), "How long the one-word test of a suspect conversation may take."
    )


@frozen
class TurnLimits:
    """Bounds of one turn over all families."""

    max_sends: int = _tunable(
        12, Whole(1, 1000), "Sends of count-bounded families, the first one included."
    )
    max_server_wait_s: float = _tunable(
        120.0, Seconds(0, 86_400), "A longer hint of the server is not waited for by a ladder."
    )
    stop_budget_s: float = _tunable(
        10.0, Seconds(0, 600), "How long a soft Stop may take before it turns hard."
    )
    resume_within_s: float = _tunable(
        86_400.0, Seconds(0, 604_800), "A reset further away is not waited for."
    )
    resume_spread_s: float = _tunable(
        60.0, Seconds(0, 3600), "Up to this much after the reset, so that not all come at once."
    )


@frozen
class Choices:
    """What waits longer than the fixed count: off until somebody asks for it."""

    ride_out: bool = _tunable(
        default=False, allowed=YesNo(), help_="Wait out overloads and throttles."
    )
    resume_at_reset: bool = _tunable(
        default=False, allowed=YesNo(), help_="Send once more when a usage limit resets."
    )
    fresh_session: bool = _tunable(
        default=False, allowed=YesNo(), help_="Go on in a fresh session after a context overflow."
    )


@frozen
class Watchdogs:
    """Silence, or bustle without end, that counts as a failure.  The host keeps watch; 0 is off."""

    first_sign_s: float = _tunable(
        300.0,
        Seconds(0),
        "From the send to the model's first word or act; some think for minutes and show nothing.",
    )
    silence_s: float = _tunable(
        600.0, Seconds(0), "Longest silence inside an attempt; a running tool's progress is life."
    )
    tool_silence_s: float = _tunable(
        3600.0, Seconds(0), "Longest silence while a tool runs; a long build prints nothing."
    )
    messages_in_a_row: int = _tunable(
        20,
        Whole(0, 1000),
        "Messages of an agent that uses no tool between them; it goes in circles.",
    )
    handshake_s: float = _tunable(60.0, Seconds(0), "For initialize.")
    session_s: float = _tunable(60.0, Seconds(0), "For session/new and session/load.")
    cancel_s: float = _tunable(
        10.0, Seconds(0, 600), "From a cancel to its acknowledgement; then the agent is killed."
    )


@frozen
class Budget:
    """Retry budget across turns, per provider: a token bucket.  Off by default."""

    enabled: bool = _tunable(
        default=False, allowed=YesNo(), help_="Whether retries have to be paid for."
    )
    capacity: float = _tunable(100.0, Number(1, 1e6), "Tokens when full.")
    retry_cost: float = _tunable(5.0, Number(0, 1e6), "Tokens that one retry costs.")
    landed_refill: float = _tunable(1.0, Number(0, 1e6), "Tokens that a landed turn gives back.")
    refill_per_s: float = _tunable(
        0.5, Number(0, 1e6), "Tokens per second, so that a quiet process can retry at all."
    )


@frozen
class Metrics:
    """What the metrics may name."""

    providers: tuple[str, ...] = _tunable(
        ("anthropic", "openai", "google", "bedrock", "kiro", "opencode"),
        Texts(),
        "Values of the label provider; any other is counted as other.",
    )


@frozen
class Settings:
    """All of it.  Raises ValueError that names the fields when they contradict each other."""

    ladders: Ladders = field(factory=Ladders, metadata=_help("Families that wait and send again."))
    recoveries: Recoveries = field(
        factory=Recoveries,
        metadata=_help(
            "How often each recovery may run: per turn, or per session until a turn lands."
        ),
    )
    turn: TurnLimits = field(
        factory=TurnLimits, metadata=_help("Bounds of one turn over all families.")
    )
    choices: Choices = field(
        factory=Choices, metadata=_help("What waits longer than the fixed count: off by default.")
    )
    watchdogs: Watchdogs = field(
        factory=Watchdogs,
        metadata=_help("Silence that counts as a failure; 0 switches a watchdog off."),
    )
    budget: Budget = field(
        factory=Budget, metadata=_help("Retry budget across turns, per provider: a token bucket.")
    )
    metrics: Metrics = field(factory=Metrics, metadata=_help("What the metrics may name."))

    def __attrs_post_init__(self) -> None:
        problems = contradictions(lambda path: attrgetter(path)(self))
        text = "; ".join(f"{bound.path}: {words}" for bound, words in problems)
        if text:
            raise ValueError(text)


@frozen
class Bound:
    """One setting may not go beyond another."""

    path: str
    """The setting that is blamed."""
    holds: Callable[[Any, Any], bool]
    """Asked with the blamed value and the other one."""
    word: str
    other: str


BOUNDS: Final = (
    Bound("ladders.curve.cap_s", ge, "or more", "ladders.curve.first_s"),
    Bound("ladders.connection_cap_s", ge, "or more", "ladders.curve.first_s"),
    Bound("ladders.ride_out_cap_s", ge, "or more", "ladders.curve.first_s"),
    Bound("budget.retry_cost", le, "or less", "budget.capacity"),
)
"""What must hold between fields that are each right by themselves."""


def contradictions(value_of: Callable[[str], Any]) -> Iterator[tuple[Bound, str]]:
    """The bounds that do not hold, each with its sentence; `value_of` answers a dotted path."""
    for bound in BOUNDS:
        value, other = value_of(bound.path), value_of(bound.other)
        if not bound.holds(value, other):
            words = f"{plain(other)} {bound.word} (what {bound.other} says)"
            yield bound, sentence(plain(value), words)
