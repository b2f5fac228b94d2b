"""`orchestrator simulate`, `compare`, `tune` and `replay`, as people call them."""

import json
import os
import subprocess
import sys

import pytest

from orchestrator.cli.app import run
from orchestrator.cli.codes import Exit
from orchestrator.failure.kinds import Kind
from orchestrator.journal import JournalObserver
from orchestrator.settings.load import load
from orchestrator.settings.model import Settings
from orchestrator.simulate.reading import names
from orchestrator.testing import ScriptedAgent
from tests.journal.drive import run_turn, virtually

SMALL = "rate_per_s = 2\nduration_s = 60\noutage = { from_s = 20, to_s = 40 }\n"
SMALL += '[[phases]]\nfrom_s = 20\nto_s = 40\nfaults = [{ kind = "overloaded" }]\n'


@pytest.fixture(autouse=True)
def _quiet_world(monkeypatch, tmp_path):
    for name in [name for name in os.environ if name.startswith("ORCHESTRATOR_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def small(tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    return str(file)


def test_simulate_answers_with_intervals(capsys, small):
    assert run(["simulate", "--scenario", small, "--seeds", "3"]) == Exit.OK
    out, err = capsys.readouterr()
    assert out.startswith("small")
    assert "landed" in out
    assert " ± " in out
    assert "in 3 runs, means with 95 % intervals; seed 1." in err


def test_simulate_is_the_same_for_the_same_seed(capsys, small):
    outs = []
    for seed in ("4", "4", "5"):
        assert run(["simulate", "--scenario", small, "--seed", seed, "--json"]) == Exit.OK
        outs.append(capsys.readouterr().out)
    assert outs[0] == outs[1] != outs[2]
    told = json.loads(outs[0])
    assert told["scenario"] == "small"
    assert 0 < told["measures"]["landed"]["mean"] < 1
    assert told["measures"]["amplification"]["low"] > 1


def test_simulate_uses_the_settings_it_is_given(capsys, small):
    flags = ["--scenario", small, "--seeds", "1", "--json"]
    run(["simulate", *flags])
    ours = json.loads(capsys.readouterr().out)["measures"]
    run(["simulate", *flags, "--set", "ladders.transient_retries=0"])
    none = json.loads(capsys.readouterr().out)["measures"]
    assert ours["landed"]["mean"] > none["landed"]["mean"]
    assert none["amplification"]["mean"] == 1


def test_simulate_lists_what_is_shipped(capsys):
    assert run(["simulate", "--list"]) == Exit.OK
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(names())
    assert all(len(line.split()) > 3 for line in lines)


def test_simulate_writes_a_report(capsys, small, tmp_path):
    page = tmp_path / "report.html"
    assert run(["simulate", "--scenario", small, "--seeds", "2", "--html", str(page)]) == Exit.OK
    assert page.read_text().startswith("<!doctype html>")
    assert f"Written to {page}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--scenario", "overlod"], Exit.USAGE, "did you mean overload?"),
        (["--seeds", "0"], Exit.USAGE, "--seeds: 0 is not allowed"),
        (["--turns", "0"], Exit.USAGE, "--turns: 0 is not allowed"),
        (["--seed", "-1"], Exit.USAGE, "--seed: -1 is not allowed"),
        (["--html", "/nonexistent/x.html"], Exit.USAGE, "--html: there is no folder"),
        (["--set", "turn.max_sends=0"], Exit.USAGE, "turn.max_sends"),
    ],
)
def test_simulate_says_what_is_wrong(capsys, arguments, code, said):
    assert run(["simulate", *arguments]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [["simulate", "--html"], ["compare", "--baseline", "none", "--html"], ["tune", "--out"]],
)
def test_a_result_that_cannot_be_written_is_told_before_the_work(capsys, monkeypatch, command):
    monkeypatch.setattr("orchestrator.simulate.fleet.Fleet.__init__", None)
    assert run([*command, "/nonexistent/result"]) == Exit.USAGE
    assert f"error: {command[-1]}: there is no folder /nonexistent" in capsys.readouterr().err


def test_turns_that_a_load_cannot_have_are_said(capsys):
    arguments = ["--scenario", "throttle", "--turns", "50", "--seeds", "1"]
    assert run(["simulate", *arguments]) == Exit.OK
    assert "throttle plays about" in capsys.readouterr().err


def test_compare_marks_what_differs_and_says_what_to_make_of_it(capsys, small):
    assert run(["compare", "defaults", "--baseline", "none", "--scenario", small]) == Exit.OK
    out = capsys.readouterr().out
    head, *rows, verdict = out.splitlines()[1:]
    assert head.split() == ["defaults", "none"]
    assert any(row.strip().startswith("landed") and row.endswith("*") for row in rows)
    assert verdict.startswith("Most turns land with defaults:")


