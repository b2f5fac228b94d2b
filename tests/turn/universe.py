"""What can happen to a turn: verdicts by policy, worlds, facts, and the events of each state.

One verdict per policy class, derived from the kinds table and the families' own kinds, so that a
new row of either is explored at once.
"""

from __future__ import annotations

from attrs import evolve, frozen

from orchestrator.failure.kinds import KINDS, Action, Kind
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
OTHER_STOP = evolve(SAME, session_stops=1)
STOPPING = evolve(SAME, stopping=True)
USER = evolve(SAME, user_input=True)
MOVED = evolve(SAME, binding="other")
WORLDS = (SAME, OTHER_STOP, STOPPING, USER, MOVED)
NO_BUDGET = evolve(SAME, may_retry=False)
SHARED = evolve(SAME, shared_deaths=20)
UNKNOWN_MODELS = evolve(SAME, served=None)

SOON, LONG = 30.0, 7200.0


def policy_of(verdict):
    """Everything the machine may decide by; a title is no part of it."""
    own = {kind for row in TABLE for kind in row.kinds} | {Kind.USAGE_LIMIT, Kind.RATE_LIMITED}
    return (
        verdict.transient,
        verdict.network_path,
        verdict.structural,
        verdict.recovery,
        verdict.kind if verdict.kind in own else None,
        Action.RETRY in verdict.actions,
        KINDS[verdict.kind].is_failure,
    )


def one_of_each():
    """One verdict per policy class of the kinds table, then the variants that hints make."""
    classes = {}
    for kind in Kind:
        verdict = Verdict.of(kind, f"{kind}.")
        classes.setdefault(policy_of(verdict), verdict)
    plain = tuple(classes.values())
    by_kind = {verdict.kind: verdict for verdict in plain}
    lost = Verdict.of(Kind.CONNECTION_LOST, "Lost.", delivery=Delivery.AMBIGUOUS)
    limited = by_kind[Kind.RATE_LIMITED]
    spent = by_kind[Kind.USAGE_LIMIT]
    return (
        *plain,
        lost,
        evolve(limited, retry_after_s=SOON),
        evolve(limited, retry_after_s=LONG),
        evolve(spent, resets_in_s=LONG),
        evolve(spent, resets_in_s=1e6),
        Verdict.of(Kind.COMPACTION_FAILED, "Compaction failed.", transient=True),
        Verdict.of(
            Kind.REGISTRATION_THROTTLED, "Registration throttled.", delivery=Delivery.AMBIGUOUS
        ),
    )


VERDICTS = one_of_each()
WINDOWED = frozenset({Kind.CONNECTION_LOST, Kind.OVERLOADED, Kind.RATE_LIMITED})
EDGES = (1.0, 299.0, 300.0, 1799.0, 1800.0)
"""Seconds after the curve's start at which a failure is offered."""

REFUSALS = (Refusal(), Refusal(recommended_model="m2"))

FACTS = {
    "plain": Facts(),
    "unattended": Facts(interactive=False),
    "nested": Facts(nested=True),
    "owed": Facts(owed=True, interactive=False),
    "owed, host's own text": Facts(owed=True, runner_written=True),
    "sub-agent": Facts(subagent=True, brings_image=True),
    "with sub-agents": Facts(has_subagents=True),
    "opted in": Facts(resume_at_reset=True, ride_out=True, fresh_session=True),
    "owed and opted in": Facts(owed=True, resume_at_reset=True, ride_out=True),
}

SMALL = Settings(
    ladders=Ladders(transient_retries=1, registration_retries=1, busy_retries=1),
    recoveries=Recoveries(deaths=1, fallback_models=("m2", "m3")),
    turn=TurnLimits(max_sends=4),
)
DEFAULT = Settings(recoveries=Recoveries(fallback_models=("m2", "m3")))


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
    curve_start: float | None
    deadline: float | None
    step: Step | None


def events(seen, facts=Facts()):  # noqa: B008 - a frozen value
    """Offer what can happen next; which of it is illegal is another test's question."""
    return _OFFERS[seen.state](seen, facts)


def _idle(seen, facts):
    yield from (Started(0.0, live, facts) for live in (SAME, STOPPING, USER, UNKNOWN_MODELS))
    yield Due(0.0, SAME)


