"""What the user reads about a turn: short, concrete, and free of any provider's text.

A title starts with the cause, which is the verdict's finished title, and goes on with what happens
next.  No sentence names a command that some surface lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Verdict
from orchestrator.turn.case import reset_of
from orchestrator.turn.effects import Family, NoteCode

_DOING: Final[Mapping[Family, str]] = MappingProxyType(
    {
        Family.BUSY: "Trying again",
        Family.DEATH: "Restarting the agent",
        Family.REGISTRATION: "Restarting the agent after a pause",
        Family.LOST_SESSION: "Loading the session again",
        Family.THINKING: "Starting a new session with this conversation's text",
        Family.IMAGE: "Starting a new session with this conversation's text",
        Family.FRESH_SESSION: "Starting a fresh session for this message",
        Family.TRANSIENT: "Trying again",
        Family.MODEL_FALLBACK: "Trying another model",
        Family.CONTINUE_AFTER_OUTPUT: "Going on from what was shown",
        Family.ENTITLEMENT_SWAP: "Trying another model",
        Family.POISONED: "Checking whether this conversation is the problem",
        Family.CONTENT_FILTER_HOP: "Trying another model",
    }
)
_DOING_FOR_KIND: Final[Mapping[Kind, str]] = MappingProxyType(
    {Kind.CREDENTIAL_RELOAD: "Loading the credentials again"}
)
_CAUSE_FOR_FAMILY: Final[Mapping[Family, str]] = MappingProxyType(
    {Family.BUSY: "The agent is still busy with an earlier message."}
)
"""A family whose cause is told in our words, since the provider's name a command."""

NOTES: Final[Mapping[NoteCode, str]] = MappingProxyType(
    {
        NoteCode.STOPPED: "Stopped. Nothing more was sent.",
        NoteCode.SUPERSEDED: "Your newer message goes first; nothing more was sent here.",
        NoteCode.MOVED: "This conversation has moved, so nothing more was sent here.",
        NoteCode.LOST: "The queued message was lost, so nothing more was sent.",
        NoteCode.DENIED: "Sending again was not allowed, so nothing more was sent.",
        NoteCode.NESTED: "Not tried again here: the turn around this one decides that.",
        NoteCode.SEND_CAP: "Not tried again: this message was sent as often as one turn may.",
        NoteCode.RETRY_BUDGET: (
            "Not tried again: too many retries to this provider are under way. Try again later."
        ),
    }
)

CONNECTION_BACK: Final = "The connection is back."
ANSWER_CUT: Final = "The answer reached the model's output limit and may be incomplete."
TURN_LIMIT: Final = (
    "The agent reached its limit of steps for one turn. Start a new session to go on."
)
DECLINED: Final = "The model declined to answer this message."

_DROPPED: Final[Mapping[NoteCode, str]] = MappingProxyType(
    {
        NoteCode.STOPPED: "Trying again was stopped.",
        NoteCode.SUPERSEDED: "Trying again was stopped, because your newer message goes first.",
        NoteCode.MOVED: "Trying again was stopped, because this conversation has moved.",
        NoteCode.LOST: "Trying again was stopped, because the queued message was lost.",
        NoteCode.DENIED: "Trying again was stopped, because it was not allowed.",
    }
)


def joined(title: str, sentence: str) -> str:
    """Put a sentence behind a title that may or may not end as one."""
    title = title.strip()
    if not title:
        return sentence
    return f"{title} {sentence}" if title[-1] in ".!?…" else f"{title}. {sentence}"


def cause_of(family: Family, verdict: Verdict) -> str:
    """Say what went wrong, without what happens next."""
    return _CAUSE_FOR_FAMILY.get(family) or _without_step(verdict)


def _without_step(verdict: Verdict) -> str:
    """What happened alone: nobody has to do what is being done already."""
    if not verdict.next_step:
        return verdict.title
    before, _, after = verdict.title.partition(verdict.next_step)
    return f"{before.rstrip()}{after}" if before else verdict.title


def retrying(family: Family, verdict: Verdict, number: int, limit: int | None) -> str:
    """Title of a warning for one counted retry or one recovery."""
    doing = _DOING_FOR_KIND.get(verdict.kind, _DOING[family])
    of = f" ({number} of {limit})" if limit is not None and limit > 1 else ""
    return joined(cause_of(family, verdict), f"{doing}{of}.")


def in_all(title: str, number: int) -> str:
    """The agent's own words about a retry, and which one of the turn it is."""
    return joined(title, f"Retry {number} of this message.")


def standing(family: Family, verdict: Verdict, window_s: float) -> str:
    """Title of the one warning that stands for all retries of a window, or for one probe."""
    cause = _without_step(verdict)
    if family is Family.RESUME_AT_RESET:
        return joined(cause, f"Trying once more {_moment(verdict, reset_of(verdict))}.")
    return joined(cause, f"Trying again for up to {_span(window_s)}.")


def ended(verdict: Verdict, reset_in: float | None) -> str:
    """Title of the terminal error; `reset_in` when a wait was too long to be worth it."""
    if reset_in is None:
        return verdict.title
    return joined(_without_step(verdict), f"Try again {_moment(verdict, reset_in)}.")


def dropped(cause: str, code: NoteCode) -> str:
    """Title of the error that ends a warning whose retry will not be sent."""
    return joined(cause, _DROPPED[code])


def swapped(source: str, target: str) -> str:
    """Title of the notice about another model."""
    return f"Going on with the model {target} in place of {source or 'the one before'}."


def _moment(verdict: Verdict, in_s: float | None) -> str:
    """Say when: the clock where it is known, else a span."""
    if verdict.resets_at is not None:
        try:
            moment = datetime.fromtimestamp(verdict.resets_at, UTC)
        except (OverflowError, OSError, ValueError):
            pass
        else:
            return f"after {moment:%Y-%m-%d %H:%M} UTC"
    return f"in {_span(in_s or 0.0)}"


def _span(seconds: float) -> str:
    """Whole units, rounded up, so that nobody comes back too early."""
    for size, unit in ((3600.0, "hour"), (60.0, "minute")):
        if seconds > size or (unit == "minute" and seconds == size):
            count = -int(-seconds // size)
            return f"{count} {unit}{'s' * (count > 1)}"
    count = -int(-seconds // 1)
    return f"{count} second{'s' * (count != 1)}"
