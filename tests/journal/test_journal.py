"""The journal: what is written, what is read back, and what becomes of a broken one."""

import json
import os
import stat
from pathlib import Path

import pytest

from orchestrator import Orchestrator
from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Verdict
from orchestrator.journal import Journal, JournalError, JournalObserver, again, codec
from orchestrator.journal.file import Fsync, Keeping
from orchestrator.runner.agent import RecoveryResult
from orchestrator.settings.model import Budget, Choices, Ladders, Recoveries, Settings
from orchestrator.testing import Hang, Pause, ScriptedAgent
from orchestrator.turn.effects import SessionState
from orchestrator.turn.events import Evidence, Saw, Step
from tests.journal.drive import run_turn, virtually

NO_WAIT = Settings(ladders=Ladders(connection_window_s=0))
SECRET = "sk-ant-api03-" + "a1B2c3D4e5" * 9


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def of_type(path, kind):
    return [line for line in lines(path) if line["line"] == kind]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "turns.jsonl"


def journal_of(path, *scripts, settings=NO_WAIT, turns=1, facts=None, **options):
    observer = JournalObserver(path, **options)
    virtually(run_turn, ScriptedAgent(*scripts), observer, settings, turns)
    observer.close()
    return observer


def replayed(path):
    journal = Journal(path)
    turns = list(journal.turns())
    return journal, turns, [again(turn, journal.settings_of(turn)) for turn in turns]


def test_every_event_and_effect_of_a_turn_is_in_the_journal(path):
    journal_of(path, Kind.OVERLOADED, ["Hello"])
    events = of_type(path, "event")
    assert [e["event"]["type"] for e in events] == [
        "Started",
        "Began",
        "Failed",
        "Due",
        "Began",
        "Saw",
        "Finished",
    ]
    effects = [[effect["type"] for effect in e["effects"]] for e in events]
    assert effects == [
        ["Dispatch"],
        ["Send"],
        ["Publish", "Wait"],
        ["Dispatch"],
        ["Send"],
        [],
        ["End"],
    ]
    assert [e["n"] for e in events] == list(range(7))
    assert {line["v"] for line in lines(path)} == {1}


def test_a_journal_replays_byte_for_byte(path):
    scripts = (
        Kind.OVERLOADED,
        Kind.AGENT_DIED,
        ["some text", Kind.SERVER_ERROR],
        ["more"],
    )
    journal_of(path, *scripts)
    _, turns, differences = replayed(path)
    assert len(turns) == 1
    assert turns[0].ended
    assert len(turns[0].steps) > 12
    assert differences == [None]


def test_a_changed_effect_is_found_with_a_diff(path):
    journal_of(path, Kind.OVERLOADED)
    path.write_text(path.read_text().replace('"limit":3', '"limit":4', 1))
    _, _, (difference,) = replayed(path)
    assert difference.event["type"] == "Failed"
    assert '- "limit": 4' in difference.diff()
    assert '+ "limit": 3' in difference.diff()


def test_an_event_that_the_machine_refuses_is_a_difference(path):
    journal_of(path, ["Hello"])
    path.write_text(path.read_text().replace('"type":"Began"', '"type":"RetryNow"', 1))
    _, _, (difference,) = replayed(path)
    assert difference is not None


def test_no_secret_is_written(path):
    title = f"The key {SECRET} was refused"
    failure = Verdict.of(Kind.INVALID_REQUEST, title, details=title, raw_detail=title)
    journal_of(path, failure)
    assert SECRET not in path.read_text()
    assert "[REDACTED: credential]" in path.read_text()
    assert replayed(path)[2] == [None]


def test_what_a_recovery_reports_is_scrubbed_too(path):
    agent = ScriptedAgent(
        Kind.AGENT_DIED,
        recoveries={Step.RESPAWN: RecoveryResult(ok=False, detail=f"no {SECRET} for you")},
    )
    observer = JournalObserver(path)
    virtually(run_turn, agent, observer, NO_WAIT, 1)
    assert SECRET not in path.read_text()
    assert replayed(path)[2] == [None]


def test_a_chatty_attempt_is_one_line(path):
    journal_of(path, ["word "] * 500)
    events = of_type(path, "event")
    assert [e["event"]["type"] for e in events] == ["Started", "Began", "Saw", "Finished"]
    assert replayed(path)[2] == [None]


