"""What an embedder needs to test a host: a scripted agent, a manual clock, and assertions.

    clock = ManualClock()
    agent = ScriptedAgent(Kind.OVERLOADED, ["Hello"])
    recorder = Recorder()
    async with Orchestrator(observers=[recorder], clock=clock, seed=1) as orchestrator:
        async with orchestrator.session("chat", agent).turn("hi") as turn:
            await clock.advance(10)
    assert turn.outcome.landed and turn.outcome.text == "Hello"
    assert_nothing_lost(recorder)

On trio, `trio.testing.MockClock(autojump_threshold=0)` needs no manual clock at all: leave `clock`
out, and a window of 300 s passes in milliseconds.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Final, TypeAlias, TypeVar

import anyio
from anyio.lowlevel import checkpoint
from anyio.to_thread import current_default_thread_limiter
from attrs import frozen

from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Refusal, Verdict
from orchestrator.incident.record import Record, Severity
from orchestrator.runner.agent import Attempt, AttemptEnd, RecoveryResult
from orchestrator.turn.effects import (
    Dispatch,
    Drop,
    Effect,
    End,
    Note,
    Payload,
    Recover,
    Send,
    Wait,
)
from orchestrator.turn.events import Event, Evidence, Failed, Finished, Refused, Step, StopReason
from orchestrator.turn.machine import TurnMachine

E = TypeVar("E")


# The agent ----------------------------------------------------------------------------------------


@frozen
class Pause:
    """A move: the agent takes its time."""

    seconds: float


@frozen
class Hang:
    """A move: the agent never says anything again."""


HANG: Final = Hang()

Move: TypeAlias = (
    str
    | Evidence
    | Pause
    | Hang
    | Kind
    | Verdict
    | RawFailure
    | Refusal
    | StopReason
    | Exception
    | Callable[[Attempt], Awaitable[None] | None]
)
"""What a scripted agent does next.

