"""What embedders test with has to be able to fail."""

import pytest

from orchestrator import Category, Kind, Record, RecoveryResult, Severity, Step
from orchestrator.testing import (
    HANG,
    JumpingClock,
    Recorder,
    RecordingSink,
    ScriptedAgent,
    assert_nothing_lost,
    assert_settled,
)
from orchestrator.turn.effects import Dispatch, Drop, End, Family, How, Payload, Send
from orchestrator.turn.events import DropReason, Evidence
from tests.runner.world import a_world


class Seen:
    """A machine as far as a recorder looks at it."""

    def __init__(self, pending=None):
        self.ids = type("Ids", (), {"turn_id": "t"})
        self.pending = pending


def recorded(*tuples, pending=None):
    recorder = Recorder()
    for effects in tuples:
        recorder(Seen(pending), None, effects)
    return recorder


END = End(How.LANDED, "end_turn", None)
DROP = Drop(Family.TRANSIENT, 1, DropReason.STOPPED)


@pytest.mark.parametrize(
    ("recorder", "complaint"),
    [
        (recorded((Dispatch(Payload.VERBATIM, 1),)), "ended 0 times"),
        (recorded((END,), (END,)), "ended 2 times"),
        (recorded((END,), pending=Family.TRANSIENT), "with a retry pending"),
        (recorded((Send(1),), (Send(3),), (END,)), r"sent \[1, 3\]"),
        (recorded((DROP, DROP, END)), "scheduled 0 retries, sent 0 and dropped 2"),
    ],
)
def test_a_turn_that_lost_something_is_found(recorder, complaint):
    with pytest.raises(AssertionError, match=complaint):
        assert_nothing_lost(recorder)


def record(revision, severity, id_="t:error"):
    return Record(id_, revision, Category.SERVICE, severity, "title")


WARNING, ERROR = Severity.WARNING, Severity.ERROR


@pytest.mark.parametrize(
    ("records", "complaint"),
    [
        ([record(2, ERROR)], "2, not 1"),
        ([record(1, WARNING), record(1, ERROR)], "1, not 2"),
        ([record(1, ERROR), record(2, ERROR)], "ended twice"),
        ([record(1, WARNING)], "still says"),
    ],
)
def test_records_that_do_not_settle_are_found(records, complaint):
    with pytest.raises(AssertionError, match=complaint):
        assert_settled(records)


def test_records_that_settle_are_fine():
    assert_settled([record(1, WARNING), record(2, ERROR), record(1, ERROR, "u:error")])
    assert_settled([record(1, WARNING)], landed=True)


@pytest.mark.anyio
async def test_a_script_says_what_the_agent_does_in_order():
    async with a_world(clock=JumpingClock()) as world:
        called = []

        async def later(attempt):
            called.append(attempt.number)

        agent = ScriptedAgent(
            [Evidence.THOUGHT, called.append, later, Kind.OVERLOADED],
            (Evidence.TEXT, "more"),
        )
        outcome = await world.session(agent).turn("hi")
        assert outcome.text == "textmore"
        assert called[1:] == [1]


@pytest.mark.anyio
@pytest.mark.parametrize("result", [RecoveryResult(ok=False), LookupError("nothing there")])
async def test_a_recovery_step_can_be_made_to_fail(result):
    async with a_world() as world:
        agent = ScriptedAgent(Kind.AGENT_DIED, recoveries={Step.RESPAWN: result})
        outcome = await world.session(agent).turn("hi")
        assert not outcome.landed
        assert [r.step for r in agent.recovered] == [Step.RESPAWN]


@pytest.mark.anyio
async def test_a_recording_sink_keeps_records_and_notes_apart():
    async with a_world() as world:
        async with world.session(ScriptedAgent(Kind.OVERLOADED)).turn("hi") as turn:
            await world.clock.settle()
            turn.stop()
        assert len(world.sink.items) == len(world.sink.records) + len(world.sink.notes)
        assert world.sink.notes
    assert RecordingSink().records == []
    assert repr(HANG) == "Hang()"


@pytest.mark.anyio
async def test_a_recorder_finds_events_and_effects_by_kind():
    async with a_world() as world:
        await world.session(ScriptedAgent()).turn("hi")
        assert [e.number for e in world.recorder.effects(Send)] == [1]
        assert len(world.recorder.events(type(world.recorder.steps[0][1]))) == 1
