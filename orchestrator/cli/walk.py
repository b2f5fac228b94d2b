"""One turn that fails again and again in one way, driven through the real machine.

What `plan` prints is what the machine asks for: nothing here computes a wait.  Time is a number
that jumps to each deadline, chance is a seeded generator asked in the runner's order.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import Final

from attrs import define, evolve, field, frozen

from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Refusal, Verdict
from orchestrator.settings.model import Settings
from orchestrator.settings.tree import values
from orchestrator.turn.effects import (
    Dispatch,
    Effect,
    End,
    Family,
    How,
    Payload,
    Recover,
    Send,
    SessionState,
    Wait,
)
from orchestrator.turn.events import (
    Began,
    Due,
    Event,
    Evidence,
    Facts,
    Failed,
    Live,
    Recovered,
    Saw,
    Started,
    Step,
)
from orchestrator.turn.incidents import TurnIds
from orchestrator.turn.machine import TurnMachine
from orchestrator.turn.table import ROWS

_MODEL, _OTHER = "this-model", "other-model"
_MOST_SENDS: Final = 1000
"""A window with waits of 0 s would go on for ever."""


@frozen
class Story:
    """What keeps happening, so that a family is asked for."""

    kind: Kind
    words: str
    """What happens, for people."""
    opted: Facts = field(factory=Facts)
    shown: bool = False
    """Each attempt shows text before it fails."""
    served: tuple[str, ...] = (_MODEL, _OTHER)
    streak: bool = False
    """The turns before this one used up their retries in silence."""
    resets: bool = False
    """The provider says when the limit resets."""
    setting: str = ""
    """What has to be set for it, where the default switches it off."""


STORIES: Final[Mapping[Family, Story]] = MappingProxyType(
    {
        Family.BUSY: Story(Kind.PROMPT_BUSY, "the agent says that another prompt is running"),
        Family.DEATH: Story(Kind.AGENT_DIED, "the agent's process dies"),
        Family.REGISTRATION: Story(
            Kind.REGISTRATION_THROTTLED, "the agent dies because its registration is throttled"
        ),
        Family.LOST_SESSION: Story(Kind.SESSION_NOT_FOUND, "the agent does not know its session"),
        Family.THINKING: Story(Kind.THINKING_BINDING, "a thinking block is bound to another chat"),
        Family.IMAGE: Story(Kind.IMAGE_REJECTED, "an earlier image of the chat is rejected"),
        Family.FRESH_SESSION: Story(
            Kind.CONTEXT_OVERFLOW,
            "the conversation is too long",
            Facts(fresh_session=True),
            setting="choices.fresh_session",
        ),
        Family.TRANSIENT: Story(Kind.OVERLOADED, "the provider answers with a transient error"),
        Family.CONNECTION: Story(Kind.CONNECTION_LOST, "nothing answers"),
        Family.MODEL_FALLBACK: Story(
            Kind.OVERLOADED,
            "the provider answers with a transient error",
            setting="recoveries.fallback_models",
        ),
        Family.CONTINUE_AFTER_OUTPUT: Story(
            Kind.OVERLOADED, "text is shown, then the answer breaks off", shown=True
        ),
        Family.ENTITLEMENT_SWAP: Story(Kind.MODEL_NOT_ENTITLED, "the plan lacks the model"),
        Family.RIDE_OUT: Story(
            Kind.OVERLOADED,
            "the provider stays overloaded",
            Facts(ride_out=True),
            setting="choices.ride_out",
        ),
        Family.POISONED: Story(
            Kind.OVERLOADED, "nothing but transient errors, turn after turn", streak=True
        ),
        Family.RESUME_AT_RESET: Story(
            Kind.USAGE_LIMIT,
            "a usage limit is spent",
            Facts(resume_at_reset=True),
            resets=True,
            setting="choices.resume_at_reset",
        ),
        Family.CONTENT_FILTER_HOP: Story(Kind.CONTENT_REFUSED, "the model declines to answer"),
    }
)
"""One per family; the test keeps it complete."""


@frozen
class Sent:
    """One send of the prompt."""

    number: int
    family: Family | None
    """None for the first send, which is no retry."""
    retry: int | None
    """Which retry of its family, where the family waits."""
    limit: int | None
    """How many there are; None where time is the bound."""
    wait_s: float
    """Waited before it."""
    at_s: float
    """Seconds since the turn began."""
    steps: tuple[Step, ...]
    payload: Payload


@frozen
class Walk:
    """The whole turn."""

    sends: tuple[Sent, ...]
    ends_at_s: float
    outcome: How | None
    """None when it was cut at the most sends that are printed."""
    windows: Mapping[Family, float]
    """When each window that was used closes, in seconds since the turn began."""

    def uses(self, family: Family) -> bool:
        """Whether the family came to a send."""
        return any(sent.family is family for sent in self.sends)


@define
class _Next:
    """What was asked for since the last send."""

    wait: Wait | None = None
    waited_s: float = 0.0
    steps: list[Step] = field(factory=list)


def walk(
    settings: Settings,
    story: Story,
    *,
    chance: Random | None = None,
    attempt_s: float = 0.0,
    hint_s: float | None = None,
) -> Walk:
    """Follow the machine to the turn's end.

    `chance` None is no jitter.  Each attempt takes `attempt_s` and the server asks for `hint_s`.
    """
    models = settings.recoveries.fallback_models
    live = Live(binding="plan", model=_MODEL, served=(*story.served, *models))
    streak = settings.recoveries.poisoned_cycles - 1 if story.streak else 0
    machine = TurnMachine(
        settings, TurnIds("plan", "plan", "plan"), session=SessionState(poisoned_streak=streak)
    )
    verdict = _verdict(story, hint_s)
    luck = chance.random if chance else lambda: 0.0
    now, coming = 0.0, _Next()
    sends: list[Sent] = []
    first_failure: float | None = None
    effect: Effect | None = None
    event: Event | None = Started(now, live, story.opted)
    while event is not None and len(sends) < _MOST_SENDS:
        effect = machine.handle(event)[-1]
        event = None
        if isinstance(effect, Dispatch):
            event = Began(now, live)
        elif isinstance(effect, Send):
            sends.append(_sent(effect, coming, now))
            coming = _Next()
            if story.shown:
                machine.handle(Saw(effect.number, Evidence.TEXT))
            now += attempt_s
            first_failure = now if first_failure is None else first_failure
            event = Failed(now, live, effect.number, verdict, luck())
        elif isinstance(effect, Wait):
            coming.wait, coming.waited_s = effect, coming.waited_s + effect.until - now
            now = effect.until
            event = Due(now, live)
        elif isinstance(effect, Recover):
            coming.steps.append(effect.step)
            live = evolve(live, model=effect.target) if effect.target else live
            event = Recovered(now, live, effect.step, ok=True, detail=effect.target, luck=luck())
    outcome = effect.outcome if isinstance(effect, End) else None
    return Walk(tuple(sends), now, outcome, _windows(settings, sends, first_failure or 0.0))


def _verdict(story: Story, hint_s: float | None) -> Verdict:
    refused = story.kind is Kind.CONTENT_REFUSED
    return Verdict.of(
        story.kind,
        story.words,
        retry_after_s=None if story.resets else hint_s,
        resets_in_s=hint_s if story.resets else None,
        rejected_model=_MODEL if story.kind is Kind.MODEL_NOT_ENTITLED else "",
        refusal=Refusal(recommended_model=_OTHER) if refused else None,
    )


def _sent(effect: Send, coming: _Next, now: float) -> Sent:
    wait = coming.wait
    return Sent(
        number=effect.number,
        family=effect.family,
        retry=wait.number if wait else None,
        limit=wait.limit if wait else None,
        wait_s=coming.waited_s,
        at_s=now,
        steps=tuple(coming.steps),
        payload=effect.payload,
    )


def _windows(settings: Settings, sends: list[Sent], start: float) -> dict[Family, float]:
    by_path = values(settings)
    used = {sent.family for sent in sends if sent.family is not None}
    return {f: start + by_path[ROWS[f].window] for f in Family if f in used and ROWS[f].window}
