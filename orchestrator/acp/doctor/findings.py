"""What an examination finds out about an agent."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from attrs import frozen


class Mark(StrEnum):
    """How a check came out."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"
    UNTRIED = "untried"


@frozen
class Finding:
    """What one check found, or what one remedy is worth."""

    name: str
    """Stable: programs match on it."""
    mark: Mark
    text: str
    """One sentence for people."""


Findings = Mapping[str, Finding]
"""By the name of what was found out about."""


def mark_of(found: Findings, name: str) -> Mark:
    """How a check came out; one that was not reached was not tried."""
    return found[name].mark if name in found else Mark.UNTRIED
