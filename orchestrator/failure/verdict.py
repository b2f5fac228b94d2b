"""What a failure was understood to be: the one value that travels downstream.

Nothing behind the classifier reads a provider's text to decide something.  A `Verdict` carries
everything policy needs as data, and everything the user reads as finished, redacted text.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from attrs import frozen

from orchestrator.failure.kinds import KINDS, Action, Category, Kind, Recovery

MAX_TITLE: Final = 240
"""Characters of a title; what is longer goes to the details."""


class Cause(StrEnum):
    """Refines a kind where the user or the operator needs to know.  Never changes policy."""

    REFUSED = "refused"
    RESET = "reset"
    CLOSED = "closed"
    DNS = "dns"
    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    STREAM_CUT = "stream_cut"
    STALLED = "stalled"
    TLS = "tls"
    EXIT = "exit"
    SIGNAL = "signal"
    OOM = "oom"
    CRASH = "crash"
    PIPE = "pipe"
    NODE_VERSION = "node_version"
    INSTALL = "install"
    PERMISSION = "permission"
    SANDBOX = "sandbox"
    DELEGATE = "delegate"
    ENGINE = "engine"
    CONFIG = "config"
    DISK = "disk"
    DESCRIPTORS = "descriptors"
    MEMORY = "memory"


class Delivery(StrEnum):
    """Whether the agent can have read the prompt."""

    NOT_SENT = "not_sent"
    SENT = "sent"
    AMBIGUOUS = "ambiguous"
    """A write that stalled with the child alive: never replayed verbatim."""


class Phase(StrEnum):
    """Where in an agent's life the failure arrived."""

    START = "start"
    HANDSHAKE = "handshake"
    PROMPT = "prompt"
    LOAD = "load"
    IDLE = "idle"


@frozen
class Refusal:
    """Why a model declined.  A field is empty when unsaid, never guessed."""

    category: str = ""
    explanation: str = ""
    recommended_model: str = ""


@frozen
class Context:
    """What the host knows about the moment of the failure."""

    advertised_models: tuple[str, ...] | None = None
    """Models the account is served; None when unknown, which is not the same as none."""
    attachments: bool = False
    """This turn brings an image of its own."""
    phase: Phase = Phase.PROMPT
    text_shown: bool = False
    """The attempt has already shown text."""
    tool_run: bool = False
    """The attempt has already started a tool."""
    wall_now: float | None = None
    """POSIX seconds, for reset times worded as a wall clock; None disables those hints."""


@frozen
class Verdict:
    """One failure, understood.  Built by `classify`, or by `of` where the host knows the kind."""

    kind: Kind
    category: Category
    transient: bool
    network_path: bool
    structural: bool
    recovery: Recovery | None
    actions: tuple[Action, ...]
    title: str
    """What happened and a short next step; redacted; never a trace, URL, token or path."""
    details: str = ""
    """The whole text, only where it is too long for a title."""
    next_step: str = ""
    """The part of the title that says what to do; left out while something is done already."""
    raw_detail: str = ""
    """The redacted frame on one line for the log; empty when the title already is the text."""
    cause: Cause | None = None
    retry_after_s: float | None = None
    """Seconds the provider asks to wait, 0 or more."""
    resets_at: float | None = None
    """POSIX seconds at which a limit resets; for people."""
    resets_in_s: float | None = None
    """Seconds until then, measured at classification; for the machine."""
    delivery: Delivery | None = None
    provider_said: bool = False
    """A provider or an adapter speaks, so an unknown kind has category `service`."""
    rejected_model: str = ""
    refusal: Refusal | None = None
    rule: str = ""
    """Name of the rule that fired."""

    @classmethod
    def of(
        cls,
        kind: Kind,
        title: str,
        *,
        transient: bool | None = None,
        category: Category | None = None,
        cause: Cause | None = None,
        details: str = "",
        next_step: str = "",
        raw_detail: str = "",
        retry_after_s: float | None = None,
        resets_at: float | None = None,
        resets_in_s: float | None = None,
        delivery: Delivery | None = None,
        provider_said: bool = False,
        rejected_model: str = "",
        refusal: Refusal | None = None,
        rule: str = "",
    ) -> Verdict:
        """Fill a verdict from the kind's row.

        Pass `transient` and `category` only where the row leaves them to the failure.
        """
        row = KINDS[kind]
        if category is None:
            speaks = kind is Kind.UNKNOWN and provider_said
            category = Category.SERVICE if speaks else row.category
        return cls(
            kind=kind,
            category=category,
            transient=row.transient if transient is None else transient,
            network_path=row.network_path,
            structural=row.structural,
            recovery=row.recovery,
            actions=row.actions,
            title=title,
            details=details,
            next_step=next_step,
            raw_detail=raw_detail,
            cause=cause,
            retry_after_s=retry_after_s,
            resets_at=resets_at,
            resets_in_s=resets_in_s,
            delivery=delivery,
            provider_said=provider_said,
            rejected_model=rejected_model,
            refusal=refusal,
            rule=rule,
        )
