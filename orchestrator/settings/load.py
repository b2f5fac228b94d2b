"""Settings from a TOML file, then the environment, then flags; the later one wins.

Everything is read before anything is judged, so that one run names every problem, with its path,
the value as it was written, what is allowed and where it came from.  A key that nobody knows is a
problem too: a misspelt bound that is silently ignored is worse than none.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from attrs import Factory, define, field, frozen

from orchestrator.settings import reading
from orchestrator.settings.allowed import sentence, shown
from orchestrator.settings.model import Settings, contradictions
from orchestrator.settings.toml_file import UnusableFileError, file_name, read_table
from orchestrator.settings.tree import build, join, tree

PREFIX: Final = "ORCHESTRATOR_"
"""`ORCHESTRATOR_LADDERS__CURVE__FIRST_S=1s`: a double underscore is one step down."""
FILE_VARIABLE: Final = "ORCHESTRATOR_SETTINGS"
"""Names the file when no flag does."""
_BARE: Final = re.compile(r"[A-Za-z0-9_.+-]{1,64}", re.ASCII)
_CLOSE, _VERY_CLOSE = 0.6, 0.8


class Source(StrEnum):
    """Where a value came from, weakest first."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    FLAG = "flag"


@frozen
class Origin:
    """Where one value came from."""

    source: Source
    name: str = ""
    """The file, the variable or the flag."""

    def __str__(self) -> str:
        return f"{self.source} {self.name}" if self.name else str(self.source)


class Trouble(StrEnum):
    """What sort of problem it is; stable, for programs."""

    UNREADABLE_FILE = "unreadable_file"
    BAD_TOML = "bad_toml"
    UNKNOWN_KEY = "unknown_key"
    NOT_ALLOWED = "not_allowed"
    CONTRADICTION = "contradiction"


@frozen
class Problem:
    """One thing that is wrong."""

    code: Trouble
    path: str
    """Dotted path of the setting; empty when the file as a whole is meant."""
    message: str
    """What is wrong and what is allowed."""
    origin: Origin
    hint: str = ""
    """What to do next."""

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        return f"{text}; {self.hint}" if self.hint else text


