"""What our own processes do about exceptions that reach nobody but the event loop.

A peer that resets a connection while its transport closes is noise: one warning, however often.  So
is a client that breaks the protocol of the scrape endpoint.  Everything else stays an error, with
the last effects of the turns beside it.  An embedder's loop is never touched.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any, Final

from attrs import define, field

from orchestrator.failure.redact import scrub
from orchestrator.turn.effects import Effect
from orchestrator.turn.events import Event
from orchestrator.turn.machine import TurnMachine

logger = logging.getLogger("orchestrator")

_KEPT: Final = 8
_CLOSE_CALLBACKS: Final = ("_call_connection_lost", "connection_lost")
_CLIENT_CALLBACKS: Final = ("client_connected_cb", "StreamReaderProtocol.connection_made")
"""What asyncio names where it served a client: up to Python 3.11, and from 3.12 on."""


@define(eq=False)
class LoopNoise:
    """An exception handler for an asyncio loop, and the observer that gives it its context."""

    effects: deque[str] = field(factory=lambda: deque(maxlen=_KEPT))
    resets: int = 0
    """Connection resets from close callbacks so far."""
    broken: int = 0
    """Clients of the scrape endpoint so far that broke its protocol, or were there at its end."""

    def install(self) -> None:
        """Handle what reaches the running loop; on trio such exceptions reach their task."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        loop.set_exception_handler(self.handle)

    def __call__(self, _: TurnMachine, __: Event, effects: tuple[Effect, ...]) -> None:
        """Remember what the turns did last: kinds of effects, nothing anybody wrote."""
        for effect in effects:
            self.effects.append(type(effect).__name__)

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take what asyncio found in no one's hands."""
        del loop
        error = context.get("exception")
        source = f"{context.get('message', '')} {context.get('handle', '')}"
        closing = any(name in source for name in _CLOSE_CALLBACKS)
        if isinstance(error, ConnectionResetError) and closing:
            self.resets += 1
            if self.resets == 1:
                logger.warning("a peer reset a connection that was closing; more are not told")
            return
        if any(name in source for name in _CLIENT_CALLBACKS):
            if isinstance(error, Exception):
                self.broken += 1
                if self.broken == 1:
                    logger.warning(
                        "a client of the scrape endpoint broke its protocol; more are not told"
                    )
            return  # a cancellation is the end of the program, with the client still there
        what = f"{type(error).__name__}: {error}" if error else context.get("message", "unknown")
        last = ", ".join(self.effects) or "none"
        logger.error("the event loop caught %s; last effects: %s", scrub(str(what)), last)