Text is shown; `Evidence` is reported; a `Kind`, or whatever an attempt may return, ends the
attempt; an exception is raised; a function is called with the attempt.
"""

_DONE: Final = RecoveryResult(ok=True)


@frozen
class Sent:
    """One prompt that reached the scripted agent."""

    number: int
    payload: Payload
    prompt: object


class ScriptedAgent:
    """Plays one script per attempt, and lands when the scripts are used up.

    `ScriptedAgent(Kind.OVERLOADED, ["Hel", ConnectionResetError()], ["lo"])` fails, then shows text
    and loses its connection, then answers.  A recovery step succeeds unless `recoveries` says else.
    """

    def __init__(
        self,
        *scripts: Move | Sequence[Move],
        recoveries: Mapping[Step, RecoveryResult | Exception] | None = None,
    ) -> None:
        self.scripts = [_listed(script) for script in scripts]
        self.recoveries = dict(recoveries or {})
        self.sent: list[Sent] = []
        """Every prompt it was sent, in order."""
        self.recovered: list[Recover] = []
        """Every step it was asked for, in order."""

    async def attempt(self, attempt: Attempt, /) -> AttemptEnd:
        place = len(self.sent)
        self.sent.append(Sent(attempt.number, attempt.payload, attempt.prompt))
        for move in self.scripts[place] if place < len(self.scripts) else ():
            if isinstance(move, Kind):
                return Verdict.of(move, f"scripted: {move}")
            if isinstance(move, Verdict | RawFailure | Refusal | StopReason):
                return move
            await self._do(move, attempt)
        return StopReason.END_TURN

    async def recover(self, recover: Recover, /) -> RecoveryResult:
        self.recovered.append(recover)
        result = self.recoveries.get(recover.step, _DONE)
        if isinstance(result, Exception):
            raise result
        return result

    async def _do(self, move: Move, attempt: Attempt) -> None:
        if isinstance(move, str) and not isinstance(move, Evidence):
            attempt.text(move)
        elif isinstance(move, Pause):
            await anyio.sleep(move.seconds)
        elif isinstance(move, Hang):
            await anyio.sleep_forever()
        elif isinstance(move, Exception):
            raise move
        elif isinstance(move, Evidence):
            _REPORT[move](attempt)
        elif callable(move):
            waited_for = move(attempt)
            if waited_for is not None:
                await waited_for


def _listed(script: Move | Sequence[Move]) -> Sequence[Move]:
    if isinstance(script, Sequence) and not isinstance(script, str):
        return script
    return [script]


_REPORT: Final[Mapping[Evidence, Callable[[Attempt], None]]] = {
    Evidence.TEXT: lambda attempt: attempt.text("text"),
    Evidence.THOUGHT: Attempt.thought,
    Evidence.TOOL: Attempt.tool,
}


class CancellableScriptedAgent(ScriptedAgent):
    """A scripted agent with a `cancel`: it ends a hanging attempt as `cancelled`.

    With `deaf=True` it only listens to a hard one.
    """

    def __init__(self, *scripts: Move | list[Move], deaf: bool = False) -> None:
        super().__init__(*scripts)
        self.deaf = deaf
        self.cancelled: list[tuple[int, bool]] = []
        """Attempts it was told to end, and whether whatever it takes."""
        self._told = anyio.Event()

    async def attempt(self, attempt: Attempt, /) -> AttemptEnd:
        self._told = anyio.Event()
        end: AttemptEnd = StopReason.CANCELLED
        async with anyio.create_task_group() as tasks:

            async def play() -> None:
                nonlocal end
                end = await ScriptedAgent.attempt(self, attempt)
                tasks.cancel_scope.cancel()

            tasks.start_soon(play)
            await self._told.wait()
            tasks.cancel_scope.cancel()
        return end

    async def cancel(self, attempt: Attempt, /, *, hard: bool) -> None:
        self.cancelled.append((attempt.number, hard))
        if hard or not self.deaf:
            self._told.set()


# The clock ----------------------------------------------------------------------------------------

_LET_OTHERS_RUN: Final = 20
"""Turns of the loop after each step of the clock: enough for a turn to send and to fail again."""
_THREADS_S: Final = 1.0
"""How long, in real seconds, the clock waits for what tasks have asked threads to do."""
_PATIENCE_S: Final = 30.0
"""How long, in real seconds, somebody sleeps on a clock that nobody moves."""


class ManualClock:
    """A clock that stands still until it is told to go on.  For `Orchestrator(clock=...)`.

    Who sleeps on it for 30 real seconds, and it was not moved, gets a RuntimeError that says so.
    """

    def __init__(self, now: float = 0.0) -> None:
        self._now = now
        self._sleepers: list[tuple[float, int, anyio.Event]] = []
        self._order = count()

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float, /) -> None:
        if seconds <= 0:
            await checkpoint()
            return
        wake = anyio.Event()
        sleeper = (self._now + seconds, next(self._order), wake)
        heapq.heappush(self._sleepers, sleeper)
        try:
            with anyio.move_on_after(_PATIENCE_S) as patience:
                await wake.wait()
        finally:
            if not wake.is_set():
                self._sleepers.remove(sleeper)
                heapq.heapify(self._sleepers)
        if patience.cancelled_caught and not wake.is_set():
            raise RuntimeError(_STANDS_STILL.format(now=self._now, until=sleeper[0]))

    async def advance(self, seconds: float) -> None:
        """Go on by so many seconds, and wake each sleeper at its own time, in order.

        Sinks that write through a thread, as `JsonLinesSink` does, are waited for.  What waits for
        a process or a socket may come too late to be woken, and then sleeps until the next call:
        give the host doubles of those, or a `JumpingClock`.
        """
        end = self._now + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            self._now = self._sleepers[0][0]
            while self._sleepers and self._sleepers[0][0] == self._now:
                heapq.heappop(self._sleepers)[-1].set()
            await self.settle()
        self._now = end

    async def settle(self) -> None:
        """Let the other tasks run until they wait again, and their threads end their work."""
        threads, until_s = current_default_thread_limiter(), time.monotonic() + _THREADS_S
        while True:
            for _ in range(_LET_OTHERS_RUN):
                await checkpoint()
            if not threads.borrowed_tokens or time.monotonic() >= until_s:
                return


_STANDS_STILL: Final = (
    "the manual clock stands at {now:g} s, and somebody has waited for {until:g} s: call"
    " `await clock.advance(...)` again (what waits for a process or a socket begins to sleep late),"
    " or use a JumpingClock, on which every sleep is over at once"
)


class JumpingClock(ManualClock):
    """A clock on which every sleep is over at once, and took its time all the same.

    For one turn at a time: two that sleep side by side add up.
    """

    async def sleep(self, seconds: float, /) -> None:
        await checkpoint()
        self._now += max(0.0, seconds)


# Who listens --------------------------------------------------------------------------------------


class RecordingSink:
    """A sink that keeps what it is given.  Raises `error` instead, from delivery `after` on."""

    def __init__(self, *, error: Exception | None = None, after: int = 0) -> None:
        self.items: list[Record | Note] = []
        self.flushed = 0
        self._error = error
        self._after = after

    async def deliver(self, item: Record | Note, /) -> None:
        if self._error is not None and len(self.items) >= self._after:
            raise self._error
        await checkpoint()
        self.items.append(item)

    async def flush(self) -> None:
        self.flushed += 1

    @property
    def records(self) -> list[Record]:
        return [item for item in self.items if isinstance(item, Record)]

    @property
    def notes(self) -> list[Note]:
        return [item for item in self.items if isinstance(item, Note)]


class Recorder:
    """An observer that keeps every event and effect."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, Event, tuple[Effect, ...]]] = []
        """Turn id, event, and what the machine answered."""
        self.pending: dict[str, bool] = {}
        """Whether something is pending, by turn id, as of the last event."""

    def __call__(self, turn: TurnMachine, event: Event, effects: tuple[Effect, ...]) -> None:
        self.steps.append((turn.ids.turn_id, event, effects))
        self.pending[turn.ids.turn_id] = turn.pending is not None

    def effects(self, kind: type[E]) -> list[E]:
        """Return all effects of one kind, in order."""
        return [e for _, _, effects in self.steps for e in effects if isinstance(e, kind)]

    def events(self, kind: type[E]) -> list[E]:
        """Return all events of one kind, in order."""
        return [event for _, event, _ in self.steps if isinstance(event, kind)]


