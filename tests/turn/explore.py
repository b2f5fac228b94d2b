"""Explore the machine: every state it can reach, every event that can meet it there.

    python -m tests.turn.explore

Three proofs: *closed* at small limits, *bounded* at default limits, *random and deep* with
Hypothesis.
The observer asserts what effects alone can show; this file asserts the rest: invariants 2, 7, 8, 9,
11, 16 and 18, which need snapshots, the graph or a twin that hears the same news in other words.

Left out of a state's key, because no decision reads them: titles, revision numbers, moments (only
whether a timer or a curve's start is set), how often was sent, and what the metrics read.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import deque
from operator import attrgetter

import attrs
from attrs import evolve

from orchestrator.turn import (
    ENDS,
    ROWS,
    Began,
    Due,
    End,
    Failed,
    Note,
    Publish,
    Recovered,
    Send,
    State,
    TurnMachine,
)
from orchestrator.turn.case import OUTPUT
from orchestrator.turn.incidents import Incidents
from orchestrator.turn.table import Rewind
from tests.turn.observer import Observer, hold
from tests.turn.universe import (
    DEFAULT,
    FACTS,
    IDS,
    RUNS,
    SMALL,
    Seen,
    events,
    reworded,
    sessions,
)

SLOTS = tuple(field.name for field in attrs.fields(TurnMachine))
BOUND = 200_000
"""States of the bounded proof, over all of its runs."""

TWINS = 4
"""A twin follows out of every fourth state.  A restored machine is compared slot by slot at every
state, and `handle` reads nothing but slots; twins are there for what words might change."""

_GOES_ON = (Due, Recovered, Failed, Began)


_KEPT = attrgetter("lost", "discard", "deaths", "poisoned_streak", "fallback_model")
_CAUSE = attrgetter(
    "kind", "transient", "network_path", "delivery", "retry_after_s", "resets_in_s", "actions"
)


def cloner(kind):
    """Build what copies an object slot by slot, written out since a search copies millions."""
    names = [field.name for field in attrs.fields(kind)]
    lines = "".join(f"\n    twin.{name} = it.{name}" for name in names)
    space = {"new": object.__new__, "kind": kind}
    exec(f"def clone(it):\n    twin = new(kind){lines}\n    return twin", space)
    return space["clone"]


_clone = cloner(TurnMachine)
_clone_told = cloner(Incidents)


def fork(machine):
    """Copy a machine; everything in it is frozen but what it told so far."""
    twin = _clone(machine)
    if twin.incidents is not None:
        twin.incidents = _clone_told(twin.incidents)
    return twin


def key_of(machine):
    """Tell apart what can still make a difference; an end makes none."""
    if machine.state in ENDS:
        return machine.state
    retries = machine.settings.ladders.transient_retries
    budgets, plan, told = machine.budgets, machine.plan, machine.incidents
    open_ = None if told is None else told.open
    return (
        machine.state,
        machine.seen == 0,
        (bool(machine.shown & OUTPUT), machine.shown == 0) if _is_asked_again(machine) else None,
        machine.clean,
        machine.cursor,
        budgets.sends,
        min(budgets.curve, retries + 1),
        budgets.curve_start is None,
        (budgets.busy, budgets.fresh, budgets.continued),
        (budgets.entitlement, budgets.resume, budgets.hop),
        _KEPT(machine.session),
        machine.wait_until is None,
        machine.stop_at is None,
        plan and (plan.family, machine.step, machine.waited, plan.target),
        _key_of_cause(machine),
        open_ and (open_.said, open_.standing, open_.owes_back),
    )


def _is_asked_again(machine):
    """The last attempt may still be decided about: it runs, or a step may fail."""
    plan = machine.plan
    steps_left = plan is not None and machine.step < len(ROWS[plan.family].steps)
    return steps_left or machine.state is State.ATTEMPTING


def _key_of_cause(machine):
    """Tell what the last failure is still asked: all of it by a step, its actions by a drop."""
    verdict = machine.verdict
    if verdict is None:
        return None
    if machine.plan is not None and _is_asked_again(machine):
        return _CAUSE(verdict)
    return (verdict.actions, verdict.structural)


def seen_by(machine):
    plan = machine.plan
    step = None
    if machine.state is State.RECOVERING:
        step = ROWS[plan.family].steps[machine.step][0]
    return Seen(
        machine.state,
        machine.now,
        machine.number,
        _window_from(machine),
        machine.next_deadline(),
        step,
        machine.baseline,
    )


def _window_from(machine):
    """Windows are asked only once the counted retries of the curve are used up."""
    used_up = machine.budgets.curve >= machine.settings.ladders.transient_retries
    return machine.budgets.curve_start if used_up else None


def same_but_for_words(told, other):
    """Effects are equal, apart from the text that a user reads."""
    return len(told) == len(other) and all(map(_same, told, other))


def _same(one, two):
    if type(one) is not type(two):
        return False
    read = _WORDLESS.get(type(one))
    return one == two if read is None else read(one) == read(two)


_WORDLESS = {
    Publish: attrgetter(
        "carrier", "record.id", "record.revision", "record.severity", "record.actions"
    ),
    Note: attrgetter("code"),
    End: lambda end: (end.outcome, end.stop_reason, end.session, end.verdict and end.verdict.kind),
}


def check_snapshot(machine):
    """Invariant 9: through JSON and back it is the same machine; and a twin in other words."""
    data = json.loads(json.dumps(machine.snapshot(), allow_nan=False))
    restored = TurnMachine.restore(data)
    for name in SLOTS:
        same = getattr(restored, name) == getattr(machine, name)
        hold(9, same, "{} does not survive a snapshot", name)
    if restored.verdict is not None:
        verdict = evolve(restored.verdict, title="Anders.", details="mehr", raw_detail="x")
        restored.verdict = verdict
    told = restored.incidents
    if told is not None:
        told.open = told.open and evolve(told.open, cause="Anders.")
        told.last = told.last and evolve(told.last, title="Anders.")
    return restored


_COUNTS = attrgetter(
    "budgets.curve",
    "budgets.sends",
    "budgets.busy",
    "budgets.fresh",
    "budgets.continued",
    "budgets.entitlement",
    "budgets.resume",
    "budgets.hop",
    "session.lost",
    "session.discard",
    "session.deaths",
)


def check_budgets(before, after, effects):
    """Invariants 7 and 8: a count moves only with a `Send`, by one, and never at an end."""
    model, sent = after.session.fallback_model, bool(effects) and isinstance(effects[-1], Send)
    hold(8, sent or model == before.session.fallback_model, "{} became the model unsent", model)
    was, is_ = _COUNTS(before), _COUNTS(after)
    if was == is_:
        return
    if after.state in ENDS:
        hold(8, after.state is State.LANDED, "{} -> {} at the end", was, is_)
        return
    send = effects[-1]
    hold(7, isinstance(send, Send), "{} -> {} without a Send", was, is_)
    curve, *others = (now - then for then, now in zip(was, is_, strict=True))
    rewinds = send.family is not None and ROWS[send.family].rewind is not Rewind.KEEPS
    hold(7, curve in (0, 1) or (rewinds and curve < 0), "{} -> {} in one Send", was, is_)
    hold(7, all(step in (0, 1) for step in others), "{} -> {} in one Send", was, is_)


def check_twin(machine, twin, answered, effects):
    """Invariants 9, 16 and 18: restored, and told in other words, it does the same."""
    hold(18, same_but_for_words(answered, effects), "{} but {}", effects, answered)
    hold(9, key_of(twin) == key_of(machine), "{} but {}", key_of(machine), key_of(twin))


def progress(effects, before, after):
    return any(isinstance(effect, Send) for effect in effects) or after.cursor > before.cursor


class Exploration:
    """One search, breadth first, from one turn's beginning."""

    def __init__(self, settings, facts, session, bound=None):
        self.facts = facts
        self.bound = bound
        machine, observer = TurnMachine(settings, IDS, session), Observer(settings, session)
        self.parents = [(0, None)]
        self.places = {(key_of(machine), observer.key()): 0}
        self.queue = deque([(0, machine, observer)])
        self.standstill = {}
        self.edges = 0
        self.closed = True

    @property
    def states(self):
        return len(self.places)

    def run(self):
        while self.queue:
            place, machine, observer = self.queue.popleft()
            self.expand(place, machine, observer)
        self.check_progress()
        return self

    def expand(self, place, machine, observer):
        event = None
        try:
            restored = check_snapshot(machine)
            twin = restored if place % TWINS == 0 else None
            ends = machine.state in ENDS
            for event in events(seen_by(machine), self.facts):
                ends |= self.take(place, machine, observer, twin, event)
            event = None
            hold(2, ends or machine.state is State.IDLE, "no way to an end")
        except AssertionError as broken:
            raise AssertionError(f"{broken}\n{self.trace(place, event)}") from broken

    def take(self, place, machine, observer, twin, event):
        after, watching = fork(machine), observer.copy()
        effects = after.handle(event)
        self.edges += 1
        watching.step(event, effects, after.next_deadline())
        check_budgets(machine, after, effects)
        if twin is not None:
            other = fork(twin)
            check_twin(after, other, other.handle(reworded(event)), effects)
        found = (key_of(after), watching.key())
        known = self.places.get(found)
        if known is None:
            if self.bound is not None and self.states >= self.bound:
                self.closed = False
            else:
                known = self.places[found] = len(self.parents)
                self.parents.append((place, event))
                self.queue.append((known, after, watching))
        acts = bool(effects) and isinstance(event, _GOES_ON)  # a tick that does nothing is no step
        if known is not None and acts and not progress(effects, machine, after):
            self.standstill.setdefault(place, set()).add(known)
        return after.state in ENDS

    def check_progress(self):
        """Invariant 11: what goes on without a send or a cursor never comes back."""
        done, path = set(), set()
        for start in self.standstill:
            stack = [(start, iter(self.standstill.get(start, ())))]
            if start in done:
                continue
            path.add(start)
            while stack:
                place, left = stack[-1]
                following = next(left, None)
                if following is None:
                    stack.pop()
                    path.discard(place)
                    done.add(place)
                elif following in path:
                    raise AssertionError(f"invariant 11: a cycle\n{self.trace(following, None)}")
                elif following not in done:
                    path.add(following)
                    stack.append((following, iter(self.standstill.get(following, ()))))

    def trace(self, place, last):
        """Tell the shortest way to a state, and what was told there."""
        told = [] if last is None else [last]
        while place:
            place, event = self.parents[place]
            told.append(event)
        return "\n".join(f"  {event}" for event in reversed(told))