def test_a_second_turn_takes_up_what_the_first_one_left(path):
    settings = Settings(recoveries=Recoveries(deaths=2), ladders=NO_WAIT.ladders)
    scripts = [Kind.AGENT_DIED, Kind.AGENT_DIED, Kind.AGENT_DIED, Kind.AGENT_DIED]
    journal_of(path, *scripts, settings=settings, turns=3)
    _, turns, differences = replayed(path)
    assert [codec.state_of(turn.state).deaths for turn in turns][:2] == [0, 2]
    assert differences == [None] * 3


def test_a_turn_that_stood_in_line_replays_with_the_state_it_took_up(path):
    async def both():
        agent = ScriptedAgent([Pause(1), Kind.AGENT_DIED], ["ok"], [Kind.AGENT_DIED], ["ok"])
        observer = JournalObserver(path)
        async with Orchestrator(NO_WAIT, observers=[observer], seed=1) as orchestrator:
            session = orchestrator.session("chat", agent, state=SessionState(deaths=1))
            async with session.turn("one", turn_id="1") as one:
                async with session.turn("two", turn_id="2") as two:
                    await two
                await one

    virtually(both)
    took = [e for e in of_type(path, "event") if "took" in e]
    assert [e["turn"] for e in took] == [2]
    assert replayed(path)[2] == [None, None]


def test_a_torn_last_line_is_left_out_and_counted(path):
    journal_of(path, ["Hello"], turns=2)
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b'"event":"') if b'"event":"' in whole else -40])
    journal = Journal(path)
    turns = list(journal.turns())
    assert journal.counts.torn == 1
    assert [turn.ended for turn in turns] == [True, False]
    assert again(turns[0], journal.settings_of(turns[0])) is None


def test_the_next_run_goes_on_behind_a_torn_line(path):
    journal_of(path, ["Hello"])
    path.write_bytes(path.read_bytes()[:-25])
    journal_of(path, ["Again"])
    journal, turns, differences = replayed(path)
    assert journal.counts.torn == 1
    assert sorted(turn.ended for turn in turns) == [False, True]
    assert differences == [None, None]


def test_unknown_line_types_are_skipped_and_counted(path):
    journal_of(path, ["Hello"])
    with path.open("a") as stream:
        stream.write('{"v":1,"line":"weather","sky":"grey"}\n{"v":99,"line":"event"}\n[1]\n')
    journal, _, differences = replayed(path)
    assert journal.counts.unknown == 3
    assert differences == [None]


def test_unknown_fields_are_kept_and_do_no_harm(path):
    journal_of(path, Kind.OVERLOADED)
    text = path.read_text()
    path.write_text(text.replace('"event":{"type"', '"event":{"mood":"good","type"'))
    _, (turn,), differences = replayed(path)
    assert differences == [None]
    assert turn.steps[0].event["mood"] == "good"


def test_a_missing_event_makes_a_turn_no_longer_whole(path):
    journal_of(path, Kind.OVERLOADED)
    kept = [line for line in path.read_text().splitlines() if '"n":1,' not in line]
    path.write_text("\n".join(kept) + "\n")
    (turn,) = Journal(path).turns()
    assert not turn.whole


def test_a_full_file_is_put_aside_and_the_oldest_goes(path):
    journal_of(path, *[Kind.OVERLOADED] * 4, ["ok"], turns=40, max_bytes=8192, older_files=2)
    names = sorted(file.name for file in path.parent.iterdir())
    assert names == ["turns.jsonl", "turns.jsonl.1", "turns.jsonl.2"]
    assert all(file.stat().st_size <= 8192 for file in path.parent.iterdir())
    journal, turns, differences = replayed(path)
    assert set(differences) == {None}
    assert journal.counts.headless > 0  # of the turn whose beginning went
    assert [int(turn.id) for turn in turns] == sorted(int(turn.id) for turn in turns)


def test_every_file_can_be_read_by_itself(path):
    journal_of(path, ["ok"], turns=30, max_bytes=8192, older_files=1)
    alone = path.with_name("alone.jsonl")
    path.rename(alone)
    _, turns, differences = replayed(alone)
    assert turns
    assert set(differences) == {None}


