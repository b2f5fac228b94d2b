"""Secrets leave every text before anything is shown, logged, stored or counted.

`scrub` takes a text as a person or a provider wrote it; `scrub_value` and `one_line` take JSON.
Two tags stand where something was removed: `[REDACTED: suspicious URL to <host>]` for a URL that
carries a credential or looks like a smuggled payload, and `[REDACTED: credential]` for the rest.

How it works, and why it holds:

- The work is done on UTF-8 bytes with RE2, so no pattern can backtrack.  Tags already present
  become single bytes that UTF-8 never uses: a tag is a fixed point, and scrubbing is idempotent.
- A secret is looked for in the text as written and in *views* of it, in which backslash escapes,
  percent escapes and character references are undone, however often they were applied.  A view
  remembers where its bytes came from, so the secret goes and its surroundings stay.
- Three kinds of evidence count: a URL (`secret_urls`), a shape (`secret_shapes`), and a name
  beside a value (`secret_names`).  Runs of base64 are decoded and looked at in the same way.
- Rounds repeat until nothing changes.  A text that still changes after the last round is dropped
  whole: better no text than a secret.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final

from attrs import define

from orchestrator.failure import secret_names as names
from orchestrator.failure import secret_shapes as shapes
from orchestrator.failure import secret_urls as urls
from orchestrator.failure.base64_runs import CORE, is_aws_secret, is_text, runs, unbase64
from orchestrator.failure.linear import Signs, compile_signs
from orchestrator.failure.randomness import MIXED_CASE
from orchestrator.failure.secret_views import ESCAPED, views

CREDENTIAL_TAG: Final = "[REDACTED: credential]"
MAX_LINE: Final = 2000
"""Characters of `one_line` before the dropped length is named."""

_READ = 4 * MAX_LINE
"""Characters of a value that are read for its line; redaction makes most texts shorter."""
_SURPLUS = 2000
"""Characters read beyond a cut, to see what the cut would tear apart."""

_MAX_ROUNDS = 6
_MAX_LAYERS = 2
"""Layers of base64 that are undone."""
_MAX_DEPTH = 64
"""Levels of a value that are walked; nothing a provider sends is deeper."""

_MAX_BITS = 10_000
"""Longest number written out; Python refuses to print much longer ones."""

_NUMBER = 8
"""Characters that count for what is neither a text nor a whole number."""
_FEW = 32
_LARGE = 10**18
"""What is no smaller has a longer way to a line."""

_MARK = b"\xff"
"""A credential tag while the bytes are worked on."""
_URL_MARK, _URL_MARK_END = b"\xfe", b"\xfd"
"""Around the number of a URL tag, written with eight more bytes that UTF-8 never uses."""
_DIGITS = bytes.maketrans(b"01234567", bytes(range(0xF5, 0xFD)))
_UNDIGITS = bytes.maketrans(bytes(range(0xF5, 0xFD)), b"01234567")

_TAG = re.compile(
    r"\[REDACTED: (?:credential|suspicious URL to (unknown host|[a-z0-9._:-]{1,253}))\]"
)
_MARKS = re.compile(rb"\xff|\xfe([\xf5-\xfc]+)\xfd")
_ONLY_MARKS = re.compile(rb"(?:\xff|\xfe[\xf5-\xfc]+\xfd|[\s\"'\\;,=])*")

Span = tuple[int, int, str | None]
"""Start, end, and the host where a URL goes."""


# -- one text --------------------------------------------------------------------------------------

_URL_WITH_MORE = r"://[^\s]*[@?#;]|@tcp\("
_SPEAKS, _RUN, _MIXED, _ESCAPED, _TAGGED = range(5)


_CLEAN_ALONE = (_RUN, _MIXED)


@cache
def _signs() -> Signs:
    """One pass that proves most texts clean, for whatever hides a secret shows one of these.

    A URL, shape or name that speaks for one; a run of base64, which counts only in mixed case; an
    escape, below which the text is another one; a tag, whose bytes are another's while we work.
    """
    speaks = "|".join(f"(?:{part})" for part in (shapes.joined(), names.joined(), _URL_WITH_MORE))
    return compile_signs(speaks, CORE, MIXED_CASE, ESCAPED, r"\[REDACTED: ", text=False)


def _seen(data: bytes) -> Sequence[int]:
    return _signs()(data) or ()


def _is_clean(signs: Sequence[int]) -> bool:
    return not signs or (len(signs) == 1 and signs[0] in _CLEAN_ALONE)


def _find(data: bytes, depth: int = 0) -> Iterator[Span]:
    """Everything in one view of a text that has to go."""
    signs = _seen(data)
    if _SPEAKS in signs:
        yield from urls.spans(data)
        for spans in (shapes.spans, names.spans, urls.passwords):
            for start, end in spans(data):
                yield start, end, None
    if _RUN in signs and _MIXED in signs:
        for start, end, run in runs(data):
            if is_aws_secret(run) or _holds_secret(run, depth):
                yield start, end, None


def _holds_secret(run: bytes, depth: int) -> bool:
    """True for base64 of a secret; names count only where the bytes read as text."""
    # A run may start in front of what was encoded, so all four alignments are tried.
    inside = [unbase64(run[skip:]) for skip in range(4)]
    signs = _seen(b"\n".join(inside))
    if _SPEAKS not in signs and not (_RUN in signs and _MIXED in signs):
        return False
    readable = [decoded for decoded in inside if is_text(decoded)]
    rest = b"\n".join(decoded for decoded in inside if decoded not in readable)
    if any(map(is_aws_secret, inside)) or shapes.any_in(rest):
        return True
    return depth < _MAX_LAYERS and any(
        next(_find(decoded, depth + 1), None) is not None for decoded in readable
    )


def _found(data: bytes) -> list[Span]:
    """What must go, in order, without overlaps; the longest of several names the tag."""
    spans = [
        (view.origin(start), view.origin(end), host)
        for view in views(data)
        for start, end, host in _find(view.data)
    ]
    spans.sort(key=lambda span: (span[0], -span[1]))
    merged: list[Span] = []
    widths: list[int] = []
    for start, end, host in spans:
        if start >= end or _ONLY_MARKS.fullmatch(data, start, end):
            continue
        if merged and start < merged[-1][1]:
            first, stop, kept = merged[-1]
            if end - start > widths[-1] or (end - start == widths[-1] and kept is None):
                kept, widths[-1] = host, end - start
            merged[-1] = (first, max(stop, end), kept)
        else:
            merged.append((start, end, host))
            widths.append(end - start)
    return merged


def _round(data: bytes, hosts: list[str]) -> bytes:
    spans = _found(data)
    if not spans:
        return data
    pieces: list[bytes] = []
    last = 0
    for start, end, host in spans:
        pieces += (data[last:start], _MARK if host is None else _url_mark(host, hosts))
        last = end
    pieces.append(data[last:])
    return b"".join(pieces)


def _url_mark(host: str, hosts: list[str]) -> bytes:
    hosts.append(host)
    return _URL_MARK + f"{len(hosts) - 1:o}".encode().translate(_DIGITS) + _URL_MARK_END


def _protect(text: str, hosts: list[str]) -> bytes:
    """The text as bytes, its tags as marks."""
    pieces: list[bytes] = []
    last = 0
    for match in _TAG.finditer(text):
        host = match.group(1)
        if host is not None and any(True for _ in _find(host.encode())):
            continue
        mark = _MARK if host is None else _url_mark(host, hosts)
        pieces += (text[last : match.start()].encode("utf-8", "surrogatepass"), mark)
        last = match.end()
    pieces.append(text[last:].encode("utf-8", "surrogatepass"))
    return b"".join(pieces)


def scrub(text: str) -> str:
    """Remove every secret from a text: URLs first, then credentials.

    Total, idempotent, and linear in the length of the text.
    """
    encoded = text.encode("utf-8", "surrogatepass")
    signs = _seen(encoded)
    if _is_clean(signs):
        return text
    hosts: list[str] = []
    before = _protect(text, hosts) if _TAGGED in signs else encoded
    data = before
    for _ in range(_MAX_ROUNDS):
        after = _round(data, hosts)
        if after == data:
            break
        data = after
    else:
        data = _MARK
    if data is before:
        return text

    def tag(match: re.Match[bytes]) -> bytes:
        number = match.group(1)
        if number is None:
            return CREDENTIAL_TAG.encode()
        return (
            f"[REDACTED: suspicious URL to {hosts[int(number.translate(_UNDIGITS), 8)]}]".encode()
        )

    return _MARKS.sub(tag, data).decode("utf-8", "surrogatepass")


def head(text: str, longest: int) -> str:
    """The start of a text, scrubbed.

    Half of a secret is no longer recognised as one.  So more is read than is kept, and as much as
    was read too far goes again, with the first half of whatever the cut tore apart.
    """
    if len(text) <= longest:
        return scrub(text)
    start = scrub(text[: longest + _SURPLUS]) if longest else ""
    return (start if len(text) <= longest + _SURPLUS else start[:-_SURPLUS])[:longest]


def tail(text: str, longest: int) -> str:
    """The end of a text, scrubbed; what `head` says holds the other way round."""
    if len(text) <= longest:
        return scrub(text)
    cut = max(0, len(text) - longest - _SURPLUS)
    end = scrub(_armour_before(text, cut) + text[cut:])
    return (end[_SURPLUS:] if cut else end)[-longest:]


def _armour_before(text: str, cut: int) -> str:
    """The first line of a key in armour that the cut goes through; such a key can be long."""
    begun = text.rfind("-----BEGIN ", 0, cut)
    armour = _ARMOUR.match(text, begun) if begun > text.rfind("-----END ", 0, cut) else None
    return f"{armour[0]}\n" if armour else ""


_ARMOUR = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")


# -- values ---------------------------------------------------------------------------------------


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
            return scrub(text)
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
    return scrub(name)


def scrub_value(value: object) -> Any:
    """A JSON-like value of the same structure with every secret removed.

    A name beside a value counts: `{"api_key": "..."}`, `{"name": "api_key", "value": "..."}`,
    `["authorization", "..."]`.  What JSON has no word for becomes text; what is deeper than 64
    levels, or holds itself, is left out.
    """
    return _clean(value, "", [], _Room(sys.maxsize))


def _clean(value: object, name: str, above: list[int], room: _Room) -> Any:
    """Clean one value; `name` is the secret name it answers to, `above` the values around it."""
    if isinstance(value, bytes | bytearray):
        value = bytes(value[: room.left + 4 * _SURPLUS]).decode("utf-8", "replace")
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


def one_line(value: object) -> str:
    """A value as one line of compact ASCII JSON without secrets, cut to 2,000 characters.

    Each text is scrubbed in its own spelling before it is escaped, and the whole once more, since
    a name and its value may stand in different texts.  Only then is it cut.
    """
    line = _COMPACT.encode(value) if _is_flat(value) else ""
    dropped = 0
    if not line or not _is_clean(_seen(line.encode())):
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


_CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def terminal_line(text: str) -> str:
    """A foreign text that can't move the cursor, recolour, reorder or forge a line."""
    return _CONTROL.sub(lambda match: _escaped(match.group()), text)


def _escaped(char: str) -> str:
    short = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(char)
    return short or char.encode("unicode_escape", "backslashreplace").decode("ascii")
