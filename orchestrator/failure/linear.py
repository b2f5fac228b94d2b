"""The regular expression engine that can't backtrack, over bytes.

RE2 answers in time linear in the text whatever the pattern is.  A pattern is compiled for bytes,
one byte per character, so that any text can be read, lone surrogates included; write what is beyond
ASCII as its UTF-8 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_MEMORY = 64 << 20
"""Bytes that one pattern may use for its automaton before RE2 falls back to a slower one."""
_WINDOW = 4096
_OVERLAP = 512


def compile_linear(pattern: str, *, captures: bool = True) -> Any:
    """Compile once and keep; the engine is loaded with the first pattern, not with the package."""
    import re2  # noqa: PLC0415 - importing the package must not load the engine

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.never_capture = not captures
    options.max_mem = _MEMORY
    return re2.compile(pattern.encode("utf-8"), options)


def find_next(pattern: Any, data: bytes, start: int) -> Any:
    """The first match from `start` on, found in windows.

    One search is linear, but it may read to the end of the text to learn that the leftmost attempt
    comes to nothing, and a text can make every search do so.  A window bounds what one search
    reads.  A match that touches the end of its window is looked for again in a larger one.  What a
    pattern needs before it can say yes has to fit into the overlap of 512 bytes.
    """
    size, window = len(data), _WINDOW
    while start < size:
        end = min(start + window, size)
        match = pattern.search(data, start, end)
        if match is None:
            if end == size:
                return None
            start, window = end - _OVERLAP, _WINDOW
        elif match.end() == end < size:
            start, window = match.start(), window * 2
        else:
            return match
    return None


def find_all(pattern: Any, data: bytes) -> Iterator[Any]:
    """Every match, one behind the other."""
    start = 0
    while (match := find_next(pattern, data, start)) is not None:
        yield match
        start = max(match.end(), match.start() + 1)