@pytest.mark.parametrize(
    ("fsync", "expected"), [("never", 0), ("at_end", 3), ("always", 1 + 4 * 2 + 2)]
)
def test_lines_are_forced_onto_the_disk_as_often_as_asked(path, monkeypatch, fsync, expected):
    calls = []
    monkeypatch.setattr("orchestrator.journal.file.os.fsync", calls.append)
    journal_of(path, ["Hello"], ["Hello"], turns=2, fsync=fsync)
    assert len(calls) == expected


def test_only_the_owner_may_read_it(path):
    journal_of(path, ["Hello"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_disk_that_fails_switches_the_journal_off_and_nothing_else(path, monkeypatch, caplog):
    def full(*_):
        raise OSError(28, "No space left on device")

    observer = JournalObserver(path)
    monkeypatch.setattr("orchestrator.journal.file.os.write", full)
    outcome, orchestrator = virtually(run_turn, ScriptedAgent(["Hello"]), observer, NO_WAIT, 1)
    assert outcome.landed
    assert orchestrator.delivery.switched_off == {"journal": "OSError"}


def test_a_turn_that_hangs_and_is_stopped_hard_is_whole(path):
    async def main():
        observer = JournalObserver(path)
        async with Orchestrator(NO_WAIT, observers=[observer], seed=1) as orchestrator:
            session = orchestrator.session("chat", ScriptedAgent([Hang()]))
            async with session.turn("hi") as turn:
                turn.stop(hard=True)

    virtually(main)
    _, (turn,), differences = replayed(path)
    assert turn.ended
    assert differences == [None]


def test_bounds_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="max_bytes: 10 is not allowed"):
        Keeping(max_bytes=10)
    with pytest.raises(ValueError, match="older_files: -1 is not allowed"):
        Keeping(older_files=-1)
    with pytest.raises(ValueError, match="sometimes"):
        JournalObserver("x", fsync="sometimes")


def test_a_journal_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(JournalError, match="there is no such file"):
        list(Journal(tmp_path / "none.jsonl").turns())
    with pytest.raises(JournalError, match="this is a folder, not a file"):
        list(Journal(tmp_path).turns())


def test_a_turn_with_a_number_beyond_any_is_skipped_and_counted(tmp_path):
    line = {"v": 1, "line": "turn", "run": "r", "turn": float("inf")}
    (tmp_path / "odd.jsonl").write_text(json.dumps(line))
    journal = Journal(tmp_path / "odd.jsonl")
    assert list(journal.turns()) == []
    assert journal.counts.unknown == 1


def test_a_journal_is_read_from_a_pipe_too(tmp_path):
    reader, writer = os.pipe()
    os.write(writer, b"torn\n")
    os.close(writer)
    journal = Journal(Path(f"/dev/fd/{reader}"))
    assert list(journal.turns()) == []
    os.close(reader)
    assert journal.counts.torn == 1


def test_settings_are_written_once_for_each_change(path):
    async def main():
        observer = JournalObserver(path)
        async with Orchestrator(NO_WAIT, observers=[observer], seed=1) as orchestrator:
            session = orchestrator.session("chat", ScriptedAgent())
            for place in range(6):
                if place == 3:
                    orchestrator.settings = Settings(
                        budget=Budget(enabled=True), choices=Choices(ride_out=True)
                    )
                await session.turn("hi")

    virtually(main)
    assert len(of_type(path, "settings")) == 2
    journal, turns, differences = replayed(path)
    assert [journal.settings_of(turn).budget.enabled for turn in turns] == [False] * 3 + [True] * 3
    assert differences == [None] * 6


def test_an_event_reads_back_as_itself():
    event = Saw(3, Evidence.TOOL)
    assert codec.event_of(json.loads(codec.line(codec.event_json(event)))) == event
    with pytest.raises(ValueError, match="no event of this version"):
        codec.event_of({"type": "Rained"})
    with pytest.raises(ValueError, match="Saw"):
        codec.event_of({"type": "Saw", "attempt": True, "evidence": "text"})


def test_the_policies_of_flushing_are_spelled_as_documented():
    assert [policy.value for policy in Fsync] == ["never", "at_end", "always"]
