"""Read a journal: turns as they were recorded, and a count of what could not be read.

Files that were put aside are read first, oldest first.  A turn is handed out when its last event
was read, so memory holds only the turns that were open at one moment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import define, field, frozen

from orchestrator.journal.observer import VERSION
from orchestrator.settings.model import Settings
from orchestrator.settings.tree import build, tree, values

_ASIDE: Final = re.compile(r"\.([0-9]{1,6})$")


class JournalError(ValueError):
    """A journal that cannot be read at all."""


@frozen
class Told:
    """One event, and what the machine answered.  JSON as it stood in the line."""

    event: Mapping[str, Any]
    effects: list[Any]
    at: float
    """POSIX seconds."""
    took: Mapping[str, Any] | None = None
    """Session state that the turn took up before it."""


@define(eq=False)
class RecordedTurn:
    """One turn of a journal."""

    run: str
    number: int
    session: str
    id: str
    epoch: str
    provider: str
    settings: str
    """Hash of the settings it ran under."""
    state: Mapping[str, Any]
    curves: tuple[str, ...] = ()
    """Ladders on which the host had put waits of its own, which no journal holds."""
    steps: list[Told] = field(factory=list)
    next: int = 0
    """The event that has to follow."""
    whole: bool = True
    """No event is missing."""
    ended: bool = False

    @property
    def name(self) -> str:
        return f"{self.session}/{self.id}"


@define(eq=False)
class Counts:
    """What was met while reading."""

    lines: int = 0
    torn: int = 0
    """Lines that are no JSON: a process died while it wrote them."""
    unknown: int = 0
    """Lines of a type, or a version, that this version does not know."""
    headless: int = 0
    """Events of turns whose beginning is not in the journal (any more)."""


@define(eq=False)
class Journal:
    """A journal that is being read."""

    path: Path
    counts: Counts = field(factory=Counts)
    settings: dict[str, Mapping[str, Any]] = field(factory=dict)
    """Settings by their hash, as tables in tables."""
    programs: set[str] = field(factory=set)
    """Which versions wrote it."""
    _open: dict[tuple[str, int], RecordedTurn] = field(factory=dict)

    def turns(self) -> Iterator[RecordedTurn]:
        """Yield the turns in the order they ended, then those that have not.

        Raises JournalError when a file cannot be read.
        """
        for file in files(self.path):
            for line in _lines(file):
                turn = self._take(line)
                if turn is not None:
                    yield turn
        yield from self._open.values()
        self._open.clear()

    def settings_of(self, turn: RecordedTurn) -> Settings | None:
        """Settings that a turn ran under; None when the journal does not hold them."""
        tables = self.settings.get(turn.settings)
        return None if tables is None else _settings(tables)

    def _take(self, line: bytes) -> RecordedTurn | None:
        self.counts.lines += 1
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            self.counts.torn += 1
            return None
        reader = _READERS.get(str(told.get("line"))) if isinstance(told, dict) else None
        if reader is None or told.get("v") != VERSION:
            self.counts.unknown += 1
            return None
        try:
            return reader(self, told)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            self.counts.unknown += 1  # a type that we know, in a shape that we do not
            return None

    def _head(self, told: Mapping[str, Any]) -> None:
        self.programs.add(str(told["program"]))

    def _know(self, told: Mapping[str, Any]) -> None:
        self.settings[str(told["hash"])] = dict(told["settings"])

    def _begin(self, told: Mapping[str, Any]) -> None:
        key = str(told["run"]), int(told["turn"])
        self._open[key] = RecordedTurn(
            *key,
            session=str(told["session"]),
            id=str(told["id"]),
            epoch=str(told["epoch"]),
            provider=str(told["provider"]),
            settings=str(told["settings"]),
            state=dict(told["state"]),
            curves=tuple(told.get("curves", ())),
        )

    def _step(self, told: Mapping[str, Any]) -> RecordedTurn | None:
        key = told["run"], told["turn"]
        turn = self._open.get(key)
        if turn is None:
            self.counts.headless += 1
            return None
        step = Told(dict(told["event"]), list(told["effects"]), told["at"], told.get("took"))
        turn.whole = turn.whole and told["n"] == turn.next
        turn.next += 1
        turn.steps.append(step)
        if any(effect.get("type") == "End" for effect in step.effects):
            turn.ended = True
            return self._open.pop(key)
        return None


_READERS: Final[Mapping[str, Callable[[Journal, Mapping[str, Any]], RecordedTurn | None]]] = {
    "journal": Journal._head,  # noqa: SLF001 - the table of this very class
    "settings": Journal._know,  # noqa: SLF001
    "turn": Journal._begin,  # noqa: SLF001
    "event": Journal._step,  # noqa: SLF001
}
"""What reads each type of line; every other type is skipped and counted."""


def files(path: Path) -> list[Path]:
    """The files of a journal, oldest first.  Raises JournalError when there is none."""
    aside = []
    for file in path.parent.glob(f"{path.name}.*"):
        number = _ASIDE.fullmatch(file.name.removeprefix(path.name))
        if number:
            aside.append((int(number[1]), file))
    found = [file for _, file in sorted(aside, reverse=True)]
    if path.exists() and not path.is_dir():  # a pipe can be read too
        found.append(path)
    if not found:
        what = "this is a folder, not a file" if path.is_dir() else "there is no such file"
        raise JournalError(f"{path}: {what}")
    return found


def _lines(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as stream:
            for line in stream:
                if line.strip():
                    yield line
    except OSError as error:
        raise JournalError(f"{file}: {error.strerror or error}") from None


def _settings(tables: Mapping[str, Any]) -> Settings | None:
    """Settings from tables in tables; what is not known is left out, what is missing a default."""
    by_path = values(Settings())
    for path in tree().leaves:
        found: Any = tables
        for step in path.split("."):
            found = found.get(step) if isinstance(found, Mapping) else None
        if found is not None:
            by_path[path] = tuple(found) if isinstance(found, list) else found
    try:
        return build(by_path)
    except (TypeError, ValueError):
        return None
