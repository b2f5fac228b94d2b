"""One value from outside, turned into what the model holds, or left as it is.

A file brings typed values, the environment and flags bring text.  Nothing is coerced across types:
`true` is not 1, `"3"` is not 3 in a file.  What cannot be read is handed back unchanged, and the
setting's own rule then refuses it with the value as the user wrote it.
"""

from __future__ import annotations

import re
from typing import Final

from orchestrator.settings.allowed import (
    DURATION,
    Allowed,
    Number,
    Seconds,
    Text,
    Texts,
    YesNo,
    plain,
)

_UNIT_S: Final = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0}
_DURATION: Final = re.compile(DURATION, re.ASCII)
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)([dhms]?)", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)
_MILLISECONDS: Final = re.compile(r"[0-9.]+ *(ms|msec|millis|milliseconds?)", re.ASCII)
_LONGEST: Final = 40
"""Characters of a number or duration; more is not one, and need not be parsed."""


def duration(text: str) -> float | None:
    """Seconds in `300s`, `5m`, `1h30m`, `1.5h` or `300`; None for anything else."""
    if not text or len(text) > _LONGEST or not _DURATION.fullmatch(text):
        return None
    return sum(float(n) * _UNIT_S[unit] for n, unit in _PART.findall(text))


def in_words(seconds: float) -> str:
    """A duration as people read it: `5m`, `1h30m`, `1.5s`."""
    if seconds < 60 or seconds != int(seconds):  # noqa: PLR2004 - a minute
        return f"{plain(seconds)}s"
    left, words = int(seconds), ""
    for unit in "dhms":
        n, left = divmod(left, int(_UNIT_S[unit]))
        words += f"{n}{unit}" if n else ""
    return words


def from_file(allowed: Allowed, value: object) -> object:
    """A value as TOML typed it."""
    if isinstance(allowed, Seconds) and isinstance(value, str):
        seconds = duration(value)
        return value if seconds is None else seconds
    if isinstance(allowed, Texts) and isinstance(value, list):
        return tuple(value)
    if isinstance(allowed, Number) and allowed.takes(value):
        return float(value)  # type: ignore[arg-type]  # a number, or it would not have been taken
    return value


def from_text(allowed: Allowed, text: str) -> object:
    """A value as an environment variable or a flag spells it; lists are separated by commas."""
    if isinstance(allowed, Text):
        return text
    if isinstance(allowed, Texts):
        return tuple(part.strip() for part in text.split(",")) if text.strip() else ()
    word = text.strip()
    if isinstance(allowed, YesNo):
        return {"true": True, "false": False}.get(word.lower(), text)
    if isinstance(allowed, Number):
        if len(word) <= _LONGEST and _NUMBER.fullmatch(word):
            return float(word)
        return from_file(allowed, text)
    return int(word) if _WHOLE.fullmatch(word) else text


def hint(allowed: Allowed, value: object, *, quoted: bool) -> str:
    """What to write instead, where the mistake is a known one; `quoted` in a file."""
    if not isinstance(value, str):
        return ""
    word = value.strip().lower()
    if isinstance(allowed, Seconds) and _MILLISECONDS.fullmatch(word):
        return 'milliseconds are not read: write "0.5s" for 500 ms'
    if quoted and not isinstance(allowed, Text | Texts) and from_text(allowed, value) != value:
        return "write it without the quotes"
    return ""
