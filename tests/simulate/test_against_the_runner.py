"""The simulator and the real runner agree: the same turns end in the same way at the same time.

The runner is driven on trio's virtual clock; its agents answer from the same draws as the
simulator's provider, and its luck is the same.  Nothing of the simulator's own driving takes part.
"""

import math
from functools import partial

import pytest
import trio
import trio.testing
from attrs import define, evolve

from orchestrator import Orchestrator
from orchestrator.runner.agent import RecoveryResult
from orchestrator.settings.model import Budget, Choices, Recoveries, Settings
from orchestrator.simulate.fleet import Fleet
from orchestrator.simulate.ours import machines
from orchestrator.simulate.reading import load
from orchestrator.simulate.tally import LANDED, Result
from orchestrator.simulate.world import Arrival, Use, World, arrivals, chance, scaled
from orchestrator.turn.effects import How, NoteCode
from orchestrator.turn.events import Step, StopReason

TURNS = 1000
SEED = 11


@define(eq=False)
class WorldAgent:
    """An agent of the runner that answers as the scenario's provider does."""

    world: World
    turn: Arrival
    model: str
    first_failure: object = None
    sends: int = 0
    steps: int = 0

    async def attempt(self, attempt):
        self.sends += 1
        assert attempt.number == self.sends
        now = trio.current_time()
        after_s, fault = self.world.answer(self.turn, attempt.number, now, self.model)
        await trio.sleep(after_s)
        if fault is None:
            attempt.text("answer")
            return StopReason.END_TURN
        if fault.after_output:
            attempt.text("begun")
        if self.first_failure is not None:
            tell, self.first_failure = self.first_failure, None
            tell()
        return self.world.verdict(fault, trio.current_time())

    async def recover(self, recover):
        self.steps += 1
        if recover.step is Step.CANARY:
            return await self.canary()
        await trio.sleep(self.world.scenario.recovering.takes_s)
        ok = chance(self.turn.seed, Use.STEP, self.steps) < self.world.scenario.recovering.works
        if ok and recover.target:
            self.model = recover.target
        if ok and recover.step is Step.DISCARD and self.turn.conversation is not None:
            self.turn.conversation.poison = None
        return RecoveryResult(ok=ok, detail=recover.target)

    async def canary(self):
        now = trio.current_time()
        after_s, fault = self.world.canary(self.turn, self.steps, now, self.model)
        await trio.sleep(after_s)
        return RecoveryResult(ok=fault is None)


def result_of(outcome):
    if outcome.how is How.LANDED:
        return "landed"
    if any(note.code is NoteCode.RETRY_BUDGET for note in outcome.notes):
        return Result.DENIED
    return Result(outcome.how.value)


async def one_session(orchestrator, world, arrivals_, seen, nursery):
    """Its turns, one behind another: people wait for the answer before."""
    for arrival in arrivals_:
        if arrival.at > trio.current_time():
            await trio.sleep_until(arrival.at)
        await one_turn(orchestrator, world, arrival, seen, nursery, number=arrivals_[0].index)


async def one_turn(orchestrator, world, arrival, seen, nursery, *, number):
    agent = WorldAgent(world, arrival, world.scenario.model)
    session = orchestrator.session(f"chat-{number}", agent, provider="anthropic")
    session.update(model=world.scenario.model)
    session.update(served=(world.scenario.model, *world.scenario.served))
    lucks = iter(range(1, 10_000))
    session.luck = lambda: chance(arrival.seed, Use.LUCK, next(lucks))
    turn = session.turn("hello")
    agent.first_failure = partial(nursery.start_soon, the_user, world.scenario, arrival, turn)
    outcome = await turn
    seen[arrival.index] = (result_of(outcome), agent.sends, trio.current_time())


async def the_user(scenario, arrival, turn):
    """Acts as the scenario's users do, from the first failure on."""
    mood = chance(arrival.seed, Use.MOOD)
    if mood >= scenario.users.stop + scenario.users.steer:
        return
    await trio.sleep(patience(scenario, arrival))
    if mood < scenario.users.stop:
        turn.stop()
    else:
        turn.steer("something else")


def patience(scenario, arrival):
    return -math.log(1.0 - chance(arrival.seed, Use.PATIENCE)) * scenario.users.patience_s


def by_the_runner(scenario, settings):
    world, seen = World(scenario), {}

    async def main():
        async with Orchestrator(settings) as orchestrator, trio.open_nursery() as nursery:
            sessions = {}
            for arrival in arrivals(scenario, SEED, Arrival):
                whose = world.join(arrival) if world.conversations else arrival
                sessions.setdefault(id(whose), []).append(arrival)
            for turns in sessions.values():
                nursery.start_soon(one_session, orchestrator, world, turns, seen, nursery)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    return seen


def by_the_simulator(scenario, settings):
    seen = {}

    def note(ended):
        result = "landed" if ended.result in LANDED else ended.result
        seen[ended.turn.index] = (result, ended.turn.sends, ended.at)

    Fleet(scenario, machines(settings), seed=SEED, watch=note).play()
    return seen


def about_a_thousand(name, turns=TURNS):
    scenario = load(name)
    return scaled(scenario, turns / scenario.expected_turns())


WORLDS = {
    "outage": (about_a_thousand("outage-5m"), Settings()),
    "impatient people who ride it out": (
        about_a_thousand("impatient"),
        Settings(choices=Choices(ride_out=True)),
    ),
    "crash loop": (about_a_thousand("crash-loop"), Settings()),
    "cut streams": (about_a_thousand("steady"), Settings()),
    "spent limit": (
        about_a_thousand("spent-limit"),
        Settings(choices=Choices(resume_at_reset=True)),
    ),
    "another model": (
        evolve(
            about_a_thousand("brown-out"),
            served=("spare",),
            healthy_models=("spare",),
        ),
        Settings(recoveries=Recoveries(fallback_models=("spare",))),
    ),
    "poisoned conversations": (about_a_thousand("poisoned"), Settings()),
    "an outage over whole conversations": (
        evolve(about_a_thousand("outage-5m"), turns_per_session=10),
        Settings(),
    ),
    "conversations with an agent that dies": (
        evolve(about_a_thousand("crash-loop"), turns_per_session=10),
        Settings(),
    ),
    "budget": (about_a_thousand("brown-out"), Settings(budget=Budget(enabled=True))),
    "throttle": (evolve(load("throttle"), duration_s=480), Settings()),
}


@pytest.mark.parametrize("name", WORLDS)
def test_turns_end_as_in_the_runner_and_at_the_same_time(name):
    scenario, settings = WORLDS[name]
    ours, theirs = by_the_simulator(scenario, settings), by_the_runner(scenario, settings)
    assert len(ours) > 800
    assert set(ours) == set(theirs)
    # Enough of the turns must be ones that were in trouble.
    assert sum(sends > 1 for _, sends, _ in ours.values()) > 5
    for index, (result, sends, at) in ours.items():
        their_result, their_sends, their_at = theirs[index]
        assert (result, sends) == (their_result, their_sends), index
        assert at == pytest.approx(their_at, abs=1e-6), index
