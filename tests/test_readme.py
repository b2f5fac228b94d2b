"""What the README says has to be so."""

import ast
import re
from pathlib import Path

import pytest

import orchestrator
from orchestrator.cli.commands import COMMANDS
from orchestrator.metrics.series import PREFIX, SERIES
from orchestrator.turn import render

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^( *)```(\w+)\n(.*?)^ *```$", README, re.MULTILINE | re.DOTALL)
PYTHON = [body for indent, language, body in BLOCKS if language == "python"]
CONSOLE = [body for indent, language, body in BLOCKS if language == "console"]


@pytest.mark.parametrize("table", [render.transition_table(), render.family_table()])
def test_the_tables_of_the_machine_are_the_generated_ones(table):
    assert table.strip() in README


@pytest.mark.parametrize("source", PYTHON)
def test_each_python_block_compiles_and_imports_names_that_exist(source):
    tree = ast.parse(source)
    compile(tree, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "orchestrator":
            for name in node.names:
                assert hasattr(orchestrator, name.name)


def test_each_command_that_is_shown_exists():
    shown = re.findall(r"orchestrator ([a-z]+)\b", "\n".join(CONSOLE))
    assert shown
    assert set(shown) <= {row.name for row in COMMANDS}


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
