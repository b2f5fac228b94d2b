"""`orchestrator settings`."""

import json
import os
import tomllib

import pytest
from jsonschema import Draft202012Validator

from orchestrator.cli.app import run
from orchestrator.cli.codes import Exit
from orchestrator.settings.load import load
from orchestrator.settings.model import Settings
from orchestrator.settings.tree import nested, tree, values

BAD = "[turn]\nmax_sends = 0\nmax_send = 3\n[ladders.curve]\nfirst_s = 100\n"


@pytest.fixture(autouse=True)
def _quiet_world(monkeypatch):
    for name in [name for name in os.environ if name.startswith("ORCHESTRATOR_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")


@pytest.fixture
def bad(tmp_path):
    file = tmp_path / "bad.toml"
    file.write_text(BAD)
    return str(file)


def test_show_prints_every_setting(capsys):
    assert run(["settings", "show"]) == Exit.OK
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == list(tree().leaves)
    assert 'ladders.connection_window_s       "5m"' in out
    assert err == ""


def test_show_origin_names_file_variable_and_flag(capsys, monkeypatch, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("[turn]\nmax_sends = 5")
    monkeypatch.setenv("ORCHESTRATOR_CHOICES__RIDE_OUT", "true")
    flags = [
        "--settings",
        str(file),
        "--set",
        "turn.stop_budget_s=1s",
        "--set=ladders.curve.jitter=0",
    ]
    assert run(["settings", "show", "--origin", *flags]) == Exit.OK
    rows = {
        line.split()[0]: line.split(None, 2)[1:] for line in capsys.readouterr().out.splitlines()
    }
    assert rows["turn.max_sends"] == ["5", f"file {file}"]
    assert rows["choices.ride_out"] == ["true", "environment ORCHESTRATOR_CHOICES__RIDE_OUT"]
    assert rows["turn.stop_budget_s"] == ['"1s"', "flag --set"]
    assert rows["ladders.curve.jitter"] == ["0", "flag --set"]
    assert rows["ladders.curve.first_s"] == ['"2s"', "default"]


def test_show_toml_is_a_file_that_can_be_used(capsys, tmp_path):
    assert run(["settings", "show", "--toml", "--set", "turn.max_sends=5"]) == Exit.OK
    file = tmp_path / "mine.toml"
    file.write_text(capsys.readouterr().out)
    settings = load(file, environ={}).settings
    assert settings.turn.max_sends == 5
    assert run(["settings", "show", "--toml", "--defaults", "--settings", str(file)]) == Exit.OK
    file.write_text(capsys.readouterr().out)
    assert load(file, environ={}).settings == Settings()


def test_show_json_has_values_origins_and_problems(capsys):
    assert run(["settings", "show", "--json", "--set", "turn.max_sends=5"]) == Exit.OK
    row = json.loads(capsys.readouterr().out)
    assert row["ok"] is True
    assert row["problems"] == []
    expected = nested(values(Settings()))
    expected["turn"]["max_sends"] = 5
    assert row["settings"] == expected
    assert row["origins"]["turn.max_sends"] == {"source": "flag", "name": "--set"}


def test_show_goes_on_with_the_defaults_and_one_warning(capsys, bad):
    assert run(["settings", "show", "--origin", "--settings", bad]) == Exit.OK
    out, err = capsys.readouterr()
    assert "turn.max_sends                    12" in out
    assert err.startswith(f"warning: going on with the default settings, because of file {bad}: ")
    assert len(err.splitlines()) == 1
    assert run(["settings", "show", "--json", "--settings", bad]) == Exit.OK
    out, err = capsys.readouterr()
    assert json.loads(out)["ok"] is False
    assert json.loads(err)["warning"].startswith("going on with the default settings")


def test_strict_stops_with_every_problem(capsys, bad):
    assert run(["settings", "show", "--strict", "--settings", bad]) == Exit.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert "error: the settings cannot be used: 5 problems\n" in err
    for path in ("turn.max_sends", "turn.max_send", "ladders.connection_cap_s"):
        assert f"  {path}: " in err


def test_a_wrong_flag_stops_even_a_lenient_command(capsys):
    assert run(["settings", "show", "--set", "turn.max_sends=0"]) == Exit.USAGE
    assert "turn.max_sends: 0 is not allowed; a whole number from 1 to 1000 is" in (
        capsys.readouterr().err
    )
    for wrong in ("turn.max_sends", "=3", ""):
        assert run(["settings", "show", "--set", wrong]) == Exit.USAGE
        assert f"--set: {wrong!r} is not PATH=VALUE" in capsys.readouterr().err


def test_check_prints_all_problems_as_data(capsys, bad):
    for tokens in (["settings", "check", bad], ["settings", "check", "--settings", bad]):
        assert run(tokens) == Exit.USAGE
        out, err = capsys.readouterr()
        assert [line.partition(":")[0] for line in out.splitlines()] == [
            "turn.max_sends",
            "turn.max_send",
            "ladders.curve.cap_s",
            "ladders.connection_cap_s",
            "ladders.ride_out_cap_s",
        ]
        assert all(line.endswith(f"[file {bad}]") for line in out.splitlines())
        assert err.startswith("error: the settings cannot be used: 5 problems\n")


def test_check_json_is_one_object_on_each_stream(capsys, bad):
    assert run(["settings", "check", bad, "--json"]) == Exit.USAGE
    out, err = capsys.readouterr()
    row = json.loads(out)
    assert row["ok"] is False
    assert [p["code"] for p in row["problems"]] == ["not_allowed", "unknown_key"] + [
        "contradiction"
    ] * 3
    assert json.loads(err)["code"] == "bad_settings"


def test_check_praises_what_is_right(capsys, tmp_path):
    file = tmp_path / "good.toml"
    file.write_text("[turn]\nmax_sends = 5")
    assert run(["settings", "check", str(file)]) == Exit.OK
    out, err = capsys.readouterr()
    assert out == ""
    count = len(tree().leaves)
    assert err == f"the settings are right: 1 of {count} set, the rest are defaults ({file})\n"
    assert run(["settings", "check", str(file), "--json"]) == Exit.OK
    assert json.loads(capsys.readouterr().out) == {"ok": True, "problems": []}


@pytest.mark.parametrize("name", [".", "none.toml", "a\0b"])
def test_a_file_that_cannot_be_read_is_one_sentence(capsys, name):
    assert run(["settings", "check", name]) == Exit.USAGE
    out, _ = capsys.readouterr()
    assert len(out.splitlines()) == 1


def test_a_hostile_file_name_cannot_write_to_the_terminal(capsys):
    run(["settings", "check", "a\x1b[31m\u202eb"])
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert "\u202e" not in out + err


def test_the_schema_on_stdout_takes_what_show_toml_prints(capsys):
    assert run(["settings", "schema"]) == Exit.OK
    schema = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(schema)
    assert run(["settings", "show", "--toml"]) == Exit.OK
    Draft202012Validator(schema).validate(tomllib.loads(capsys.readouterr().out))


def test_options_that_exclude_each_other_say_so(capsys, bad):
    assert run(["settings", "show", "--toml", "--json"]) == Exit.USAGE
    assert "choose one of --toml and --json" in capsys.readouterr().err
    assert run(["settings", "check", bad, "--settings", bad]) == Exit.USAGE
    assert "name the file once" in capsys.readouterr().err
