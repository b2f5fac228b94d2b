"""A journal's files: append-only lines, flushed as asked, bounded in size.

`turns.jsonl` is the one that grows; when it is full it becomes `turns.jsonl.1`, that one `.2`, and
so on, and the oldest goes.  A process that dies in the middle of a line leaves a torn one: the next
run begins a new line behind it, and readers count it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from attrs import Attribute, define, field, frozen
from attrs.validators import instance_of


class Fsync(StrEnum):
    """When written lines are forced onto the disk: what may be lost when the machine dies.

    Forcing takes milliseconds, and all turns of the process wait for it.
    """

    NEVER = "never"
    """When the system sees fit; nothing is lost when only our process dies."""
    AT_END = "at_end"
    """With the last line of each turn."""
    ALWAYS = "always"
    """With every line."""


def _at_least(low: int) -> Callable[[object, Attribute[int], Any], None]:
    def check(_: object, attribute: Attribute[int], value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < low:
            words = f"a whole number of {low:,} or more"
            raise ValueError(f"{attribute.name}: {value!r} is not allowed; {words} is")

    return check


@frozen
class Keeping:
    """How much a journal keeps, and how safely."""

    fsync: Fsync = field(default=Fsync.NEVER, validator=instance_of(Fsync))
    max_bytes: int = field(default=64 << 20, validator=_at_least(4096))
    """Size at which a file is put aside."""
    older_files: int = field(default=4, validator=_at_least(0))
    """Files that are kept beside the one that grows."""


_ONLY_OWNER: Final = 0o600


@define(eq=False)
class JournalFile:
    """The file that grows.  Opened at the first line."""

    path: Path
    keeping: Keeping
    begin: Callable[[], list[bytes]]
    """What every file begins with, so that it can be read by itself."""
    _fd: int | None = None
    _size: int = 0

    @property
    def is_open(self) -> bool:
        """Whether the file has its beginning."""
        return self._fd is not None

    def append(self, line: str, *, last: bool = False) -> None:
        """Write one line in one go; `last` is a turn's last.  Raises OSError."""
        data = line.encode() + b"\n"
        if self._fd is not None and self._size + len(data) > self.keeping.max_bytes:
            self.rotate()
        fd = self.open()
        self._write(fd, data)
        if self.keeping.fsync is Fsync.ALWAYS or (last and self.keeping.fsync is Fsync.AT_END):
            os.fsync(fd)

    def rotate(self) -> None:
        """Put the file aside; the next line begins a new one."""
        self.close()
        self.place(self.keeping.older_files).unlink(missing_ok=True)
        for number in range(self.keeping.older_files - 1, -1, -1):
            if self.place(number).exists():
                self.place(number).replace(self.place(number + 1))

    def place(self, number: int) -> Path:
        """Where the file that was put aside so many times ago is."""
        return self.path.with_name(f"{self.path.name}.{number}") if number else self.path

    def close(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            if self.keeping.fsync is not Fsync.NEVER:
                os.fsync(fd)
            os.close(fd)

    def open(self) -> int:
        """Open the file, where it is not open yet.  Raises OSError."""
        if self._fd is not None:
            return self._fd
        self.path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        fd = self._fd = os.open(self.path, flags, _ONLY_OWNER)
        self._size = os.fstat(fd).st_size
        if self._size and os.pread(fd, 1, self._size - 1) != b"\n":
            self._write(fd, b"\n")  # behind a torn line
        for line in self.begin():
            self._write(fd, line)
        return fd

    def _write(self, fd: int, data: bytes) -> None:
        self._size += len(data)
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
