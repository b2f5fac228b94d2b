"""The machine of one turn: what happens after something went wrong, and when.

Theory of operation.  `_TABLE` below says which handler answers which event in which state.  A
handler moves the state and returns effects; it performs nothing.  What the table cannot show:

- Nothing is spent before a send.  A decided retry is a `Plan`; its cost is written in `_spend`,
  in the same tuple as its `Send`.  A plan that is dropped has nothing to hand back.
- `baseline` is the world as the turn began.  Whether a Stop, a rebind or a newer message revokes a
  plan is one comparison with it, asked whenever the host shows the world.
- `clean` is a fact of the turn: once text, a tool or an ambiguous delivery was seen, nothing is
  ever sent verbatim again.
- `Dispatch` is a place in line; `Send` is the permission, and only `Began` obtains it.
- Which family serves a failure and what it costs is in `table.py`; what a turn knows is in
  `state.py`; what is told, when and in which words, is in `incidents.py` and `wording.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from attrs import define, evolve

from orchestrator.failure.kinds import Kind, Recovery
from orchestrator.failure.verdict import Delivery, Verdict
from orchestrator.turn import effects as do
from orchestrator.turn import events as on
from orchestrator.turn import match, rule, snapshot, spending, table, wording
from orchestrator.turn.case import EVIDENCE_BIT, OUTPUT, Budgets, Case, Plan, hint_of, reset_of
from orchestrator.turn.curve import Curves, Pace, Pause, delay
from orchestrator.turn.events import DropReason, Event, Live, Step, StopReason
from orchestrator.turn.state import ENDS, FRESH, NOTHING, Effects, State, TurnState
from orchestrator.turn.table import IfItFails, Row, Target

EVENTS: Final[tuple[type[Event], ...]] = get_args(Event)

_ANYWHERE: Final[Mapping[type[Event], str]] = {
    # For the session's ledger; a turn has nothing to do with them.
    on.SignedIn: "_ignore",
    on.RuntimeReplaced: "_ignore",
}
_PENDING: Final[Mapping[type[Event], str]] = {
    # What ready, waiting and recovering share: news of the world, a Stop, a lost entry, and what
    # is late by nature, since agents answer a cancel late and dead processes report twice.
    on.Stopped: "_stop_pending",
    on.UserSpoke: "_look",
    on.Rebound: "_look",
    on.Due: "_look",
    on.RetryNow: "_look",
    on.Recovered: "_look",
    on.Failed: "_look",
    on.Refused: "_look",
    on.Finished: "_look",
    on.Dropped: "_lose",
    on.Advised: "_advise",
    on.Saw: "_ignore",
    on.Retrying: "_ignore",
    **_ANYWHERE,
}
_TABLE: Final[Mapping[State, Mapping[type[Event], str]]] = {
    State.IDLE: {on.Started: "_start", on.Due: "_ignore", **_ANYWHERE},
    State.READY: {**_PENDING, on.Began: "_send"},
    State.ATTEMPTING: {
        on.Saw: "_see",
        on.Failed: "_fail",
        on.Refused: "_refuse",
        on.Finished: "_finish",
        on.Retrying: "_pass_on",
        on.Advised: "_advise",
        on.Due: "_time_stop",
        on.Stopped: "_stop_attempt",
        on.UserSpoke: "_watch",
        on.Rebound: "_watch",
        on.RetryNow: "_watch",
        on.Recovered: "_watch",
        **_ANYWHERE,
    },
    State.WAITING: {**_PENDING, on.Due: "_drain", on.RetryNow: "_retry_now"},
    State.RECOVERING: {**_PENDING, on.Recovered: "_recovered"},
    **{end: dict.fromkeys(EVENTS, "_ignore") for end in State if end in ENDS},
}
_FINISHES: Final[Mapping[StopReason, str]] = {
    StopReason.END_TURN: "_land",
    StopReason.CANCELLED: "_land",
    StopReason.MAX_TOKENS: "_land_cut_off",
    StopReason.MAX_TURN_REQUESTS: "_exhaust",
    StopReason.REFUSAL: "_refuse_unsaid",
}
_ENDS_AS: Final[Mapping[Kind, StopReason]] = {
    # Kinds that are no failures: the attempt simply ended.
    Kind.CANCELLED: StopReason.CANCELLED,
    Kind.ADVISORY: StopReason.END_TURN,
    Kind.NOT_A_FAILURE: StopReason.END_TURN,
}
_NO_ROW: Final = len(table.TABLE)
_GOES_ON_AT: Final[Mapping[IfItFails, Callable[[Row], int]]] = {
    # The place in the table from which a failed step lets the rows be asked again.
    IfItFails.END: lambda _: _NO_ROW,
    IfItFails.AGAIN: lambda row: table.PLACES[row.family],
    IfItFails.NEXT_ROW: lambda row: table.PLACES[row.family] + 1,
}

# What a turn that lands at once answers, built once.
_FIRST: Final[Effects] = (do.Dispatch(do.Payload.VERBATIM, 1),)
_FIRST_AHEAD: Final[Effects] = (do.Dispatch(do.Payload.VERBATIM, 1, ahead=True),)
_SEND_FIRST: Final[Effects] = (do.Send(1),)
_FIRST_SENT: Final = Budgets(sends=1)
_BUDGET_DENIES: Final[Effects] = (
    do.Note(do.NoteCode.RETRY_BUDGET, wording.NOTES[do.NoteCode.RETRY_BUDGET]),
)
_LANDED_AT_ONCE: Final[Effects] = (do.End(do.How.LANDED, StopReason.END_TURN, None, FRESH),)

ShowsWorld = (
    on.Due
    | on.Failed
    | on.Finished
    | on.Rebound
    | on.Recovered
    | on.Refused
    | on.RetryNow
    | on.UserSpoke
)
"""News that carries a look at the world."""


class IllegalEvent(Exception):  # noqa: N818 - the public name of the contract
    """An event that cannot happen in this state; nothing was changed."""

    def __init__(self, state: State, event: object) -> None:
        legal = ", ".join(sorted(kind.__name__ for kind in _TABLE[state]))
        super().__init__(
            f"{type(event).__name__} is not allowed while a turn is {state}; {legal} are"
        )
        self.state = state
        self.event = event


@define(eq=False)
class TurnMachine(TurnState):
    """One turn.  `handle` is the only way in; its effects are the only way out."""

    def handle(self, event: Event) -> Effects:
        """Answer one event.

        The host performs the whole tuple before it hands in the next event.  Raises `IllegalEvent`,
        and changes nothing, where the event cannot happen.
        """
        handler = TRANSITIONS.get((self.state, type(event)))
        if handler is None:
            raise IllegalEvent(self.state, event)
        return handler(self, event)

    def snapshot(self, now: float | None = None) -> dict[str, Any]:
        """Write the turn down as plain JSON; times in it are relative to `now`.

        Without `now` it is the last moment that the turn was told.
        """
        return snapshot.take(self, now)

    @classmethod
    def restore(
        cls, data: Mapping[str, Any], now: float | None = None, curves: Curves | None = None
    ) -> TurnMachine:
        """Build the turn of a snapshot, on a clock that shows `now`.

        It behaves as the one that was written down.  Raises ValueError that names the field.
        """
        turn = snapshot.put_back(cls, data, now)
        turn.curves = curves
        return turn

    # A turn begins, is sent, lands.

    def _start(self, event: on.Started) -> Effects:
        self.now = event.now
        self.baseline = event.live
        self.facts = event.facts
        self.state = State.READY
        ahead = event.facts.owed and self.exempt()
        if event.live.stopping:
            if not ahead:
                return self._give_way(event.now, event.live, DropReason.STOPPED)
            # So that the very same `Live` is never taken for a world without a Stop.
            self.baseline = evolve(event.live, stopping=False)
        if not self.clean:
            return (do.Dispatch(do.Payload.CONTINUE, 1),)
        return _FIRST_AHEAD if ahead else _FIRST

    def _send(self, event: on.Began) -> Effects:
        live = event.live
        if live is not self.baseline or self.plan is not None:
            revoked = self.revoked(live)
            if revoked is not None:
                return self._give_way(event.now, live, revoked)
            self.forgive(live)
        self.now = event.now
        plan = self.plan
        if plan is not None and not live.may_retry and table.ROWS[plan.family].budgeted:
            return self._deny(plan, live)
        self.state = State.ATTEMPTING
        self.number += 1
        self.shown = 0
        if plan is None:
            self.budgets = _FIRST_SENT
            return _SEND_FIRST if self.clean else (do.Send(1, payload=do.Payload.CONTINUE),)
        return self._spend(plan)

    def _deny(self, plan: Plan, live: Live) -> Effects:
        """Give up a re-send for which others used up the budget; the turn ends as it failed."""
        drop = self.drop(plan, DropReason.DENIED)
        case = self.case(plan.failed_at, live, self.cause())
        return (drop, *_BUDGET_DENIES, *self._terminate(case))

    def _see(self, event: on.Saw) -> Effects:
        if event.attempt != self.number:
            return NOTHING
        bit = EVIDENCE_BIT[event.evidence]
        self.shown |= bit
        self.seen |= bit
        if not bit & OUTPUT:
            return NOTHING
        self.clean = False
        return NOTHING if self.incidents is None else self.incidents.output_arrived()

    def _finish(self, event: on.Finished) -> Effects:
        if event.attempt != self.number:
            return self._watch(event)
        live = event.live
        self.now = event.now
        stopped = live is not self.baseline and rule.stopped(self.baseline, live)
        if stopped or self.stop_at is not None:
            return self._give_way(event.now, live, DropReason.STOPPED)
        return ENDINGS[event.stop_reason](self, event)

    def _land(self, event: on.Finished) -> Effects:
        at_once = self.incidents is None and self.session is FRESH
        if at_once and event.stop_reason is StopReason.END_TURN:
            self.state = State.LANDED
            return _LANDED_AT_ONCE
        told = NOTHING if self.incidents is None else self.incidents.connection_back()
        return told + self.end(do.How.LANDED, event.stop_reason)

    def _land_cut_off(self, event: on.Finished) -> Effects:
        return self.notice("max_tokens", wording.ANSWER_CUT) + self._land(event)

    def _exhaust(self, event: on.Finished) -> Effects:
        verdict = Verdict.of(Kind.BUDGET_EXHAUSTED, wording.TURN_LIMIT)
        return self._close(event.now, event.live, verdict)

    # An attempt ends otherwise.

    def _fail(self, event: on.Failed) -> Effects:
        if event.attempt != self.number:
            return self._watch(event)
        ends_as = _ENDS_AS.get(event.verdict.kind)
        if ends_as is not None:
            return self._finish(on.Finished(event.now, event.live, event.attempt, ends_as))
        return self._close(event.now, event.live, event.verdict, event.luck)

    def _refuse(self, event: on.Refused) -> Effects:
        if event.attempt != self.number:
            return self._watch(event)
        title = event.refusal.explanation or wording.DECLINED
        verdict = Verdict.of(Kind.CONTENT_REFUSED, title, refusal=event.refusal)
        return self._close(event.now, event.live, verdict)

    def _refuse_unsaid(self, event: on.Finished) -> Effects:
        verdict = Verdict.of(Kind.CONTENT_REFUSED, wording.DECLINED)
        return self._close(event.now, event.live, verdict)

    def _close(self, now: float, live: Live, verdict: Verdict, luck: float = 0.0) -> Effects:
        """Close the attempt; a Stop or a rebind ends the turn before anything is decided."""
        self.now = now
        self.verdict = verdict
        if verdict.delivery is Delivery.AMBIGUOUS:
            self.clean = False
        revoked = self.revoked(live) if self.stop_at is None else DropReason.STOPPED
        if revoked is not None:
            return self._give_way(now, live, revoked)
        return self._decide(self.case(now, live, verdict), now, luck)

    def _decide(self, case: Case, now: float, luck: float, place: int = 0) -> Effects:
        """Find the row that serves a failure, from `place` on, and begin what it says."""
        row = match.first_match(case, place)
        if row is None:
            denied = _BUDGET_DENIES if match.budget_denies(case, place) else NOTHING
            return denied + self._terminate(case)
        withheld = self._withheld()
        if withheld is not None:
            return (do.Note(withheld, wording.NOTES[withheld]), *self._terminate(case))
        plan = self.plan = match.plan_for(row, case)
        self.step, self.waited = 0, False
        # A refusal is no failure: nothing is told before another model is asked.
        told = NOTHING if _is_refusal(case.verdict) else self.told().go_on(row, plan, case)
        return told + self._advance(plan, now, luck)

    def _withheld(self) -> do.NoteCode | None:
        """Why no row may serve this turn, whatever matches."""
        if self.facts.nested:
            return do.NoteCode.NESTED
        at_cap = self.budgets.sends >= self.settings.turn.max_sends
        return do.NoteCode.SEND_CAP if at_cap else None

    def _terminate(self, case: Case) -> Effects:
        """End on this failure: the terminal row."""
        refused = _is_refusal(case.verdict)
        told = self.told()
        error = NOTHING if refused and told.open is None else told.fail(case)
        cycle = case.verdict.transient and case.used_up
        return error + self.end(do.How.REFUSED if refused else do.How.FAILED, silent_cycle=cycle)

    # A plan waits, recovers, gets its place in line.

    def _advance(self, plan: Plan, now: float, luck: float) -> Effects:
        """Go on with a plan: its wait, its next step, or its place in line."""
        row = table.ROWS[plan.family]
        done = self.step == len(row.steps)
        if row.pause is not None and not self.waited and (done or row.pause.before_steps):
            return self._wait(plan, row.pause, now, luck)
        if done:
            self.state = State.READY
            return (do.Dispatch(self.payload(row), self.number + 1, ahead=True),)
        self.state = State.RECOVERING
        step, _ = row.steps[self.step]
        return (do.Recover(step, plan.target if step is Step.SWAP else "", row.family),)

    def _wait(self, plan: Plan, pause: Pause, now: float, luck: float) -> Effects:
        """Open the backoff timer; a hint shrinks by what a step before it took."""
        verdict = self.cause()
        hint = (reset_of if pause.pace is Pace.AT_RESET else hint_of)(verdict)
        left = None if hint is None else hint - (now - plan.failed_at)
        seconds = delay(self.settings, pause, plan.number, luck, hint=left, curves=self.curves)
        self.state = State.WAITING
        self.wait_from = now
        self.wait_until = until = now + seconds
        return (do.Wait(until, seconds, plan.family, plan.number, plan.limit, verdict.kind),)

    def _drain(self, event: on.Due) -> Effects:
        looked = self._look(event)
        if looked or self.wait_until is None or event.now < self.wait_until:
            return looked
        return self._resume(event)

    def _retry_now(self, event: on.RetryNow) -> Effects:
        return self._look(event) or (do.CancelWait(), *self._resume(event))

    def _resume(self, event: on.Due | on.RetryNow) -> Effects:
        """Go on behind a wait; only the wait itself needed luck."""
        self.forgive(event.live)  # a step may follow, and no step is exempt
        self.stop_waiting(event.now)
        self.waited = True
        return self._advance(self.planned(), event.now, 0.0)

    def _recovered(self, event: on.Recovered) -> Effects:
        plan = self.planned()
        row = table.ROWS[plan.family]
        step, if_it_fails = row.steps[self.step]
        looked = self._look(event)
        if looked or event.step is not step:
            return looked
        if row.target is Target.CANDIDATE:
            self.cursor = self.settings.recoveries.fallback_models.index(plan.target) + 1
        # A swap is witnessed: a model read back that is not the target is a silent no-op.
        witnessed = step is not Step.SWAP or event.detail in {"", plan.target}
        if not (event.ok and witnessed):
            return self._fall_back(plan, event, _GOES_ON_AT[if_it_fails](row))
        # Only a new native session has an id to report; it knows nothing of what was shown.
        if row.verbatim_in_new_session and event.detail and not self.clean:
            return self._fall_back(plan, event, _NO_ROW)
        self.step += 1
        return self._advance(plan, event.now, event.luck)

    def _fall_back(self, plan: Plan, event: on.Recovered, place: int) -> Effects:
        """Drop a plan whose step failed, and ask the rows from `place` on."""
        drop = self.drop(plan, DropReason.DENIED)
        case = self.case(plan.failed_at, event.live, self.cause())
        return (drop, *self._decide(case, event.now, event.luck, place))

    def _spend(self, plan: Plan) -> Effects:
        """Send a plan, and write down what that costs: here and nowhere else."""
        row = table.ROWS[plan.family]
        self.budgets = spending.spent(row, self.budgets, self.settings, plan.curve_start)
        self.session = spending.charged(row, self.session, plan.target)
        self.plan = None
        send = do.Send(self.number, plan.family, self.payload(row))
        if not plan.target:
            return (send,)
        title = wording.swapped(plan.source, plan.target)
        return (*self.notice(f"swap:{plan.target}", title), send)

    # The world changes: a Stop, a newer message, a rebind, a lost entry.

    def _look(self, event: ShowsWorld) -> Effects:
        """Look at the world while something is pending; being told twice is harmless."""
        self.now = event.now
        revoked = self.revoked(event.live)
        return NOTHING if revoked is None else self._give_way(event.now, event.live, revoked)

    def _watch(self, event: ShowsWorld) -> Effects:
        """Look at the world while an attempt runs: a Stop shown is a Stop pressed."""
        self.now = event.now
        if self.stop_at is None and rule.stopped(self.baseline, event.live):
            return self._cancel_softly(event.now)
        return NOTHING

    def _stop_pending(self, event: on.Stopped) -> Effects:
        self.now = event.now
        if self.exempt() and not event.hard:
            return NOTHING
        return self._give_way(event.now, event.live, DropReason.STOPPED)

    def _stop_attempt(self, event: on.Stopped) -> Effects:
        self.now = event.now
        if event.hard or self.stop_at is not None:
            return self._cancel_hard(event)
        return self._cancel_softly(event.now)

    def _time_stop(self, event: on.Due) -> Effects:
        if self.stop_at is not None and event.now >= self.stop_at:
            return self._cancel_hard(event)
        return self._watch(event)

    def _cancel_softly(self, now: float) -> Effects:
        self.stop_at = now + self.settings.turn.stop_budget_s
        return (do.Cancel(self.number),)

    def _cancel_hard(self, event: on.Stopped | on.Due) -> Effects:
        ended = self._give_way(event.now, event.live, DropReason.STOPPED)
        return (do.Cancel(self.number, hard=True), *ended)

    def _lose(self, event: on.Dropped) -> Effects:
        return self._give_way(event.now, event.live, event.reason)

    def _give_way(self, now: float, live: Live, reason: DropReason) -> Effects:
        """End the turn without sending what is pending: the normal end, with nothing to refund."""
        self.now = now
        effects: list[do.Effect] = []
        code = rule.note_for(reason, live)
        stopped = reason is DropReason.STOPPED or rule.stopped(self.baseline, live)
        if self.state is State.WAITING:
            self.stop_waiting(now)
            effects.append(do.CancelWait())
        if self.plan is not None:
            effects.append(self.drop(self.plan, reason))
        if self.state is not State.ATTEMPTING:
            effects.append(do.Note(code, wording.NOTES[code]))
        if self.incidents is not None:
            moved = live.user_input or rule.rebound(self.baseline, live)
            effects.extend(self.incidents.give_up(self.verdict, reason, code, moved=moved))
        effects.extend(self.end(do.How.STOPPED if stopped else do.How.SUPERSEDED))
        return tuple(effects)

    # What the agent says beside its answer.

    def _pass_on(self, event: on.Retrying) -> Effects:
        if event.attempt != self.number or self.stop_at is not None:
            return NOTHING
        return self.told().agent_retries(event.title, event.category, self.number - 1)

    def _advise(self, event: on.Advised) -> Effects:
        return self.notice(event.key, event.title, event.category)

    def _ignore(self, _: Event) -> Effects:
        return NOTHING


def _is_refusal(verdict: Verdict) -> bool:
    return verdict.recovery is Recovery.CONTENT_FILTER_HOP


Handler = Callable[[TurnMachine, Any], Effects]

TRANSITIONS: Final[Mapping[tuple[State, type[Event]], Handler]] = {
    (state, event): getattr(TurnMachine, handler)
    for state, handlers in _TABLE.items()
    for event, handler in handlers.items()
}
"""Every legal pair of state and event type, and what answers it."""

ENDINGS: Final[Mapping[StopReason, Handler]] = {
    reason: getattr(TurnMachine, handler) for reason, handler in _FINISHES.items()
}
"""What answers the agent's own word for the end of an attempt."""

__all__ = [
    "ENDINGS",
    "ENDS",
    "EVENTS",
    "TRANSITIONS",
    "Effects",
    "Handler",
    "IllegalEvent",
    "ShowsWorld",
    "State",
    "TurnMachine",
]
