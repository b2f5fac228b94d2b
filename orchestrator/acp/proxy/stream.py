"""The same frame again with another text: how nearly all of a turn's frames look.

Once a chunk of text has passed, the lines that differ from it in their text alone pass the same
way, without being read as JSON: their first and last bytes are those of the frame that was read,
and what stands between them is the inside of a plain JSON string.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import define

_ESCAPED: Final = bytes(range(ord(" "))) + b'"\\'
_PLAIN: Final = bytes.maketrans(_ESCAPED, bytes(128 + byte for byte in _ESCAPED))
"""Translates bytes to themselves, but for those that cannot stand in a JSON string as they are.

A translation that changes nothing gives back the very object it was given.
"""


@define(eq=False)
class Stream:
    """One message being streamed."""

    head: bytes
    tail: bytes
    goes_on: Callable[[], bool]
    """Whether the message is still being listened to."""
    pass_on: Callable[[list[bytes], list[str]], None]
    """Takes lines and their texts."""

    def run(self, lines: list[bytes], start: int) -> int:
        """Pass on the lines from `start` on that are the same again; where the next other one is.

        One tight loop: it is what a long answer costs.
        """
        if not self.goes_on():
            return start
        head, tail, before, behind = self.head, self.tail, len(self.head), len(self.tail)
        texts: list[str] = []
        place = start
        for line in lines[start:] if start else lines:
            end = len(line) - behind
            if not (end > before and line.startswith(head) and line.endswith(tail)):
                break
            inside = line[before:end]
            if inside.translate(_PLAIN) is not inside:
                break
            try:
                texts.append(inside.decode())
            except UnicodeDecodeError:
                break
            place += 1
        if texts:
            self.pass_on(lines[start:place], texts)
        return place


def stream_of(
    line: bytes,
    text: str,
    goes_on: Callable[[], bool],
    pass_on: Callable[[list[bytes], list[str]], None],
) -> Stream | None:
    """The stream that a chunk of text belongs to; None when its text can't be found as it is."""
    inside = text.encode("utf-8", "surrogatepass")
    value = b'"' + inside + b'"'
    if not inside or line.count(value) != 1 or inside.translate(_PLAIN) != inside:
        return None
    start = line.index(value) + 1
    return Stream(line[:start], line[start + len(inside) :], goes_on, pass_on)
