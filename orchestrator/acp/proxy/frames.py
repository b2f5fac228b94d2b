"""Change one id in a frame and leave its other bytes as they are.

Where the id can be found without doubt only its own bytes are replaced; a frame that holds it more
than once is written anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestrator.acp.framing import Frame, encode

_SESSION: Final = "sessionId"
_BLANKS: Final = (b" ", b"\t", b"\r")
_ENDS: Final = (b",", b"}", b"\n", *_BLANKS)
"""What can follow a number, true or false."""


def line_of(frame: Frame) -> bytes:
    """The frame as it came; the last line of a stream may lack its newline."""
    return frame.raw if frame.raw.endswith(b"\n") else frame.raw + b"\n"


def renumbered(frame: Frame, number: object) -> bytes:
    """The frame under another JSON-RPC id."""
    spliced = _spliced(frame, "id", frame.message.get("id"), number)
    return encode({**frame.message, "id": number}) if spliced is None else spliced


def id_key(number: Any) -> str:
    """One id, however it is spelled: what was asked as 1.0 is answered by many peers as 1."""
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return json.dumps(number)


def session_of(message: Mapping[str, Any]) -> str:
    """The session that a request, a notification or an answer names; empty when it names none."""
    for part in ("params", "result"):
        content = message.get(part)
        if isinstance(content, dict) and isinstance(content.get(_SESSION), str):
            return str(content[_SESSION])
    return ""


def readdressed(frame: Frame, session_id: str) -> bytes:
    """The frame for another session than the one it names."""
    spliced = _spliced(frame, _SESSION, session_of(frame.message), session_id)
    return encode(moved(frame.message, session_id)) if spliced is None else spliced


def moved(message: dict[str, Any], session_id: str) -> dict[str, Any]:
    """The message for another session than the one it names."""
    copy = dict(message)
    for part in ("params", "result"):
        content = message.get(part)
        if isinstance(content, dict) and isinstance(content.get(_SESSION), str):
            copy[part] = {**content, _SESSION: session_id}
    return copy


def reframed(line: bytes, message: dict[str, Any]) -> Frame:
    """What was written, as a frame."""
    return Frame(line, message)


def _spliced(frame: Frame, key: str, old: object, new: object) -> bytes | None:
    """The line with one member's value replaced; None when that member is not the only one."""
    if old is None or isinstance(old, float | dict | list):
        return None
    value = json.dumps(old).encode()
    found = [start for start in _values(frame.raw, key) if _stands_at(frame.raw, start, value)]
    if len(found) != 1:
        return None
    raw, start = frame.raw, found[0]
    return line_of(Frame(raw[:start] + json.dumps(new).encode() + raw[start + len(value) :], None))


def _values(raw: bytes, key: str) -> Iterator[int]:
    """Where the values of all members of this name begin.

    A quote inside a string is escaped, so what is found is a member and never text.
    """
    name = json.dumps(key).encode()
    place = raw.find(name)
    while place >= 0:
        end = place + len(name)
        colon = _skipped(raw, end)
        if raw[colon : colon + 1] == b":" and raw[place - 1 : place] != b"\\":
            yield _skipped(raw, colon + 1)
        place = raw.find(name, end)


def _skipped(raw: bytes, place: int) -> int:
    """Behind the blanks."""
    while raw[place : place + 1] in _BLANKS:
        place += 1
    return place


def _stands_at(raw: bytes, start: int, value: bytes) -> bool:
    """Whether this value stands there, and not another that begins like it."""
    end = start + len(value)
    return raw.startswith(value, start) and (value[-1:] == b'"' or raw[end : end + 1] in _ENDS)
