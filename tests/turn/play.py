"""Play one turn step by step, with the independent observer watching every step."""

from __future__ import annotations

from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Verdict
from orchestrator.settings.model import Settings
from orchestrator.turn import (
    ROWS,
    Began,
    Due,
    End,
    Evidence,
    Facts,
    Failed,
    Finished,
    Note,
    Publish,
    Recovered,
    Refused,
    RetryNow,
    Saw,
    Send,
    SessionState,
    Started,
    Stopped,
    StopReason,
    TurnMachine,
)
from tests.turn.observer import Observer
from tests.turn.universe import IDS, SAME


class Play:
    def __init__(
        self,
        settings=Settings(),  # noqa: B008 - frozen values
        facts=Facts(),  # noqa: B008
        session=SessionState(),  # noqa: B008
        live=SAME,
        curves=None,
    ):
        self.machine = TurnMachine(settings, IDS, session, curves)
        self.observer = Observer(settings, session)
        self.live = live
        self.now = 100.0
        self.told = []
        self.tell(Started(self.now, live, facts))

    def tell(self, event):
        effects = self.machine.handle(event)
        self.observer.step(event, effects, self.machine.next_deadline())
        self.told.extend(effects)
        return effects

    # what the host does

    def send(self, live=None):
        return self.tell(Began(self.now, live or self.live))

    def due(self, live=None):
        self.now = self.machine.next_deadline()
        return self.tell(Due(self.now, live or self.live))

    def retry_now(self, live=None):
        return self.tell(RetryNow(self.now, live or self.live))

    def stop(self, *, hard=False, live=None):
        return self.tell(Stopped(self.now, live or self.live, hard))

    def recovered(self, *, ok=True, detail="", live=None, luck=0.0, step=None):
        plan = self.machine.plan
        step = step or ROWS[plan.family].steps[self.machine.step][0]
        return self.tell(Recovered(self.now, live or self.live, step, ok, detail, luck))

    # what the agent does

    def fail(self, what, *, live=None, luck=0.0, at=None, **fields):
        verdict = Verdict.of(what, f"{what}.", **fields) if isinstance(what, Kind) else what
        self.now = self.now if at is None else at
        return self.tell(Failed(self.now, live or self.live, self.number, verdict, luck))

    def refuse(self, refusal, live=None):
        return self.tell(Refused(self.now, live or self.live, self.number, refusal))

    def show(self, *evidence):
        return [effect for one in evidence for effect in self.tell(Saw(self.number, one))]

    def text(self):
        return self.show(Evidence.TEXT)

    def finish(self, reason=StopReason.END_TURN, live=None):
        return self.tell(Finished(self.now, live or self.live, self.number, reason))

    # both together

    def fail_and_wait(self, what, **fields):
        """Fail, wait and send again."""
        self.fail(what, **fields)
        self.due()
        return self.send()

    def use_up(self, what):
        """Fail until the shared curve is used up; the next failure is what comes after it."""
        for _ in range(self.machine.settings.ladders.transient_retries):
            self.fail_and_wait(what)
        return self

    # what to look at

    @property
    def number(self):
        return self.machine.number

    @property
    def records(self):
        return [effect.record for effect in self.told if isinstance(effect, Publish)]

    @property
    def notes(self):
        return [effect.code for effect in self.told if isinstance(effect, Note)]

    @property
    def sends(self):
        return [effect for effect in self.told if isinstance(effect, Send)]

    @property
    def end(self):
        return self.told[-1] if self.told and isinstance(self.told[-1], End) else None


def sent(*args, **kwargs):
    """A turn whose first send is out."""
    play = Play(*args, **kwargs)
    play.send()
    return play
