"""Change one id in a frame and leave its other bytes as they are.

Where the id can be found without doubt only its own bytes are replaced; a frame that holds it more
than once is written anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from orchestrator.acp.framing import Frame, encode

_SESSION: Final = "sessionId"


def line_of(frame: Frame) -> bytes:
    """The frame as it came; the last line of a stream may lack its newline."""
    return frame.raw if frame.raw.endswith(b"\n") else frame.raw + b"\n"


def renumbered(frame: Frame, number: object) -> bytes:
    """The frame under another JSON-RPC id."""
    spliced = _spliced(frame, "id", frame.message.get("id"), number)
    return encode({**frame.message, "id": number}) if spliced is None else spliced


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
    """The line with one member's value replaced; None when that member is not the only one.

    A quote inside a string is escaped, so a match is a member and never text.
    """
    if old is None or isinstance(old, float | dict | list):
        return None
    name, value = json.dumps(key), json.dumps(old)
    pattern = re.compile(
        rb"(?<!\\)" + re.escape(name.encode()) + rb"\s*:\s*(" + re.escape(value.encode()) + rb")"
    )
    found = list(pattern.finditer(frame.raw))
    if len(found) != 1:
        return None
    start, end = found[0].span(1)
    if not isinstance(old, str) and frame.raw[end : end + 1] not in b",}\r\n\t ":
        return None  # another number that begins like this one
    return line_of(Frame(frame.raw[:start] + json.dumps(new).encode() + frame.raw[end:], None))
