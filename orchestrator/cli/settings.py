"""`orchestrator settings`: show, check and document the settings."""

from __future__ import annotations

import json
import os
from pathlib import Path

from attrs import asdict
from cyclopts import App
from rich.text import Text

from orchestrator.cli.chosen import Chosen, halted, lines
from orchestrator.cli.codes import Exit, Halt
from orchestrator.cli.terminal import Output, columns
from orchestrator.failure.redact import terminal_line
from orchestrator.settings import document
from orchestrator.settings.load import Loaded, Problem, Source, find_file, load
from orchestrator.settings.tree import nested, tree, values

app = App(
    name="settings",
    help="Show, check and document the settings.",
    help_format="markdown",
    group_commands="Commands",
)

_PLAIN = Output()
_CHOSEN = Chosen()


@app.command
def show(
    *,
    origin: bool = False,
    toml: bool = False,
    defaults: bool = False,
    chosen: Chosen = _CHOSEN,
    output: Output = _PLAIN,
) -> int:
    """Print the settings that are in force.

    Parameters
    ----------
    origin
        Also where each value comes from: default, file, environment or flag.
    toml
        As a commented TOML file, ready to be edited.
    defaults
        The built-in defaults; ignores file, environment and flags.
    """
    if toml and output.json:
        raise Halt("usage", "choose one of --toml and --json")
    loaded = Loaded() if defaults else chosen.load(output)
    if toml:
        print(document.toml(loaded.settings), end="")
    elif output.json:
        output.data(_as_json(loaded))
    else:
        columns(output.stdout, _rows(loaded, origin=origin))
    return Exit.OK


def _rows(loaded: Loaded, *, origin: bool) -> list[list[Text]]:
    by_path, rows = values(loaded.settings), []
    for path, leaf in tree().leaves.items():
        where = loaded.origin(path)
        own = where.source is not Source.DEFAULT
        cells = [Text(path), Text(document.spelled(leaf, by_path[path]), "bold" if own else "")]
        if origin:
            cells.append(Text(terminal_line(str(where)), "bold" if own else "dim"))
        rows.append(cells)
    return rows


def _as_json(loaded: Loaded) -> dict[str, object]:
    origins = {path: loaded.origin(path) for path in tree().leaves}
    return {
        "ok": loaded.ok,
        "settings": nested(values(loaded.settings)),
        "origins": {path: {"source": o.source, "name": o.name} for path, o in origins.items()},
        "problems": [problem_as_json(p) for p in loaded.problems],
    }


def problem_as_json(problem: Problem) -> dict[str, object]:
    """A problem for programs."""
    return asdict(problem) | {"origin": str(problem.origin)}


@app.command
def check(
    file: Path | None = None,
    /,
    *,
    chosen: Chosen = _CHOSEN,
    output: Output = _PLAIN,
) -> int:
    """Find every problem in a settings file, the environment and flags.  Exit code 2 if any.

    Parameters
    ----------
    file
        The file to check; without one, the file that would be used.
    """
    if file is not None and chosen.settings is not None:
        raise Halt("usage", "name the file once: as FILE or with --settings")
    named = file or chosen.settings
    loaded = load(named, flags=chosen.flags, strict=False)
    if output.json:
        problems = [problem_as_json(p) for p in loaded.problems]
        output.data({"ok": loaded.ok, "problems": problems})
    else:
        for line in lines(loaded.problems):
            print(terminal_line(line))
    if not loaded.ok:
        halt = halted(loaded.problems)
        halt.problems = ()  # they stand on stdout
        raise halt
    if not output.json:
        output.say(_praise(loaded, named))
    return Exit.OK


def _praise(loaded: Loaded, named: Path | None) -> str:
    used = named or find_file(os.environ)
    where = str(used) if used else "no settings file"
    count = f"{len(loaded.origins)} of {len(tree().leaves)} set, the rest are defaults"
    return f"the settings are right: {count} ({where})"


@app.command
def schema(*, output: Output = _PLAIN) -> int:
    """Print the JSON Schema (2020-12) of a settings file, for editors and other tools.

    It is JSON in any case; with --json it is one line.
    """
    if output.json:
        output.data(document.schema())
    else:
        print(json.dumps(document.schema(), indent=2))
    return Exit.OK