def test_compare_writes_a_report(capsys, small, tmp_path):
    page = tmp_path / "report.html"
    arguments = ["compare", "defaults", "--baseline", "none", "--scenario", small, "--seeds", "2"]
    assert run([*arguments, "--html", str(page)]) == Exit.OK
    assert page.read_text().startswith("<!doctype html>")
    assert f"Written to {page}" in capsys.readouterr().err


def test_compare_calls_a_file_by_its_path_where_its_name_is_taken(capsys, small, tmp_path):
    file = tmp_path / "none.toml"
    file.write_text("[choices]\nride_out = true\n")
    arguments = ["compare", str(file), "defaults", "defaults", "--baseline", "none", "--json"]
    assert run([*arguments, "--scenario", small, "--seeds", "2"]) == Exit.OK
    told = json.loads(capsys.readouterr().out)
    assert [who["contender"] for who in told["contenders"]] == [str(file), "defaults", "none"]


def test_compare_is_bold_on_a_terminal_only_where_it_differs(monkeypatch, small, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    run(["compare", "defaults", "--baseline", "none", "--scenario", small])
    out = capsys.readouterr().out
    assert "\x1b[1m" in out
    landed = next(line for line in out.splitlines() if line.startswith("  landed "))
    assert landed.index("%") < landed.index("\x1b[1m")


def test_compare_gives_files_of_one_name_their_whole_paths(capsys, small, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "s.toml").write_text("[budget]\nenabled = true\n")
    files = [str(tmp_path / folder / "s.toml") for folder in ("a", "b")]
    assert run(["compare", *files, "--scenario", small, "--json"]) == Exit.OK
    told = json.loads(capsys.readouterr().out)
    assert [c["contender"] for c in told["contenders"]] == files
    assert told["differs"][files[1]] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "there is nothing to compare with"),
        (["defaults", "--baseline", "tenacity"], "known: none, tenacity-default"),
        (["defaults", "none.toml"], "there is no such file"),
        (["defaults", "--baseline", "none", "--seeds", "1"], "2 or more seeds"),
    ],
)
def test_compare_says_what_is_wrong(capsys, arguments, said):
    assert run(["compare", *arguments]) == Exit.USAGE
    assert said in capsys.readouterr().err


def test_tune_writes_a_file_that_check_accepts(capsys, small, tmp_path):
    out = tmp_path / "tuned.toml"
    arguments = ["--scenario", small, "--budget", "8", "--seeds", "2", "--out", str(out)]
    objective = ["--objective", "max landed subject to amplification<=5"]
    assert run(["tune", *arguments, *objective]) == Exit.OK
    told = capsys.readouterr().out
    assert "on fresh seeds" in told
    assert run(["settings", "check", str(out)]) == Exit.OK
    assert load(out, environ={}).settings != Settings()


def test_tune_for_programs_names_the_best_and_the_front(capsys, small):
    arguments = ["--scenario", small, "--budget", "6", "--seeds", "1", "--json"]
    assert run(["tune", *arguments, "--objective", "max landed"]) == Exit.OK
    told = json.loads(capsys.readouterr().out)
    assert told["holds"] is True
    assert told["front"]
    assert set(told["best"]["measures"]) == {"landed"}


def test_tune_that_finds_nothing_better_says_so_and_writes_nothing(capsys, small, tmp_path):
    arguments = ["--scenario", small, "--budget", "1", "--seeds", "1"]
    assert run(["tune", *arguments, "--objective", "max landed"]) == Exit.OK
    told = capsys.readouterr().out
    assert "nothing to change, nothing written: what you have is the best" in told
    assert "Written to" not in told
    assert not (tmp_path / "tuned.toml").exists()


def test_tune_without_settings_that_keep_the_bounds_writes_nothing(capsys, small, tmp_path):
    arguments = ["--scenario", small, "--budget", "3", "--seeds", "1"]
    bounds = "max landed subject to landed>=100%, amplification<=1"
    assert run(["tune", *arguments, "--objective", bounds]) == Exit.FAILED
    assert "no settings keep the bounds" in capsys.readouterr().out
    assert not (tmp_path / "tuned.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--objective", "min recovery"], "there is no measure 'recovery'"),
        (["--budget", "0"], "--budget: 0 is not allowed"),
        (["--vary", "ladders.curv"], "'ladders.curv' is no dial"),
        (["--out", "small.toml"], "small.toml exists already, and is left alone"),
    ],
)
def test_tune_says_what_is_wrong(capsys, small, arguments, said):
    assert run(["tune", "--scenario", small, *arguments]) == Exit.USAGE
    assert said in capsys.readouterr().err


