"""The settings as documents: a commented TOML file and a JSON Schema, both made from the model."""

from __future__ import annotations

import json
from typing import Any, Final

from orchestrator.settings.allowed import Number, Seconds, plain
from orchestrator.settings.model import Settings
from orchestrator.settings.reading import duration, in_words
from orchestrator.settings.tree import Leaf, Section, join, tree, values

_WIDTH: Final = 100


def toml(settings: Settings | None = None) -> str:
    """`settings` as a TOML file that explains itself and reads back as the same settings."""
    by_path = values(settings or Settings())
    lines = [
        "# Every setting, with what it is for and what is allowed.  Keep the lines you change.",
        '# Durations are seconds, or text such as "90s", "5m" or "1h30m".',
    ]
    for section in tree().sections.values():
        own = [tree().leaves[p] for k in section.keys if (p := join(section.path, k)) in by_path]
        if own:
            lines += ["", f"# {section.help}", f"[{section.path}]"]
        for leaf in own:
            lines += _entry(leaf, by_path[leaf.path])
    return "\n".join(lines) + "\n"


def _entry(leaf: Leaf, value: object) -> list[str]:
    line = f"{leaf.path.rpartition('.')[2]} = {spelled(leaf, value)}"
    allowed = leaf.allowed.words
    if isinstance(leaf.allowed, Seconds):
        allowed = f"{in_words(leaf.allowed.low)} to {in_words(leaf.allowed.high)}"
    comment = f"# {leaf.help}  ({allowed})"
    if len(comment) <= _WIDTH:
        return [comment, line]
    return [f"# {leaf.help}", f"# ({allowed})", line]


def spelled(leaf: Leaf, value: object) -> str:
    """A value as TOML spells it, and a duration as people read it where that loses nothing."""
    if isinstance(leaf.allowed, Number) and isinstance(value, float | int):
        words = in_words(value) if isinstance(leaf.allowed, Seconds) else ""
        return f'"{words}"' if duration(words) == value else plain(value)
    # All texts are printable, and TOML does not know JSON's surrogate pairs.
    return json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)


def schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of a settings file.

    It says what each value may be.  What holds between values (a cap is not below the first wait)
    is beyond it, and so is the range of a duration written as text: `settings check` knows both.
    """
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of orchestrator",
    }
    return head | _section(tree().sections[""])


def _section(section: Section) -> dict[str, Any]:
    known = tree()
    properties: dict[str, Any] = {}
    for key in section.keys:
        path = join(section.path, key)
        leaf = known.leaves.get(path)
        properties[key] = _leaf(leaf) if leaf else _section(known.sections[path])
    described = {"description": section.help} if section.help else {}
    return {
        "type": "object",
        **described,
        "properties": properties,
        "additionalProperties": False,
    }


def _leaf(leaf: Leaf) -> dict[str, Any]:
    default = list(leaf.default) if isinstance(leaf.default, tuple) else leaf.default
    return {"description": leaf.help, "default": default, **leaf.allowed.schema()}