def _run(job):
    facts, session, settings, bound = job
    began = time.perf_counter()
    search = Exploration(settings, FACTS[facts], sessions(settings)[session], bound)
    failure = ""
    try:
        search.run()
    except AssertionError as broken:
        failure = str(broken)
    took = time.perf_counter() - began
    how = "FAILED" if failure else "closed" if search.closed else "bounded"
    return facts, session, search.states, search.edges, took, how, failure


def prove(name, settings, bound, workers):
    """Run one proof in parallel processes and print what it covered; False when it failed."""
    began = time.perf_counter()
    share = bound and bound // (len(RUNS) - 1)  # a nested turn closes at once
    jobs = [(*run, settings, share) for run in RUNS]
    states = edges = 0
    failures = []
    with multiprocessing.get_context("spawn").Pool(workers, maxtasksperchild=1) as pool:
        for facts, session, found, taken, took, how, failure in pool.imap_unordered(_run, jobs, 1):
            states, edges = states + found, edges + taken
            say(f"  {facts:20} {session:6} {found:>9,} {taken:>12,} {took:7.1f} s  {how}")
            if failure:
                failures.append(f"{facts}, {session}: {failure}")
    took = time.perf_counter() - began
    say(f"{name}: {states:,} states, {edges:,} edges, {took:.1f} s, {len(failures)} failed")
    for failure in failures:
        say(failure)
    return not failures


