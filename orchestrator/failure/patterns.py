"""Patterns over text that was made valid UTF-8, where `.` and classes mean whole characters.

The same engine as `linear`, which reads bytes of any kind and so sees a character as several.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

_MEMORY: Final = 64 << 20


@cache
def compile_text(pattern: str) -> Any:
    """Compile once and keep; the engine is loaded with the first pattern, not with the package."""
    import re2  # noqa: PLC0415 - importing the package must not load the engine

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    return re2.compile(pattern.encode("utf-8"), options)
