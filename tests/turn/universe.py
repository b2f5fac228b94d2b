"""What can happen to a turn: verdicts by policy, worlds, facts, and the events of each state.

One verdict per policy class, derived from the kinds table and the families' own kinds, so that a
new row of either is explored at once.
"""

from __future__ import annotations

from functools import cache
from itertools import islice

from attrs import evolve, frozen

from orchestrator.failure.kinds import KINDS, Kind, Recovery
from orchestrator.failure.verdict import Delivery, Refusal, Verdict
from orchestrator.settings.model import Ladders, Recoveries, Settings, TurnLimits
from orchestrator.turn import (
    TABLE,
    Advised,
    Began,
    Dropped,
    DropReason,
    Due,
    Evidence,
    Facts,
    Failed,
    Finished,
    Live,
    Rebound,
    Recovered,
    Refused,
    Retrying,
    RetryNow,
    RuntimeReplaced,
    Saw,
    SessionState,
    SignedIn,
    Started,
    State,
    Step,
    Stopped,
    StopReason,
    TurnIds,
    UserSpoke,
)

IDS = TurnIds("turn", "session", "epoch")

SAME = Live(binding="chat", model="m1", served=("m1", "m2", "m3"))


class Worlds:
    """What a host can see, told from the world a turn began in."""

    def __init__(self, base):
        plain = evolve(base, user_input=False, stopping=False, served=SAME.served)
        self.same = base if plain == base else plain  # the very object, as a host re-uses it
        self.other_stop = evolve(self.same, session_stops=base.session_stops + 1)
        self.stopping = evolve(self.same, stopping=True)
        self.user = evolve(self.same, user_input=True)
        self.moved = evolve(self.same, binding=f"{base.binding}, moved")
        self.all = (self.same, self.other_stop, self.stopping, self.user, self.moved)
        self.no_budget = evolve(self.same, may_retry=False)
        self.shared = evolve(self.same, shared_deaths=20)
        self.unknown_models = evolve(self.same, served=None)


@cache
def worlds_from(base):
    return Worlds(base)


_PLAIN = Worlds(SAME)
OTHER_STOP, STOPPING, USER, MOVED = _PLAIN.all[1:]
NO_BUDGET, SHARED, UNKNOWN_MODELS = _PLAIN.no_budget, _PLAIN.shared, _PLAIN.unknown_models

SOON, LONG = 30.0, 7200.0


def policy_of(verdict):
    """What the rows may decide by; a title is no part of it, and neither is what is offered."""
    own = {kind for row in TABLE for kind in row.kinds} | {Kind.USAGE_LIMIT, Kind.RATE_LIMITED}
    return (
        verdict.transient,
        verdict.network_path,
        verdict.structural,
        verdict.recovery,
        verdict.kind if verdict.kind in own else None,
        KINDS[verdict.kind].is_failure,
    )


def one_of_each():
    """One verdict per policy class of the kinds table, then the variants that fields make."""
    classes = {}
    for kind in Kind:
        verdict = Verdict.of(kind, f"{kind}.")
        classes.setdefault(policy_of(verdict), verdict)
    limited = Verdict.of(Kind.RATE_LIMITED, "Slow down.")
    spent = Verdict.of(Kind.USAGE_LIMIT, "Spent.")
    lost = Verdict.of(Kind.CONNECTION_LOST, "Lost.")
    throttled = Verdict.of(Kind.REGISTRATION_THROTTLED, "Registration throttled.")
    return (
        *classes.values(),
        evolve(lost, delivery=Delivery.AMBIGUOUS),
        evolve(throttled, delivery=Delivery.AMBIGUOUS),
        evolve(limited, retry_after_s=SOON),
        evolve(limited, retry_after_s=LONG),
        evolve(spent, resets_in_s=LONG),
        evolve(spent, resets_in_s=1e6),
    )