def test_tune_keeps_the_best_so_far_at_ctrl_c(capsys, small, monkeypatch, tmp_path):
    from orchestrator.simulate.tune import Search

    real, calls = Search._try, []

    def third_time_lucky(self, settings):
        calls.append(settings)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, settings)

    monkeypatch.setattr(Search, "_try", third_time_lucky)
    arguments = ["--scenario", small, "--seeds", "1", "--objective", "min amplification"]
    assert run(["tune", *arguments]) == Exit.INTERRUPTED
    assert (tmp_path / "tuned.toml").exists()
    assert "Stopped by Ctrl-C after 2 of 60 settings." in capsys.readouterr().err
    calls.clear()
    assert run(["tune", *arguments, "--out", "more.toml", "--json"]) == Exit.INTERRUPTED
    note = json.loads(capsys.readouterr().err)
    assert note == {"note": "Stopped by Ctrl-C after 2 of 60 settings."}


def test_tune_without_its_extra_says_how_to_get_it(capsys, small, monkeypatch):
    monkeypatch.setattr("orchestrator.cli.tune.find_spec", lambda _: None)
    assert run(["tune", "--scenario", small]) == Exit.USAGE
    err = capsys.readouterr().err
    assert "this needs the package optuna, which is not installed" in err
    assert "pip install 'turn-orchestrator[tune]'" in err


def test_only_tune_loads_the_optimiser():
    code = (
        "import sys; import orchestrator.cli.simulate, orchestrator.cli.compare,"
        " orchestrator.cli.tune, orchestrator.cli.replay;"
        " sys.exit('optuna' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "turns.jsonl"
    observer = JournalObserver(path)
    agent = ScriptedAgent(Kind.OVERLOADED, Kind.OVERLOADED, ["Hello"])
    virtually(run_turn, agent, observer, Settings(), 2)
    observer.close()
    return path


def test_replay_finds_the_same_effects(capsys, journal):
    assert run(["replay", str(journal)]) == Exit.OK
    assert "2 turns, 13 events: the same effects, byte for byte." in capsys.readouterr().err


def test_replay_shows_what_differs_and_exits_5(capsys, journal):
    journal.write_text(journal.read_text().replace('"number":2', '"number":7', 1))
    assert run(["replay", str(journal)]) == Exit.DIFFERS
    out, err = capsys.readouterr()
    assert "--- chat/0 event" in out
    assert "1 of 2 turns differ." in err


def test_replay_under_other_settings_says_what_would_have_changed(capsys, journal):
    flags = ["--set", "ladders.transient_retries=1"]
    assert run(["replay", str(journal), *flags]) == Exit.OK
    out, err = capsys.readouterr()
    assert "landed after 3 sends (transient 2)" in out
    assert "failed after 2 sends (transient 1)" in out
    assert "1 of 2 turns would have gone otherwise." in err


def test_replay_says_where_nobody_knows_what_would_have_been(capsys, journal):
    flags = ["--set", "ladders.curve.first_s=3s", "--json"]
    assert run(["replay", str(journal), *flags]) == Exit.OK
    (change,) = json.loads(capsys.readouterr().out)["changes"]
    assert change["recorded"]["outcome"] == change["otherwise"]["outcome"] == "landed"
    assert change["otherwise"]["waited_s"] > change["recorded"]["waited_s"]


def test_replay_reports_what_it_left_out(capsys, journal):
    with journal.open("a") as stream:
        stream.write('{"v":1,"line":"weather"}\n{"v":1,"li')
    assert run(["replay", str(journal)]) == Exit.OK
    err = capsys.readouterr().err
    assert "1 line left out: this version does not know its type" in err
    assert "1 torn line left out" in err


def test_replay_of_nothing_says_so(capsys, tmp_path):
    assert run(["replay", str(tmp_path / "none.jsonl")]) == Exit.USAGE
    assert "there is no such file" in capsys.readouterr().err
    (tmp_path / "empty.jsonl").touch()
    assert run(["replay", str(tmp_path / "empty.jsonl")]) == Exit.USAGE
    assert "the journal is empty" in capsys.readouterr().err
    (tmp_path / "other.jsonl").write_text('{"surface": "http"}\n')
    assert run(["replay", str(tmp_path / "other.jsonl")]) == Exit.USAGE
    assert "there is no recorded turn in it" in capsys.readouterr().err
