# ruff: noqa: T201 - it is a program
"""What simulating costs: `python -m tests.bench.simulate`.

Turns a second on one core over the real machine, what of that is the machine's own, and how time
and memory grow from a thousand turns to a million.
"""

from __future__ import annotations

import gc
import resource
import time
import tracemalloc

from attrs import evolve

from orchestrator.settings.model import Budget, Settings
from orchestrator.simulate.fleet import play
from orchestrator.simulate.ours import machines
from orchestrator.simulate.policies import policy
from orchestrator.simulate.reading import load
from orchestrator.simulate.scenario import Scenario
from orchestrator.simulate.world import Arrival, arrivals
from orchestrator.turn.effects import End
from orchestrator.turn.events import Began, Evidence, Finished, Live, Saw, Started
from orchestrator.turn.incidents import TurnIds
from orchestrator.turn.machine import TurnMachine

SIMPLE = Scenario("simple", rate_per_s=10, duration_s=1000)
"""Nothing fails: each turn is sent once and lands."""
ROUNDS = 3
TURNS = 20_000
SIZES = (1_000, 10_000, 100_000, 1_000_000)


def seconds(work, rounds=ROUNDS):
    """The quickest of some rounds: what the work costs when nobody else runs."""
    taken = []
    for _ in range(rounds):
        gc.collect()
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def turns_per_s(scenario, player_of, turns=TURNS):
    tally = play(scenario, player_of, turns=turns)
    return tally.turns / seconds(lambda: play(scenario, player_of, turns=turns))


def bare_machine(turns=TURNS):
    """The machine alone: one turn's four events, built and handled."""
    settings, ids, live, saw = Settings(), TurnIds("t", "s", "e"), Live(), Saw(1, Evidence.TEXT)

    def work():
        for _ in range(turns):
            machine = TurnMachine(settings, ids)
            machine.handle(Started(0.0, live))
            machine.handle(Began(0.0, live))
            machine.handle(saw)
            effects = machine.handle(Finished(1.0, live, 1))
        assert isinstance(effects[-1], End)

    return seconds(work) / turns * 1e6


def only_arrivals(turns=TURNS):
    world = evolve(SIMPLE, duration_s=turns / 10)
    return seconds(lambda: sum(1 for _ in arrivals(world, 1, Arrival))) / turns * 1e6


def peak_kib(turns):
    """Peak of what a run allocates, measured by itself: tracing slows a run down."""
    gc.collect()
    tracemalloc.start()
    play(SIMPLE, machines(Settings()), turns=turns)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1024


def speed():
    ours = machines(Settings())
    simple = turns_per_s(SIMPLE, ours)
    machine, starts, whole = bare_machine(), only_arrivals(), 1e6 / simple
    rest = whole - machine - starts
    yield "simple turns, real machine", f"{simple:,.0f} /s", "aim: 100,000 /s on one core"
    yield "  of it: the machine", f"{machine:.1f} us/turn", f"{machine / whole:.0%} of a turn"
    yield "  of it: arrivals and draws", f"{starts:.1f} us/turn", f"{starts / whole:.0%}"
    yield "  of it: queue, world, counting", f"{rest:.1f} us/turn", f"{rest / whole:.0%}"
    limit = "the machine" if machine >= rest else "the queue and the counting"
    yield "  limited by", limit, "one attempt is five calls into it, and one heap entry"
    yield "simple turns, a policy", f"{turns_per_s(SIMPLE, policy('none')):,.0f} /s", "no machine"
    for name in ("steady", "outage-5m", "crash-loop"):
        yield f"{name}, real machine", f"{turns_per_s(load(name), ours):,.0f} turns/s", ""
    budget = machines(Settings(budget=Budget(enabled=True)))
    yield "steady, with a retry budget", f"{turns_per_s(load('steady'), budget):,.0f} turns/s", ""


def scaling():
    ours = machines(Settings())
    for turns in SIZES:
        rounds = ROUNDS if turns < SIZES[-1] else 1
        took = seconds(lambda turns=turns: play(SIMPLE, ours, turns=turns), rounds)
        figure = f"{took:.3f} s, {took / turns * 1e6:.1f} us/turn"
        memory = f"{peak_kib(turns):,.0f} KiB at peak" if turns < SIZES[-1] else ""
        yield f"{turns:,} turns", figure, memory
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield "whole process at its peak", f"{resident:,.0f} MiB", "after all of the above"


def rows():
    return [*speed(), *scaling()]


def main():
    table = rows()
    widths = [max(len(row[n]) for row in table) for n in range(2)]
    for what, figure, beside in table:
        print(f"{what:<{widths[0]}}  {figure:<{widths[1]}}  {beside}".rstrip())


if __name__ == "__main__":
    main()
