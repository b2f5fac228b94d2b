"""Traffic for `orchestrator metrics demo`: every family and every outcome, over the real machine.

Nothing here is counted by hand: scripted agents answer, the machine decides, the observer counts.
Time is virtual; whoever calls `advance` says how fast it goes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from itertools import chain, cycle, product
from random import Random
from typing import Final

from attrs import evolve, frozen

from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Refusal, Verdict
from orchestrator.incident.ledger import Ledger, Mark
from orchestrator.incident.record import Record
from orchestrator.metrics.observer import MetricsObserver
from orchestrator.metrics.series import FAILURE_KINDS, OTHER
from orchestrator.service.incidents import Incidents
from orchestrator.settings.model import Ladders, Metrics, Recoveries, Settings
from orchestrator.turn.effects import (
    Cancel,
    Dispatch,
    Effect,
    End,
    How,
    Publish,
    Recover,
    Send,
    SessionState,
    Wait,
)
from orchestrator.turn.events import (
    Began,
    Dropped,
    DropReason,
    Due,
    Event,
    Evidence,
    Facts,
    Failed,
    Finished,
    Live,
    Rebound,
    Recovered,
    Refused,
    Saw,
    Started,
    Stopped,
    StopReason,
    UserSpoke,
)
from orchestrator.turn.incidents import TurnIds
from orchestrator.turn.machine import TurnMachine

Answer = Verdict | Refusal | Stopped
"""What an attempt meets instead of landing."""

MODELS: Final = ("model-a", "model-b")
SETTINGS: Final = Settings(
    # Short windows, so that one closes while somebody watches.
    ladders=Ladders(connection_window_s=60.0, ride_out_window_s=120.0),
    recoveries=Recoveries(fallback_models=MODELS),
)
_SINKS: Final = ("log", "records.jsonl", "webhook")
_SESSIONS: Final = 12
_CHORE_S: Final = 150.0
"""Virtual time between two things that happen beside the turns."""
_LONG_S: Final = 200.0
"""A hint longer than a plain ladder waits for."""
_PLAIN_FACTS: Final = Facts()
_PLAIN_LIVE: Final = Live(binding="chat", model=MODELS[0])
_NEW_SESSION: Final = SessionState()


@frozen
class Script:
    """How one turn goes."""

    answers: tuple[Answer, ...] = ()
    """What its attempts meet, one by one; then it lands."""
    forever: bool = False
    """The last answer is met again and again: the turn never lands."""
    facts: Facts = _PLAIN_FACTS
    live: Live = _PLAIN_LIVE
    session: SessionState = _NEW_SESSION
    shows: tuple[Evidence, ...] = ()
    """What each attempt shows before its answer."""
    steps_work: bool = True
    leaves: DropReason | None = None
    """What a person or the host does as soon as something is pending."""
    provider: str = "anthropic"


def _met(kind: Kind, **more: float | str) -> Verdict:
    return Verdict.of(kind, f"The demo's agent says: {kind.replace('_', ' ')}.", **more)  # type: ignore[arg-type]


_BUSY = _met(Kind.OVERLOADED)
_GONE = _met(Kind.CONNECTION_LOST)
_SERVED = Live(binding="chat", model=MODELS[0], served=MODELS)
_DECLINED = Refusal("policy", "The demo's model declined.", MODELS[1])

SCRIPTS: Final[tuple[Script, ...]] = (
    Script((_met(Kind.PROMPT_BUSY),)),
    Script((_met(Kind.PROMPT_BUSY),), forever=True),
    Script((_met(Kind.AGENT_DIED),)),
    Script((_met(Kind.REGISTRATION_THROTTLED),)),
    Script((_met(Kind.SESSION_NOT_FOUND),)),
    Script((_met(Kind.THINKING_BINDING),)),
    Script((_met(Kind.IMAGE_REJECTED),)),
    Script((_met(Kind.CONTEXT_OVERFLOW),), facts=Facts(fresh_session=True)),
    Script((_BUSY, _BUSY)),
    Script((_BUSY,), forever=True),
    Script((_GONE,) * 5),
    Script((_GONE,), forever=True),
    Script((_BUSY,) * 4, live=_SERVED),
    Script((_BUSY,), shows=(Evidence.TEXT,)),
    Script((_BUSY,), forever=True, shows=(Evidence.TOOL,)),
    Script((_met(Kind.MODEL_NOT_ENTITLED, rejected_model=MODELS[0]),), live=_SERVED),
    Script((_BUSY,) * 5, facts=Facts(ride_out=True)),
    Script((_BUSY,), forever=True, facts=Facts(ride_out=True)),
    Script((_BUSY,) * 4, session=SessionState(poisoned_streak=1)),
    Script((_met(Kind.USAGE_LIMIT, resets_in_s=60.0),), facts=Facts(resume_at_reset=True)),
    Script(
        (_met(Kind.RATE_LIMITED, retry_after_s=_LONG_S),),
        forever=True,
        facts=Facts(resume_at_reset=True),
    ),
    Script((_DECLINED,), live=_SERVED),
)
"""One or two for each family: it lands, or its ladder is used up."""

PLAIN: Final[tuple[Script, ...]] = (
    Script((_DECLINED,)),
    Script((_met(Kind.AUTH_REQUIRED),)),
    Script((_BUSY,), facts=Facts(nested=True)),
    Script((Stopped(0.0, Live()),)),
    Script((Stopped(0.0, Live(), hard=True),)),
)
"""Turns that end without a retry."""

_Leaving = Stopped | UserSpoke | Rebound | Dropped
_LEAVINGS: Final[dict[DropReason, Callable[[float, Live], _Leaving]]] = {
    DropReason.STOPPED: lambda now, live: Stopped(now, evolve(live, surface_stops=1)),
    DropReason.SUPERSEDED: lambda now, live: UserSpoke(now, evolve(live, user_input=True)),
    DropReason.REBOUND: lambda now, live: Rebound(now, evolve(live, binding="elsewhere")),
    DropReason.LOST: Dropped,
}


_CALM: Final = (Script(),) * 3
_OUTAGE: Final = (
    Script((_BUSY,), forever=True),
    Script((_GONE,), forever=True),
    Script((_met(Kind.AGENT_DIED),), forever=True),
)
"""What most turns meet in place of an answer while everything is down."""


def scripts(providers: tuple[str, ...], *, outage: bool = False) -> Iterator[Script]:
    """Yield scripts without end: one that shows a family, one of a kind, then ordinary ones."""
    failures = cycle(product(providers, FAILURE_KINDS))
    by_provider = cycle(providers)
    # Their lengths have no common factor with the scripts', so that each meets each in time.
    leavings = cycle((None, None, None, *_LEAVINGS))
    works = cycle((True, True, True, True, False))
    for script in chain.from_iterable(cycle(((*SCRIPTS, *PLAIN),))):
        provider = next(by_provider)
        yield evolve(script, provider=provider, leaves=next(leavings), steps_work=next(works))
        provider, kind = next(failures)
        yield Script((_met(kind),), provider=provider)
        for ordinary in _OUTAGE if outage else _CALM:
            yield evolve(ordinary, provider=next(by_provider))


class Traffic:
    """Turns of scripted agents, on a clock that only `advance` moves."""

    def __init__(
        self,
        observer: MetricsObserver,
        incidents: Incidents,
        *,
        seed: int = 1,
        gap_s: float = 1.0,
        outage: bool = False,
    ) -> None:
        """`gap_s` is the virtual time between two new turns."""
        self.now = 0.0
        self._observer = observer
        self._incidents = incidents
        self._gap_s = gap_s
        self._random = Random(seed)
        self._scripts = scripts((*Metrics().providers, OTHER), outage=outage)
        self._ledgers = [Ledger(f"session-{n}", "demo") for n in range(_SESSIONS)]
        self._marks: dict[str, Mark] = {}
        self._due: list[tuple[float, int, Iterator[float]]] = []
        self._turns = 0
        self._next_turn = 0.0
        self._next_plumbing = 0.0
        self._chores = cycle(self._plumbing())
        incidents.active = observer.active = self.active
        for name in _SINKS:
            observer.sink_opened(name)

    def active(self) -> list[Record]:
        """Return what the sessions' ledgers hold as active."""
        return [active.record for ledger in self._ledgers for active in ledger.active]

    def advance(self, seconds: float) -> None:
        """Let virtual time go by."""
        until = self.now + seconds
        while True:
            at = min(self._next_turn, self._next_plumbing, *(due[0] for due in self._due[:1]))
            if at > until:
                break
            self.now = max(self.now, at)
            if at == self._next_turn:
                self._begin(next(self._scripts))
                self._next_turn += self._gap_s
            elif at == self._next_plumbing:
                next(self._chores)()
                self._next_plumbing += _CHORE_S
            else:
                self._go_on(heapq.heappop(self._due)[2])
        self.now = until

    def _begin(self, script: Script) -> None:
        self._turns += 1
        ledger = self._ledgers[self._turns % _SESSIONS]
        ids = TurnIds(f"demo-{self._turns}", ledger.session_id, ledger.epoch, script.provider)
        machine = TurnMachine(SETTINGS, ids, session=script.session)
        self._go_on(self._life(machine, script, ledger))

    def _go_on(self, life: Iterator[float]) -> None:
        at = next(life, None)
        if at is not None:
            heapq.heappush(self._due, (at, id(life), life))

    def _life(self, machine: TurnMachine, script: Script, ledger: Ledger) -> Iterator[float]:
        """Play one turn; yields the time at which it wants to go on."""
        live, leaves = script.live, script.leaves
        answers = chain(script.answers, script.answers[-1:] * 1_000 if script.forever else ())
        effects = self._handle(machine, ledger, Started(self.now, live, script.facts))
        while not isinstance(effects[-1], End):
            if leaves is not None and machine.pending is not None:
                yield self.now + 0.5
                said = _LEAVINGS[leaves](self.now, live)
                live, leaves = said.live, None
                effects = self._handle(machine, ledger, said) or effects
                continue
            yield self._later(effects[-1])
            event = self._next_event(effects[-1], script, live, answers)
            for evidence in script.shows if isinstance(event, Failed) else ():
                self._handle(machine, ledger, Saw(machine.number, evidence))
            effects = self._handle(machine, ledger, event)

    def _later(self, effect: Effect) -> float:
        if isinstance(effect, Wait):
            return effect.until
        took = {Dispatch: 0.2, Recover: 3.0}.get(type(effect), 1.0 + 6.0 * self._random.random())
        return self.now + took

    def _next_event(
        self, effect: Effect, script: Script, live: Live, answers: Iterator[Answer]
    ) -> Event:
        """Do what an effect asks for."""
        luck = self._random.random()
        match effect:
            case Dispatch():
                return Began(self.now, live)
            case Wait():
                return Due(self.now, live)
            case Recover():
                done = script.steps_work
                return Recovered(self.now, live, effect.step, done, effect.target, luck)
            case Cancel():
                return Finished(self.now, live, effect.attempt, StopReason.CANCELLED)
            case Send():
                return self._answer(effect.number, next(answers, None), live, luck)
            case _:
                raise AssertionError(effect)

    def _answer(self, number: int, answer: Answer | None, live: Live, luck: float) -> Event:
        match answer:
            case None:
                return Finished(self.now, live, number)
            case Verdict():
                return Failed(self.now, live, number, answer, luck)
            case Refusal():
                return Refused(self.now, live, number, answer)
            case Stopped():
                return evolve(answer, now=self.now, live=evolve(live, surface_stops=1))

    def _handle(self, machine: TurnMachine, ledger: Ledger, event: Event) -> tuple[Effect, ...]:
        """Be the host: the machine decides, the observer counts, the ledger remembers."""
        effects = machine.handle(event)
        self._observer(machine, event, effects)
        turn_id = machine.ids.turn_id
        for effect in effects:
            if isinstance(effect, Publish):
                record = ledger.restamp(effect.record)
                notice = ":notice:" in record.id or machine.verdict is None
                kind = Kind.ADVISORY if notice or machine.verdict is None else machine.verdict.kind
                ledger.delivered(record, kind)
                self._incidents.apply(record)
            elif isinstance(effect, Send):
                self._marks[turn_id] = ledger.mark()
            elif isinstance(effect, End):
                mark = self._marks.pop(turn_id, {})
                if effect.outcome is How.LANDED:
                    ledger.landed(mark, turn_id)
                else:
                    ledger.next_attempt(mark, turn_id)
        return effects

    def _plumbing(self) -> tuple[Callable[[], None], ...]:
        """List what happens beside the turns, in turn."""
        observer, (log, jsonl, webhook) = self._observer, _SINKS
        return (
            lambda: observer.sink_failed(jsonl),
            lambda: observer.settings_loaded(ok=False),
            lambda: observer.sink_failed(webhook),
            lambda: observer.sink_switched_off(webhook),
            lambda: observer.sink_failed(log),
            self._replace_runtimes,
            lambda: observer.sink_opened(webhook),
            lambda: observer.settings_loaded(ok=True),
        )

    def _replace_runtimes(self) -> None:
        for ledger in self._ledgers:
            ledger.new_runtime()
            ledger.sign_in()
