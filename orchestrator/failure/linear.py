"""The regular expression engine that can't backtrack: everything here that loads RE2.

RE2 answers in time linear in the text whatever the pattern is.  It reads bytes of any kind, one
byte per character (`compile_linear`; write what is beyond ASCII as its UTF-8 bytes), or text that
was made valid UTF-8, where `.` and classes mean whole characters (`compile_text`).  To ask only
whether something stands in a text, `compile_signs` is the cheapest, of many patterns at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final

Signs = Callable[[bytes], "list[int] | None"]
"""Which patterns stand in a text, by their number; None for none."""

_MEMORY: Final = 64 << 20
"""Bytes that one pattern may use for its automaton before RE2 falls back to a slower one."""
_SET_MEMORY: Final = 256 << 20
"""The same for a large set of patterns; it is filled lazily and stays far below."""
_WINDOW = 4096
_OVERLAP = 512


def _options(*, text: bool, captures: bool = True, memory: int = _MEMORY) -> Any:
    import re2  # noqa: PLC0415 - importing the package must not load the engine

    options = re2.Options()
    if not text:
        options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.never_capture = not captures
    options.max_mem = memory
    return options


def compile_linear(pattern: str, *, captures: bool = True) -> Any:
    """Compile for bytes; the engine is loaded with the first pattern, not with the package."""
    import re2  # noqa: PLC0415

    return re2.compile(pattern.encode("utf-8"), _options(text=False, captures=captures))


@cache
def compile_text(pattern: str) -> Any:
    """Compile for UTF-8 text, once."""
    import re2  # noqa: PLC0415

    return re2.compile(pattern.encode("utf-8"), _options(text=True))


def compile_signs(*patterns: str, text: bool = True) -> Signs:
    """Compile a question about a text: which of these patterns stand in it."""
    compiled, bad = compile_patterns(patterns, text=text)
    if bad:
        raise ValueError(f"pattern is not valid: {patterns[bad[0]]}")
    return matcher(compiled)


def matcher(compiled: Any) -> Signs:
    """How to ask a set: of what the wrapper wraps, which saves a call at each of many questions."""
    match: Signs = getattr(compiled, "_set", compiled).Match
    return match


def compile_patterns(patterns: Iterable[str], *, text: bool = True) -> tuple[Any, list[int]]:
    """One RE2 set over all patterns, and the numbers of those that are not valid."""
    import re2  # noqa: PLC0415

    compiled = re2.Set.SearchSet(_options(text=text, captures=False, memory=_SET_MEMORY))
    bad: list[int] = []
    for number, pattern in enumerate(patterns):
        try:
            compiled.Add(pattern.encode("utf-8"))
        except re2.error:
            bad.append(number)
    compiled.Compile()
    return compiled, bad


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