def _news(seen, now):
    """What can reach a turn in any state, by the worlds it can show."""
    yield from (Stopped(now, live, hard) for live in (SAME, STOPPING) for hard in (False, True))
    yield UserSpoke(now, USER)
    yield Rebound(now, MOVED)
    yield Advised("model", "Another model.")
    yield from (SignedIn(now), RuntimeReplaced(now))


def _late(seen, now):
    """What agents and dead processes still say about an attempt that is over."""
    yield from (Failed(now, live, seen.number, VERDICTS[0]) for live in (SAME, STOPPING))
    yield Refused(now, SAME, seen.number, REFUSALS[0])
    yield from (Finished(now, live, seen.number) for live in (SAME, OTHER_STOP))
    yield Saw(seen.number, Evidence.TEXT)
    yield Retrying(seen.number, "Reconnecting.")


def _queued(seen, now):
    yield from _news(seen, now)
    yield from _late(seen, now)
    yield from (Dropped(now, live, DropReason.LOST) for live in (SAME, OTHER_STOP, USER))
    yield Dropped(now, SAME, DropReason.DENIED)


def _ready(seen, facts):
    now = seen.now
    yield from (Began(now, live) for live in (*WORLDS, UNKNOWN_MODELS))
    yield from (kind(now, live) for kind in (Due, RetryNow) for live in (SAME, STOPPING))
    yield Recovered(now, SAME, Step.RESPAWN, ok=True)
    yield from _queued(seen, now)


def _attempting(seen, facts):
    now, number = seen.now, seen.number
    yield from (Saw(number, evidence) for evidence in Evidence)
    for verdict in VERDICTS:
        times = (now + 1.0,)
        if verdict.kind in WINDOWED and seen.curve_start is not None:
            times = tuple(seen.curve_start + edge for edge in EDGES)
        yield from (Failed(at, SAME, number, verdict) for at in times)
        worlds = (*WORLDS[1:], NO_BUDGET, SHARED, UNKNOWN_MODELS)
        yield from (Failed(times[0], live, number, verdict) for live in worlds)
    yield from (Refused(now, live, number, refusal) for live in WORLDS for refusal in REFUSALS)
    yield from (Finished(now, SAME, number, reason) for reason in StopReason)
    yield from (Finished(now, live, number) for live in WORLDS[1:])
    yield Retrying(number, "Reconnecting.")
    yield Retrying(number, "Reconnecting again.")
    yield from (Failed(now, live, number - 1, VERDICTS[0]) for live in (SAME, STOPPING))
    yield Refused(now, SAME, number + 1, REFUSALS[0])
    yield from (Finished(now, SAME, number - 1), Saw(number - 1, Evidence.TEXT))
    yield from (Due(now, live) for live in (SAME, OTHER_STOP))
    if seen.deadline is not None:
        yield Due(seen.deadline, SAME)
    yield from (RetryNow(now, SAME), Recovered(now, STOPPING, Step.RESPAWN, ok=True))
    yield from _news(seen, now)


def _waiting(seen, facts):
    now, due = seen.now, seen.deadline
    yield from (Due(due, live) for live in WORLDS)
    yield from (Due(due - 0.5, live) for live in (SAME, STOPPING, USER, MOVED))
    yield Due(due + 86_400.0, SAME)
    yield from (RetryNow(now, live) for live in WORLDS)
    yield Recovered(now, SAME, Step.RESPAWN, ok=True)
    yield from _queued(seen, now)


def _recovering(seen, facts):
    now, step = seen.now + 1.0, seen.step
    for live in WORLDS:
        yield from (Recovered(now, live, step, ok) for ok in (True, False))
    yield Recovered(now, SAME, step, ok=True, detail="another native session")
    yield Recovered(now, NO_BUDGET, step, ok=False)
    other = Step.DISCARD if step is not Step.DISCARD else Step.SWAP
    yield Recovered(now, SAME, other, ok=True)
    yield from (kind(now, live) for kind in (Due, RetryNow) for live in (SAME, STOPPING, USER))
    yield from _queued(seen, now)


def _ended(seen, facts):
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
