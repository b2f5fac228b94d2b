"""The observer that keeps what turns were told and what they answered, as JSON lines.

    Orchestrator(observers=[JournalObserver("turns.jsonl")])

Each line is one object with `v` (version) and `line` (its type); a reader skips types that it does
not know.  `run` is drawn anew by each observer, and `turn` counts its turns.

    journal   {run, at, program}                            what every file begins with
    settings  {hash, settings}                              once for each file
    turn      {run, turn, session, id, epoch, provider, settings, state, curves}
    event     {run, turn, n, at, event, effects, took}      in one line: both or neither

Texts are scrubbed.  `took` is the session state that a turn took up when it came first in line.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import attrs
from attrs import define

from orchestrator.journal import codec
from orchestrator.journal.file import Fsync, JournalFile, Keeping
from orchestrator.settings.model import Settings
from orchestrator.settings.tree import nested, values
from orchestrator.turn.curve import Curves
from orchestrator.turn.effects import Effect, End, SessionState
from orchestrator.turn.events import Advised, Event, Started
from orchestrator.turn.machine import TurnMachine
from orchestrator.version import __version__

VERSION: Final = 1


@define(eq=False)
class _Open:
    """A turn that has not ended."""

    machine: TurnMachine
    """Held, so that its identity is not given to another one."""
    number: int
    state: SessionState
    """What was written last, until the first send."""
    events: int = 0


class JournalObserver:
    """Writes a journal.  Raises OSError when it can't, and is then switched off by the runner."""

    name = "journal"

    def __init__(
        self,
        path: str | Path,
        *,
        fsync: Fsync | str = Fsync.NEVER,
        max_bytes: int = 64 << 20,
        older_files: int = 4,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        """See `Keeping` for what the bounds mean.  Raises ValueError."""
        keeping = Keeping(Fsync(fsync), max_bytes, older_files)
        self._file = JournalFile(Path(path), keeping, self._beginning)
        self._wall_clock = wall_clock
        self._run = uuid4().hex[:12]
        self._turns = 0
        self._open: dict[int, _Open] = {}
        self._settings: tuple[Settings, str] | None = None
        self._hashes: dict[str, dict[str, Any]] = {}
        self._written: set[str] = set()
        """Settings that stand in the file that grows."""

    def __call__(self, turn: TurnMachine, event: Event, effects: tuple[Effect, ...]) -> None:
        """Write what a machine was told and what it answered."""
        known = self._open.get(id(turn))
        if known is None:
            if not isinstance(event, Started):
                return  # late: its turn has ended, or began before this observer did
            known = self._begin(turn)
        ended = bool(effects) and isinstance(effects[-1], End)
        told: dict[str, Any] = {"run": self._run, "turn": known.number, "n": known.events}
        told |= {"at": round(self._wall_clock(), 3), "event": codec.event_json(event)}
        told["effects"] = codec.effects_json(effects)
        if turn.number <= 1 and not isinstance(event, Advised) and turn.session != known.state:
            told["took"] = codec.state_json(turn.session)
        known.state = turn.session
        known.events += 1
        self._write("event", told, last=ended)
        if ended:
            del self._open[id(turn)]

    def open(self) -> None:
        """Open the file now and not with the first turn.  Raises OSError."""
        self._file.open()

    def rotate(self) -> None:
        """Put the file aside now."""
        self._file.rotate()

    def close(self) -> None:
        """Close the file; a later event opens it again."""
        self._file.close()

    def _begin(self, turn: TurnMachine) -> _Open:
        self._turns += 1
        known = self._open[id(turn)] = _Open(turn, self._turns, turn.session)
        ids = turn.ids
        told: dict[str, Any] = {
            "run": self._run,
            "turn": known.number,
            "session": codec.text(ids.session_id),
            "id": codec.text(ids.turn_id),
            "epoch": codec.text(ids.epoch),
            "provider": codec.text(ids.provider),
            "settings": self._hash(turn.settings),
            "state": codec.state_json(turn.session),
        }
        curves = [] if turn.curves is None else [f.name for f in attrs.fields(Curves)]
        if own := [name for name in curves if getattr(turn.curves, name) is not None]:
            told["curves"] = own
        self._write("turn", told)
        return known

    def _hash(self, settings: Settings) -> str:
        """Name the settings, and see to it that they stand in the file."""
        if self._settings is None or self._settings[0] is not settings:
            by_path = nested(values(settings))
            digest = hashlib.sha256(codec.line(by_path).encode()).hexdigest()[:16]
            self._settings = settings, digest
            self._hashes[digest] = by_path
        digest = self._settings[1]
        if digest not in self._written and self._file.is_open:  # else the beginning tells it
            self._write("settings", {"hash": digest, "settings": self._hashes[digest]})
            self._written.add(digest)
        return digest

    def _write(self, kind: str, told: dict[str, Any], *, last: bool = False) -> None:
        self._file.append(codec.line({"v": VERSION, "line": kind, **told}), last=last)

    def _beginning(self) -> list[bytes]:
        """Lines that every file begins with; settings in use are told again."""
        head = {
            "run": self._run,
            "at": round(self._wall_clock(), 3),
            "program": f"turn-orchestrator {__version__}",
        }
        told = [("journal", head)]
        told += [("settings", {"hash": h, "settings": s}) for h, s in self._hashes.items()]
        self._written = set(self._hashes)
        return [
            codec.line({"v": VERSION, "line": kind, **fields}).encode() + b"\n"
            for kind, fields in told
        ]
