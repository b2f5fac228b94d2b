"""The orchestrator: what all turns of one process share, and nothing that two of them would.

Settings, clock, luck, sinks, observers, retry budgets, and one task group for the few things that
need a task of their own.  No global state, no thread.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import TaskGroup

from orchestrator.incident.record import Record
from orchestrator.runner import allowed
from orchestrator.runner.agent import CONTINUE, Agent, Prompt
from orchestrator.runner.budget import TokenBucket
from orchestrator.runner.clock import Clock, LoopClock, Sleep, sleeper
from orchestrator.runner.delivery import Delivery, IncidentReader, Observer
from orchestrator.runner.drive import Drive
from orchestrator.runner.session import Session
from orchestrator.settings.model import Settings
from orchestrator.sinks import Sink
from orchestrator.turn.effects import SessionState

_NOT_OPEN = "the orchestrator is not open: enter it with `async with`, or start its run()"


class Orchestrator:
    """Runs turns, each over its own machine.

    `async with Orchestrator(settings, sinks=[...]) as orchestrator:`, or, for a host with a
    lifecycle of its own, `task_group.start(orchestrator.run)` and `await orchestrator.aclose()`.

    Assigning `settings` takes effect at a turn boundary: turns that run keep theirs.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        sinks: Iterable[Sink] = (),
        observers: Iterable[Observer] = (),
        clock: Clock | None = None,
        wall_clock: Callable[[], float] = time.time,
        seed: int | str | None = None,
    ) -> None:
        self.settings = Settings() if settings is None else settings
        self.delivery = Delivery(sinks, observers)
        """Sinks and observers, and which were switched off."""
        self.wall_clock = wall_clock
        """POSIX seconds, for reset times that are worded as a time of day."""
        self.luck = random.Random(seed).random
        """Draws a number in [0, 1) for jitter."""
        self.running: set[Drive] = set()
        """Turns that have begun and not ended."""
        self.sleep: Callable[[float], Sleep]
        """Begins a sleep that a turn waits in; set while open."""
        self._clock = clock
        self._given_clock = clock
        self._sessions: dict[str, Session] = {}
        self._buckets: dict[str, TokenBucket] = {}
        self._tasks: TaskGroup | None = None
        self._closing = False
        self._none_running: anyio.Event | None = None
        self._close_asked: anyio.Event | None = None
        self._closed: anyio.Event | None = None
        for observer in self.delivery.observers:
            self._show_incidents_to(observer)

    # Lifecycle ------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._tasks is not None or self._closing:
            raise RuntimeError("an orchestrator is entered once; make another one")
        tasks = anyio.create_task_group()
        await tasks.__aenter__()
        self._tasks = tasks
        self._clock = self._given_clock or LoopClock()
        self.sleep = sleeper(self._clock)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Drop what waits, end what runs, deliver and flush; then let the helpers go."""
        tasks = self._tasks
        if tasks is None:
            return
        self._closing = True
        try:
            # Whoever leaves may be cancelled, and the sinks are still owed the last revisions.
            # Bounded by `PATIENCE_S` for each sink.
            with anyio.CancelScope(shield=True):
                for turn in tuple(self.running):
                    turn.abandon()
                for turn in tuple(self.running):
                    await turn.wind_up()
                await self.delivery.flush()
        finally:
            tasks.cancel_scope.cancel()
            self._tasks = None
            # Without the error: the task group is nobody's business, so what the body raised is
            # passed on as it is and not inside a group.
            await tasks.__aexit__(None, None, None)

    async def run(
        self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Stay open until `aclose`."""
        self._close_asked, self._closed = anyio.Event(), anyio.Event()
        try:
            async with self:
                task_status.started()
                await self._close_asked.wait()
        finally:
            self._closed.set()

    async def aclose(self) -> None:
        """End `run`: what waits is dropped, and the sinks are flushed when this returns."""
        if self._close_asked is None or self._closed is None:
            return
        self._close_asked.set()
        await self._closed.wait()

    # For the host ---------------------------------------------------------------------------------

    def session(
        self,
        key: str,
        agent: Agent,
        *,
        provider: str = "other",
        speaker: str | None = None,
        state: SessionState | None = None,
        continue_prompt: Prompt = CONTINUE,
    ) -> Session:
        """Return the session of this key; the first call for a key makes it.

        `provider` is a label of the metrics, `speaker` says whose failures the classifier reads,
        `state` is what an earlier process stored of `Session.state`.  A later call with another
        agent goes on with that one.
        """
        self.check_open()
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = Session(
                self,
                key,
                agent,
                provider=provider,
                speaker=speaker,
                state=state,
                continue_prompt=continue_prompt,
            )
        elif session.agent is not agent:
            session.use(agent)
        return session

    def forget(self, key: str) -> None:
        """Let a session go whose conversation is over.  One that has turns is kept."""
        session = self._sessions.get(key)
        if session is not None and not session.turns:
            del self._sessions[key]

    @property
    def active(self) -> tuple[Record, ...]:
        """Incidents of all sessions that nothing has ended yet."""
        return tuple(record for session in self._sessions.values() for record in session.active)

    # For sessions and turns -----------------------------------------------------------------------

    @property
    def clock(self) -> Clock:
        if self._clock is None:
            raise RuntimeError(_NOT_OPEN)
        return self._clock

    def _show_incidents_to(self, observer: object) -> None:
        if isinstance(observer, IncidentReader):
            observer.active = lambda: self.active

    def check_open(self) -> None:
        if self._tasks is None or self._closing:
            raise RuntimeError(_NOT_OPEN)

    def spawn(self, work: Callable[..., Coroutine[Any, Any, object]], *arguments: object) -> None:
        """Do something beside the caller."""
        if self._tasks is not None:
            self._tasks.start_soon(work, *arguments)

    @property
    def settings(self) -> Settings:
        """What the next turn goes by."""
        return self._settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self._settings = allowed.of(Settings, "settings", settings)
        self.budgeted = settings.budget.enabled

    def bucket(self, provider: str) -> TokenBucket:
        """Return the retry budget that the turns of a provider share."""
        rule = self.settings.budget
        bucket = self._buckets.get(provider)
        if bucket is None:
            bucket = self._buckets[provider] = TokenBucket(rule)
        elif bucket.rule is not rule:
            bucket.change(rule)
        return bucket
