"""One turn, driven: the anyio side of the turn machine.

How it works.  One task owns the turn: whoever awaits it, or a task of the orchestrator under
`async with`.  The owner asks the machine, performs what it answers, and sleeps, sends or recovers
as told (`_run`).  There is no policy here.

Everybody else (a Stop, a steer, the agent's evidence) only calls `feed`, which hands the event to
the machine at once: a Stop has taken effect when `stop()` returns.  What follows has to be done by
somebody who can wait (`_nudge`):

* the owner, if it pauses in line or before a retry: its pause is cancelled;
* a helper task of the orchestrator, if the owner is inside the agent's code.

The machine wants a whole tuple performed before the next event.  Only deliveries to sinks take
time; while some are owed, events queue up behind them (`_backlog`), and `settle` hands them in
after.  With no sinks nothing is ever owed and nothing queues.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from attrs import define, evolve

from orchestrator.failure.kinds import Category, Kind
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.redact import one_line, scrub
from orchestrator.failure.verdict import Verdict
from orchestrator.incident.ledger import NOTHING_ACTIVE, Mark
from orchestrator.incident.record import Record
from orchestrator.runner import allowed
from orchestrator.runner.agent import Attempt, AttemptEnd, Prompt, RecoveryResult
from orchestrator.runner.backlog import Backlog
from orchestrator.runner.delivery import PATIENCE_S
from orchestrator.runner.endings import event_of
from orchestrator.runner.progress import (
    Ended,
    NoteDelivered,
    Outcome,
    Progress,
    RecordRevised,
    RecoveryStarted,
    RetryScheduled,
    TextShown,
)
from orchestrator.turn.effects import (
    Cancel,
    CancelWait,
    Dispatch,
    Drop,
    Effect,
    End,
    Note,
    Payload,
    Publish,
    Recover,
    Send,
    SessionState,
    Wait,
)
from orchestrator.turn.events import (
    Advised,
    Began,
    Dropped,
    DropReason,
    Due,
    Event,
    Evidence,
    Facts,
    Live,
    Rebound,
    Recovered,
    Retrying,
    Saw,
    Started,
    Stopped,
    StopReason,
    UserSpoke,
)
from orchestrator.turn.machine import TurnMachine
from orchestrator.turn.state import State

if TYPE_CHECKING:
    from orchestrator.runner.session import Session

logger = logging.getLogger("orchestrator")

_QUEUED: Final = frozenset({State.READY, State.WAITING})


@define(eq=False, repr=False)
class Drive:
    """What drives one turn.  The host's side of it is `Turn`."""

    session: Session
    prompt: Prompt
    id: str
    """The host's id of the user's message, or one of ours."""
    facts: Facts
    machine: TurnMachine
    """The machine of this turn.  Public to read; only the runner may hand it events."""
    opening: Payload = Payload.VERBATIM
    """What the first send carries: a continue when a turn is retried after it showed text."""
    outcome: Outcome | None = None
    """How the turn ended; None while it has not."""
    record: Record | None = None
    """The last revision that was delivered for this turn."""
    stopping: bool = False
    """A Stop that was pressed on this turn is in flight."""
    outlived: int = 0
    """Stops that did not end it: what is owed to somebody goes on while it waits."""
    waited_s: float = 0.0
    """Seconds spent waiting before retries."""
    mark: Mark = NOTHING_ACTIVE
    """What was active in the session when the last attempt began."""
    unread: tuple[str, ...] = ()
    """Steers and follow-ups that no attempt is known to have read, in order."""

    _begun: bool = False
    _beside: bool = False
    """It runs in a task of the orchestrator, beside its `async with`."""
    _next: Effect | None = None
    """What the machine wants done next: the last effect of its last answer."""
    _flight: Attempt | None = None
    """The attempt that is in the agent's hands."""
    _pause: anyio.CancelScope | None = None
    """Where the owner pauses, in line or before a retry.  Cancelled by anything that happens."""
    _work: anyio.CancelScope | None = None
    """Where the owner is inside the agent's code.  Cancelled only when the turn is over."""
    _patience: anyio.CancelScope | None = None
    """Where a helper waits for the stop budget."""
    _backlog: Backlog | None = None
    """What the sinks are still owed, and events that arrived meanwhile."""
    _observed: bool = False
    """Observers are looking at an answer that is not performed yet; one of them may press Stop."""
    _last: Evidence | None = None
    """Evidence that was the last event of all."""
    _ended: anyio.Event | None = None
    """For those who wait for a turn that somebody else runs."""
    _error: Exception | None = None
    """What the last attempt raised; let go before any wait, since it holds whole frames."""
    _crash: Exception | None = None
    """What ended a turn that ran beside its `async with`, other than its outcome."""
    _chunks: list[str] | None = None
    """All that was shown."""
    _drops: tuple[Drop, ...] = ()
    _progress: MemoryObjectSendStream[Progress] | None = None
    _events: MemoryObjectReceiveStream[Progress] | None = None

    @property
    def raised(self) -> Exception | None:
        """What the last attempt raised.  A wait lets it go."""
        return self._error

    # What others tell it --------------------------------------------------------------------------

    def feed(self, event: Event) -> None:
        """Hand in an event from outside, and see to it that the answer is performed."""
        if isinstance(self._next, End):
            return  # it is over, and only not yet performed
        if self._backlog is not None or self._observed:
            self._behind().arrived.append(event)
        else:
            self._handle(event)
            self._nudge()

    def look(self, kind: type[UserSpoke | Rebound]) -> None:
        """Ask the rule again after the session's world changed."""
        if self._begun and self.outcome is None and self.machine.state is not State.IDLE:
            now = self.session.clock.now()
            self.feed(kind(now, self._live(now)))

    def saw(self, attempt: Attempt, evidence: Evidence, chunk: str = "") -> None:
        if self._flight is not attempt:
            return  # agents answer late
        if chunk:
            self._chunks = self._chunks or []
            self._chunks.append(chunk)
            self._tell(TextShown(attempt.number, chunk))
        if self._last is not evidence:  # the same again, and nothing between, says nothing new
            self.feed(Saw(attempt.number, evidence))
            self._last = evidence

    def agent_retries(self, attempt: Attempt, title: str, category: Category) -> None:
        if self._flight is attempt:
            self.feed(Retrying(attempt.number, scrub(title), category))

    def advised(self, attempt: Attempt, key: str, title: str, category: Category) -> None:
        if self._flight is attempt:
            self.feed(Advised(key, scrub(title), category))

    def consumed(self, text: str) -> None:
        if text in self.unread:
            unread = list(self.unread)
            unread.remove(text)
            self.unread = tuple(unread)
            self.session.refresh()

    def take_place(self, state: SessionState) -> None:
        """Go on: this turn is the first in line.  It takes up what the one before it left."""
        self.machine.session = state
        if self._pause is not None:
            self._pause.cancel()

    def abandon(self) -> None:
        """Give the turn up: its host is gone.  Nothing is awaited; what is owed is owed."""
        if self.outcome is not None or not self._begun:
            return
        now = self.session.clock.now()
        live = self._live(now)
        in_flight = self.machine.state is State.ATTEMPTING
        self.feed(Stopped(now, live, hard=True) if in_flight else Dropped(now, live))

    async def wind_up(self) -> None:
        """Deliver what is owed and end: the second half of `abandon`, for somebody who can wait."""
        await self.settle()
        if self.outcome is None and isinstance(self._next, End):
            self._finish(self._next)

    async def settle(self) -> None:
        """Deliver what the sinks are owed, then hand in what arrived meanwhile."""
        while (backlog := self._backlog) is not None:
            if backlog.settled is not None:  # somebody is at it
                await backlog.settled.wait()
                continue
            backlog.settled = settled = anyio.Event()
            try:
                await self._work_off(backlog)
                self._backlog = None
            finally:
                backlog.settled = None
                settled.set()
                self._nudge()

    async def _work_off(self, backlog: Backlog) -> None:
        owed, arrived = backlog.owed, backlog.arrived
        while owed or arrived:
            if owed:
                await self._deliver(*owed[0])
                owed.popleft()
            else:
                event = arrived.popleft()
                if not isinstance(self._next, End):
                    self._handle(event)

    # The owner ------------------------------------------------------------------------------------

    # One branch for each effect that takes time.  The wait is written out in place, because each
    # coroutine in between is memory that every waiting turn holds.
    async def _run(self) -> Outcome:  # noqa: C901, PLR0912
        """Ask the machine, perform what it answers, until it says how the turn ended."""
        session, clock = self.session, self.session.clock
        session.orchestrator.check_open()
        self._begun = True
        session.orchestrator.running.add(self)
        try:
            now = clock.now()
            self._handle(Started(now, self._live(now), self.facts))
            while self.outcome is None:
                if self._backlog is not None:
                    await self.settle()
                step, self._next = self._next, None
                if isinstance(step, Dispatch):
                    if not session.enter(self, ahead=step.ahead):
                        await self._stand_in_line()
                    if self._next is None:
                        self._handle(self._about_to_send())
                elif isinstance(step, Send):
                    end = await self._attempt(step)
                    if self._backlog is not None:
                        await self.settle()
                    if self._next is None:  # else a Stop has ended the turn
                        self._handle(self._attempt_ended(step.number, end))
                elif isinstance(step, End):
                    self._finish(step)
                elif isinstance(step, Recover):
                    await self._recover(step)
                else:  # a wait, or a tick that came early
                    before = self._about_to_wait(step)
                    with anyio.CancelScope() as self._pause:
                        await clock.sleep(self._wait_s(before))
                    self._waited(before)
        except BaseException:
            self._pause = None
            try:
                self.abandon()
            finally:
                self._hand_over()
            raise
        return self.outcome

    async def _stand_in_line(self) -> None:
        """Pause until the session's other turns have ended, or this one has."""
        while self.session.current is not self and self._next is None:
            with anyio.CancelScope() as self._pause:
                await anyio.sleep_forever()
            self._pause = None
            await self.settle()

    def _about_to_send(self) -> Event:
        """Ask for the permission, unless the fleet's retry budget was used up by others."""
        now = self.session.clock.now()
        live = self._live(now)
        if not live.may_retry and self.session.is_budgeted(self.machine.pending):
            return Dropped(now, live, DropReason.DENIED)
        return Began(now, live)

    def _attempt_ended(self, number: int, end: AttemptEnd) -> Event:
        now = self.session.clock.now()
        event = event_of(end, number, now, self._live(now), self.session.luck)
        if self.mark:
            self.session.answered(self, event)
        return event

    def _about_to_wait(self, step: Effect | None) -> float:
        self._error = None
        if isinstance(step, Wait):
            self._tell(RetryScheduled(step.family, step.number, step.limit, step.delay, step.kind))
        return self.session.clock.now()

    def _wait_s(self, now: float) -> float:
        deadline = self.machine.next_deadline()
        if deadline is None:
            raise RuntimeError(f"turn {self.id}: nothing to do and nothing to wait for")
        return max(0.0, deadline - now)

    def _waited(self, before: float) -> None:
        self._pause = None
        now = self.session.clock.now()
        self.waited_s += max(0.0, now - before)  # a clock that went back waited nothing
        if self._next is None and self._backlog is None:
            self._handle(Due(now, self._live(now)))

    async def _attempt(self, send: Send) -> AttemptEnd:
        """Put one attempt into the agent's hands and bring its end back as a value."""
        session = self.session
        payload = send.payload if self.opening is Payload.VERBATIM else self.opening
        self._flight = attempt = Attempt(self, send.number, payload, send.family)
        self.mark = session.ledger.mark()
        if send.family is not None:
            session.pays_for(send.family)
        try:
            if session.agent_cancel is not None and not self._beside:
                end = await session.agent.attempt(attempt)
            else:
                end = StopReason.CANCELLED  # by `_cancel`
                with anyio.CancelScope() as self._work:
                    end = await session.agent.attempt(attempt)
        except Exception as error:  # noqa: BLE001 - a failure is a value from here on
            self._error = error
            return session.verdict_on(error, self)
        finally:
            self._flight = self._work = None
            if self._patience is not None:
                self._patience.cancel()
        return session.understood(end, self) if isinstance(end, RawFailure | Verdict) else end

    async def _recover(self, recover: Recover) -> None:
        """Let the agent do one step of a recovery."""
        self._tell(RecoveryStarted(recover.step, recover.family, recover.target))
        self._error = None
        result = RecoveryResult(ok=False, detail="cancelled")
        budget = self.session.step_budget_s(recover.step)
        try:
            with anyio.CancelScope() as self._work, anyio.fail_after(budget):
                result = await self.session.agent.recover(recover)
        except Exception as error:  # noqa: BLE001 - foreign code
            result = RecoveryResult(ok=False, detail=one_line(str(error) or type(error).__name__))
        finally:
            self._work = None
        allowed.of(RecoveryResult, "recover", result)
        if result.ok:
            self.session.recovered(recover.step)
        await self.settle()
        if self._next is None:
            now = self.session.clock.now()
            live, luck = self._live(now), self.session.luck()
            self._handle(Recovered(now, live, recover.step, result.ok, result.detail, luck))

    async def _run_beside(self) -> None:
        """Own the turn in a task of the orchestrator."""
        try:
            await self._run()
        except Exception as error:  # noqa: BLE001 - raised again where the turn was entered
            self._crash = error
            self._announce_end()

    async def _join(self) -> Outcome:
        """Wait for a turn that somebody else runs."""
        while self.outcome is None and self._crash is None:
            if self._ended is None:
                self._ended = anyio.Event()
            await self._ended.wait()
        if self.outcome is None or self._crash is not None:
            raise self._crash or RuntimeError(f"turn {self.id} was given up")
        return self.outcome

    # What the machine asks for --------------------------------------------------------------------

    def _handle(self, event: Event) -> None:
        """Hand an event to the machine; perform what takes no time and note what comes next."""
        self._last = None
        effects = self.machine.handle(event)
        if self.stopping and self.machine.state in _QUEUED:
            self.stopping = False
            self.outlived += 1
        delivery = self.session.delivery
        if delivery.observers:
            self._observed = True
            delivery.observe(self.machine, event, effects)
            self._observed = False
        for effect in effects:
            perform = self._AT_ONCE.get(type(effect))
            if perform is None:
                self._next = effect
            else:
                perform(self, effect)

    def _nudge(self) -> None:
        """Wake whoever can perform what the machine now wants."""
        if self._pause is not None:
            if self._next is not None or self._backlog is not None:
                self._pause.cancel()
            return
        if self._work is not None and self._next is not None:
            self._work.cancel()
        if self._backlog is not None and (self._work or self._flight):
            self.session.orchestrator.spawn(self.settle)

    def _cancel(self, effect: Cancel) -> None:
        attempt, cancel = self._flight, self.session.agent_cancel
        if attempt is None:
            return
        spawn = self.session.orchestrator.spawn
        if cancel is not None:
            spawn(self._foreign, "cancel", partial(cancel, attempt, hard=effect.hard))
        if self._work is not None and (cancel is None or effect.hard):
            self._work.cancel()
        if not effect.hard:
            spawn(self._mind_stop_budget)

    def _drop(self, effect: Drop) -> None:
        self._drops = (*self._drops, effect)

    def _publish(self, effect: Publish) -> None:
        verdict = self.machine.verdict
        kind = Kind.SERVER_ERROR if verdict is None else verdict.kind
        notice = effect.record.id.startswith(f"{self.session.id}:notice:")
        self._owe(effect.record, Kind.ADVISORY if notice else kind)

    def _note(self, effect: Note) -> None:
        self._owe(effect, Kind.ADVISORY)

    def _owe(self, item: Record | Note, kind: Kind) -> None:
        """Deliver now where nobody has to be waited for, else put it into the outbox."""
        if self.session.delivery.configured:
            self._behind().owed.append((item, kind))
        elif isinstance(item, Record):
            self._delivered(self.session.ledger.restamp(item), kind)
        else:
            self._tell(NoteDelivered(item))

    def _behind(self) -> Backlog:
        if self._backlog is None:
            self._backlog = Backlog()
        return self._backlog

    async def _deliver(self, item: Record | Note, kind: Kind) -> None:
        """Delivery first: only what arrived somewhere moves the ledger."""
        session = self.session
        if isinstance(item, Record):
            record = session.ledger.restamp(item)
            if await session.delivery.deliver(record):
                self._delivered(record, kind)
        elif await session.delivery.deliver(item):
            self._tell(NoteDelivered(item))

    def _delivered(self, record: Record, kind: Kind) -> None:
        if kind is not Kind.ADVISORY:
            self.record = record
        self.session.ledger.delivered(record, kind)
        self._tell(RecordRevised(record))

    def _finish(self, end: End) -> None:
        self.outcome = Outcome(
            self.id,
            end.outcome,
            end.stop_reason,
            "".join(self._chunks or ()),
            self.record,
            end.verdict,
            self.machine.number,
            self.waited_s,
            self._drops,
            self.unread,
        )
        session = self.session
        session.keep(self, end)
        session.orchestrator.running.discard(self)
        self._announce_end()

    def _announce_end(self) -> None:
        progress, self._progress = self._progress, None
        if progress is not None:
            if self.outcome is not None:
                progress.send_nowait(Ended(self.outcome))
            progress.close()
        if self._ended is not None:
            self._ended.set()

    def _hand_over(self) -> None:
        """End a turn whose owner is going, or let a helper do it if sinks have to be waited for."""
        if self.outcome is not None:
            return
        if self._backlog is not None:
            self.session.orchestrator.spawn(self.wind_up)
        elif isinstance(self._next, End):
            self._finish(self._next)
        else:  # the machine itself raised; the turns behind this one must not wait for it
            self.session.leave(self)
            self.session.orchestrator.running.discard(self)

    async def _mind_stop_budget(self) -> None:
        """Tick the machine when the time for a soft Stop is over."""
        if self.machine.next_deadline() is None:
            return  # the attempt ended before this could begin
        clock = self.session.clock
        with anyio.CancelScope() as self._patience:
            await clock.sleep(self._wait_s(clock.now()))
        self._patience = None
        if self._flight is not None:
            now = clock.now()
            self.feed(Due(now, self._live(now)))

    async def _foreign(self, name: str, method: Callable[[], Awaitable[None]]) -> None:
        """Call what an agent may have.  A kill is finished even when all else is cancelled."""
        try:
            with anyio.move_on_after(PATIENCE_S, shield=True):
                await method()
        except Exception as error:  # noqa: BLE001 - foreign code
            logger.warning("agent.%s raised %s", name, type(error).__name__)

    def _tell(self, progress: Progress) -> None:
        if self._progress is not None:
            self._progress.send_nowait(progress)

    def _live(self, now: float) -> Live:
        session = self.session
        live = session.live_at(now) if session.orchestrator.budgeted else session.live
        stops = self.outlived + self.stopping
        if not stops:
            return live
        return evolve(
            live,
            surface_stops=live.surface_stops + stops,
            session_stops=live.session_stops + stops,
            stopping=self.stopping,
        )

    _AT_ONCE: ClassVar[dict[type[Effect], Callable[[Any, Any], None]]] = {
        CancelWait: lambda _drive, _effect: None,  # the pause ends when the owner is woken
        Cancel: _cancel,
        Drop: _drop,
        Publish: _publish,
        Note: _note,
    }
    """Effects that take no time.  The others are what the owner does next."""