VERDICTS = one_of_each()
WINDOWED = frozenset({Kind.CONNECTION_LOST, Kind.OVERLOADED, Kind.RATE_LIMITED})
EDGES = (1.0, 299.0, 300.0, 1799.0, 1800.0)
"""Seconds after the curve's start at which a failure is offered."""

REFUSALS = (Refusal(), Refusal(recommended_model="m2"))

FACTS = {
    "plain": Facts(),
    "nested": Facts(nested=True),
    "owed": Facts(owed=True, interactive=False, resume_at_reset=True),
    "written by the host": Facts(owed=True, runner_written=True, has_subagents=True),
    "sub-agent": Facts(subagent=True, brings_image=True, interactive=False),
    "opted in": Facts(resume_at_reset=True, ride_out=True, has_subagents=True),
}

SMALL = Settings(
    ladders=Ladders(transient_retries=1, registration_retries=1, busy_retries=1),
    recoveries=Recoveries(deaths=1, fallback_models=("m2",)),
    turn=TurnLimits(max_sends=4),
)
DEFAULT = Settings(recoveries=Recoveries(fallback_models=("m2", "m3")))


RUNS = (
    ("plain", "fresh"),
    ("plain", "worn"),
    ("nested", "worn"),
    ("owed", "fresh"),
    ("written by the host", "worn"),
    ("sub-agent", "fresh"),
    ("opted in", "worn"),
)
"""Beginnings of an exploration: facts and session."""


def sessions(settings):
    """A session that begins, and one that has used what it has but is not worn out."""
    worn = SessionState(
        lost=settings.recoveries.lost_session,
        deaths=settings.recoveries.deaths - 1,
        poisoned_streak=1,
        fallback_model="m3",
    )
    return {"fresh": SessionState(), "worn": worn}


@frozen
class Seen:
    """What the choice of an event may depend on."""

    state: State
    now: float
    number: int
    window_from: float | None
    """Start of the curve, once windows are asked."""
    deadline: float | None
    step: Step | None
    base: Live
    """The turn's baseline."""


def events(seen, facts=Facts()):  # noqa: B008 - a frozen value
    """Offer what can happen next; which of it is illegal is another test's question."""
    world = worlds_from(seen.base)
    return _OFFERS[seen.state](seen, world, facts)


def _idle(seen, world, facts):
    yield from (Started(0.0, live, facts) for live in (SAME, STOPPING, USER, UNKNOWN_MODELS))
    yield from (Due(0.0, SAME), SignedIn(0.0), RuntimeReplaced(0.0))


def _news(now, world):
    """What can reach a turn wherever it is."""
    yield from (Stopped(now, world.same, hard) for hard in (False, True))
    yield UserSpoke(now, world.user)
    yield Rebound(now, world.moved)
    yield Advised("model", "Another model.")


def _pending(seen, now, world):
    """News, what is late about an attempt that is over, and a lost entry."""
    yield from _news(now, world)
    yield Failed(now, world.stopping, seen.number, VERDICTS[0])
    yield Finished(now, world.same, seen.number)
    yield Saw(seen.number, Evidence.TEXT)
    yield Dropped(now, world.same, DropReason.LOST)
    yield Dropped(now, world.other_stop, DropReason.LOST)
    yield Dropped(now, world.user, DropReason.DENIED)


def _ready(seen, world, facts):
    now = seen.now
    yield from (Began(now, live) for live in (*world.all, world.unknown_models, world.no_budget))
    yield from (Due(now, world.same), Due(now, world.stopping))
    yield Recovered(now, world.same, Step.RESPAWN, ok=True)
    yield from _pending(seen, now, world)


def _failures(seen, world):
    """Every class of failure, at the edges of its window, in the worlds that matter to it."""
    for place, verdict in enumerate(VERDICTS):
        times = (seen.now + 1.0,)
        if verdict.kind in WINDOWED and seen.window_from is not None:
            times = tuple(seen.window_from + edge for edge in EDGES)
        yield from (Failed(at, world.same, seen.number, verdict) for at in times)
        for live in _worlds_of(place, verdict, world):
            yield Failed(times[0], live, seen.number, verdict)


