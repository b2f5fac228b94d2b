"""Requests of the client's that pass through, until the agent answers or is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field, frozen

from orchestrator.acp.connection import Reply
from orchestrator.acp.framing import Frame
from orchestrator.acp.proxy.frames import id_key

Hook = Callable[[Reply], None]


@frozen
class Pending:
    """One request that waits for its answer."""

    number: Any
    """The client's id of it, which the agent got too."""
    method: str
    show: Callable[[Frame], bytes]
    """The agent's answer as the client is to see it."""
    on_success: Hook | None = None


@define(eq=False)
class Requests:
    """By id.  Each is answered once, whoever answers."""

    dropped: int = 0
    """Answers to nothing."""
    _pending: dict[str, Pending] = field(factory=dict)

    def add(self, pending: Pending) -> None:
        self._pending[id_key(pending.number)] = pending

    def answer(self, frame: Frame) -> bytes | None:
        """The agent's answer as the client is to get it; None when nothing waits for it."""
        message = frame.message
        pending = self._pending.pop(id_key(message.get("id")), None)
        if pending is None:
            self.dropped += 1
            return None
        if pending.on_success is not None and message.get("error") is None:
            pending.on_success(Reply(message.get("result"), frame=frame))
        return pending.show(frame)

    def take_all(self) -> tuple[Pending, ...]:
        """Everything that still waits; it has to be answered by us."""
        lost, self._pending = self._pending, {}
        return tuple(lost.values())

    def __len__(self) -> int:
        return len(self._pending)
