"""The real turn machine as a player: events in, effects performed at once.

This is a driver like the runner, without the waiting: a bare machine for each turn, every effect
performed before the next event goes in, and the fleet's retry budget asked where the runner asks
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from attrs import define, evolve

from orchestrator.incident.record import Severity
from orchestrator.runner.budget import TokenBucket
from orchestrator.settings.model import Settings
from orchestrator.simulate.fleet import Fleet, PlayerOf, Playing
from orchestrator.simulate.scenario import Fault
from orchestrator.simulate.tally import Result, Sign
from orchestrator.simulate.world import Use, chance
from orchestrator.turn.effects import (
    Cancel,
    CancelWait,
    Dispatch,
    Drop,
    Effect,
    End,
    How,
    Note,
    NoteCode,
    Publish,
    Recover,
    Send,
    Wait,
)
from orchestrator.turn.events import (
    Began,
    Due,
    Event,
    Evidence,
    Facts,
    Failed,
    Finished,
    Live,
    Recovered,
    Saw,
    Started,
    Step,
    Stopped,
    StopReason,
    UserSpoke,
)
from orchestrator.turn.incidents import TurnIds
from orchestrator.turn.machine import TurnMachine
from orchestrator.turn.state import FRESH
from orchestrator.turn.table import TABLE

Effects = tuple[Effect, ...]

_NOTHING: Final[Effects] = ()
_IDS: Final = TurnIds("turn", "session", "epoch")
"""All turns share them: nobody reads their records."""
_NEW_HISTORY: Final = frozenset({Step.DISCARD, Step.DEDICATED})
"""Steps behind which nothing is left of what broke a conversation."""
_BUDGETED: Final = frozenset(row.family for row in TABLE if row.budgeted)
_RESULTS: Final = {
    How.FAILED: Result.FAILED,
    How.REFUSED: Result.REFUSED,
    How.STOPPED: Result.STOPPED,
    How.SUPERSEDED: Result.SUPERSEDED,
}
_SIGN: Final = {Severity.WARNING: Sign.WARNED, Severity.ERROR: Sign.ERROR}


@define(eq=False)
class MachineTurn(Playing):
    machine: Any = None
    live: Any = None
    lucks: int = 0
    steps: int = 0
    denied: bool = False


class Machines:
    """Plays settings through the machine."""

    make: type[Playing] = MachineTurn

    def __init__(self, fleet: Fleet, settings: Settings) -> None:
        scenario = fleet.scenario
        self._fleet = fleet
        self._settings = settings
        self._live = Live(
            binding="simulation", model=scenario.model, served=(scenario.model, *scenario.served)
        )
        self._facts = Facts(interactive=scenario.interactive)
        self._bucket = TokenBucket(settings.budget) if settings.budget.enabled else None
        self._text = [Saw(number, Evidence.TEXT) for number in range(settings.turn.max_sends + 2)]
        self._do: dict[type[Effect], Callable[[Any, Any, float], Effects]] = {
            Dispatch: self._dispatch,
            Send: self._send,
            Wait: self._wait,
            Recover: self._recover,
            Cancel: self._cancel,
            CancelWait: self._cancel_wait,
            Publish: self._publish,
            Note: self._note,
            Drop: self._drop,
            End: self._end,
        }

    # What the fleet tells -------------------------------------------------------------------------

    def begin(self, turn: Any, now: float) -> None:
        conversation = turn.conversation
        turn.live = self._live
        if conversation is None:
            turn.machine = TurnMachine(self._settings, _IDS)
        else:
            turn.machine = TurnMachine(self._settings, _IDS, session=conversation.kept or FRESH)
            if conversation.model:
                turn.live = evolve(self._live, model=conversation.model)
        self._tell(turn, Started(now, self._look(turn, now), self._facts), now)

    def attempt_ended(self, turn: Any, fault: Fault | None, now: float) -> None:
        live = turn.live if self._bucket is None else self._look(turn, now)
        if fault is None:
            if turn.sends == 1:
                turn.machine.handle(self._saw(1))  # nothing was told yet, so nothing is answered
            else:
                self._tell(turn, self._saw(turn.sends), now)
            self._tell(turn, Finished(now, live, turn.sends), now)
            return
        if fault.after_output:
            self._tell(turn, self._saw(turn.sends), now)
        verdict = self._fleet.world.verdict(fault, now)
        self._tell(turn, Failed(now, live, turn.sends, verdict, self._luck(turn)), now)

    def user_acts(self, turn: Any, now: float, *, stops: bool) -> None:
        live = self._look(turn, now)
        if not stops:
            turn.live = evolve(live, user_input=True)
            self._tell(turn, UserSpoke(now, turn.live), now)
            return
        turn.live = evolve(
            live,
            surface_stops=live.surface_stops + 1,
            session_stops=live.session_stops + 1,
            stopping=True,
        )
        self._tell(turn, Stopped(now, turn.live), now)

    # What the machine asks for --------------------------------------------------------------------

    def _tell(self, turn: MachineTurn, event: Event, now: float) -> None:
        """Hand in an event; perform what it answers, and what follows from that at once."""
        effects = turn.machine.handle(event)
        do = self._do
        while effects:
            for effect in effects:
                effects = do[type(effect)](turn, effect, now)

    def _dispatch(self, turn: MachineTurn, _: Dispatch, now: float) -> Effects:
        """Its place in line comes at once: people wait for the answer before."""
        return self._answer(turn, Began(now, self._look(turn, now)))

    def _send(self, turn: MachineTurn, send: Send, now: float) -> Effects:
        if self._bucket is not None and send.family in _BUDGETED:
            self._bucket.spend(now)
        self._fleet.send(turn, now, turn.live.model)
        return _NOTHING

    def _wait(self, turn: MachineTurn, wait: Wait, now: float) -> Effects:
        turn.mark(now, Sign.WAITS, f"{wait.delay:.1f} s, {wait.family}")
        self._fleet.loop.at(wait.until, self._due, turn)
        return _NOTHING

    def _due(self, turn: MachineTurn, _: None, now: float) -> None:
        if not turn.over:
            self._tell(turn, Due(now, self._look(turn, now)), now)

    def _recover(self, turn: MachineTurn, recover: Recover, now: float) -> Effects:
        turn.mark(now, Sign.RECOVERS, recover.step)
        turn.steps += 1
        fleet, recovering = self._fleet, self._fleet.scenario.recovering
        takes_s, ok = recovering.takes_s, chance(turn.seed, Use.STEP, turn.steps) < recovering.works
        if recover.step is Step.CANARY:
            takes_s, ok = fleet.canary(turn, turn.steps, now, turn.live.model)
            timeout_s = self._settings.recoveries.canary_timeout_s
            takes_s, ok = min(takes_s, timeout_s), ok and takes_s < timeout_s
        fleet.loop.at(now + takes_s, self._recovered, turn, (recover, ok))
        return _NOTHING

    def _recovered(self, turn: MachineTurn, done: tuple[Recover, bool], now: float) -> None:
        if turn.over:
            return
        recover, ok = done
        live = self._look(turn, now)
        conversation = turn.conversation
        if ok and recover.step is Step.SWAP:
            live = turn.live = evolve(live, model=recover.target)
            if conversation is not None:
                conversation.model = recover.target
        if ok and conversation is not None and recover.step in _NEW_HISTORY:
            conversation.poison = None
        turn.recovered = turn.recovered or (ok and recover.step is not Step.CANARY)
        event = Recovered(now, live, recover.step, ok, recover.target, self._luck(turn))
        self._tell(turn, event, now)

    def _cancel(self, turn: MachineTurn, cancel: Cancel, now: float) -> Effects:
        """An agent ends a cancelled attempt at once; a hard one's end is of no interest."""
        if not cancel.hard:
            self._fleet.loop.at(now, self._cancelled, turn, cancel.attempt)
        return _NOTHING

    def _cancelled(self, turn: MachineTurn, attempt: int, now: float) -> None:
        event = Finished(now, self._look(turn, now), attempt, StopReason.CANCELLED)
        self._tell(turn, event, now)

    def _cancel_wait(self, _: MachineTurn, __: CancelWait, ___: float) -> Effects:
        return _NOTHING

    def _publish(self, turn: MachineTurn, publish: Publish, now: float) -> Effects:
        self._fleet.told(turn, now)
        turn.mark(now, _SIGN[publish.record.severity], publish.record.title)
        return _NOTHING

    def _note(self, turn: MachineTurn, note: Note, now: float) -> Effects:
        turn.denied = turn.denied or note.code is NoteCode.RETRY_BUDGET
        self._fleet.told(turn, now)
        turn.mark(now, Sign.NOTED, note.text)
        return _NOTHING

    def _drop(self, turn: MachineTurn, drop: Drop, now: float) -> Effects:
        self._fleet.tally.refunds += 1
        turn.mark(now, Sign.DROPPED, f"{drop.family}: {drop.reason}")
        return _NOTHING

    def _end(self, turn: MachineTurn, end: End, now: float) -> Effects:
        if turn.conversation is not None:
            turn.conversation.kept = end.session
        if end.outcome is How.LANDED:
            if self._bucket is not None:
                self._bucket.landed(now)
            self._fleet.landed(turn, now)
        else:
            result = Result.DENIED if turn.denied else _RESULTS[end.outcome]
            self._fleet.end(turn, result, now)
        return _NOTHING

    # The world ------------------------------------------------------------------------------------

    def _answer(self, turn: MachineTurn, event: Event) -> Effects:
        effects: Effects = turn.machine.handle(event)
        return effects

    def _look(self, turn: MachineTurn, now: float) -> Live:
        """Return the world as the turn sees it now."""
        live: Live = turn.live
        if self._bucket is not None:
            may_retry = self._bucket.allows(now)
            if may_retry is not live.may_retry:
                live = turn.live = evolve(live, may_retry=may_retry)
        return live

    def _luck(self, turn: MachineTurn) -> float:
        turn.lucks += 1
        return chance(turn.seed, Use.LUCK, turn.lucks)

    def _saw(self, number: int) -> Saw:
        known = self._text
        return known[number] if number < len(known) else Saw(number, Evidence.TEXT)


def machines(settings: Settings) -> PlayerOf:
    """A player of these settings."""
    return lambda fleet: Machines(fleet, settings)
