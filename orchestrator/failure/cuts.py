"""A long text cut short, without a secret that the cut would hide."""

from __future__ import annotations

import re
from typing import Final

from orchestrator.failure.secret_search import without_secrets

SURPLUS: Final = 2000
"""Characters read beyond a cut, to see what the cut would tear apart."""


def head(text: str, longest: int) -> str:
    """The start of a text, scrubbed.

    Half of a secret is no longer recognised as one.  So more is read than is kept, and as much as
    was read too far goes again, with the first half of whatever the cut tore apart.
    """
    if len(text) <= longest:
        return without_secrets(text)
    start = without_secrets(text[: longest + SURPLUS]) if longest else ""
    return (start if len(text) <= longest + SURPLUS else start[:-SURPLUS])[:longest]


def tail(text: str, longest: int) -> str:
    """The end of a text, scrubbed; what `head` says holds the other way round."""
    if len(text) <= longest:
        return without_secrets(text)
    cut = max(0, len(text) - longest - SURPLUS)
    end = without_secrets(_armour_before(text, cut) + text[cut:])
    return (end[SURPLUS:] if cut else end)[-longest:]


def _armour_before(text: str, cut: int) -> str:
    """The first line of a key in armour that the cut goes through; such a key can be long."""
    begun = text.rfind("-----BEGIN ", 0, cut)
    armour = _ARMOUR.match(text, begun) if begun > text.rfind("-----END ", 0, cut) else None
    return f"{armour[0]}\n" if armour else ""


_ARMOUR = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
