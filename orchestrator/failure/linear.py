"""The regular expression engine that can't backtrack, over bytes.

RE2 answers in time linear in the text whatever the pattern is.  A pattern is compiled for bytes,
one byte per character, so that any text can be read, lone surrogates included; write what is beyond
ASCII as its UTF-8 bytes.
"""

from __future__ import annotations

from typing import Any

_MEMORY = 64 << 20
"""Bytes that one pattern may use for its automaton before RE2 falls back to a slower one."""


def compile_linear(pattern: str, *, utf8: bool = False) -> Any:
    """Compile once and keep; the engine is loaded with the first pattern, not with the package.

    With `utf8`, `.` and classes mean whole characters; the text must then be valid UTF-8.
    """
    import re2  # noqa: PLC0415 - importing the package must not load the engine

    options = re2.Options()
    if not utf8:
        options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.max_mem = _MEMORY
    return re2.compile(pattern.encode("utf-8"), options)
