"""Secrets leave every text before anything is shown, logged, stored or counted.

`scrub` takes a text as a person or a provider wrote it; `scrub_value` and `one_line` take JSON.
Two tags stand where something was removed: `[REDACTED: suspicious URL to <host>]` for a URL that
carries a credential or looks like a smuggled payload, and `[REDACTED: credential]` for the rest.

This is the door.  What finds secrets (`secret_search`, `secret_values`) loads at the first text
that has to pass it: a program whose turns all land never pays for that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final

CREDENTIAL_TAG: Final = "[REDACTED: credential]"
MAX_LINE: Final = 2000
"""Characters of `one_line` before the dropped length is named."""
SURPLUS: Final = 2000
"""Characters read beyond a cut, to see what the cut would tear apart."""


@cache
def _search() -> Callable[[str], str]:
    from orchestrator.failure.secret_search import without_secrets  # noqa: PLC0415

    return without_secrets


@cache
def _values() -> tuple[Callable[[object], Any], Callable[[object], str]]:
    from orchestrator.failure.secret_values import cleaned, lined  # noqa: PLC0415

    return cleaned, lined


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
    """The start of a text, scrubbed.

    Half of a secret is no longer recognised as one.  So more is read than is kept, and as much as
    was read too far goes again, with the first half of whatever the cut tore apart.
    """
    if len(text) <= longest:
        return scrub(text)
    start = scrub(text[: longest + SURPLUS]) if longest else ""
    return (start if len(text) <= longest + SURPLUS else start[:-SURPLUS])[:longest]


def tail(text: str, longest: int) -> str:
    """The end of a text, scrubbed; what `head` says holds the other way round."""
    if len(text) <= longest:
        return scrub(text)
    cut = max(0, len(text) - longest - SURPLUS)
    end = scrub(_armour_before(text, cut) + text[cut:])
    return (end[SURPLUS:] if cut else end)[-longest:]


def _armour_before(text: str, cut: int) -> str:
    """The first line of a key in armour that the cut goes through; such a key can be long."""
    begun = text.rfind("-----BEGIN ", 0, cut)
    armour = _ARMOUR.match(text, begun) if begun > text.rfind("-----END ", 0, cut) else None
    return f"{armour[0]}\n" if armour else ""


_ARMOUR = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")


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
