"""What a turn knows, and the few moves that keep it consistent.

`TurnState` is plain slots, so that a turn that lands at once pays for nothing else; everything in
it is a frozen value but `incidents`, which exists only once there is something to tell.  How it
answers events is in `machine.py`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, cast

from attrs import define, evolve, field

from orchestrator.failure.kinds import Category
from orchestrator.failure.verdict import Verdict
from orchestrator.incident.record import Record
from orchestrator.settings.model import Settings
from orchestrator.turn import effects as do
from orchestrator.turn import rule, spending, table
from orchestrator.turn.case import Budgets, Case, Plan
from orchestrator.turn.curve import Curves
from orchestrator.turn.events import DropReason, Facts, Live, StopReason
from orchestrator.turn.incidents import Incidents, TurnIds


class State(StrEnum):
    """Where a turn is.  The last five are ends."""

    IDLE = "idle"
    READY = "ready"
    """A place in line; asked again before anything is sent."""
    ATTEMPTING = "attempting"
    WAITING = "waiting"
    RECOVERING = "recovering"
    LANDED = "landed"
    FAILED = "failed"
    REFUSED = "refused"
    STOPPED = "stopped"
    SUPERSEDED = "superseded"


_AFTER: Final = {how: State(how) for how in do.How}
ENDS: Final = frozenset(_AFTER.values())

Effects = tuple[do.Effect, ...]
NOTHING: Final[Effects] = ()

_QUEUED: Final = frozenset({State.READY, State.WAITING})
FRESH: Final = do.SessionState()
_UNSPENT: Final = Budgets()
_NOWHERE: Final = Live()
_PLAIN: Final = Facts()
_ANSWERED_AS: Final = {
    do.How.FAILED: StopReason.END_TURN,
    do.How.REFUSED: StopReason.REFUSAL,
    do.How.STOPPED: StopReason.CANCELLED,
    do.How.SUPERSEDED: StopReason.CANCELLED,
}
"""How the prompt is answered; a turn that landed repeats what the agent said."""


@define(eq=False)
class TurnState:
    """Everything one turn knows.  A snapshot is exactly these fields."""

    settings: Settings
    ids: TurnIds
    session: do.SessionState = FRESH
    curves: Curves | None = None
    """An embedder's own waits; no part of a snapshot."""
    state: State = field(default=State.IDLE, init=False)
    baseline: Live = field(default=_NOWHERE, init=False)
    """The world as the turn began."""
    facts: Facts = field(default=_PLAIN, init=False)
    number: int = field(default=0, init=False)
    """Number of the last `Send`."""
    shown: int = field(default=0, init=False)
    """Evidence bits of the last attempt."""
    seen: int = field(default=0, init=False)
    """Evidence bits of the turn."""
    clean: bool = field(default=True, init=False)
    """No attempt showed text or a tool, and no delivery was ambiguous."""
    budgets: Budgets = field(default=_UNSPENT, init=False)
    cursor: int = field(default=0, init=False)
    """Candidates of `recoveries.fallback_models` that were tried."""
    plan: Plan | None = field(default=None, init=False)
    """What is pending."""
    step: int = field(default=0, init=False)
    """Steps of the plan that are done."""
    waited: bool = field(default=False, init=False)
    """The plan's wait is over."""
    verdict: Verdict | None = field(default=None, init=False)
    """The last failure or refusal; None once landed."""
    now: float = field(default=0.0, init=False)
    """The last `now` that was told."""
    wait_from: float = field(default=0.0, init=False)
    wait_until: float | None = field(default=None, init=False)
    stop_at: float | None = field(default=None, init=False)
    """When a soft Stop turns hard; set means that the attempt is being cancelled."""
    incidents: Incidents | None = field(default=None, init=False)
    waited_s: float = field(default=0.0, init=False)
    """Seconds spent in waits, cut short ones included."""
    dropped: int = field(default=0, init=False)
    """Plans that were not sent."""

    @property
    def pending(self) -> do.Family | None:
        """The family whose re-send is decided and not sent yet."""
        return None if self.plan is None else self.plan.family

    @property
    def record(self) -> Record | None:
        """The last record that was published about a failure."""
        return None if self.incidents is None else self.incidents.last

    @property
    def attempts(self) -> int:
        """How often the prompt was sent."""
        return self.number

    @property
    def structural(self) -> bool:
        """The identical message can't succeed in this conversation."""
        return self.verdict is not None and self.verdict.structural

    def next_deadline(self) -> float | None:
        """When the next `Due` is worth sending; None while no timer is open."""
        return self.stop_at if self.wait_until is None else self.wait_until

    def exempt(self) -> bool:
        """A sub-agent's completion that is still owed: nothing but a hard Stop revokes it."""
        return (
            self.facts.owed
            and not self.facts.runner_written
            and self.clean
            and self.state in _QUEUED
        )

    def revoked(self, live: Live) -> DropReason | None:
        """Why what comes next must not be sent, or None."""
        if self.exempt():
            return None
        yields = self.plan is not None and table.ROWS[self.plan.family].yields
        return rule.revokes(self.baseline, live, yields=yields)

    def forgive(self, live: Live) -> None:
        """Let what is exempt go on from the world as it is now: it outlived the changes."""
        if not self.facts.owed:
            return
        changed = rule.stopped(self.baseline, live) or rule.rebound(self.baseline, live)
        if changed and self.exempt():
            self.baseline = evolve(live, stopping=False)

    def case(self, at: float, live: Live, verdict: Verdict) -> Case:
        """Put together what the rows may ask about a failure at `at`."""
        return Case(
            settings=self.settings,
            facts=self.facts,
            live=live,
            verdict=verdict,
            session=self.session,
            budgets=self.budgets,
            at=at,
            shown=self.shown,
            seen=self.seen,
            clean=self.clean,
            cursor=self.cursor,
        )

    def payload(self, row: table.Row) -> do.Payload:
        """Verbatim while the turn is clean, unless the row only ever continues."""
        verbatim = self.clean and row.carries is not table.Carries.CONTINUE
        return do.Payload.VERBATIM if verbatim else do.Payload.CONTINUE

    def planned(self) -> Plan:
        """Return the plan of a state that has one."""
        return cast("Plan", self.plan)

    def cause(self) -> Verdict:
        """Return the failure behind a plan."""
        return cast("Verdict", self.verdict)

    def told(self) -> Incidents:
        """Return what was told so far; a turn that just lands never asks."""
        if self.incidents is None:
            self.incidents = Incidents(self.ids)
        return self.incidents

    def notice(self, key: str, title: str, category: Category = Category.UNKNOWN) -> Effects:
        """Publish an advisory; a new one takes the session's next number."""
        number = self.session.notices + 1
        published = self.told().advise(key, title, category, number)
        if published and published[0].record.revision == 1:
            self.session = evolve(self.session, notices=number)
        return published

    def stop_waiting(self, now: float) -> None:
        """Close the backoff timer; a clock that went backwards waited nothing."""
        self.waited_s += max(0.0, now - self.wait_from)
        self.wait_until = None

    def drop(self, plan: Plan, reason: DropReason) -> do.Drop:
        """Let go of a plan; nothing was counted for it."""
        self.plan = None
        self.dropped += 1
        return do.Drop(plan.family, plan.number, reason)

    def end(
        self, how: do.How, stop_reason: StopReason | None = None, *, silent_cycle: bool = False
    ) -> Effects:
        """End the turn.  `silent_cycle`: a transient failure ended it, its curve used up."""
        self.state = _AFTER[how]
        self.stop_at = None
        if how is do.How.LANDED:
            self.verdict = None
            self.session = spending.landed(self.session)
        else:
            self.session = spending.ended(
                self.session, seen=bool(self.seen), silent_cycle=silent_cycle
            )
        return (do.End(how, stop_reason or _ANSWERED_AS[how], self.verdict, self.session),)
