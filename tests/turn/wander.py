"""Wander through a turn at random: longer than a search reaches, on clocks that jump, with luck.

Beside the turn walks a twin that hears every failure in other words; and every fourth step the turn
goes through JSON and back.
"""

from __future__ import annotations

from attrs import evolve, fields
from hypothesis import strategies as st

from orchestrator.turn import ENDS, Failed, Recovered, TurnMachine
from tests.turn.explore import (
    check_budgets,
    check_snapshot,
    check_twin,
    fork,
    seen_by,
)
from tests.turn.observer import Observer
from tests.turn.universe import DEFAULT, FACTS, IDS, SMALL, events, reworded, sessions

LENGTH = 60

JUMPS = (0.0, 0.0, 0.0, 0.25, 5.0, 299.0, 86_400.0, -3600.0, 1e9, -1e9)
"""Seconds by which a clock may be off; all of them exact in binary, as is luck below."""


@st.composite
def walks(draw):
    """Draw a beginning, and four bytes per step: which event, whether it may end, clock, luck."""
    settings = draw(st.sampled_from((DEFAULT, SMALL)))
    facts = draw(st.sampled_from(list(FACTS.values())))
    session = draw(st.sampled_from(list(sessions(settings).values())))
    return settings, facts, session, draw(st.binary(min_size=4 * LENGTH, max_size=4 * LENGTH))


def wander(walk):
    """Walk, and check every step.  Returns the machine as it stands then."""
    settings, facts, session, steps = walk
    machine, twin = TurnMachine(settings, IDS, session), TurnMachine(settings, IDS, session)
    observer = Observer(settings, session)
    for place in range(0, len(steps), 4):
        choice, ending, jump, luck = steps[place : place + 4]
        event = _choose(machine, facts, choice, may_end=ending % 32 == 1)
        event = _elsewhen(event, JUMPS[jump % len(JUMPS)], (luck % 64) / 64)
        before = fork(machine)
        effects = machine.handle(event)
        observer.step(event, effects, machine.next_deadline())
        check_budgets(before, machine, effects)
        check_twin(machine, twin, twin.handle(reworded(event)), effects)
        if place % 16 == 0:
            check_snapshot(machine)
            machine = TurnMachine.restore(machine.snapshot())
    return machine


def _choose(machine, facts, choice, *, may_end):
    """Take the event that was drawn, or the next one that does not end the turn."""
    offered = list(events(seen_by(machine), facts))
    drawn = choice % len(offered)
    if may_end or machine.state in ENDS:
        return offered[drawn]
    for event in (*offered[drawn:], *offered[:drawn]):
        ahead = fork(machine)
        ahead.handle(event)
        if ahead.state not in ENDS:
            return event
    return offered[drawn]


def _elsewhen(event, jump, luck):
    names = {field.name for field in fields(type(event))}
    if jump and "now" in names:
        event = evolve(event, now=event.now + jump)
    return evolve(event, luck=luck) if isinstance(event, Failed | Recovered) else event
