"""A text with its escapes undone, and where each piece of it stood.

Secrets hide behind backslash escapes (JSON in JSON, `repr`), percent escapes and character
references, in any number of layers.  A view undoes one kind of layer however often it was applied;
the views of a view undo what was mixed.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Final

from attrs import define

_MAX_VIEWS = 3

_ENCODED = re.compile(
    # The group is optional so that a long run of backslashes is read once.
    rb"\\+(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|([nrt\"'/=:&-]))?"
    rb"|%(?:25)*([0-9A-Fa-f]{2})"
    rb"|&(?:amp;)*(?:#x([0-9A-Fa-f]{1,4});|#([0-9]{1,5});|(quot|apos|amp|lt|gt);)"
)
ESCAPED: Final = r"\\[uxnrt\"'/=:&-]|%[0-9A-Fa-f]{2}|&(?:amp|lt|gt|quot|apos|#x?[0-9A-Fa-f]{1,5});"
"""Stands in every text of which a view differs; for a gate."""
_PLAIN: Final[Mapping[bytes, bytes]] = {
    b"n": b"\n", b"r": b"\r", b"t": b"\t",
    b"quot": b'"', b"apos": b"'", b"amp": b"&", b"lt": b"<", b"gt": b">",
}  # fmt: skip


def _decoded(match: re.Match[bytes]) -> bytes:
    four, two, char, percent, hexadecimal, decimal, entity = match.groups()
    if char or entity:
        return _PLAIN.get(char or entity, char)
    if not (two or percent or four or hexadecimal or decimal):
        return match.group()
    if two or percent:
        byte = int(two or percent, 16)
        # No text holds the bytes that marks are made of, so an escape must not make one.
        return bytes((byte,)) if byte < 0xF5 else b"?"  # noqa: PLR2004
    code = int(decimal) if decimal else int(four or hexadecimal, 16)
    return chr(code).encode("utf-8", "surrogatepass")


@define
class View:
    """The text with its escapes undone, and where each stretch of it came from."""

    data: bytes
    here: list[int]
    """Offsets in `data` from which a stretch runs in step with the text below."""
    there: list[int]
    below: View | None

    def origin(self, offset: int) -> int:
        """The place in the text as written."""
        if self.below is None:
            return offset
        index = bisect_right(self.here, offset) - 1
        return self.below.origin(self.there[index] + offset - self.here[index])


def views(data: bytes) -> Iterator[View]:
    """The text itself, and every view of it that differs."""
    view = View(data, [0], [0], None)
    yield view
    for _ in range(_MAX_VIEWS):
        if b"\\" not in view.data and b"%" not in view.data and b"&" not in view.data:
            return
        pieces: list[bytes] = []
        here, there = [0], [0]
        size = last = 0
        for match in _ENCODED.finditer(view.data):
            plain = _decoded(match)
            if plain == match.group():
                continue
            pieces += (view.data[last : match.start()], plain)
            size += match.start() - last + len(plain)
            last = match.end()
            here.append(size)
            there.append(last)
        if not pieces:
            return
        pieces.append(view.data[last:])
        view = View(b"".join(pieces), here, there, view)
        yield view
