"""Secrets leave every text before anything is shown, logged, stored or counted.

`scrub` takes a text as a person or a provider wrote it; `scrub_value` and `one_line` take JSON.
Two tags stand where something was removed: `[REDACTED: suspicious URL to <host>]` for a URL that
carries a credential or looks like a smuggled payload, and `[REDACTED: credential]` for the rest.

This is the door.  What finds secrets (`secret_search`, `secret_values`, `cuts`) loads at the first
text that has to pass it: a program whose turns all land never pays for that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any


@cache
def _search() -> Callable[[str], str]:
    from orchestrator.failure.secret_search import without_secrets  # noqa: PLC0415

    return without_secrets


@cache
def _values() -> tuple[Callable[[object], Any], Callable[[object], str]]:
    from orchestrator.failure.secret_values import cleaned, lined  # noqa: PLC0415

    return cleaned, lined


@cache
def _cuts() -> tuple[Callable[[str, int], str], Callable[[str, int], str]]:
    from orchestrator.failure import cuts  # noqa: PLC0415

    return cuts.head, cuts.tail


def scrub(text: str) -> str:
    """Remove every secret from a text: URLs first, then credentials.

    Total, idempotent, and linear in the length of the text.
    """
    return _search()(text)


def scrub_value(value: object) -> Any:
    """A JSON-like value of the same structure with every secret removed.

    A name beside a value counts: `{"api_key": "..."}`, `{"name": "api_key", "value": "..."}`,
    `["authorization", "..."]`.  What JSON has no word for becomes text; what is deeper than 64
    levels, or holds itself, is left out.
    """
    return _values()[0](value)


def one_line(value: object) -> str:
    """A value as one line of compact ASCII JSON without secrets, cut to 2,000 characters.

    Each text is scrubbed in its own spelling before it is escaped, and the whole once more, since
    a name and its value may stand in different texts.  Only then is it cut.
    """
    return _values()[1](value)


def head(text: str, longest: int) -> str:
    """The start of a text, scrubbed so that the cut hides no secret."""
    return _cuts()[0](text, longest)


def tail(text: str, longest: int) -> str:
    """The end of a text, scrubbed in the same way."""
    return _cuts()[1](text, longest)


_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def terminal_line(text: str) -> str:
    """A foreign text that can't move the cursor, recolour, reorder or forge a line."""
    return _CONTROL.sub(lambda match: _escaped(match.group()), text)


def _escaped(char: str) -> str:
    short = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(char)
    return short or char.encode("unicode_escape", "backslashreplace").decode("ascii")
