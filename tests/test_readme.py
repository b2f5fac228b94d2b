"""What the README says has to be so."""

import ast
import json
import os
import re
import shlex
from importlib import import_module
from pathlib import Path

import anyio
import pytest

from orchestrator.cli.app import run
from orchestrator.cli.codes import EXITS, Exit
from orchestrator.cli.commands import COMMANDS
from orchestrator.metrics.series import PREFIX, SERIES
from orchestrator.simulate import reading
from orchestrator.simulate.policies import POLICIES
from orchestrator.turn import render

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^( *)```(\w+)\n(.*?)^ *```$", README, re.MULTILINE | re.DOTALL)
PYTHON = [body for indent, language, body in BLOCKS if language == "python"]
CONSOLE = [body for indent, language, body in BLOCKS if language == "console"]
SHOWN = [
    line.partition("$ orchestrator ")[2].partition(" #")[0]
    for line in "\n".join(CONSOLE).splitlines()
    if line.lstrip().startswith("$ orchestrator ")
]
"""The command lines of the console blocks, without the program and the comment."""


def section(heading: str) -> str:
    """What stands under a heading, up to the next one of its kind."""
    return re.split(r"^## ", README.partition(f"\n## {heading}\n")[2], flags=re.MULTILINE)[0]


def block_with(text: str, blocks: list[str]) -> str:
    (block,) = (block for block in blocks if text in block)
    return block


@pytest.fixture
def quiet_world(monkeypatch):
    for name in [name for name in os.environ if name.startswith("ORCHESTRATOR_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")
    monkeypatch.setenv("COLUMNS", "120")


@pytest.mark.parametrize("table", [render.transition_table(), render.family_table()])
def test_the_tables_of_the_machine_are_the_generated_ones(table):
    assert table.strip() in README


@pytest.mark.parametrize("source", PYTHON)
def test_each_python_block_compiles_and_imports_names_that_exist(source):
    tree = ast.parse(source)
    compile(tree, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                assert hasattr(import_module(node.module), name.name)


def test_the_first_example_is_a_whole_program_and_prints_what_it_says(anyio_backend_name, capsys):
    source = block_with("anyio.run(main)", PYTHON)
    program, _, _ = source.partition("anyio.run(main)")
    world: dict[str, object] = {}
    exec(compile(program, "README.md", "exec"), world)
    anyio.run(world["main"], backend=anyio_backend_name)
    said = re.findall(r"print\(.*\)  # (.+)$", source, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == said


def test_the_three_uses_end_within_two_screens():
    assert README[: README.index("Contents: ")].count("\n") <= 80


def test_each_command_that_is_shown_exists():
    shown = re.findall(r"orchestrator ([a-z]+)\b", "\n".join(CONSOLE))
    assert shown
    assert set(shown) <= {row.name for row in COMMANDS}


@pytest.mark.parametrize("shown", SHOWN)
def test_each_option_of_a_command_that_is_shown_is_in_its_help(shown, quiet_world, capsys):
    words = shlex.split(re.split(r" (?:--|[<>|&])(?: |$)", shown)[0])
    command = words[:2] if words[0] in {"settings", "metrics"} else words[:1]
    assert run([*command, "--help"]) == Exit.OK
    told = capsys.readouterr().out
    for word in words[1:]:
        if word.startswith("--"):
            assert re.search(rf"{word}\b", told), word


@pytest.mark.parametrize(("heading", "command"), [("The proxy", "proxy"), ("Demo and run", "run")])
def test_each_option_of_a_table_is_in_the_help(heading, command, quiet_world, capsys):
    rows = re.findall(r"^\| (`--.+?) \| ", section(heading), re.MULTILINE)
    options = re.findall(r"--[a-z-]+", " ".join(rows))
    assert options
    assert run([command, "--help"]) == Exit.OK
    assert set(options) <= set(re.findall(r"--[a-z-]+", capsys.readouterr().out))


def test_the_plan_that_is_shown_is_the_plan_that_is_printed(quiet_world, capsys):
    shown = block_with("send  family", CONSOLE).splitlines()[1:]
    assert run(["plan", "connection", "--seed", "1"]) == Exit.OK
    told = "".join(capsys.readouterr()).splitlines()
    assert [line for line in shown if line != "   ..." and line not in told] == []


def test_the_bad_settings_that_are_shown_get_the_answers_that_are_shown(
    quiet_world, tmp_path, monkeypatch, capsys
):
    shown = block_with("bad.toml", CONSOLE).splitlines()
    (text,) = re.findall(r"printf '(.+)' > bad.toml", "\n".join(shown))
    monkeypatch.chdir(tmp_path)
    Path("bad.toml").write_text(text.encode().decode("unicode_escape"))
    assert run(["settings", "check", "bad.toml"]) == Exit.USAGE
    assert capsys.readouterr().out.splitlines() == [
        line for line in shown if line.endswith("[file bad.toml]")
    ]


def test_the_exit_codes_are_those_of_the_program():
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", section("Command line"), re.MULTILINE)
    assert rows == [(str(int(code)), meaning) for code, meaning in EXITS.items()]


def test_the_known_policies_are_all_named():
    named = section("Tuning in five minutes").partition("Known policies for `--baseline`: ")[2]
    assert re.findall(r"[a-z0-9-]+", named.partition(".")[0]) == list(POLICIES)


def test_the_scenario_that_is_shown_can_be_played():
    (source,) = (body for _, language, body in BLOCKS if language == "toml" and "phases" in body)
    scenario = reading.parse(source, "friday.toml", default_name="friday")
    assert scenario.title == "Ten minutes in which every third call fails"


def test_the_editors_snippets_put_the_proxy_in_front_of_the_agent():
    snippets = [json.loads(body) for _, language, body in BLOCKS if language == "json"]
    assert snippets
    for snippet in snippets:
        (server,) = snippet["agent_servers"].values()
        assert [server["command"], *server["args"][:2]] == ["orchestrator", "proxy", "--"]


def test_each_command_is_shown():
    for row in COMMANDS:
        assert f"orchestrator {row.name}" in README


def test_each_make_target_that_is_named_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)`", README)) <= targets


def test_each_series_that_is_named_exists():
    known = {PREFIX + series.name for series in SERIES}
    for name in set(re.findall(rf"\b{PREFIX}[a-z_]+", README)):
        assert name in known


def test_each_anchor_and_file_that_is_linked_exists():
    headings = re.findall(r"^#+ (.+)$", README, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
    for target in re.findall(r"\]\(([^)]+)\)", README):
        if target.startswith("#"):
            assert target[1:] in anchors
        elif "://" not in target:
            assert (ROOT / target.partition("#")[0]).exists(), target
