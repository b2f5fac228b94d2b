"""What outlives the proxy: for each session one small file in the user's state folder.

It holds ids, revisions and digests, never a text of the conversation.  A file that cannot be read
or written costs a reload its ids and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from orchestrator.acp.proxy.records import IncidentMap

_KEPT_S: Final = 90 * 86_400
_MAX_BYTES: Final = 1_000_000
_OURS: Final = re.compile(r"[0-9a-f]{32}/[0-9a-f]{32}\.(json|\d+)")
"""Files of ours below the folder: whole ones, and what a crash left half written."""


def default_folder(environ: Mapping[str, str] | None = None) -> Path | None:
    """Where state goes by the XDG rules; None for a user who has no home."""
    environ = os.environ if environ is None else environ
    base = Path(environ.get("XDG_STATE_HOME", ""))
    if not base.is_absolute():
        try:
            base = Path.home() / ".local" / "state"
        except RuntimeError:
            return None
    return base / "turn-orchestrator" / "proxy"


@define(eq=False)
class Kept:
    """What is remembered of one session."""

    native: str = ""
    """The agent's own id, where a recovery changed it; empty when it is the client's."""
    incidents: IncidentMap = field(factory=IncidentMap)


@define(eq=False)
class Store:
    """The sessions of one agent."""

    folder: Path | None
    """None keeps nothing."""
    agent: str
    """Tells two agents apart that might name their sessions alike."""

    def load(self, session_id: str) -> Kept:
        """What was kept of a session; nothing when there is none, or it can't be read."""
        path = self._path(session_id)
        if path is None:
            return Kept()
        try:
            if path.stat().st_size > _MAX_BYTES:
                return Kept()
            stored = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return Kept()
        if not isinstance(stored, dict) or stored.get("session") != session_id:
            return Kept()
        native = stored.get("native")
        return Kept(
            native if isinstance(native, str) else "",
            IncidentMap.from_json(stored.get("incidents")),
        )

    def save(self, session_id: str, kept: Kept) -> bool:
        """Keep it; False when it could not be written."""
        path = self._path(session_id)
        if path is None:
            return True
        stored: dict[str, Any] = {"session": session_id, "native": kept.native}
        stored["incidents"] = kept.incidents.as_json()
        kept.incidents.changed = False
        new = path.with_suffix(f".{os.getpid()}")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new.touch(mode=0o600)
            new.write_text(json.dumps(stored), "utf-8")
            new.replace(path)
        except OSError:
            with suppress(OSError):
                new.unlink()
            return False
        return True

    def tidy(self) -> None:
        """Forget sessions that nobody has used for a long time."""
        oldest = time.time() - _KEPT_S
        folder = self.folder or Path(os.devnull)
        with suppress(OSError):
            for path in folder.glob("*/*"):  # the user may keep other things in it
                is_ours = _OURS.fullmatch(path.relative_to(folder).as_posix())
                if is_ours and path.stat().st_mtime < oldest:
                    path.unlink()

    def _path(self, session_id: str) -> Path | None:
        if self.folder is None:
            return None
        return self.folder / _digest(self.agent) / f"{_digest(session_id)}.json"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
