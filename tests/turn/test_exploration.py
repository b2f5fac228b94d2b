"""A fast slice of the exploration, and proof that it can fail.

`make explore` runs the whole of it.
"""

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given
from hypothesis import settings as profile

from orchestrator.turn import (
    ROWS,
    TRANSITIONS,
    CancelWait,
    Drop,
    Due,
    End,
    Family,
    Saw,
    SessionState,
    State,
    Stopped,
    TurnMachine,
    match,
    rule,
    spending,
    table,
)
from orchestrator.turn.incidents import Incidents
from tests.turn.explore import Exploration, main
from tests.turn.universe import FACTS, RUNS, SMALL, VERDICTS, policy_of, sessions
from tests.turn.wander import walks, wander

SLICE = 250
"""States per beginning: the shortest ways into every state, waits, recoveries and ends."""


@pytest.mark.parametrize(("facts", "session"), RUNS)
def test_the_shortest_ways_through_a_turn_keep_every_invariant(facts, session):
    found = Exploration(SMALL, FACTS[facts], sessions(SMALL)[session], SLICE).run()
    assert found.states == SLICE or found.closed
    assert found.edges > found.states


@given(walks())
@profile(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_long_walk_at_random_keeps_every_invariant(walk):
    assert isinstance(wander(walk), TurnMachine)


@pytest.mark.explore
@pytest.mark.timeout(1800)
def test_the_whole_exploration_finds_nothing():
    assert main([]) == 0


def test_the_verdicts_that_are_explored_cover_every_kind():
    from orchestrator.failure.kinds import Kind
    from orchestrator.failure.verdict import Verdict

    explored = {policy_of(verdict) for verdict in VERDICTS}
    assert {policy_of(Verdict.of(kind, "x")) for kind in Kind} <= explored


# What the exploration must find: each of these breaks the machine in one place.


def wrap(monkeypatch, state, event, change):
    """Put `change(machine, event, handler)` in the place of one handler."""
    handler = TRANSITIONS[state, event]
    changed = {**TRANSITIONS, (state, event): lambda m, e: change(m, e, handler)}
    monkeypatch.setattr("orchestrator.turn.machine.TRANSITIONS", changed)


def replace_row(monkeypatch, family, **changes):
    row = evolve(ROWS[family], **changes)
    rows = {**ROWS, family: row}
    serving = {
        recovery: tuple((at, rows[one.family]) for at, one in served)
        for recovery, served in table.SERVING.items()
    }
    monkeypatch.setattr(table, "ROWS", rows)
    monkeypatch.setattr(match, "SERVING", serving)


def counts_at_the_decision(monkeypatch):
    advance = TurnMachine._advance

    def early(self, plan, now, luck):
        self.budgets = evolve(self.budgets, curve=self.budgets.curve + 1)
        return advance(self, plan, now, luck)

    monkeypatch.setattr(TurnMachine, "_advance", early)


def forgets_to_cancel_the_wait(monkeypatch):
    give_way = TurnMachine._give_way

    def silently(self, now, live, reason):
        told = give_way(self, now, live, reason)
        return tuple(effect for effect in told if not isinstance(effect, CancelWait))

    monkeypatch.setattr(TurnMachine, "_give_way", silently)


def leaves_the_window_open_one_failure_longer(monkeypatch):
    affordable = match._affordable

    def longer(row, case):
        return affordable(row, evolve(case, at=case.at - 1.0) if row.window else case)

    monkeypatch.setattr(match, "_affordable", longer)


def settles_a_warning_twice(monkeypatch):
    output = Incidents.output_arrived

    def keeps_it_open(self):
        was = self.open
        told = output(self)
        self.open = was
        return told

    monkeypatch.setattr(Incidents, "output_arrived", keeps_it_open)


def leaves_a_warning_unsettled(monkeypatch):
    monkeypatch.setattr(Incidents, "give_up", lambda self, *args, **kwargs: ())


def forgets_the_drop(monkeypatch):
    give_way = TurnMachine._give_way

    def silently(self, now, live, reason):
        told = give_way(self, now, live, reason)
        return tuple(effect for effect in told if not isinstance(effect, Drop))

    monkeypatch.setattr(TurnMachine, "_give_way", silently)


def does_not_look_for_a_stop_at_the_send(monkeypatch):
    monkeypatch.setattr(rule, "stopped", lambda baseline, live: live.stopping)


def does_not_look_for_a_newer_message(monkeypatch):
    monkeypatch.setattr(rule, "revokes", lambda baseline, live, *, yields: None)


def replays_verbatim_what_was_shown(monkeypatch):
    wrap(monkeypatch, State.ATTEMPTING, Saw, lambda machine, event, handler: ())


def drops_a_plain_retry_for_a_newer_message(monkeypatch):
    revokes = rule.revokes
    monkeypatch.setattr(rule, "revokes", lambda b, live, *, yields: revokes(b, live, yields=True))


def sends_once_too_often(monkeypatch):
    withheld = TurnMachine._withheld

    def later(self):
        turn = evolve(self.settings.turn, max_sends=self.settings.turn.max_sends + 1)
        patient = evolve(self.settings, turn=turn)
        self.settings, settings = patient, self.settings
        code = withheld(self)
        self.settings = settings
        return code

    monkeypatch.setattr(TurnMachine, "_withheld", later)


def tries_a_family_once_too_often(monkeypatch):
    limit_of = match.limit_of
    monkeypatch.setattr(match, "limit_of", lambda row, settings: 1 + (limit_of(row, settings) or 9))


def retries_what_is_terminal(monkeypatch):
    replace_row(monkeypatch, Family.TRANSIENT, when=())


def waits_in_silence(monkeypatch):
    monkeypatch.setattr(Incidents, "go_on", lambda self, row, plan, case: ())


def fires_a_timer_too_early(monkeypatch):
    def early(machine, event, handler):
        return handler(machine, evolve(event, now=event.now + 1.0))

    wrap(monkeypatch, State.WAITING, Due, early)


def charges_a_session_without_a_send(monkeypatch):
    ended = spending.ended

    def charged(session, **facts):
        return evolve(ended(session, **facts), lost=session.lost + 1)

    monkeypatch.setattr(spending, "ended", charged)


def lets_a_failed_step_try_itself_again(monkeypatch):
    respawn = ((ROWS[Family.DEATH].steps[0][0], table.IfItFails.AGAIN),)
    replace_row(monkeypatch, Family.DEATH, steps=respawn)


def decides_by_the_wording(monkeypatch):
    first_match = match.first_match

    def worded(case, place=0):
        if case.verdict.title.startswith("Anders"):
            return None
        return first_match(case, place)

    monkeypatch.setattr(match, "first_match", worded)


def ends_twice(monkeypatch):
    for end in (State.FAILED, State.STOPPED, State.LANDED):
        wrap(monkeypatch, end, Due, lambda machine, event, handler: (End("failed", "", None),))


def ignores_a_hard_stop(monkeypatch):
    wrap(monkeypatch, State.WAITING, Stopped, lambda machine, event, handler: ())


def starts_again_from_revision_one(monkeypatch):
    step = Incidents._step

    def from_one(self):
        step(self)
        self.revision = 1

    monkeypatch.setattr(Incidents, "_step", from_one)


def keeps_a_timer_out_of_the_snapshot(monkeypatch):
    from orchestrator.turn import snapshot

    take = snapshot.take
    monkeypatch.setattr(
        snapshot, "take", lambda turn, now=None: {**take(turn, now), "stop_at": None}
    )


MUTANTS = [
    (counts_at_the_decision, "7"),
    (forgets_to_cancel_the_wait, "13"),
    (leaves_the_window_open_one_failure_longer, "5"),
    (settles_a_warning_twice, "1"),
    (leaves_a_warning_unsettled, "10"),
    (forgets_the_drop, "12"),
    (does_not_look_for_a_stop_at_the_send, "3"),
    (does_not_look_for_a_newer_message, "3"),
    (replays_verbatim_what_was_shown, "4"),
    (drops_a_plain_retry_for_a_newer_message, "17"),
    (sends_once_too_often, "5"),
    (tries_a_family_once_too_often, "5"),
    (retries_what_is_terminal, "6"),
    (waits_in_silence, "15"),
    (fires_a_timer_too_early, "13"),
    (charges_a_session_without_a_send, "8"),
    (lets_a_failed_step_try_itself_again, "11"),
    (decides_by_the_wording, "18"),
    (ends_twice, "2"),
    (ignores_a_hard_stop, "3"),
    (starts_again_from_revision_one, "1"),
    (keeps_a_timer_out_of_the_snapshot, "9"),
]


@pytest.mark.parametrize(
    ("mutant", "number"), MUTANTS, ids=[mutant.__name__ for mutant, _ in MUTANTS]
)
def test_the_exploration_finds_a_machine_that(monkeypatch, mutant, number):
    mutant(monkeypatch)
    few = evolve(SMALL, turn=evolve(SMALL.turn, max_sends=2))
    settings = few if mutant is sends_once_too_often else SMALL
    with pytest.raises(AssertionError, match=rf"^invariant {number}: ") as found:
        Exploration(settings, FACTS["plain"], SessionState(), 1_000).run()
    assert "Started(" in str(found.value)
