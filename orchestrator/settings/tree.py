"""The settings as a flat list of dotted paths, read from the model once.

Everything that prints, reads or explains settings walks this list, so a new field in the model is
at once in the files, the environment, the flags, the example and the JSON Schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, cast

import attrs
from attrs import frozen

from orchestrator.settings.allowed import Allowed
from orchestrator.settings.model import Settings


@frozen
class Leaf:
    """One setting."""

    path: str
    default: object
    allowed: Allowed
    help: str


@frozen
class Section:
    """One table of settings; the root has the empty path."""

    path: str
    help: str
    keys: tuple[str, ...]
    """Names of what stands directly in it, in the model's order."""


@frozen
class Tree:
    """All of them, in the model's order."""

    leaves: Mapping[str, Leaf]
    sections: Mapping[str, Section]


@cache
def tree() -> Tree:
    """The model as paths."""
    nodes = list(_walk(Settings(), "", ""))
    return Tree(
        leaves=MappingProxyType({n.path: n for n in nodes if isinstance(n, Leaf)}),
        sections=MappingProxyType({n.path: n for n in nodes if isinstance(n, Section)}),
    )


def _walk(value: object, path: str, help_: str) -> Iterator[Leaf | Section]:
    fields = attrs.fields(type(value))  # type: ignore[arg-type]  # every section is an attrs class
    yield Section(path, help_, tuple(f.name for f in fields))
    for f in fields:
        below = join(path, f.name)
        held, text = getattr(value, f.name), f.metadata["help"]
        if attrs.has(type(held)):
            yield from _walk(held, below, text)
        else:
            yield Leaf(below, held, cast("Allowed", f.validator), text)


def join(path: str, name: str) -> str:
    """One step down."""
    return f"{path}.{name}" if path else name


def values(settings: Settings) -> dict[str, Any]:
    """Every setting by its path."""
    return {path: attrgetter(path)(settings) for path in tree().leaves}


def build(by_path: Mapping[str, object]) -> Settings:
    """The inverse of `values`.  Raises ValueError where the model does."""
    return cast("Settings", _build(Settings, "", by_path))


def _build(cls: type, path: str, by_path: Mapping[str, object]) -> object:
    known, fields = tree(), attrs.fields(cls)
    made = {}
    for f in fields:
        below = join(path, f.name)
        if below in known.leaves:
            made[f.name] = by_path[below]
        else:
            made[f.name] = _build(type(attrgetter(below)(Settings())), below, by_path)
    return cls(**made)


def nested(by_path: Mapping[str, object]) -> dict[str, Any]:
    """Dotted paths as tables in tables, for JSON."""
    root: dict[str, Any] = {}
    for path, value in by_path.items():
        *tables, name = path.split(".")
        here = root
        for table in tables:
            here = here.setdefault(table, {})
        here[name] = list(value) if isinstance(value, tuple) else value
    return root
