"""The frame of the command line: help, errors, colours, pipes."""

import ast
import io
import json
import os
import pty
import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from inspect import Parameter, getdoc, signature
from pathlib import Path

import pytest
from cyclopts import App

import orchestrator
from orchestrator.cli import app as frame
from orchestrator.cli.app import run
from orchestrator.cli.codes import ERRORS, EXITS, Exit, Halt
from orchestrator.cli.commands import COMMANDS, GROUPS
from orchestrator.cli.terminal import columns, console, is_plain, json_line
from orchestrator.settings.tree import tree

ESC = "\x1b"


@pytest.fixture(autouse=True)
def _quiet_world(monkeypatch):
    for name in [name for name in os.environ if name.startswith("ORCHESTRATOR_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")


def start(*tokens, **options):
    """The real program."""
    command = [sys.executable, "-m", "orchestrator.cli", *tokens]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def on_a_terminal(*tokens, columns=80, **environ):
    """What the real program writes to a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "orchestrator.cli", *tokens]
    clean = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "TERM", "COLUMNS"}}
    environ = clean | {"TERM": "xterm", "COLUMNS": str(columns)} | environ
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ
    ) as child:
        os.close(theirs)
        written = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:
                break
            if not chunk:
                break
            written += chunk
    os.close(ours)
    return child.returncode, written.decode()


def test_a_bare_command_prints_every_command_and_examples(capsys):
    assert run([]) == Exit.OK
    out, err = capsys.readouterr()
    words = " ".join(out.split())
    for row in COMMANDS:
        assert f"\n  {row.name} " in out
        assert f"{row.name} {row.help}" in words
    assert "Examples:" in out
    assert err == ""
    assert max(map(len, out.splitlines())) <= 80


def test_help_lists_the_exit_codes(capsys):
    assert run(["--help"]) == Exit.OK
    out = " ".join(capsys.readouterr().out.split())
    for code, words in EXITS.items():
        assert f"{code.value} {words}" in out


def test_every_command_has_help_of_its_own(capsys):
    for row in COMMANDS:
        assert run([row.name, "--help"]) == Exit.OK
        assert f"Usage: orchestrator {row.name}" in capsys.readouterr().out


def commands():
    """Every command and every command of a group, with its function."""
    for row in COMMANDS:
        module, _, name = row.target.partition(":")
        found = getattr(import_module(module), name)
        if not isinstance(found, App):
            yield row.name, found
            continue
        for name in found:
            if not name.startswith("-"):
                yield f"{row.name} {name}", found[name].default_command


def as_typed(default):
    """What somebody would type to say the default."""
    if isinstance(default, tuple):
        return " ".join(default)
    return f"{default:g}" if isinstance(default, float) else str(default)


@pytest.mark.parametrize(("name", "command"), [*commands()])
def test_the_help_of_a_command_tells_the_default_of_every_option_that_has_one(name, command):
    told = {param.name: param.default for param in signature(command).parameters.values()}
    words = getdoc(command) or ""
    for option, default in told.items():
        if option in {"output", "chosen"} or default in {Parameter.empty, None, False, "", ()}:
            continue
        (about,) = re.findall(rf"^{option}\n((?:    .*\n?)+)", words, re.MULTILINE)
        about = " ".join(about.split()).removesuffix(".")
        assert f"efault: {as_typed(default)}" in about, (name, option)


def test_the_version_is_the_same_for_programs_and_for_people(capsys):
    assert run(["--version"]) == Exit.OK
    assert (
        capsys.readouterr().out.strip() == orchestrator.__version__ == version("turn-orchestrator")
    )


def test_the_tables_are_complete():
    assert set(EXITS) == set(Exit)
    assert set(ERRORS.values()) == set(Exit) - {Exit.OK, Exit.CLOSED_PIPE}
    assert {row.group for row in COMMANDS} <= set(GROUPS)
    assert len({row.name for row in COMMANDS}) == len(COMMANDS)
    assert all(code == code.lower() and code.isidentifier() for code in ERRORS)


def test_every_error_that_a_command_raises_is_in_the_table():
    for file in Path(frame.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Halt":
                (code, *_) = node.args
                assert not isinstance(code, ast.Constant) or code.value in ERRORS, file


def test_the_version_needs_nothing_of_the_product():
    program = (
        "import sys; from orchestrator.cli.app import run; run(['--version']);"
        "print(*sorted(m for m in sys.modules if m.startswith('orchestrator.')), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.splitlines()[1:]
    allowed = ("orchestrator.cli", "orchestrator.failure", "orchestrator.version")
    assert loaded
    assert [name for name in loaded if not name.startswith(allowed)] == []


@pytest.mark.parametrize("flag", ["--version", "--help", ""])
def test_the_frame_loads_no_web_agent_or_plotting_parts(flag):
    program = (
        f"import sys; from orchestrator.cli.app import run; run({[flag] if flag else []});"
        "bad = {'litestar', 'hypercorn', 'cattrs', 'prometheus_client', 're2', 'optuna', 'anyio',"
        " 'tenacity', 'asyncio', 'orchestrator.acp', 'orchestrator.runner'};"
        "print('loaded', sorted(bad & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stderr == "loaded []\n"


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (["foo"], "error: there is no command 'foo'\nhint: commands: "),
        (["setings"], "hint: did you mean `orchestrator settings`?"),
        (["settings", "shwo"], 'Did you mean "show"?'),
        (["settings", "show", "--orign"], "Did you mean --origin?"),
        (["completion", "tcsh"], 'Choose from: "bash", "zsh", "fish".'),
        (["completion"], "SHELL requires an argument"),
        (["settings", "show", "extra"], "extra"),
    ],
)
def test_a_wrong_command_line_gets_a_sentence_and_the_next_step(capsys, tokens, expected):
    assert run(tokens) == Exit.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert expected in err
    assert "\nhint: " in err
    assert "Traceback" not in err


@pytest.mark.parametrize("tokens", [["foo"], ["settings", "show", "--zz"], ["plan", "zz"]])
def test_with_json_an_error_is_one_object_on_stderr(capsys, tokens):
    assert run([*tokens, "--json"]) == Exit.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    row = json.loads(err)
    assert err.count("\n") == 1
    assert row["code"] == "usage"
    assert row["message"]
    assert row.keys() == {"code", "message", "field", "hint"}


@pytest.mark.parametrize(
    ("tokens", "said"),
    [
        (["--no-color", "plan"], "error: --no-color goes behind a command\n"),
        (["settings", "show", "nope", "more"], "error: nothing takes 'nope more' here\n"),
    ],
)
def test_what_stands_in_the_wrong_place_is_named(capsys, tokens, said):
    assert run(tokens) == Exit.USAGE
    assert capsys.readouterr().err.startswith(said)


def test_json_behind_the_double_dash_belongs_to_another_program(capsys):
    assert run(["foo", "--", "--json"]) == Exit.USAGE
    assert capsys.readouterr().err.startswith("error: ")


def test_a_mistake_of_ours_is_one_sentence_without_secrets_or_traceback(capsys, monkeypatch):
    def break_down(*_, **__):
        raise RuntimeError("line one\nline two \x1b[31m token=sk-ant-api03-" + "a" * 90)

    monkeypatch.setattr(frame, "_dispatch", break_down)
    assert run(["settings"]) == Exit.UNEXPECTED == 70
    _, err = capsys.readouterr()
    assert "a mistake of orchestrator" in err
    assert "RuntimeError at " in err
    assert r"line one\nline two" in err
    assert "sk-ant" not in err
    assert ESC not in err
    assert len(err.splitlines()) == 2


@pytest.mark.parametrize(
    ("error", "code"),
    [(KeyboardInterrupt(), 130), (BrokenPipeError(), 141), (Halt("cannot_bind", "x"), 3)],
)
def test_each_way_to_end_has_its_exit_code(capsys, monkeypatch, error, code):
    def end(*_, **__):
        raise error

    monkeypatch.setattr(frame, "_dispatch", end)
    monkeypatch.setattr(os, "dup2", lambda *_: None)  # pytest's own streams stay as they are
    assert run(["settings"]) == code
    assert "Traceback" not in capsys.readouterr().err


def test_a_reader_that_goes_away_ends_it_quietly():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "orchestrator.cli", "settings", "schema"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert done.returncode == 141
    assert done.stderr == b""


@pytest.mark.parametrize("tokens", ["settings schema", "settings show", "classify --help"])
def test_a_full_disk_is_one_sentence(tokens):
    command = f"exec {sys.executable} -m orchestrator.cli {tokens} >/dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == Exit.FAILED
    assert done.stderr == "error: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_no_harm(closed):
    for tokens, code in (("settings show", 0), ("classify", 0), ("nothing", 2)):
        command = f"exec {sys.executable} -m orchestrator.cli {tokens} </dev/null {closed}"
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        assert done.returncode == code
        assert "Traceback" not in done.stderr


def test_a_stream_that_knows_only_ascii_gets_escapes():
    flag = "--set=recoveries.content_filter_model=\u732b"
    done = start("settings", "show", flag, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert r'recoveries.content_filter_model   "\u732b"' in done.stdout


def test_a_missing_extra_is_named_with_the_command_that_brings_it(capsys, monkeypatch):
    def need(*_, **__):
        missing = ModuleNotFoundError("No module named 'litestar'", name="litestar.openapi")
        raise ImportError("cannot import the command") from missing

    monkeypatch.setattr(frame, "_dispatch", need)
    assert run(["settings"]) == Exit.USAGE
    err = capsys.readouterr().err
    assert "this needs the package litestar.openapi, which is not installed" in err
    assert "pip install 'turn-orchestrator[service]'" in err


class _Stream(io.StringIO):
    def __init__(self, *, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.mark.parametrize(
    ("terminal", "environ", "plain"),
    [
        (True, {"TERM": "xterm"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": ""}, False),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, True),
        (True, {"TERM": "dumb"}, True),
        (False, {"TERM": "xterm", "FORCE_COLOR": "1"}, True),
    ],
)
def test_each_stream_is_judged_by_itself(monkeypatch, terminal, environ, plain):
    stream = _Stream(terminal=terminal)
    assert is_plain(stream, environ) is plain
    for name in ("NO_COLOR", "TERM", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    console(stream).print("x", style="bold red")
    assert (ESC not in stream.getvalue()) is plain


def test_colours_reach_a_terminal_and_obey_no_color():
    code, coloured = on_a_terminal("settings", "show", "--set", "turn.max_sends=3")
    assert code == 0
    assert ESC in coloured
    for plain in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        _, text = on_a_terminal("settings", "show", "--set", "turn.max_sends=3", **plain)
        assert ESC not in text
    _, text = on_a_terminal("settings", "show", "--no-color")
    assert ESC not in text


def test_a_pipe_gets_no_escapes_and_no_wrapped_lines():
    done = start("settings", "show", "--origin", env=os.environ | {"COLUMNS": "20"})
    assert done.returncode == 0
    assert ESC not in done.stdout
    assert len(done.stdout.splitlines()) == len(tree().leaves)
    assert done.stderr == ""


@pytest.mark.parametrize("width", [80, 120])
def test_help_fits_the_window(width):
    for tokens in ((), ("--help",), ("classify", "--help"), ("plan", "--help")):
        code, text = on_a_terminal(*tokens, columns=width, NO_COLOR="1")
        assert code == 0
        assert max(len(line.rstrip()) for line in text.splitlines()) <= min(width, 100)


def test_columns_are_aligned_and_end_without_blanks():
    stream = _Stream(terminal=False)
    columns(console(stream), [["a", "bb", "c"], ["aaa", "b", ""], ["猫", "b", "c"]])
    assert stream.getvalue() == "a    bb  c\naaa  b\n猫   b   c\n"


def test_a_cell_that_is_too_long_pushes_its_own_line_only():
    stream = _Stream(terminal=False)
    columns(console(stream), [["a", "b"], ["a" * 9, "b"], ["aa", "b"]], widest=4)
    assert stream.getvalue() == "a   b\naaaaaaaaa  b\naa  b\n"


def test_on_a_narrow_terminal_the_last_cell_goes_on_below_and_no_word_is_cut():
    stream = _Stream(terminal=True)
    narrow = console(stream, plain=True)
    narrow.width = 48
    words = "words that take up more room than there is left"
    columns(narrow, [["a", words], ["a" * 30, words], ["b", "few"]], widest=10)
    assert stream.getvalue() == (
        f"a  words that take up more room than there is\n   left\n{'a' * 30}\n    {words[:-5]}\n"
        "    left\nb  few\n"
    )


def test_the_list_of_series_cuts_no_word_at_eighty_columns():
    code, text = on_a_terminal("metrics", "list", NO_COLOR="1")
    assert code == 0
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80


def test_an_error_cuts_no_word_on_a_terminal():
    code, text = on_a_terminal("plan", "nothing", NO_COLOR="1")
    assert code == Exit.USAGE
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    assert '"continue_after_output"' in text


def test_a_line_of_json_is_one_line_of_ascii():
    line = json_line({"a": "\n\u2028\u202e☃", "b": (1, 2), "c": Exit.USAGE})
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line) == {"a": "\n\u2028\u202e☃", "b": [1, 2], "c": 2}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_know_every_command(capsys, shell):
    assert run(["completion", shell]) == Exit.OK
    script = capsys.readouterr().out
    for row in COMMANDS:
        assert row.name in script