def prove_at_random(runs, start):
    """Wander with Hypothesis; a failure prints its own smallest example.

    The same walks at every call, others from another start.
    """
    from hypothesis import HealthCheck, given, seed, settings

    from tests.turn.wander import LENGTH, walks, wander

    walked = 0

    @seed(start)
    @settings(
        max_examples=runs, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(walks())
    def walk_about(walk):
        nonlocal walked
        wander(walk)
        walked += 1

    began = time.perf_counter()
    walk_about()
    took = time.perf_counter() - began
    say(f"random and deep: {walked:,} runs of {LENGTH} events, {took:.1f} s")


def say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(arguments=None):
    asked = argparse.ArgumentParser(description="Explore the machine of a turn.")
    asked.add_argument("--workers", type=int, default=2, help="processes, each one search")
    asked.add_argument("--bound", type=int, default=BOUND, help="states of the bounded proof")
    asked.add_argument("--walks", type=int, default=2_000, help="random runs")
    asked.add_argument("--seed", type=int, default=1, help="where the random runs start")
    chosen = asked.parse_args(arguments)
    say("  facts                session    states        edges    time")
    closed = prove("closed at small limits", SMALL, None, chosen.workers)
    bounded = prove("bounded at default limits", DEFAULT, chosen.bound, chosen.workers)
    prove_at_random(chosen.walks, chosen.seed)
    return 0 if closed and bounded else 1


if __name__ == "__main__":
    sys.exit(main())
