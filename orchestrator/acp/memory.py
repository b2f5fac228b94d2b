"""What was said in a session, as bounded text: for a new session when the old one is lost.

Only text is kept: an image or a tool's output would be the very thing a new session has to be
free of.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import define, field

_MAX_CHARS: Final = 24_000
"""Of the whole memory; a provider's smallest context holds it many times over."""
_MAX_ENTRY: Final = 6_000
_MAX_ENTRIES: Final = 400
_CUT: Final = "\n[...]\n"
_PREFACE: Final = (
    "This conversation continues from an earlier session that is no longer available. "
    "What was said in it, possibly shortened:"
)
_CUT_OFF: Final = "Your last answer was cut off. It read so far:"
_AFTER: Final = "The conversation goes on with the next message."


@define(eq=False)
class Entry:
    """What one side said in one go: its beginning and its end, however much it was."""

    who: str
    size: int = 0
    """Characters kept."""
    _head: list[str] = field(factory=list)
    _tail: deque[str] = field(factory=deque)
    """What came after the beginning; its oldest parts are forgotten."""
    _head_size: int = 0

    def add(self, text: str) -> None:
        room = _MAX_ENTRY - self._head_size
        if room > 0:
            self._head.append(text[:room])
            self._head_size += len(self._head[-1])
            self.size += len(self._head[-1])
            text = text[room:]
        if text:
            self._tail.append(text[-_MAX_ENTRY:])
            self.size += len(self._tail[-1])
            while self.size - self._head_size - len(self._tail[0]) > _MAX_ENTRY:
                self.size -= len(self._tail.popleft())

    @property
    def text(self) -> str:
        """All of it, shortened in the middle where it is long."""
        return _shorten("".join((*self._head, *self._tail)).strip())


@define(eq=False)
class Memory:
    """The text of one conversation, oldest first; what no preface could hold is forgotten."""

    _entries: deque[Entry] = field(factory=deque)
    _forgotten: int = 0
    """Entries that are gone."""
    _size: int = 0
    """Characters of the entries that are over."""

    def user(self, prompt: str | Sequence[Mapping[str, Any]]) -> None:
        """Remember what the user wrote."""
        self._begin("User").add(text_of(prompt))

    def agent(self, chunk: str) -> None:
        """Remember what the agent showed."""
        last = self._entries[-1] if self._entries else None
        (last if last is not None and last.who == "Agent" else self._begin("Agent")).add(chunk)

    def preface(self, *, upto: int | None = None) -> str:
        """The conversation so far as one text; empty when nothing was said.

        `upto` leaves out the entries from there on, such as the message that is sent again.
        """
        kept: list[str] = []
        room = _MAX_CHARS
        entries = list(self._entries)
        if upto is not None:
            entries = entries[: max(0, upto - self._forgotten)]
        for one in reversed(entries):
            entry = f"{one.who}: {one.text}"
            if len(entry) > room:
                break
            kept.append(entry)
            room -= len(entry)
        if not kept:
            return ""
        return "\n\n".join((_PREFACE, *reversed(kept), _AFTER))

    def partial(self) -> str:
        """The answer that was cut off; empty when the agent was not the last to speak."""
        if not self._entries or self._entries[-1].who != "Agent":
            return ""
        return f"{_CUT_OFF}\n\n{self._entries[-1].text}"

    def __len__(self) -> int:
        return self._forgotten + len(self._entries)

    def _begin(self, who: str) -> Entry:
        if self._entries:
            self._size += self._entries[-1].size
        while self._size > 2 * _MAX_CHARS or len(self._entries) > _MAX_ENTRIES:
            self._size -= self._entries.popleft().size
            self._forgotten += 1
        self._entries.append(Entry(who))
        return self._entries[-1]


def text_of(prompt: str | Sequence[Mapping[str, Any]]) -> str:
    """The text of a prompt, without what is not text."""
    if isinstance(prompt, str):
        return prompt
    texts = (block.get("text") for block in prompt if block.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def blocks(prompt: str | Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A prompt as content blocks."""
    if isinstance(prompt, str):
        return [{"type": "text", "text": prompt}]
    return [dict(block) for block in prompt]


def _shorten(text: str) -> str:
    """Keep the beginning and the end of a long entry."""
    if len(text) <= _MAX_ENTRY:
        return text
    half = (_MAX_ENTRY - len(_CUT)) // 2
    return text[:half] + _CUT + text[-half:]