# Assertions ---------------------------------------------------------------------------------------


def assert_nothing_lost(recorder: Recorder) -> None:
    """Every turn ended exactly once, and nothing that was scheduled is unaccounted for."""
    turns = {turn for turn, _, _ in recorder.steps}
    for turn in turns:
        effects = [e for id_, _, tuple_ in recorder.steps if id_ == turn for e in tuple_]
        ends = sum(isinstance(e, End) for e in effects)
        assert ends == 1, f"turn {turn} ended {ends} times"  # noqa: S101 - it is an assertion
        assert not recorder.pending[turn], f"turn {turn} ended with a retry pending"  # noqa: S101
        numbers = [e.number for e in effects if isinstance(e, Send)]
        assert numbers == list(range(1, len(numbers) + 1)), f"turn {turn} sent {numbers}"  # noqa: S101
        steps = [(event, tuple_) for id_, event, tuple_ in recorder.steps if id_ == turn]
        scheduled = sum(_schedules(event, tuple_) for event, tuple_ in steps)
        sent = sum(isinstance(e, Send) and e.family is not None for e in effects)
        dropped = sum(isinstance(e, Drop) for e in effects)
        told = f"turn {turn} scheduled {scheduled} retries, sent {sent} and dropped {dropped}"
        assert scheduled == sent + dropped, told  # noqa: S101


def _schedules(event: Event, effects: tuple[Effect, ...]) -> bool:
    """Whether this was a decision that left something pending."""
    decided = isinstance(event, Failed | Refused | Finished)
    decided = decided or any(isinstance(effect, Drop) for effect in effects)
    return decided and isinstance(effects[-1], Wait | Recover | Dispatch) if effects else False


def assert_settled(records: Iterable[Record], *, landed: bool = False) -> None:
    """Revisions rise by one on each id, and nothing follows an error.

    The last record of each incident is an error, unless the turn landed or text or a tool followed
    a warning: pass `landed` for those.
    """
    last: dict[str, Record] = {}
    for record in records:
        before = last.get(record.id)
        expected = 1 if before is None else before.revision + 1
        assert record.revision == expected, f"{record.id}: {record.revision}, not {expected}"  # noqa: S101
        assert before is None or before.severity is Severity.WARNING, f"{record.id} ended twice"  # noqa: S101
        last[record.id] = record
    for record in last.values():
        settled = landed or record.severity is Severity.ERROR
        assert settled, f"{record.id} still says: {record.title}"  # noqa: S101
