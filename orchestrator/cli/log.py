"""The log of a proxy: lines for a reader that may be slow, or gone."""

from __future__ import annotations

import os
import select
from typing import Final

from attrs import define

_PIECE_BYTES: Final = select.PIPE_BUF
"""What a pipe that says it can be written takes without waiting."""


@define(eq=False)
class Log:
    """Writes lines to a descriptor.  One that nobody reads, or that is full, keeps nobody waiting.

    Editors do start agents without ever reading their stderr; lines that find it full are counted
    and told of in front of the next one that is not lost.
    """

    fd: int
    lost: int = 0

    def write(self, line: str) -> None:
        """Write one line, or count it."""
        told = f"({self.lost} lines were lost here: nobody read them)\n" if self.lost else ""
        if self._put(f"{told}{line}\n".encode("utf-8", "replace")):
            self.lost = 0
        else:
            self.lost += 1

    def _put(self, data: bytes) -> bool:
        try:
            while data and select.select([], [self.fd], [], 0)[1]:
                data = data[os.write(self.fd, data[:_PIECE_BYTES]) :]
        except OSError:
            return False  # a log that can't be written must not end a conversation
        return not data
