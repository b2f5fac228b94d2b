"""Scenarios from files: the shipped ones by name, a user's own by path.

A file is read strictly, and one reading names everything that is wrong: each with its path, the
value as it was written and what is allowed.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable
from enum import Enum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

import attrs
from attrs import frozen
from cattrs import Converter, transform_error
from cattrs.errors import ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, override

from orchestrator.failure.kinds import KINDS, Kind
from orchestrator.settings.allowed import Allowed, sentence, shown
from orchestrator.settings.reading import from_file
from orchestrator.settings.reading import hint as hint_for
from orchestrator.simulate.scenario import (
    Capacity,
    Fault,
    Phase,
    Recovering,
    Scenario,
    Stretch,
    Surge,
    Throttle,
    Users,
)

SHIPPED: Final = files("orchestrator.simulate") / "scenarios"
_LARGEST_FILE: Final = 1 << 20
_CLASSES: Final = (
    Fault,
    Phase,
    Surge,
    Stretch,
    Capacity,
    Throttle,
    Users,
    Recovering,
    Scenario,
)

T = TypeVar("T")


class ScenarioError(ValueError):
    """A scenario that cannot be played; each problem has a line of its own."""

    def __init__(self, source: str, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.source = source
        self.problems = problems


@frozen
class Found:
    """A scenario and where it came from."""

    scenario: Scenario
    source: str


def names() -> tuple[str, ...]:
    """The shipped scenarios."""
    found = (file.name for file in SHIPPED.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml")))


def load(name: str) -> Scenario:
    """Read a shipped scenario by its name, or a file by its path.

    Raises ScenarioError.
    """
    if name in names():
        return parse((SHIPPED / f"{name}.toml").read_text("utf-8"), name)
    if not name.endswith(".toml"):
        close = difflib.get_close_matches(name[:60], names(), n=1)
        meant = f"did you mean {close[0]}?" if close else f"there are {', '.join(names())}."
        problem = f"there is no scenario {shown(name)}; {meant} Or name a file that ends in .toml"
        raise ScenarioError(name, (problem,))
    return parse(_text(Path(name)), name, default_name=Path(name).stem)


def parse(text: str, source: str, *, default_name: str = "") -> Scenario:
    """Read a scenario from TOML.  Raises ScenarioError."""
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise ScenarioError(source, ("values are nested too deeply",)) from None
    except ValueError as error:
        raise ScenarioError(source, (f"not valid TOML: {error}",)) from None
    if default_name:
        table.setdefault("name", default_name)
    try:
        return _converter().structure(table, Scenario)
    except Exception as error:  # noqa: BLE001 - cattrs raises groups and bare errors alike
        problems = transform_error(error, path="", format_exception=_said)
        raise ScenarioError(source, tuple(_placed(problem) for problem in problems)) from None


def _text(file: Path) -> str:
    source = str(file)
    try:
        with file.open("rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ScenarioError(source, (f"cannot be read: {reason}",)) from None
    if len(content) > _LARGEST_FILE:
        raise ScenarioError(source, ("this is larger than 1 MiB, which scenarios never are",))
    try:
        return content.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not UTF-8, which TOML has to be"
        raise ScenarioError(source, (problem,)) from None


# The converter: each field is read by its own rule, and nothing is coerced.


@cache
def _converter() -> Converter:
    converter = Converter(forbid_extra_keys=True, detailed_validation=True)
    for cls in _CLASSES:
        converter.register_structure_hook(cls, _reader_of(cls, converter))
    return converter


def _reader_of(cls: type[T], converter: Converter) -> Callable[[Any, Any], T]:
    hints = get_type_hints(cls)
    read = make_dict_structure_fn(
        cls,
        converter,
        _cattrs_forbid_extra_keys=True,
        _cattrs_detailed_validation=True,
        **{
            field.name: override(struct_hook=_field_reader(field, hints[field.name], converter))
            for field in attrs.fields(cls)  # type: ignore[arg-type]  # all of them are attrs
        },
    )

    def read_table(value: Any, kind: Any) -> T:
        if not isinstance(value, dict):
            raise _WrongError(sentence(shown(value), "a table"))
        return read(value, kind)

    return read_table


def _field_reader(
    field: attrs.Attribute[Any], hint: Any, converter: Converter
) -> Callable[[Any, Any], Any]:
    allowed = field.validator
    allowed = getattr(allowed, "validator", allowed)  # what `optional` wraps
    if isinstance(allowed, Allowed):
        return _by_rule(allowed)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _kind
    if get_origin(hint) is tuple:
        return _several(get_args(hint)[0], converter)
    inner = next((arg for arg in get_args(hint) if arg is not type(None)), hint)
    return lambda value, _: converter.structure(value, inner)


def _by_rule(allowed: Allowed) -> Callable[[Any, Any], Any]:
    def read(value: Any, _: Any) -> Any:
        known = from_file(allowed, value)
        if not allowed.takes(known):
            hint = hint_for(allowed, value, quoted=True)
            raise _WrongError(sentence(shown(value), allowed.words) + (f"; {hint}" if hint else ""))
        return known

    return read


def _kind(value: Any, _: Any) -> Kind:
    known = [kind.value for kind in Kind if KINDS[kind].is_failure]
    if value in known:
        return Kind(value)
    close = difflib.get_close_matches(str(value)[:60], known, n=1)
    meant = f"; did you mean {close[0]}?" if close else ""
    raise _WrongError(sentence(shown(value), "a failure's kind, such as overloaded") + meant)


def _several(cls: type, converter: Converter) -> Callable[[Any, Any], Any]:
    def read(value: Any, _: Any) -> Any:
        if not isinstance(value, list):
            raise _WrongError(sentence(shown(value), "a list of tables"))
        return converter.structure(value, tuple[cls, ...])  # type: ignore[valid-type]

    return read


class _WrongError(ValueError):
    """A value that its field's rule refuses; the text is finished."""


def _said(error: BaseException, _: type | None) -> str:
    """What cattrs met, in our words."""
    if isinstance(error, ForbiddenExtraKeysError):
        return "; ".join(_unknown(key, error.cl) for key in sorted(error.extra_fields))
    if isinstance(error, KeyError):
        return "is missing"
    return str(error)


def _unknown(key: str, cls: type) -> str:
    known = [field.name for field in attrs.fields(cls)]
    close = difflib.get_close_matches(key[:60], known, n=1)
    return f"{key[:60]}: no such key; " + (
        f"did you mean {close[0]}?" if close else f"known here: {', '.join(known)}"
    )


def _placed(problem: str) -> str:
    """Put the path first: cattrs says `words @ .phases[0].faults`."""
    words, at, path = problem.rpartition(" @ ")
    path = path.lstrip(".")
    return f"{path}: {words}" if at and path else words or problem
