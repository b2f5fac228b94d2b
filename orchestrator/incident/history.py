"""Replay of a stored conversation: usage limits told as prose become records again.

A harness stores a spent allowance as an assistant message of its own making.  When the
conversation is loaded, such a message is one past incident: it comes back as a record at its old
place, under the id it had when it was live.  Only messages of the harness itself with its own
stable openings are read; a model that writes about limits is never taken for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Generic, TypeVar

from attrs import frozen

from orchestrator.failure.kinds import KINDS, Kind
from orchestrator.incident.record import Record, Severity

SYNTHETIC: Final = "<synthetic>"
"""Model of a message that the harness wrote itself."""

USAGE_LIMIT_OPENINGS: Final = (
    "You've hit your",
    "You've reached your",
    "You're out of usage credits",
    "Your org is out of usage · add funds to continue",
    "Your org is out of usage · contact your admin",
    "Your seat type doesn't include usage credits",
    "Your seat type doesn't include usage",
    "Your usage allocation has been disabled by your admin",
    "Your group's usage limit is set to $0",
    "Fable 5 requires usage credits",
    "You're out of extra usage",
    "Your seat type doesn't include extra usage",
)
"""How Claude's SDK opens its usage-limit messages (0.3.318, its own exported list)."""

_SIGN_IN: Final = "Please run /login"
"""Names a command of the harness's own terminal, so no other surface ever shows it."""
_NONE_DELIVERED: Final[Mapping[str, int]] = MappingProxyType({})

T = TypeVar("T")


class Author(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


@frozen
class Stored(Generic[T]):
    """One message of a stored conversation."""

    author: Author
    id: str
    """The persisted id of the message; a live turn takes its id from the user's."""
    item: T
    """What to show for it where it stays a message: passed through untouched."""
    text: str = ""
    """All its text blocks, joined."""
    model: str | None = None
    """The model that wrote it; None when unknown, which proves nothing."""
    top_level: bool = True
    """False inside a sub-agent."""
    prompt: bool = True
    """False for a user message that only carries tool results."""


@frozen
class Replay(Generic[T]):
    """A conversation as one client is to see it."""

    shown: tuple[T | Record, ...]
    """Messages and records in the order of the conversation."""
    active: Record | None
    """The limit that nothing later proved over; None for a client that gets no records."""

    @property
    def records(self) -> tuple[Record, ...]:
        return tuple(item for item in self.shown if isinstance(item, Record))


def is_usage_limit(text: str) -> bool:
    """Whether a text that the harness wrote opens like one of its usage-limit messages."""
    return text.startswith(USAGE_LIMIT_OPENINGS)


def replay(
    session_id: str,
    messages: Iterable[Stored[T]],
    *,
    capable: bool,
    delivered: Mapping[str, int] = _NONE_DELIVERED,
) -> Replay[T]:
    """Turn stored messages into what a client is shown.

    A capable client gets a record in place of each usage-limit message; any other client gets the
    prose as it was.  `delivered` holds the last revision of ids that this process has already
    told, so that a second load goes on from there.
    """
    shown: list[T | Record] = []
    active: Record | None = None
    revisions = dict(delivered)
    turn_id = ""
    for message in messages:
        if message.author is Author.USER:
            if message.top_level and message.prompt:
                turn_id = message.id
        elif _is_sign_in(message):
            continue
        elif capable and _is_limit(message):
            identity = f"{turn_id}:error" if turn_id else f"{session_id}:history-error:{message.id}"
            active = _record(identity, revisions.get(identity, 0) + 1, message.text)
            revisions[identity] = active.revision
            shown.append(active)
            continue
        elif _is_real_answer(message):
            active = None
        shown.append(message.item)
    return Replay(tuple(shown), active)


def _is_limit(message: Stored[T]) -> bool:
    return message.top_level and message.model == SYNTHETIC and is_usage_limit(message.text)


def _is_sign_in(message: Stored[T]) -> bool:
    return message.model == SYNTHETIC and _SIGN_IN in message.text


def _is_real_answer(message: Stored[T]) -> bool:
    """A model's own message proves recovery; what the harness writes locally does not."""
    return message.top_level and message.model is not None and message.model != SYNTHETIC


def _record(identity: str, revision: int, title: str) -> Record:
    row = KINDS[Kind.USAGE_LIMIT]
    return Record(
        id=identity,
        revision=revision,
        category=row.category,
        severity=Severity.ERROR,
        title=title,
        actions=row.actions,
    )
