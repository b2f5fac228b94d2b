"""One turn, as its host holds it."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from functools import partial
from types import TracebackType
from typing import Any, Self

from attrs import define

from orchestrator.runner import allowed
from orchestrator.runner.drive import Drive
from orchestrator.runner.progress import Outcome, Progress
from orchestrator.turn.events import RetryNow, Stopped
from orchestrator.turn.state import State


@define(eq=False, repr=False)
class Turn(Drive):
    """One user message until its outcome.  Made by `Session.turn`.

    `await turn` runs it and gives the `Outcome`.  `async with turn:` runs it beside you, to iterate
    over what happens: `async for progress in turn`.
    """

    def __repr__(self) -> str:
        state = self.outcome.how if self.outcome is not None else self.machine.state
        return f"<Turn {self.id} {state}>"

    def __await__(self) -> Generator[Any, Any, Outcome]:
        return self.wait().__await__()

    def wait(self) -> Coroutine[Any, Any, Outcome]:
        """Run the turn: what `await turn` does, for those who need a function that is awaited."""
        return self._join() if self._begun else self._run()

    async def __aenter__(self) -> Self:
        if self._begun:
            raise RuntimeError(f"turn {self.id} is running already; enter it before it is awaited")
        self.session.orchestrator.check_open()
        self._begun = self._beside = True
        self._watched().take_seat()
        self.session.orchestrator.spawn(self._run_beside)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if error is not None:
            self.stop(hard=True)
        try:
            await self._join()
        finally:
            self._watched().leave()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Progress:
        return await self._watched().next()

    def result(self) -> Outcome:
        """Return the outcome if the turn landed, else raise one of `orchestrator.errors`."""
        if self.outcome is None:
            raise RuntimeError(f"turn {self.id} has not ended; await it first")
        error = self.outcome.error()
        if error is not None:
            raise error from self._error
        return self.outcome

    def stop(self, *, hard: bool = False) -> None:
        """Stop this turn.  Soft: the agent may end its attempt in its own way, for a while."""
        if self.outcome is not None:
            return
        self.stopping = True
        if self._begun and self.machine.state is not State.IDLE:  # else the start sees it
            now = self.session.clock.now()
            self.feed(Stopped(now, self._live(now), hard))

    def steer(self, text: str) -> bool:
        """Give the running turn a message.  False when it has ended: send it as a turn."""
        allowed.of(str, "text", text)
        if self.outcome is not None:
            return False
        self.session.hears(self, text)
        steer, attempt = self.session.agent_steer, self._flight
        if steer is not None and attempt is not None:
            self.session.orchestrator.spawn(self._foreign, "steer", partial(steer, attempt, text))
        return True

    def retry_now(self) -> bool:
        """End the wait and send.  False when the turn is not waiting."""
        if self.machine.state is not State.WAITING or self.outcome is not None:
            return False
        now = self.session.clock.now()
        self.feed(RetryNow(now, self._live(now)))
        return True
