"""Golden journals: what real agents did, and what the machine answered, byte for byte."""

import json

import pytest

from orchestrator.journal import Journal, JournalObserver, again, otherwise, recorded_story
from tests.acp.replay_agent import AGENTS
from tests.journal import record


def turns_of(agent):
    journal = Journal(record.FOLDER / f"{agent}.jsonl")
    return [(turn, journal.settings_of(turn)) for turn in journal.turns()]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_real_agents_turns_replay_byte_for_byte(agent):
    turns = turns_of(agent)
    assert len(turns) == len(record.names(agent))
    for turn, settings in turns:
        assert turn.ended, turn.name
        assert again(turn, settings) is None, turn.name


@pytest.mark.parametrize("agent", AGENTS)
def test_under_their_own_settings_nothing_would_have_gone_otherwise(agent):
    for turn, settings in turns_of(agent):
        before, after = recorded_story(turn), otherwise(turn, settings)
        assert before.same_as(after), turn.name
        assert before.ends_at_s == pytest.approx(after.ends_at_s, abs=0.01), turn.name


def decisions(turn):
    """What a turn was told and what it answered, without anybody's wording."""
    return [
        (
            step.event["type"],
            step.event.get("verdict", {}).get("kind"),
            [(effect["type"], effect.get("family")) for effect in step.effects],
        )
        for step in turn.steps
    ]


@pytest.mark.parametrize("agent", AGENTS)
def test_the_golden_journals_are_what_the_runner_writes_today(agent, tmp_path):
    path = tmp_path / "now.jsonl"
    observer = JournalObserver(path, fsync="never", wall_clock=lambda: record.WALL)
    observer._run = agent
    for name in record.names(agent)[::4]:
        record.record(agent, name, observer)
    observer.close()
    now = {turn.id: turn for turn in Journal(path).turns()}
    assert len(now) > 10
    for turn, _ in turns_of(agent):
        if turn.id in now:
            assert decisions(turn) == decisions(now[turn.id]), turn.name


def test_the_golden_journals_hold_what_is_worth_replaying():
    told = [
        effect["type"]
        for agent in AGENTS
        for turn, _ in turns_of(agent)
        for step in turn.steps
        for effect in step.effects
    ]
    for kind in ("Send", "Wait", "Recover", "Publish", "Cancel", "End"):
        assert told.count(kind) > 3, kind


def test_the_golden_journals_name_no_file_of_this_machine():
    for agent in AGENTS:
        text = (record.FOLDER / f"{agent}.jsonl").read_text()
        assert "/home/" not in text
        assert all(json.loads(line)["v"] == 1 for line in text.splitlines())
