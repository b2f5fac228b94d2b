"""Retries for a plain async function, over the same machine as a turn.

Each call is a turn of its own in a session of its own, so concurrent calls share nothing but the
orchestrator's budgets and metrics.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import isawaitable
from typing import Generic, ParamSpec, TypeVar

from attrs import define

from orchestrator.errors import error_for
from orchestrator.runner.agent import Attempt, RecoveryResult
from orchestrator.runner.orchestrator import Orchestrator
from orchestrator.runner.session import Session
from orchestrator.turn.effects import Recover
from orchestrator.turn.events import Facts

P = ParamSpec("P")
T = TypeVar("T")

_AT_A_TIME = Facts()


@define(eq=False)
class _Call(Generic[T]):
    """One call of the function, as an agent: an attempt is one try."""

    function: Callable[[], Awaitable[T]]
    values: list[T]
    """What the try that landed returned."""

    async def attempt(self, _: Attempt, /) -> None:
        promised: object = self.function()
        if not isawaitable(promised):
            returned = type(promised).__name__
            raise TypeError(f"recovering() is for async functions; this one returned {returned}")
        self.values.append(await promised)

    async def recover(self, _: Recover, /) -> RecoveryResult:
        return RecoveryResult(ok=False, detail="a plain function has nothing to rebuild")


def recovering(
    orchestrator: Orchestrator,
    *,
    speaker: str | None = None,
    provider: str = "other",
    facts: Facts = _AT_A_TIME,
) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]:
    """Decorate an async function: what it raises is classified, and retried where that can help.

    The call raises the class of `orchestrator.errors` that the last failure belongs to, with what
    the function raised as its cause.  The orchestrator has to be open when the function is called,
    not when it is decorated.
    """

    def decorate(function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        name = getattr(function, "__qualname__", type(function).__qualname__)

        @wraps(function)
        async def call(*args: P.args, **kwargs: P.kwargs) -> T:
            tried: _Call[T] = _Call(lambda: function(*args, **kwargs), [])
            session = Session(orchestrator, name, tried, provider=provider, speaker=speaker)
            turn = session.turn("", facts=facts)
            await turn
            turn.result()
            if tried.values or turn.raised is None:
                return tried.values[-1]
            # What it raised is no failure of a turn (it says that it was cancelled, or advises), so
            # the turn has landed; but there is no value to return.
            raise error_for(session.understood(turn.raised)) from turn.raised

        return call

    return decorate
