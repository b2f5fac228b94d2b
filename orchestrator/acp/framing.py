"""Newline-delimited JSON-RPC: bytes in, frames out, every frame beside the bytes it came as.

A relay passes `Frame.raw` on untouched; whoever has to decide reads `Frame.value`.  A line that is
not JSON is skipped and counted, since agents do print to stdout.  `NaN` and `Infinity` are not
JSON: a peer in another language could not read the frame that holds one.  Nor is a number taken
that no double can hold: it reads as an infinity, and could not be written again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import isinf
from typing import Any, Final

from attrs import define, field, frozen

MAX_LINE_BYTES: Final = 64 * 1024 * 1024
"""A longer line is dropped: an image of 10 MB has to pass, a runaway print has not."""


@frozen
class Frame:
    """One line of the wire."""

    raw: bytes
    """The line as it came, its newline included."""
    value: Any
    """The decoded line: an object for every JSON-RPC message."""

    @property
    def message(self) -> dict[str, Any]:
        """The JSON-RPC message; empty where the line is JSON but not an object."""
        return self.value if isinstance(self.value, dict) else {}


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if isinf(number):
        raise ValueError(f"{digits[:20]} is beyond any double")
    return number


_decoder: Final = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def decode(line: bytes) -> Any:
    """One line as a JSON value.  Raises ValueError on anything that is not JSON in UTF-8."""
    try:
        return _decoder.decode(line.decode("utf-8").strip())
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def encode(message: object) -> bytes:
    """One message as a line.  ASCII, so no separator inside a string can break the framing.

    Raises ValueError on NaN and infinities.
    """
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


@define
class FrameReader:
    """Cut a byte stream into frames.  No I/O: feed what was read, at any boundary."""

    max_line_bytes: int = MAX_LINE_BYTES
    skipped: int = 0
    """Lines that were not JSON, or longer than allowed."""
    _parts: list[bytes] = field(factory=list)
    _held: int = 0
    _overlong: bool = False

    def feed(self, data: bytes) -> list[Frame]:
        """Take bytes, hand out every frame that they complete."""
        return self.read(self.cut(data))

    def cut(self, data: bytes) -> list[bytes]:
        """Take bytes, hand out every line that they complete, with its newline and not read yet."""
        whole = []
        start, end = 0, data.find(b"\n") + 1
        if end and (self._parts or self._overlong or end > self.max_line_bytes):
            self._hold(data[:end])
            first = self._take()
            if first is not None:
                whole.append(first)
            start, end = end, data.find(b"\n", end) + 1
        while end:
            whole.append(data[start:end])
            start, end = end, data.find(b"\n", end) + 1
        self._hold(data[start:] if start else data)
        return whole

    def read(self, lines: Iterable[bytes]) -> list[Frame]:
        """The frames among these lines; a line that is none is counted."""
        return [frame for line in lines if (frame := self.read_one(line)) is not None]

    def read_one(self, line: bytes) -> Frame | None:
        """The frame of one line; None, and counted, when it is none."""
        if not line.strip():
            return None
        try:
            return Frame(line, decode(line))
        except ValueError:
            self.skipped += 1
            return None

    def end(self) -> list[Frame]:
        """The stream ended: a last line without its newline still counts."""
        line = self._take()
        return [] if line is None else self.read([line])

    def _hold(self, part: bytes) -> None:
        if self._overlong or not part:
            return
        self._held += len(part)
        if self._held > self.max_line_bytes:
            self._overlong = True
            self._parts.clear()
            return
        self._parts.append(part)

    def _take(self) -> bytes | None:
        line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        overlong, self._overlong = self._overlong, False
        self._parts.clear()
        self._held = 0
        if overlong:
            self.skipped += 1
            return None
        return line
