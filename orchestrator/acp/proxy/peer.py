"""What is known of the client, and what it can read."""

from __future__ import annotations

from typing import Any

from attrs import define

from orchestrator.acp.framing import Frame
from orchestrator.acp.proxy.client import ClientWire
from orchestrator.incident import extension


@define(eq=False)
class Peer:
    """The client: its wire, and what it declared in its `initialize`."""

    wire: ClientWire
    rows: bool = False
    """Short rows of text for a client that reads no records: asked for by the user."""
    declared: Any = None
    """Its `clientCapabilities`."""
    capable: bool = False
    """It reads records."""
    takes_notices: bool = False
    """It wants advisories as notices of the protocol."""

    def greeted(self, hello: Frame) -> None:
        """Read the client's `initialize`."""
        params = hello.message.get("params")
        self.declared = params.get("clientCapabilities") if isinstance(params, dict) else None
        self.capable = extension.negotiated(self.declared)
        self.takes_notices = extension.takes_notices(self.declared)

    def post(self, line: bytes) -> None:
        self.wire.post(line)
