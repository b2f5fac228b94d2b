"""The same frame again with another text: how nearly all of a turn's frames look.

Once a chunk of text has passed, the next line that differs from it in its text alone passes the
same way, without being read as JSON: its first and last bytes are those of the frame that was
read, and what stands between them is the inside of a plain JSON string.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from attrs import define

_PLAIN: Final = re.compile(rb'[^"\\\x00-\x1f]+')
"""The inside of a JSON string in which nothing is escaped."""


@define(eq=False)
class Stream:
    """One message being streamed."""

    head: bytes
    tail: bytes
    pass_on: Callable[[bytes, str], bool]
    """Takes the line and its text; False when it has to be looked at after all."""

    def takes(self, line: bytes) -> bool:
        """Pass a line on if it is the same again."""
        head, tail = self.head, self.tail
        if not (line.startswith(head) and line.endswith(tail)):
            return False
        inside = line[len(head) : len(line) - len(tail)]
        if len(head) + len(tail) >= len(line) or _PLAIN.fullmatch(inside) is None:
            return False
        try:
            text = inside.decode("utf-8")
        except UnicodeDecodeError:
            return False
        return self.pass_on(line, text)


def stream_of(line: bytes, text: str, pass_on: Callable[[bytes, str], bool]) -> Stream | None:
    """The stream that a chunk of text belongs to; None when its text can't be found as it is."""
    inside = text.encode("utf-8", "surrogatepass")
    if _PLAIN.fullmatch(inside) is None:
        return None
    member = b'"text":"' + inside + b'"'
    if line.count(member) != 1:
        return None
    start = line.index(member) + len(b'"text":"')
    return Stream(line[:start], line[start + len(inside) :], pass_on)