def _worlds_of(place, verdict, world):
    yield world.all[1 + place % 4]
    if verdict.transient or verdict.recovery is not None:
        yield world.user
    if verdict.transient:
        yield world.no_budget
    if verdict.recovery in (Recovery.ENTITLEMENT_SWAP, Recovery.CONTENT_FILTER_HOP):
        yield world.unknown_models
    if verdict.recovery is Recovery.DEATH:
        yield world.shared


def _attempting(seen, world, facts):
    now, number = seen.now, seen.number
    cancelling = seen.deadline is not None
    yield from (Saw(number, evidence) for evidence in Evidence)
    # Once it is being cancelled, whatever ends the attempt ends the turn the same way.
    yield from islice(_failures(seen, world), 3 if cancelling else None)
    yield from (Refused(now, world.same, number, refusal) for refusal in REFUSALS)
    yield from (Refused(now, live, number, REFUSALS[1]) for live in (world.user, world.other_stop))
    yield from (Finished(now, world.same, number, reason) for reason in StopReason)
    yield from (Finished(now, live, number) for live in world.all[1:])
    yield Retrying(number, "Reconnecting.")
    yield Failed(now, world.stopping, number - 1, VERDICTS[0])
    yield from (Finished(now, world.same, number + 1), Saw(number - 1, Evidence.TEXT))
    yield from (Due(now, world.same), Due(now, world.other_stop), RetryNow(now, world.same))
    if cancelling:
        yield Due(seen.deadline, world.same)
    yield from _news(now, world)


def _waiting(seen, world, facts):
    now, due = seen.now, seen.deadline
    yield from (Due(due, live) for live in world.all)
    yield from (Due(due - 0.5, live) for live in (world.same, world.stopping, world.user))
    yield Due(due + 86_400.0, world.same)
    yield from (RetryNow(now, live) for live in (world.same, world.other_stop, world.user))
    yield from _pending(seen, now, world)


def _recovering(seen, world, facts):
    now, step = seen.now + 1.0, seen.step
    for live in world.all:
        yield from (Recovered(now, live, step, ok) for ok in (True, False))
    yield Recovered(now, world.same, step, ok=True, detail="another native session")
    yield Recovered(now, world.no_budget, step, ok=False)
    other = Step.DISCARD if step is not Step.DISCARD else Step.SWAP
    yield Recovered(now, world.same, other, ok=True)
    yield from (Due(now, world.same), Due(now, world.stopping), RetryNow(now, world.same))
    yield from _pending(seen, now, world)


def _ended(seen, world, facts):
    yield from (Started(seen.now, SAME, facts), Began(seen.now, SAME), Due(seen.now, SAME))
    yield from (Failed(seen.now, SAME, seen.number, VERDICTS[0]), Stopped(seen.now, SAME))


_OFFERS = {
    State.IDLE: _idle,
    State.READY: _ready,
    State.ATTEMPTING: _attempting,
    State.WAITING: _waiting,
    State.RECOVERING: _recovering,
    **dict.fromkeys(
        (State.LANDED, State.FAILED, State.REFUSED, State.STOPPED, State.SUPERSEDED), _ended
    ),
}


def _worded(verdict):
    return evolve(
        verdict, title=f"Anders: {verdict.title}", details="mehr", raw_detail='{"anders":1}'
    )


_REWORDED = {id(verdict): _worded(verdict) for verdict in VERDICTS}


def reworded(event):
    """Tell the same event in other words, as another provider or another day would."""
    if not isinstance(event, Failed):
        return event
    verdict = _REWORDED.get(id(event.verdict)) or _worded(event.verdict)
    return Failed(event.now, event.live, event.attempt, verdict, event.luck)
