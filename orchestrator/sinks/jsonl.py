"""A sink that writes one JSON line per record or note, to a file or an open text stream."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self, TextIO

import anyio.to_thread

from orchestrator.incident.extension import encode
from orchestrator.incident.record import Record
from orchestrator.sinks import Item


class JsonLinesSink:
    """Appends to a file, or writes to a stream that somebody else closes.

    Each line is ASCII and complete, so no text in it can forge another.  A file is opened at
    once: raises OSError where it can't be.  `now` gives POSIX seconds.
    """

    name = "jsonl"

    def __init__(
        self, target: str | PathLike[str] | TextIO, *, now: Callable[[], float] = time.time
    ) -> None:
        self._owns = isinstance(target, str | PathLike)
        self._stream: TextIO = (
            Path(target).open("a", encoding="utf-8")  # noqa: SIM115 - closed by `close`
            if isinstance(target, str | PathLike)
            else target
        )
        self._now = now
        self._lock = Lock()

    async def deliver(self, item: Item, /) -> None:
        """Write one line; a slow disk or a full pipe holds up a thread, never the event loop."""
        line = json.dumps({"at": _utc(self._now()), **_fields(item)}) + "\n"
        await anyio.to_thread.run_sync(self._write, line, abandon_on_cancel=True)

    def _write(self, line: str) -> None:
        with self._lock:
            self._stream.write(line)
            self._stream.flush()

    def close(self) -> None:
        """Close the file this sink opened; a stream of somebody else's stays open."""
        if self._owns:
            self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _fields(item: Item) -> dict[str, Any]:
    if isinstance(item, Record):
        return {"type": "record", **encode(item)}
    return {"type": "note", "code": str(item.code), "text": item.text}


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
