"""The runner adds nothing: what it was told by the machine is what a bare machine says."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import Facts, Kind, Refusal, StopReason, TurnMachine
from orchestrator.settings.model import Choices, Recoveries
from orchestrator.testing import (
    JumpingClock,
    ScriptedAgent,
    assert_nothing_lost,
    assert_settled,
)
from orchestrator.turn.case import OUTPUT
from orchestrator.turn.events import Evidence
from tests.runner.world import SETTINGS, a_world

KINDS = sorted(kind for kind in Kind)
ENDS = st.sampled_from([*KINDS, *StopReason, Refusal("x"), ConnectionResetError("x"), OSError()])
SHOWN = st.sampled_from(["text", Evidence.THOUGHT, Evidence.TOOL])
SCRIPTS = st.lists(
    st.tuples(st.lists(SHOWN, max_size=2), ENDS).map(lambda t: [*t[0], t[1]]), max_size=14
)
FACTS = st.builds(
    Facts,
    interactive=st.booleans(),
    nested=st.booleans(),
    subagent=st.booleans(),
    ride_out=st.booleans(),
    has_subagents=st.booleans(),
)
GENEROUS = Recoveries(fallback_models=("small", "tiny"), content_filter_model="small")


def drive(scripts, facts, act=None):
    """Run a turn; return what the observer saw, and the machine that answered."""
    import anyio

    async def main():
        changes = {"recoveries": GENEROUS, "choices": Choices(fresh_session=True)}
        async with a_world(clock=JumpingClock(), **changes) as world:
            session = world.session(ScriptedAgent(*scripts))
            session.update(model="large", served=("large", "small", "tiny"))
            state = session.state
            async with session.turn("hi", facts=facts) as turn:
                if act is not None:
                    await act(turn)
            return world, turn, state

    return anyio.run(main, backend="asyncio")


@settings(max_examples=120, deadline=None)
@given(SCRIPTS, FACTS)
def test_a_bare_machine_gives_the_same_effects(scripts, facts):
    world, turn, state = drive(scripts, facts)
    machine = TurnMachine(turn.machine.settings, turn.machine.ids, state)
    for _, event, effects in world.recorder.steps:
        assert machine.handle(event) == effects
    assert machine.state is turn.machine.state
    assert machine.snapshot() == turn.machine.snapshot()


@settings(max_examples=120, deadline=None)
@given(SCRIPTS, FACTS, st.integers(0, 30), st.sampled_from(["stop", "steer", "rebind", "leave"]))
def test_nothing_is_lost_whoever_acts_when(scripts, facts, ticks, what):
    from anyio.lowlevel import checkpoint

    async def act(turn):
        for _ in range(ticks):
            await checkpoint()
        if what == "stop":
            turn.stop()
        elif what == "steer":
            turn.steer("wait")
        elif what == "rebind":
            turn.session.rebind("elsewhere")

    world, turn, _ = drive(scripts, facts, act)
    assert_nothing_lost(world.recorder)
    of_turn = [r for r in world.sink.records if r.id.startswith(f"{turn.id}:")]
    output = bool(turn.machine.seen & OUTPUT)
    assert_settled(of_turn, landed=turn.outcome.landed or output)
    assert turn.outcome.text == "text" * turn.outcome.text.count("text")
    assert not world.orchestrator.running


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_ends_the_turn_with_an_outcome_that_can_be_raised(kind):
    _, turn, _ = drive([[kind]] * 20, Facts(interactive=False))
    outcome = turn.outcome
    assert (outcome.error() is None) is outcome.landed


def test_the_worlds_settings_are_the_machines():
    _, turn, _ = drive([], Facts())
    assert turn.machine.settings.ladders == SETTINGS.ladders
