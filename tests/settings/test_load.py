"""Settings from a file, the environment and flags."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.settings.allowed import Number, Seconds, Whole
from orchestrator.settings.load import Source, Trouble, load, variable
from orchestrator.settings.model import Settings
from orchestrator.settings.reading import duration, in_words
from orchestrator.settings.tree import build, nested, tree, values


@pytest.fixture
def write(tmp_path):
    def _write(text):
        file = tmp_path / "settings.toml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    return _write


def problems_of(file=None, environ=None, flags=None):
    return load(file, environ=environ or {}, flags=flags, strict=False).problems


def test_without_any_layer_the_defaults_are_used_and_nothing_is_wrong():
    loaded = load(environ={})
    assert loaded.settings == Settings()
    assert loaded.ok
    assert loaded.warning == ""
    assert {loaded.origin(path).source for path in tree().leaves} == {Source.DEFAULT}


def test_a_later_layer_wins_and_each_key_knows_where_it_came_from(write):
    file = write("[ladders.curve]\nfirst_s = 3\nfactor = 3\njitter = 0.5\n[turn]\nmax_sends = 5")
    loaded = load(
        file,
        environ={"ORCHESTRATOR_LADDERS__CURVE__FIRST_S": "4s", "ORCHESTRATOR_TURN__MAX_SENDS": "6"},
        flags={"turn.max_sends": "7"},
    )
    curve = loaded.settings.ladders.curve
    assert (curve.first_s, curve.factor, curve.jitter) == (4.0, 3.0, 0.5)
    assert loaded.settings.turn.max_sends == 7
    assert str(loaded.origin("ladders.curve.factor")) == f"file {file}"
    assert str(loaded.origin("ladders.curve.first_s")) == (
        "environment ORCHESTRATOR_LADDERS__CURVE__FIRST_S"
    )
    assert str(loaded.origin("turn.max_sends")) == "flag --set"
    assert str(loaded.origin("ladders.curve.cap_s")) == "default"


def test_every_problem_of_every_layer_is_named_in_one_run(write):
    file = write(
        'ladders.connection_window_s = -1\nladders.busy_retries = true\nzzz = "secret"\n'
        'turn = 4\nchoices.ride_out = "yes"\n[ladders.curve]\nfirts_s = 3'
    )
    found = problems_of(
        file,
        environ={"ORCHESTRATOR_LADDERS__CURVE__JITTER": "nan"},
        flags={"turn.max_sends": "3.5", "budget.retry_cost": "1000"},
    )
    assert [(str(p.origin.source), p.path, p.code.value) for p in found] == [
        ("file", "ladders.connection_window_s", "not_allowed"),
        ("file", "ladders.busy_retries", "not_allowed"),
        ("file", "ladders.curve.firts_s", "unknown_key"),
        ("file", "zzz", "unknown_key"),
        ("file", "turn", "not_allowed"),
        ("file", "choices.ride_out", "not_allowed"),
        ("environment", "ladders.curve.jitter", "not_allowed"),
        ("flag", "turn.max_sends", "not_allowed"),
        ("flag", "budget.retry_cost", "contradiction"),
    ]
    assert "secret" not in "".join(map(str, found))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "ladders.connection_window_s = -1",
            "ladders.connection_window_s: -1 is not allowed; a number from 0 to 2592000 (seconds,",
        ),
        (
            "turn.max_sends = 0",
            "turn.max_sends: 0 is not allowed; a whole number from 1 to 1000 is",
        ),
        ("turn.max_sends = 3.0", "turn.max_sends: 3.0 is not allowed; a whole number"),
        ('turn.max_sends = "3"', "write it without the quotes"),
        ('choices.ride_out = "true"', '"true" is not allowed; true or false is; write it without'),
        ("choices.ride_out = 1", "choices.ride_out: 1 is not allowed; true or false is"),
        ('watchdogs.silence_s = "300ms"', 'milliseconds are not read: write "0.5s" for 500 ms'),
        ("ladders.curve.jitter = nan", "ladders.curve.jitter: NaN is not allowed"),
        ("ladders.curve.first_s = inf", "ladders.curve.first_s: Infinity is not allowed"),
        ("ladders.curve.first_s = true", "ladders.curve.first_s: true is not allowed"),
        ("ladders.curve.first_s = 1979-05-27", "is not allowed; a number from"),
        (f"ladders.curve.first_s = 1{'0' * 400}", "is not allowed; a number from"),
        ("metrics.providers = [1]", "[1] is not allowed; a list of"),
        ('metrics.providers = ["a", "a"]', "without repeats"),
        ("turn = 4", "turn: 4 is not allowed; a table [turn] is"),
        ("max_send = 4", "max_send: no such setting; did you mean turn.max_sends?"),
        ("curve.first_s = 4", "curve: no such setting; did you mean ladders.curve?"),
        ("ladders.curve.first-s = 4", "did you mean ladders.curve.first_s?"),
        ("ladders.curve.zz = 4", "known in ladders.curve: first_s, factor, cap_s, jitter"),
        ("zz = 4", "known tables: ladders, recoveries,"),
        ('"a\\n\\u202e" = 4', '"a\\n\\u202e": no such setting'),
        ("a = ", "not valid TOML"),
        (f"a = {'[' * 100_000}", "nested too deeply"),
        (f"a = 1{'0' * 5000}", "not valid TOML"),
        (b"a = '\xff'", "byte 5 is not UTF-8, which TOML has to be"),
        (b"a = '" + b"x" * (1 << 20), "larger than 1 MiB"),
    ],
)
def test_a_problem_in_a_file_is_one_clear_line(write, text, expected):
    (problem,) = problems_of(write(text))
    line = str(problem)
    assert expected in line
    assert line.isascii()
    assert line.isprintable()


def test_a_byte_order_mark_is_not_a_mistake(write):
    assert (
        load(write(b"\xef\xbb\xbf[turn]\nmax_sends = 5"), environ={}).settings.turn.max_sends == 5
    )


def test_a_folder_a_missing_file_and_an_impossible_name_are_one_sentence_each(tmp_path):
    (folder,) = problems_of(tmp_path)
    (missing,) = problems_of(tmp_path / "none.toml")
    (impossible,) = problems_of("a\0b")
    assert str(folder) == f"{tmp_path}: this is a folder, not a file"
    assert str(missing) == f"{tmp_path / 'none.toml'}: there is no such file"
    assert str(impossible) == '"a\\u0000b": no file can have this name'
    assert {p.code for p in (folder, missing, impossible)} == {Trouble.UNREADABLE_FILE}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("ORCHESTRATOR_TURN__MAX_SENDS", "-1", "turn.max_sends: -1 is not allowed; a whole number"),
        ("ORCHESTRATOR_TURN__MAX_SENDS", "", 'turn.max_sends: "" is not allowed'),
        ("ORCHESTRATOR_TURN__MAX_SENDS", "9" * 5000, "is not allowed; a whole number"),
        ("ORCHESTRATOR_LADDERS__CURVE__FIRST_S", "1e999", "1e999 is not allowed; a number from"),
        ("ORCHESTRATOR_LADDERS__CURVE__FIRST_S", "inf", "inf is not allowed; a number from"),
        ("ORCHESTRATOR_CHOICES__RIDE_OUT", "1", "1 is not allowed; true or false is"),
        ("ORCHESTRATOR_METRICS__PROVIDERS", "a,,b", "is not allowed; a list of"),
        ("ORCHESTRATOR_LADERS__BUSY_RETRIES", "1", "did you mean ORCHESTRATOR_LADDERS__...?"),
        ("ORCHESTRATOR_TURN__MAX_SEND", "1", "did you mean ORCHESTRATOR_TURN__MAX_SENDS?"),
        ("ORCHESTRATOR_TURN_MAX_SENDS", "1", "did you mean ORCHESTRATOR_TURN__MAX_SENDS?"),
        ("ORCHESTRATOR_LADDERS__CURVE", "1", "set one of its keys: first_s, factor, cap_s, jitter"),
        ("ORCHESTRATOR_RECOVERIES__CONTENT_FILTER_MODEL", "a\x1b[1m", r'"a\u001b[1m" is not'),
        ("ORCHESTRATOR_RECOVERIES__CONTENT_FILTER_MODEL", "a\udcff", r'"a\udcff" is not'),
    ],
)
def test_a_problem_in_the_environment_names_the_variable(name, value, expected):
    (problem,) = problems_of(environ={name: value})
    assert expected in str(problem)
    assert str(problem.origin) == f"environment {name}"


def test_other_programs_may_use_variables_with_our_prefix():
    environ = {"ORCHESTRATOR_HOME": "/x", "ORCHESTRATOR_METRICS_PORT": "1", "OTHER__X": "1"}
    assert load(environ=environ).ok


def test_lists_in_the_environment_are_separated_by_commas():
    environ = {
        "ORCHESTRATOR_METRICS__PROVIDERS": "a, b",
        "ORCHESTRATOR_RECOVERIES__FALLBACK_MODELS": "",
    }
    settings = load(environ=environ).settings
    assert settings.metrics.providers == ("a", "b")
    assert settings.recoveries.fallback_models == ()


def test_a_contradiction_blames_the_layer_that_somebody_wrote():
    (first, *others) = problems_of(environ={"ORCHESTRATOR_LADDERS__CURVE__FIRST_S": "50s"})
    assert str(first) == (
        "ladders.connection_cap_s: 30 is not allowed; 50 or more (what ladders.curve.first_s says)"
        " is"
    )
    assert first.origin.source is Source.ENVIRONMENT
    assert others == []


def test_a_contradiction_with_a_value_that_is_wrong_itself_is_not_invented(write):
    (problem,) = problems_of(write("[ladders.curve]\nfirst_s = -1\ncap_s = 0"))
    assert problem.path == "ladders.curve.first_s"


def test_a_bad_start_goes_on_with_the_defaults_and_one_warning(write):
    file = write("[turn]\nmax_sends = 0\n[ladders]\nbusy_retries = 1000")
    loaded = load(file, environ={"ORCHESTRATOR_TURN__STOP_BUDGET_S": "1s"}, strict=False)
    assert loaded.settings == Settings()
    assert not loaded.ok
    assert loaded.warning == (
        f"going on with the default settings, because of file {file}: turn.max_sends: 0 is not "
        "allowed; a whole number from 1 to 1000 is (and 1 more: see `orchestrator settings check`)"
    )


def test_a_bad_file_does_not_take_away_what_a_flag_says(write):
    loaded = load(write("x = 1"), environ={}, flags={"turn.max_sends": "1"}, strict=False)
    assert loaded.settings.turn.max_sends == 1
    assert not loaded.ok
    wrong = load(write("x = 1"), environ={}, flags={"turn.max_sends": "0"}, strict=False)
    assert wrong.settings == Settings()


def test_strict_raises_with_every_problem(write):
    with pytest.raises(ValueError, match=r"(?s)max_sends.*busy_retries") as caught:
        load(write("[turn]\nmax_sends = 0\n[ladders]\nbusy_retries = 1000"), environ={})
    assert len(caught.value.problems) == 2


def test_the_file_comes_from_the_variable_then_from_the_users_folder_and_never_from_here(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "settings.toml").write_text("[turn]\nmax_sends = 2")
    (tmp_path / "orchestrator").mkdir()
    usual = tmp_path / "orchestrator" / "settings.toml"
    assert load(environ={"XDG_CONFIG_HOME": "."}).settings.turn.max_sends == 12
    assert load(environ={"XDG_CONFIG_HOME": str(tmp_path)}).settings.turn.max_sends == 12
    usual.write_text("[turn]\nmax_sends = 3")
    assert load(environ={"XDG_CONFIG_HOME": str(tmp_path)}).settings.turn.max_sends == 3
    named = {"XDG_CONFIG_HOME": str(tmp_path), "ORCHESTRATOR_SETTINGS": "settings.toml"}
    assert load(environ=named).settings.turn.max_sends == 2
    config = tmp_path / ".config" / "orchestrator"
    config.mkdir(parents=True)
    (config / "settings.toml").write_text("[turn]\nmax_sends = 4")
    assert load(environ={"HOME": str(tmp_path)}).settings.turn.max_sends == 4


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("300s", 300), ("5m", 300), ("1h30m", 5400), ("1.5h", 5400), ("300", 300), ("1d", 86_400)],
)
def test_durations_read_as_people_write_them(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "s", "5 m", "30m1h", "1m1m", "-5s", "+5s", "5ms", "1w", "5M", "٣s", "5m\n", "1e3s"]
)
def test_what_is_not_a_duration_is_not_guessed(text):
    assert duration(text) is None


@given(st.integers(0, 10_000_000))
def test_a_duration_in_words_reads_back(seconds):
    assert duration(in_words(float(seconds))) == seconds


_NUMBERS = sorted(
    p for p, leaf in tree().leaves.items() if isinstance(leaf.allowed, Number | Whole)
)


@pytest.mark.parametrize("path", _NUMBERS)
def test_no_number_from_outside_takes_infinities_nan_booleans_or_text(write, path):
    leaf = tree().leaves[path]
    for text in ("inf", "-inf", "nan", "true", "false", '"x"', "[]", "{}"):
        (problem,) = problems_of(write(f"{path} = {text}"))
        assert (problem.path, problem.code) == (path, Trouble.NOT_ALLOWED)
        assert str(problem).endswith(f" is not allowed; {leaf.allowed.words} is")
    for text in ("inf", "-inf", "nan", "true", "1_0", "0x1", ""):
        (problem,) = problems_of(environ={variable(path): text})
        assert problem.path == path


@given(st.sampled_from(_NUMBERS), st.floats() | st.integers())
def test_a_number_is_taken_exactly_when_it_is_in_the_range(path, value):
    leaf = tree().leaves[path]
    whole = isinstance(leaf.allowed, Whole)
    fits = math.isfinite(value) and leaf.allowed.low <= value <= leaf.allowed.high
    assert leaf.allowed.takes(value) == (fits and not (whole and isinstance(value, float)))


@given(st.dictionaries(st.text(), st.text()), st.dictionaries(st.text(), st.text()))
def test_nothing_outside_can_make_loading_raise(environ, flags):
    named = {f"ORCHESTRATOR_{k}": v for k, v in environ.items() if k != "SETTINGS"}
    loaded = load(environ=named, flags=flags, strict=False)
    for problem in loaded.problems:
        assert str(problem).isprintable()


def test_every_setting_has_help_and_durations_say_their_unit_in_the_name():
    for path, leaf in tree().leaves.items():
        assert leaf.help.endswith("."), path
        if isinstance(leaf.allowed, Seconds):
            assert path.endswith("_s"), path
        assert leaf.allowed.takes(leaf.default), path


def test_paths_and_settings_are_two_views_of_one_thing():
    settings = load(environ={}, flags={"ladders.curve.first_s": "1s"}).settings
    assert build(values(settings)) == settings
    assert nested(values(settings))["ladders"]["curve"]["first_s"] == 1.0
