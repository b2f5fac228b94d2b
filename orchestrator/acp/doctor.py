"""What an agent can do for a recovery, tried out: start, session, death, load, model, cancel."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen

from orchestrator.acp.runtime import Runtime


class Mark(StrEnum):
    """How a check came out."""

    YES = "yes"
    PARTLY = "partly"
    NO = "no"
    UNTRIED = "untried"


@frozen
class Finding:
    """One check's result."""

    check: str
    mark: Mark
    text: str
    """One sentence for people."""


async def examine(runtime: Runtime) -> list[Finding]:
    """Start the agent and look at it.  Raises StartFailedError."""
    await runtime.ready()
    return [Finding("handshake", Mark.YES, f"{runtime.name} speaks version 1 of the protocol.")]
