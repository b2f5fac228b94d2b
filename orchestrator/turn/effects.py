"""What a turn machine asks for.  Imperative, frozen, performed by whoever drives it.

The host performs a whole tuple, in order, before it hands in the next event.
"""

from __future__ import annotations

from enum import StrEnum

from attrs import field, frozen

from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Verdict
from orchestrator.incident.record import Carrier, Record
from orchestrator.turn.events import DropReason, Step


class Family(StrEnum):
    """A row of the turn table."""

    BUSY = "busy"
    DEATH = "death"
    REGISTRATION = "registration"
    LOST_SESSION = "lost_session"
    THINKING = "thinking"
    IMAGE = "image"
    FRESH_SESSION = "fresh_session"
    TRANSIENT = "transient"
    CONNECTION = "connection"
    MODEL_FALLBACK = "model_fallback"
    CONTINUE_AFTER_OUTPUT = "continue_after_output"
    ENTITLEMENT_SWAP = "entitlement_swap"
    RIDE_OUT = "ride_out"
    POISONED = "poisoned"
    RESUME_AT_RESET = "resume_at_reset"
    CONTENT_FILTER_HOP = "content_filter_hop"


class Payload(StrEnum):
    """What a send carries."""

    VERBATIM = "verbatim"
    """The user's message as it was."""
    CONTINUE = "continue"
    """A request to go on from what was shown."""


class How(StrEnum):
    """How a turn ended."""

    LANDED = "landed"
    FAILED = "failed"
    REFUSED = "refused"
    STOPPED = "stopped"
    SUPERSEDED = "superseded"


class NoteCode(StrEnum):
    """What a note says: the whole list."""

    STOPPED = "stopped"
    SUPERSEDED = "superseded"
    MOVED = "moved"
    LOST = "lost"
    DENIED = "denied"
    NESTED = "nested"
    """Gave up at once: the turn around this one owns the recovery."""
    SEND_CAP = "send_cap"
    """Gave up: the turn's sends are used up."""
    RETRY_BUDGET = "retry_budget"
    """Gave up: the fleet's retry budget for this provider is used up."""


@frozen
class SessionState:
    """What outlives a turn.  The host stores it and hands it to the next one."""

    lost: int = 0
    discard: int = 0
    deaths: int = 0
    poisoned_streak: int = 0
    fallback_model: str = ""
    """Model a fallback swapped to; sticky until the user picks another."""
    notices: int = 0
    """Notice ids handed out; the next is this plus one."""


@frozen
class Dispatch:
    """A place in line.  Not yet the permission to send."""

    payload: Payload
    number: int
    """Number that the send would have."""
    ahead: bool = False
    """It goes before newer messages: a re-send, or a completion that is still owed."""


@frozen
class Send:
    """The permission.  Only this may reach the agent."""

    number: int
    family: Family | None = None
    payload: Payload = Payload.VERBATIM


@frozen
class Wait:
    until: float
    """Seconds on the caller's monotonic clock."""
    delay: float
    family: Family
    number: int
    """The retry this wait is for, from 1."""
    limit: int | None
    """How many the family allows; None for a window."""
    kind: Kind


@frozen
class CancelWait:
    pass


@frozen
class Recover:
    step: Step
    target: str = ""
    """Model to set, for a swap."""
    family: Family | None = None


@frozen
class Cancel:
    attempt: int
    hard: bool = False


@frozen
class Publish:
    record: Record
    carrier: Carrier = Carrier.UPDATE


@frozen
class Note:
    """A short advisory line, from a fixed list of codes."""

    code: NoteCode
    text: str


@frozen
class Drop:
    """Something pending will not be sent.  Nothing was counted for it."""

    family: Family
    number: int
    reason: DropReason


@frozen
class End:
    outcome: How
    stop_reason: str
    """How the prompt is answered, in the protocol's words."""
    verdict: Verdict | None
    """The last failure or refusal; None when the turn landed."""
    session: SessionState = field(factory=SessionState)


Effect = Dispatch | Send | Wait | CancelWait | Recover | Cancel | Publish | Note | Drop | End
