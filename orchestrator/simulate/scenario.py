"""What the world does to a fleet of turns, as data.

A scenario says how often turns start, how a provider answers at each moment, how an agent rebuilds
after a loss and what impatient people do.  It knows nothing of retry policy: the same scenario is
played against the real machine and against every baseline.

Each field carries its rule (`settings.allowed`), which a file's reader asks too.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

from attrs import Attribute, field, frozen
from attrs.validators import optional

from orchestrator.failure.kinds import KINDS, Kind
from orchestrator.settings.allowed import Allowed, Number, Seconds, Text, Texts, Whole, YesNo, plain

_SHARE: Final = Number(0, 1)
_MOMENT: Final = Seconds(0)
_LENGTH: Final = Seconds(0.001)
_RATE: Final = Number(0, 100_000)
_MODEL: Final = Text(60)
_ROUNDING: Final = 1e-9


def _rule(allowed: Allowed, default: Any = ...) -> Any:
    if default is ...:
        return field(validator=allowed)
    return field(default=default, validator=optional(allowed) if default is None else allowed)


def _failing(_: object, attribute: Attribute[Kind], kind: Kind) -> None:
    if not KINDS[kind].is_failure:
        raise ValueError(f"{attribute.name}: {kind.value!r} is not allowed; a failure's kind is")


@frozen
class Fault:
    """One way an attempt fails."""

    kind: Kind = field(validator=_failing)
    share: float = _rule(_SHARE, 1.0)
    """Share of the attempts in its phase that fail this way."""
    hint_s: float | None = _rule(_MOMENT, None)
    """Seconds the provider asks to wait."""
    resets_at_s: float | None = _rule(_MOMENT, None)
    """Moment of the scenario at which a spent limit is refilled."""
    after_output: bool = _rule(YesNo(), default=False)
    """It strikes when text was already shown."""
    poisons: bool = _rule(YesNo(), default=False)
    """It stays in the conversation: all later attempts fail so too, until a new native session."""
    delay_s: float = _rule(_MOMENT, 0.2)
    """From the send to the failure."""


@frozen
class Phase:
    """A stretch of time in which a provider behaves in one way; the last phase that holds wins."""

    from_s: float = _rule(_MOMENT, 0.0)
    to_s: float = _rule(_MOMENT, _MOMENT.high)
    every_s: float = _rule(_MOMENT, 0.0)
    """Repeats with this period, `from_s` and `to_s` then counting inside it; 0 for once."""
    faults: tuple[Fault, ...] = ()
    """What fails then; nothing for a stretch of health."""

    def __attrs_post_init__(self) -> None:
        _rising(self.from_s, self.to_s)
        if self.every_s and self.to_s > self.every_s:
            raise ValueError(
                f"to_s: {plain(self.to_s)} is not allowed; {plain(self.every_s)} or less (what"
                " every_s says) is"
            )
        total = sum(fault.share for fault in self.faults)
        if total > 1 + _ROUNDING:
            raise ValueError(
                f"faults: shares that add up to {total:g} are not allowed; at most 1 is"
            )

    def holds(self, now: float) -> bool:
        """Whether the provider behaves so at `now`."""
        at = now % self.every_s if self.every_s else now
        return self.from_s <= at < self.to_s


@frozen
class Surge:
    """A stretch of time in which turns start more, or less, often."""

    from_s: float = _rule(_MOMENT)
    to_s: float = _rule(_MOMENT)
    rate_per_s: float = _rule(_RATE)
    """Turns that start each second at its beginning."""
    until_per_s: float | None = _rule(_RATE, None)
    """And at its end, rising or falling evenly; nothing for the same all the time."""

    def __attrs_post_init__(self) -> None:
        _rising(self.from_s, self.to_s)

    @property
    def peak(self) -> float:
        """The most turns that it starts each second."""
        return max(self.rate_per_s, self.until_per_s or 0.0)

    def rate(self, now: float) -> float:
        """Turns that start each second at `now`, inside it."""
        if self.until_per_s is None:
            return self.rate_per_s
        done = (now - self.from_s) / (self.to_s - self.from_s)
        return self.rate_per_s + done * (self.until_per_s - self.rate_per_s)


@frozen
class Stretch:
    """A stretch of time."""

    from_s: float = _rule(_MOMENT)
    to_s: float = _rule(_MOMENT)

    def __attrs_post_init__(self) -> None:
        _rising(self.from_s, self.to_s)


@frozen
class Capacity:
    """A provider that slows down under load: an answer takes `base_s`, and `slope_s` per open call.

    A caller gives up after `timeout_s`; the work goes on without it, which is what makes retries
    dangerous.
    """

    base_s: float = _rule(_MOMENT, 1.0)
    slope_s: float = _rule(_MOMENT, 0.01)
    timeout_s: float = _rule(_LENGTH, 3.0)
    kind: Kind = field(default=Kind.OVERLOADED, validator=_failing)
    """What a timeout is told as."""


@frozen
class Throttle:
    """A provider that lets only so many calls through: a token bucket that refuses the others."""

    calls_per_s: float = _rule(Number(0.001, 100_000))
    burst: float = _rule(Number(1, 100_000), 10.0)
    """Calls that go through at once after a quiet time."""
    hint_s: float | None = _rule(_MOMENT, None)
    """Seconds it asks those that it refuses to wait."""


@frozen
class Users:
    """What people do while a turn waits."""

    patience_s: float = _rule(_MOMENT, 20.0)
    """Mean time until they act, from the first failure; exponentially distributed."""
    stop: float = _rule(_SHARE, 0.0)
    """Share of failing turns whose user presses Stop."""
    steer: float = _rule(_SHARE, 0.0)
    """Share of failing turns whose user writes something new."""

    def __attrs_post_init__(self) -> None:
        if self.stop + self.steer > 1 + _ROUNDING:
            raise ValueError(
                f"steer: {plain(self.steer)} is not allowed; at most 1 together with stop is"
            )


@frozen
class Recovering:
    """How an agent rebuilds what a recovery asks for."""

    takes_s: float = _rule(_MOMENT, 2.0)
    works: float = _rule(_SHARE, 1.0)
    """Share of the steps that succeed."""


@frozen
class Scenario:
    """A world to try settings in.  Times are seconds from its start."""

    name: str = _rule(Text(60))
    title: str = _rule(Text(120), "")
    """What happens, in one sentence."""
    rate_per_s: float = _rule(Number(0.001, 100_000), 2.0)
    """Turns that start each second, as a Poisson process."""
    turns_per_session: int = _rule(Whole(1, 10_000), 1)
    """Turns of one conversation, spread over the whole time; what a session keeps goes along.

    People wait for an answer before they write again.
    """
    surges: tuple[Surge, ...] = ()
    duration_s: float = _rule(Seconds(1), 3600.0)
    """Turns start within this time; those that run at its end are played to theirs."""
    latency_s: float = _rule(_MOMENT, 4.0)
    """Mean time of an answer behind its first text, exponentially distributed."""
    first_text_s: float = _rule(_MOMENT, 0.5)
    """From the send to the first text of an answer."""
    phases: tuple[Phase, ...] = ()
    outage: Stretch | None = None
    """What counts as the outage in the answers and is shaded in the report."""
    capacity: Capacity | None = None
    """In place of `latency_s` and `first_text_s`."""
    throttle: Throttle | None = None
    users: Users = Users()
    recovering: Recovering = Recovering()
    interactive: bool = _rule(YesNo(), default=True)
    """Somebody waits in front of each turn."""
    model: str = _rule(_MODEL, "main")
    served: tuple[str, ...] = field(default=(), validator=Texts())
    """Other models the account is served, for settings that name fallback models."""
    healthy_models: tuple[str, ...] = field(default=(), validator=Texts())
    """Models that the phases spare."""
    provider: str = _rule(Text(60), "anthropic")
    most_turns: int = _rule(Whole(1, 10_000_000), 10_000_000)
    """No run plays more turns than this unless it is told a number."""

    @property
    def load_matters(self) -> bool:
        """The provider feels how many turns there are, so their rate must not be scaled."""
        return self.capacity is not None or self.throttle is not None

    @property
    def peak_per_s(self) -> float:
        """The most turns that start each second."""
        return max([self.rate_per_s, *(surge.peak for surge in self.surges)])

    @property
    def conversations(self) -> int:
        """Conversations at a time; 0 where no turn knows of another, nor of its own past."""
        poisons = any(fault.poisons for phase in self.phases for fault in phase.faults)
        if self.turns_per_session == 1 and not poisons:
            return 0
        return max(1, round(self.expected_turns() / self.turns_per_session))

    def phase(self, now: float) -> Phase | None:
        """What the provider does at `now`; None while it is healthy."""
        return next((phase for phase in reversed(self.phases) if phase.holds(now)), None)

    def rate(self, now: float) -> float:
        """Turns that start each second at `now`."""
        surge = next((s for s in reversed(self.surges) if s.from_s <= now < s.to_s), None)
        return self.rate_per_s if surge is None else surge.rate(now)

    def expected_turns(self) -> float:
        """How many turns start, on average, when it is played once."""
        edges = {0.0, self.duration_s}
        for surge in self.surges:
            edges |= {min(surge.from_s, self.duration_s), min(surge.to_s, self.duration_s)}
        marks = sorted(edges)
        # The rate is linear between two edges, so its value in the middle is its mean.
        return sum((b - a) * self.rate((a + b) / 2) for a, b in pairwise(marks))


def _rising(from_s: float, to_s: float) -> None:
    if to_s <= from_s:
        raise ValueError(
            f"to_s: {plain(to_s)} is not allowed; more than {plain(from_s)} (what from_s says) is"
        )
