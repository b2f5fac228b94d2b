"""What was said in a session, as bounded text: for a new session when the old one is lost.

Only text is kept: an image or a tool's output would be the very thing a new session has to be
free of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import define, field

_MAX_CHARS: Final = 24_000
"""Of the whole memory; a provider's smallest context holds it many times over."""
_MAX_ENTRY: Final = 6_000
_CUT: Final = "\n[...]\n"
_PREFACE: Final = (
    "This conversation continues from an earlier session that is no longer available. "
    "What was said in it, possibly shortened:"
)
_CUT_OFF: Final = "Your last answer was cut off. It read so far:"
_AFTER: Final = "The conversation goes on with the next message."


@define(eq=False)
class Memory:
    """The text of one conversation, oldest first."""

    _entries: list[tuple[str, list[str]]] = field(factory=list)

    def user(self, prompt: str | Sequence[Mapping[str, Any]]) -> None:
        """Remember what the user wrote."""
        self._entries.append(("User", [text_of(prompt)]))

    def agent(self, chunk: str) -> None:
        """Remember what the agent showed."""
        if not self._entries or self._entries[-1][0] != "Agent":
            self._entries.append(("Agent", []))
        self._entries[-1][1].append(chunk)

    def preface(self, *, upto: int | None = None) -> str:
        """The conversation so far as one text; empty when nothing was said.

        `upto` leaves out the entries from there on, such as the message that is sent again.
        """
        kept: list[str] = []
        room = _MAX_CHARS
        for who, parts in reversed(self._entries[:upto]):
            entry = f"{who}: {_shorten(''.join(parts).strip())}"
            if not entry.strip() or len(entry) > room:
                break
            kept.append(entry)
            room -= len(entry)
        if not kept:
            return ""
        return "\n\n".join((_PREFACE, *reversed(kept), _AFTER))

    def partial(self) -> str:
        """The answer that was cut off; empty when the agent was not the last to speak."""
        if not self._entries or self._entries[-1][0] != "Agent":
            return ""
        return f"{_CUT_OFF}\n\n{_shorten(''.join(self._entries[-1][1]).strip())}"

    def __len__(self) -> int:
        return len(self._entries)


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
