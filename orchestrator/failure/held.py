"""Failures that an adapter writes as text: held back until the next frame tells what they are.

An adapter without a structured channel (codex-acp towards a client that negotiated nothing) writes
a turn's terminal error as an ordinary text chunk and then ends the turn as if it had succeeded.
Model text always names its item, so a chunk without a message id is the adapter's own.  Such a
chunk waits here: content behind it proves that it was no ending, an `end_turn` right behind it
proves that it was.

The filter is generic in what it hands back: put in whatever has to be delivered (a frame, an
event) and deliver what each call returns, in order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from attrs import evolve, field, frozen

from orchestrator.failure.raw import RawFailure

T = TypeVar("T")

_FIXED_NOTICES: Final = ("Warning: ", "Config warning: ", "*Context compacted")
"""Advisories the adapter writes in the middle of a healthy turn."""
_BLANK_LINE: Final = "\n\n"
"""How the adapter ends a whole chunk that holds an error."""
_MAX_ENVELOPE: Final = 1_000_000
"""Characters of text that are tried as JSON; a longer one is kept whole."""
_HTTP_STATUSES: Final = range(100, 600)
_ASIDE: Final = frozenset(
    (
        "available_commands_update",
        "config_option_update",
        "current_mode_update",
        "notice",
        "session_info_update",
        "usage_update",
    )
)
"""Updates about the session that prove nothing about the turn: real adapters send a title between
the error text and the end of the turn."""


class Sight(StrEnum):
    """What a frame of the running prompt means to the filter."""

    CHUNK = "chunk"
    """Text of the answer."""
    STEER = "steer"
    """A report that the agent read a steer."""
    CONTENT = "content"
    """Anything else that shows work: a thought, a tool, a plan, a question to the user."""
    ASIDE = "aside"
    """Session bookkeeping, or another session's frame on a shared process."""


class Terminal(StrEnum):
    """How the prompt ended."""

    END_TURN = "end_turn"
    ERROR = "error"
    """A JSON-RPC error: it says itself what failed."""
    OTHER = "other"
    """Any other stop reason, or the end of the process."""


@frozen
class Ended(Generic[T]):
    """What to do with a prompt's end."""

    deliver: tuple[T, ...] = ()
    """Released in order, before the end itself."""
    failure: RawFailure | None = None
    """The turn failed with this, although it says `end_turn`."""
    withheld: tuple[T, ...] = field(default=(), kw_only=True)
    """Not to be delivered.  A steer report among them means that the steer is queued again."""


class HeldChunks(Generic[T]):
    """One prompt's filter.  Make a new one for each prompt."""

    __slots__ = ("_held", "_open", "_texts")

    def __init__(self, *, command: bool = False) -> None:
        self._open = command
        self._held: list[T] = []
        self._texts: list[str] = []

    def __len__(self) -> int:
        return len(self._held)

    def chunk(self, item: T, text: str, message_id: str | None) -> tuple[T, ...]:
        """A text chunk: held when the adapter wrote it and it is not one of its fixed notices."""
        if message_id:
            return self.content(item)
        if self._open or text.startswith(_FIXED_NOTICES):
            return (item,)
        self._held.append(item)
        self._texts.append(text)
        return ()

    def steer(self, item: T) -> tuple[T, ...]:
        """A steer-consumed report: it waits behind held text, whose fate is its own."""
        if not self._held:
            return (item,)
        self._held.append(item)
        return ()

    def content(self, item: T) -> tuple[T, ...]:
        """Proof of work: everything held was no ending and goes first."""
        return (*self._release(), item)

    def aside(self, item: T) -> tuple[T, ...]:
        """Passes, and proves nothing."""
        return (item,)

    def end(self, terminal: Terminal) -> Ended[T]:
        """Settle what is held by how the prompt ended."""
        if not self._held:
            return Ended()
        if terminal is Terminal.ERROR:
            return Ended(withheld=self._release())
        whole = all(text.endswith(_BLANK_LINE) for text in self._texts)
        if terminal is not Terminal.END_TURN or not whole:
            return Ended(self._release())
        failure = told(self._texts)
        if failure is None:
            return Ended(self._release())
        return Ended(failure=failure, withheld=self._release())

    def _release(self) -> tuple[T, ...]:
        released = tuple(self._held)
        self._held.clear()
        self._texts.clear()
        return released


def told(texts: Iterable[str]) -> RawFailure | None:
    """The one failure that error chunks tell; None when they are all blank."""
    read = dict.fromkeys(_unwrapped(text.strip()) for text in texts if text.strip())
    if not read:
        return None
    statuses = {status for _, status in read if status in _HTTP_STATUSES}
    raw = RawFailure.text_chunk(_BLANK_LINE.join(message for message, _ in read))
    return evolve(raw, status=statuses.pop()) if len(statuses) == 1 else raw


def is_command(prompt: object) -> bool:
    """Whether the adapter reads a prompt as a slash command: its first text begins with one."""
    if not isinstance(prompt, list):
        return False
    texts = (
        block.get("text")
        for block in prompt
        if isinstance(block, Mapping) and block.get("type") == "text"
    )
    first = next(texts, None)
    return isinstance(first, str) and first.lstrip().startswith("/")


def sight(update: Mapping[str, Any]) -> Sight:
    """What an ACP session update of the running prompt means to the filter.

    An update of a kind not known here counts as content, since text shown late does less harm
    than text taken for a failure.
    """
    kind = update.get("sessionUpdate")
    content = update.get("content")
    if kind == "agent_message_chunk" and isinstance(content, Mapping):
        return Sight.CHUNK if isinstance(content.get("text"), str) else Sight.CONTENT
    return Sight.ASIDE if isinstance(kind, str) and kind in _ASIDE else Sight.CONTENT


def _unwrapped(text: str) -> tuple[str, int | None]:
    """The provider's sentence and status out of the adapter's envelope; other text is kept."""
    if not text.startswith("{") or len(text) > _MAX_ENVELOPE:
        return text, None
    try:
        envelope = json.loads(text)
    except (ValueError, RecursionError):
        return text, None
    kind, status, error = (envelope.get(key) for key in ("type", "status", "error"))
    message = error.get("message") if isinstance(error, dict) else None
    numbered = isinstance(status, int) and not isinstance(status, bool)
    if kind != "error" or not numbered or not isinstance(message, str) or not message.strip():
        return text, None
    return f"{message.strip()} (HTTP {status})", status
