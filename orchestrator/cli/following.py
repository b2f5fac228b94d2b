"""Settings that change while a program runs: it looks at their file, and reads it when it changed.

The usual signal for that is not free here: a hang-up says that the terminal or the editor is gone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

import anyio
from anyio import to_thread

from orchestrator.cli.chosen import Chosen
from orchestrator.settings.load import Loaded, find_file
from orchestrator.settings.model import Settings
from orchestrator.settings.reload import Reloader

LOOK_EVERY_S: Final = 2.0


class Counts(Protocol):
    """Who is told of each reload."""

    def settings_loaded(self, *, ok: bool) -> None: ...


async def follow(
    chosen: Chosen,
    loaded: Loaded,
    counts: Counts,
    say: Callable[[str], None],
    put_in_force: Callable[[Settings], None],
) -> None:
    """Put what changes in the settings file in force, until cancelled.

    `loaded` is what is in force now.  Turns that run keep what they began with.  A file that cannot
    be used changes nothing; `say` gets a sentence about each news.  What `metrics` counts by stays
    as it was.
    """
    reloader = Reloader(chosen.settings, flags=chosen.flags, start=loaded)
    problems = loaded.problems
    seen: object = None  # the file may have changed since it was read
    before = await _look(chosen)
    while True:
        await anyio.sleep(LOOK_EVERY_S)
        now = await _look(chosen)
        settled, before = now == before, now  # a file that is being written is left alone
        if not settled or now == seen:
            continue
        seen = now
        done = await to_thread.run_sync(reloader.reload)
        counts.settings_loaded(ok=done.ok)
        if done.changed:
            put_in_force(done.settings)
        if done.changed or done.problems != problems:
            say(str(done))
        problems = done.problems


async def _look(chosen: Chosen) -> tuple[object, ...]:
    """What tells one state of the file from another."""
    file = chosen.settings or find_file(os.environ)
    if file is None:
        return ()
    try:
        told = await anyio.Path(Path(file)).stat()
    except OSError as error:
        return (str(file), error.errno)
    return (str(file), told.st_ino, told.st_mtime_ns, told.st_size)
