"""How long an agent may be silent within one attempt.

What the model says or does is a sign of life; what the adapter tells of the session is none.  The
clock stands still while the user is asked something, and runs slower while a tool runs, which may
be a long build that prints nothing.

An agent can also be busy without end: one that shortens its conversation over and over writes
message after message.  Any tool ends such a row of messages, so long work is never cut off by it.
"""

from __future__ import annotations

import math

import anyio
from attrs import define, field

from orchestrator.settings.model import Watchdogs


@define(eq=False)
class Watch:
    """The clock of one attempt.  Made when the prompt was sent."""

    limits: Watchdogs
    _tools: int = 0
    _last: float = field(factory=anyio.current_time)
    _seen: bool = False
    _questions: int = 0
    _circles: bool = False
    _acknowledge_by: float = math.inf
    _changed: anyio.Event = field(factory=anyio.Event)

    def life(self) -> None:
        """The agent showed that it lives."""
        self._last = anyio.current_time()
        self._seen = True

    def tools_running(self, count: int) -> None:
        """Tools that run now.  When the last one ends, the shorter limit holds again."""
        if count != self._tools:
            self._tools = count
            self._look_again()

    def messages_in_a_row(self, count: int) -> None:
        """Messages of the agent since it last used a tool."""
        if self.limits.messages_in_a_row and count > self.limits.messages_in_a_row:
            self._circles = True
            self._look_again()

    @property
    def circles(self) -> bool:
        """The agent writes message after message and comes to no end."""
        return self._circles

    def question(self, *, is_open: bool) -> None:
        """The user is asked something, or has answered."""
        self._questions += 1 if is_open else -1
        self.life()
        self._look_again()

    def cancelled(self) -> None:
        """A cancel was sent: now its acknowledgement is due, whatever else happens."""
        self._acknowledge_by = anyio.current_time() + self.limits.cancel_s
        self._look_again()

    async def expired(self) -> None:
        """Wait until the agent has been silent for too long."""
        while (deadline := self._deadline()) > anyio.current_time():
            # A sign of life only moves the deadline away: early enough to see that at the old one.
            with anyio.CancelScope(deadline=deadline):
                await self._changed.wait()

    def _look_again(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _deadline(self) -> float:
        if self._acknowledge_by < math.inf:
            return self._acknowledge_by
        if self._circles:
            return -math.inf
        if self._questions:
            return math.inf
        limit = self.limits.silence_s if self._seen else self.limits.first_sign_s
        if self._tools:
            limit = self.limits.tool_silence_s
        return self._last + limit if limit else math.inf
