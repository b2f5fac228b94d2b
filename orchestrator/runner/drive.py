"""One turn, driven: the anyio side of the turn machine.

How it works.  One task owns the turn: whoever awaits it, or a task of the orchestrator under
`async with`.  The owner asks the machine, performs what it answers, and sleeps, sends or recovers
as told (`_run`).  There is no policy here.

Everybody else (a Stop, a steer, the agent's evidence) only calls `feed`, which hands the event to
the machine at once (`performer.py`).  What follows has to be done by somebody who can wait:

* the owner, if it pauses in line or before a retry: its pause is cancelled;
* a helper task of the orchestrator, if the owner is inside the agent's code.
"""

from __future__ import annotations

import anyio
from attrs import define

from orchestrator.failure.raw import RawFailure
from orchestrator.failure.redact import one_line
from orchestrator.failure.verdict import Verdict
from orchestrator.runner import allowed
from orchestrator.runner.agent import Attempt, AttemptEnd, RecoveryResult
from orchestrator.runner.audience import Audience
from orchestrator.runner.cancellation import CANCELLED, is_ours, this_task, without_failures
from orchestrator.runner.endings import event_of
from orchestrator.runner.performer import Performer
from orchestrator.runner.progress import (
    Outcome,
    RecoveryStarted,
    RetryScheduled,
)
from orchestrator.turn.effects import (
    Dispatch,
    Effect,
    End,
    Payload,
    Recover,
    Send,
    Wait,
)
from orchestrator.turn.events import (
    Began,
    Dropped,
    Due,
    Event,
    Recovered,
    Started,
    Stopped,
    StopReason,
)
from orchestrator.turn.state import State


@define(eq=False, repr=False)
class Drive(Performer):
    """What drives one turn.  The host's side of it is `Turn`."""

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
                    self._pause = session.orchestrator.sleep(self._wait_s(before))
                    await self._pause.wait()
                    self._waited(before)
        except BaseException:
            if self._pause is not None:
                self._pause.cancel()
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
        """Ask for the permission."""
        now = self.session.clock.now()
        return Began(now, self._live(now))

    def _attempt_ended(self, number: int, end: AttemptEnd) -> Event:
        now = self.session.clock.now()
        event = event_of(end, number, now, self._live(now), self.session.luck)
        if self.mark:
            self.session.answered(self, event)
        return event

    def _about_to_wait(self, step: Effect | None) -> float:
        self._error = None
        if self._audience is not None and isinstance(step, Wait):
            self._tell(RetryScheduled(step.family, step.number, step.limit, step.delay, step.kind))
        return self.session.clock.now()

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
        end: AttemptEnd = StopReason.CANCELLED  # by `_cancel` or `_insist`
        try:
            if session.agent_cancel is None or self._beside:
                with anyio.CancelScope() as self._work:
                    end = await session.agent.attempt(attempt)
            elif (task := this_task()) is not None:
                self._held = task
                end = await session.agent.attempt(attempt)
            else:
                with anyio.CancelScope() as self._held:
                    end = await session.agent.attempt(attempt)
        except (Exception, CANCELLED) as error:
            if isinstance(error, CANCELLED) and self._was_pulled():
                return StopReason.CANCELLED
            if isinstance(error, CANCELLED) and is_ours():
                raise
            self._error = error  # a failure is a value from here on
            return session.verdict_on(error, self)
        except BaseExceptionGroup as group:
            raise without_failures(group) from None
        finally:
            if self._pulls:
                self._was_pulled()
            self._flight = self._work = self._held = None
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None
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
        except (Exception, CANCELLED) as error:
            if isinstance(error, CANCELLED) and is_ours():
                raise
            result = RecoveryResult(ok=False, detail=one_line(str(error) or type(error).__name__))
        except BaseExceptionGroup as group:
            raise without_failures(group) from None
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
            audience = self._watched()
            audience.crash = error
            audience.dismiss(self.outcome)

    async def _join(self) -> Outcome:
        """Wait for a turn that somebody else runs."""
        audience = self._watched()
        if self.outcome is None:
            await audience.ended.wait()
        if self.outcome is None or audience.crash is not None:
            raise audience.crash or RuntimeError(f"turn {self.id} was given up")
        return self.outcome

    def _watched(self) -> Audience:
        if self._audience is None:
            self._audience = Audience()
        return self._audience

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
            self._notes,
        )
        session = self.session
        session.keep(self, end)
        session.orchestrator.running.discard(self)
        if self._audience is not None:
            self._audience.dismiss(self.outcome)

    def _hand_over(self) -> None:
        """End a turn whose owner is going, or let a helper do it if sinks have to be waited for."""
        if self.outcome is not None:
            return
        if self._backlog is not None:
            self.session.orchestrator.spawn(self.wind_up)
        elif isinstance(self._next, End):
            self._finish(self._next)
        else:  # the machine itself raised; nobody must wait for this turn
            self.session.leave(self)
            self.session.orchestrator.running.discard(self)
            self._watched().dismiss(None)