class SettingsError(ValueError):
    """The settings cannot be used.  `problems` has all of what is wrong, never none."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


_NO_ORIGINS: Final[Mapping[str, Origin]] = MappingProxyType({})
_DEFAULT: Final = Origin(Source.DEFAULT)


@frozen
class Loaded:
    """Settings that can be used, and how they came about."""

    settings: Settings = Factory(Settings)
    origins: Mapping[str, Origin] = field(default=_NO_ORIGINS)
    """Where each setting came from; one that is missing is a default."""
    problems: tuple[Problem, ...] = ()
    """Why what was asked for is not what is used."""

    @property
    def ok(self) -> bool:
        """Whether everything that was asked for is used; the gauge shows this."""
        return not self.problems

    @property
    def warning(self) -> str:
        """One sentence for the log when something could not be used; else empty."""
        if self.ok:
            return ""
        first, more = self.problems[0], len(self.problems) - 1
        others = f" (and {more} more: see `orchestrator settings check`)" if more else ""
        return f"going on with the default settings, because of {first.origin}: {first}{others}"

    def origin(self, path: str) -> Origin:
        """Where the setting at `path` came from."""
        return self.origins.get(path, _DEFAULT)


def load(
    file: str | Path | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
    strict: bool = True,
) -> Loaded:
    """Read `file`, then `environ` (the process's own unless given), then `flags` (path to text).

    Without `file`, `find_file` looks for one.  With `strict`, a problem raises SettingsError that
    holds all of them.  Without, the answer is the defaults (and the flags, when these are right by
    themselves), `problems` has what is wrong, and `warning` says it in one sentence.
    """
    environ = os.environ if environ is None else environ
    file = find_file(environ) if file is None else file
    found = _Found()
    if file is not None:
        _read_file(found, Path(file))
    _read_environment(found, environ)
    _read_flags(found, flags or {})
    loaded = _judge(found)
    if loaded.problems and strict:
        raise SettingsError(loaded.problems)
    if loaded.problems and flags:
        alone = _Found()
        _read_flags(alone, flags)
        kept = _judge(alone)
        if kept.ok:
            return Loaded(kept.settings, kept.origins, loaded.problems)
    return loaded


def find_file(environ: Mapping[str, str]) -> Path | None:
    """The file of this user, if there is one.

    `$ORCHESTRATOR_SETTINGS` first, then `orchestrator/settings.toml` in the configuration folder.
    Never the current folder: that is the project an agent works on, and often a stranger's.
    """
    if named := environ.get(FILE_VARIABLE):
        return Path(named)
    home = environ.get("HOME")
    folder = environ.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    if not os.path.isabs(folder):  # noqa: PTH117 - a relative one is to be ignored, says the XDG rule
        return None
    usual = Path(folder) / "orchestrator" / "settings.toml"
    return usual if usual.is_file() else None


@define
class _Found:
    """What the layers said so far."""

    given: dict[str, tuple[object, Origin]] = field(factory=dict)
    """By path: the value, and where it came from."""
    problems: list[Problem] = field(factory=list)

    def put(self, path: str, written: object, read: object, origin: Origin) -> None:
        allowed = tree().leaves[path].allowed
        if allowed.takes(read):
            self.given[path] = (read, origin)
            return
        text = origin.source is not Source.FILE and isinstance(written, str)
        # Everything outside a file is text; quotes around a number would mislead.
        value = _spelled(written) if text else shown(written)
        hint = reading.hint(allowed, written, quoted=not text)
        self.problem(Trouble.NOT_ALLOWED, path, sentence(value, allowed.words), origin, hint)

    def problem(
        self, code: Trouble, path: str, message: str, origin: Origin, hint: str = ""
    ) -> None:
        self.problems.append(Problem(code, path, message, origin, hint))


def _judge(found: _Found) -> Loaded:
    """Settings from all layers together, and what contradicts between them."""
    by_path = {path: leaf.default for path, leaf in tree().leaves.items()}
    by_path.update({path: read for path, (read, _) in found.given.items()})
    origins = {path: origin for path, (_, origin) in found.given.items()}
    wrong = {problem.path for problem in found.problems}
    for bound, message in contradictions(by_path.__getitem__):
        if not wrong & {bound.path, bound.other}:
            # The value that somebody wrote is the one to change, be it the bound or the bounded.
            origin = origins.get(bound.path) or origins.get(bound.other) or _DEFAULT
            found.problem(Trouble.CONTRADICTION, bound.path, message, origin)
    if found.problems:
        return Loaded(problems=tuple(found.problems))
    return Loaded(build(by_path), MappingProxyType(origins))


# The file.


def _read_file(found: _Found, file: Path) -> None:
    origin = Origin(Source.FILE, file_name(file))
    try:
        table = read_table(file)
    except UnusableFileError as error:
        code = Trouble.BAD_TOML if error.readable else Trouble.UNREADABLE_FILE
        found.problem(code, "", str(error), origin)
    else:
        _take_table(found, table, "", origin)


def _take_table(found: _Found, table: Mapping[str, Any], at: str, origin: Origin) -> None:
    known = tree()
    for key, value in table.items():
        path = join(at, _spelled(key))
        if path in known.leaves:
            read = reading.from_file(known.leaves[path].allowed, value)
            found.put(path, value, read, origin)
        elif path not in known.sections:
            message, hint = _unknown(at, key)
            found.problem(Trouble.UNKNOWN_KEY, path, message, origin, hint)
        elif isinstance(value, dict):
            _take_table(found, value, path, origin)
        else:
            message = sentence(shown(value), f"a table [{path}]")
            found.problem(Trouble.NOT_ALLOWED, path, message, origin)


def _spelled(key: object) -> str:
    """A key as TOML spells it: one that is not bare is quoted, escaped and cut."""
    return str(key) if _BARE.fullmatch(str(key)) else shown(key)


# The environment and flags.


def variable(path: str) -> str:
    """The environment variable that sets `path`."""
    return PREFIX + path.upper().replace(".", "__")


def _read_environment(found: _Found, environ: Mapping[str, str]) -> None:
    for name in sorted(environ):
        if not name.startswith(PREFIX) or name == FILE_VARIABLE:
            continue
        steps = name.removeprefix(PREFIX).lower()
        if "__" in steps:
            origin = Origin(Source.ENVIRONMENT, _spelled(name))
            _take_text(found, steps.split("__"), environ[name], origin)
        elif path := _single_underscored(steps):
            # Other programs may use our prefix; only what can be meant for us is a problem.
            origin = Origin(Source.ENVIRONMENT, _spelled(name))
            hint = f"did you mean {variable(path)}?"
            found.problem(Trouble.UNKNOWN_KEY, steps, "no such setting", origin, hint)


def _single_underscored(steps: str) -> str:
    """The path that was meant when every `__` was written as `_`; else empty."""
    return next((p for p in tree().leaves if p.replace(".", "_") == steps), "")


def _read_flags(found: _Found, flags: Mapping[str, str]) -> None:
    for path, text in flags.items():
        _take_text(found, path.split("."), text, Origin(Source.FLAG, "--set"))


def _take_text(found: _Found, steps: list[str], text: str, origin: Origin) -> None:
    known, at = tree(), ""
    for step in steps[:-1]:
        below = join(at, step)
        if below not in known.sections:
            break
        at = below
    else:
        step = steps[-1]
    path = join(at, step)
    if path in known.leaves and path == ".".join(steps):
        found.put(path, text, reading.from_text(known.leaves[path].allowed, text), origin)
    elif path in known.sections:
        keys = ", ".join(known.sections[path].keys)
        message = "this is a table, not one setting"
        found.problem(Trouble.NOT_ALLOWED, path, message, origin, f"set one of its keys: {keys}")
    else:
        message, hint = _unknown(at, step, spell=origin.source)
        written = ".".join(map(_spelled, steps))
        found.problem(Trouble.UNKNOWN_KEY, written, message, origin, hint)


# Keys that nobody knows.  Their values are never shown: who knows what they are.


def _unknown(at: str, key: str, *, spell: Source = Source.FILE) -> tuple[str, str]:
    meant = _meant(at, key.lower().replace("-", "_"))
    if meant:
        name = variable(meant) if spell is Source.ENVIRONMENT else meant
        if meant in tree().sections and spell is not Source.FILE:
            name += "__..." if spell is Source.ENVIRONMENT else ".<key>"
        return "no such setting", f"did you mean {name}?"
    keys = ", ".join(tree().sections[at].keys)
    return "no such setting", f"known in {at}: {keys}" if at else f"known tables: {keys}"


def _meant(at: str, key: str) -> str:
    """The path that a misspelt or misplaced key was meant for; else empty."""
    if not _BARE.fullmatch(key):
        return ""
    known = tree()
    if here := difflib.get_close_matches(key, known.sections[at].keys, n=1, cutoff=_CLOSE):
        return join(at, here[0])
    anywhere = {path.rpartition(".")[2]: path for path in (*known.sections, *known.leaves)}
    there = difflib.get_close_matches(key, anywhere, n=1, cutoff=_VERY_CLOSE)
    return anywhere[there[0]] if there else ""
