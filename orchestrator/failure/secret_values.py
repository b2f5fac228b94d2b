"""JSON without secrets, as a value and as one line of a log."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, Final

from attrs import define

from orchestrator.failure import secret_names as names
from orchestrator.failure import secret_search as search
from orchestrator.failure.cuts import SURPLUS, head
from orchestrator.failure.secret_search import CREDENTIAL_TAG, without_secrets

MAX_LINE: Final = 2000
"""Characters of `lined` before the dropped length is named."""
_READ = 4 * MAX_LINE
"""Characters of a value that are read for its line; redaction makes most texts shorter."""
_MAX_DEPTH = 64
"""Levels of a value that are walked; nothing a provider sends is deeper."""

_MAX_BITS = 10_000
"""Longest number written out; Python refuses to print much longer ones."""

_NUMBER = 8
"""Characters that count for what is neither a text nor a whole number."""
_FEW = 32
_LARGE = 10**18
"""What is no smaller has a longer way to a line."""


@define
class _Room:
    """How much of a value is read: what is beyond can't come into a line any more."""

    left: int
    """Characters."""
    dropped: int = 0
    """Characters that found no more room."""

    def text(self, text: str) -> str:
        """A text that was scrubbed, its start where there is no more room."""
        longest, self.left = max(self.left, 0), self.left - len(text)
        if len(text) <= longest:
            return without_secrets(text)
        mark = f"... ({len(text) - longest} more characters)"
        self.dropped += len(text) - longest - len(mark)
        return f"{head(text, longest)}{mark}"

    def key(self, name: str) -> str:
        """The name of a field, which costs room as well."""
        if len(name) > _SHORT_KEY:
            return self.text(name)
        self.left -= len(name) + 1
        return _clean_key(name)


_SHORT_KEY: Final = 24
"""Characters of a field name as programs write them: few, and always the same."""


@lru_cache(maxsize=512)
def _clean_key(name: str) -> str:
    return without_secrets(name)


def cleaned(value: object) -> Any:
    """What `redact.scrub_value` promises."""
    return _clean(value, "", [], _Room(sys.maxsize))


def _clean(value: object, name: str, above: list[int], room: _Room) -> Any:
    """Clean one value; `name` is the secret name it answers to, `above` the values around it."""
    if isinstance(value, bytes | bytearray):
        value = bytes(value[: room.left + 4 * SURPLUS]).decode("utf-8", "replace")
    if isinstance(value, str):
        return CREDENTIAL_TAG if name and names.hides(name, value) else room.text(value)
    if value is None or isinstance(value, bool | int | float):
        room.left -= _NUMBER if not isinstance(value, int) else value.bit_length() // 4 + 1
        return _clean_number(value, name)
    if len(above) >= _MAX_DEPTH or id(value) in above:
        return "[left out]"
    above.append(id(value))
    clean: Any = f"<{type(value).__name__}>"
    if isinstance(value, Mapping):
        clean = _clean_mapping(value, name, above, room)
    elif isinstance(value, list | tuple | set | frozenset):
        clean = _clean_items(value, name, above, room)
    above.pop()
    return clean


def _clean_number(value: object, name: str) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return "[left out]"
    return CREDENTIAL_TAG if names.hides_number(name) else value


def _clean_mapping(
    value: Mapping[Any, Any], name: str, above: list[int], room: _Room
) -> dict[str, Any]:
    neighbour = names.neighbour(value)
    result: dict[str, Any] = {}
    for count, (key, item) in enumerate(value.items()):
        if room.left <= 0:
            result[f"... ({len(value) - count} more fields)"] = None
            break
        text = key if isinstance(key, str) else f"<{type(key).__name__}>"
        inner = neighbour if neighbour and names.is_value_key(text) else text
        if name and not names.is_secret(inner):
            inner = name
        clean = room.key(text)
        while clean in result:
            clean += "~"
        result[clean] = _clean(item, inner if names.is_secret(inner) else "", above, room)
    return result


def _clean_items(items: Collection[Any], name: str, above: list[int], room: _Room) -> list[Any]:
    result: list[Any] = []
    before = ""
    for count, item in enumerate(items):
        if room.left <= 0:
            result.append(f"... ({len(items) - count} more)")
            break
        if isinstance(item, str) and names.user_and_password(before, item):
            result.append(CREDENTIAL_TAG)
        else:
            inner = before if names.names_next(before) else name
            result.append(_clean(item, inner, above, room))
        before = item if isinstance(item, str) else ""
    return result


_COMPACT: Final = json.JSONEncoder(separators=(",", ":"))


def lined(value: object) -> str:
    """What `redact.one_line` promises."""
    line = _COMPACT.encode(value) if _is_flat(value) else ""
    dropped = 0
    if not line or not search.is_clean(search.seen(line.encode())):
        room = _Room(_READ)
        whole = _COMPACT.encode(_clean(value, "", [], room))
        line = head(whole, _READ)
        dropped = room.dropped + max(0, len(whole) - _READ)
    if len(line) <= MAX_LINE:
        return line
    return f"{line[:MAX_LINE]}... ({len(line) - MAX_LINE + dropped} more characters)"


def _is_flat(value: object) -> bool:
    """A text, or texts and numbers under ordinary names: its line shows all that `_clean` sees.

    Where an escape or a character beyond ASCII makes a text look different in the line, the escape
    itself is seen there.
    """
    if type(value) is str:
        return len(value) <= MAX_LINE
    return (
        type(value) is dict
        and len(value) <= _FEW
        and all(type(name) is str and _is_plain(name, item) for name, item in value.items())
        and not names.neighbour(value)
    )


def _is_plain(name: str, item: object) -> bool:
    if type(item) is str:
        return len(item) <= MAX_LINE and not names.is_secret(name)
    return item is None or (
        type(item) is int and abs(item) < _LARGE and not names.hides_number(name)
    )
