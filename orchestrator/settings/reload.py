"""Settings that can be changed while the program runs.

A reader takes `current` once, at a turn's start, and keeps it: the value is frozen and the swap is
one assignment, so no turn ever sees half of a change.  A file that cannot be used changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import define, field, frozen

from orchestrator.settings.load import Loaded, Problem, load
from orchestrator.settings.model import Settings
from orchestrator.settings.tree import values


@frozen
class Reloaded:
    """What one reload did."""

    ok: bool
    settings: Settings
    """What is in force now; the former settings when `ok` is False."""
    changed: tuple[str, ...] = ()
    """Paths of the settings that differ from before."""
    problems: tuple[Problem, ...] = ()

    def __str__(self) -> str:
        if not self.ok:
            first, more = self.problems[0], len(self.problems) - 1
            others = f" (and {more} more)" if more else ""
            return f"settings kept as they were, because of {first.origin}: {first}{others}"
        return f"settings changed: {', '.join(self.changed)}" if self.changed else "nothing changed"


@define
class Reloader:
    """Holds the settings in force and reads them again when told to."""

    file: str | Path | None = None
    environ: Mapping[str, str] | None = None
    """None: the process's own, as it is at each reload."""
    flags: Mapping[str, str] = field(factory=dict)
    loaded: Loaded = field(init=False)
    """The start's outcome, then that of the last reload which succeeded."""
    last_ok: bool = field(init=False)
    """For the gauge `config_last_reload_successful`; the start counts."""
    last_success_at: float | None = field(init=False)
    """POSIX seconds, for `config_last_reload_success_timestamp_seconds`."""
    start: Loaded | None = field(default=None, kw_only=True)
    """What was read already; None reads at once."""
    _wall_clock: Callable[[], float] = field(default=time.time, kw_only=True)
    _strict: bool = field(default=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        """Raise SettingsError with `strict`; else start with the defaults when it must be."""
        self.loaded = self._read(strict=self._strict) if self.start is None else self.start
        self.last_ok = self.loaded.ok
        self.last_success_at = self._wall_clock() if self.last_ok else None

    @property
    def current(self) -> Settings:
        """The settings in force."""
        return self.loaded.settings

    def reload(self) -> Reloaded:
        """Read everything again; swap when all of it is right, else change nothing.  Never raises.

        A program that lives through a bad file at its start uses the defaults until a good one.
        """
        before, fresh = self.current, self._read(strict=False)
        self.last_ok = fresh.ok
        if not fresh.ok:
            return Reloaded(ok=False, settings=before, problems=fresh.problems)
        self.loaded = fresh
        self.last_success_at = self._wall_clock()
        old, new = values(before), values(fresh.settings)
        changed = tuple(path for path in new if new[path] != old[path])
        return Reloaded(ok=True, settings=fresh.settings, changed=changed)

    def _read(self, *, strict: bool) -> Loaded:
        return load(self.file, environ=self.environ, flags=self.flags, strict=strict)
