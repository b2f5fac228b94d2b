"""Where secrets stand in a text, and the text without them.

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

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from orchestrator.failure import secret_names as names
from orchestrator.failure import secret_shapes as shapes
from orchestrator.failure import secret_urls as urls
from orchestrator.failure.base64_runs import CORE, is_aws_secret, is_text, runs, unbase64
from orchestrator.failure.linear import Signs, compile_signs
from orchestrator.failure.randomness import MIXED_CASE
from orchestrator.failure.secret_views import ESCAPED, views

CREDENTIAL_TAG: Final = "[REDACTED: credential]"

_MAX_ROUNDS = 6
_MAX_LAYERS = 2
"""Layers of base64 that are undone."""

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

_URL_WITH_MORE = r"://[^\s]*[@?#;]|@tcp\("
_SPEAKS, _RUN, _MIXED, _ESCAPED, _TAGGED, _HEX = range(6)
_HEX_TEXT = r"(?:[2-7][0-9A-Fa-f]){12}"
"""Digits of base 16 of twelve printable characters: no digest has as many."""
_HEX_RUN = re.compile(rb"[0-9A-Fa-f]{24,}")


_CLEAN_ALONE = (_RUN, _MIXED)


@cache
def _signs() -> Signs:
    """One pass that proves most texts clean, for whatever hides a secret shows one of these.

    A URL, shape or name that speaks for one; a run of base64, which counts only in mixed case; an
    escape, below which the text is another one; a tag, whose bytes are another's while we work;
    a text in base 16.
    """
    speaks = "|".join(f"(?:{part})" for part in (shapes.joined(), names.joined(), _URL_WITH_MORE))
    return compile_signs(speaks, CORE, MIXED_CASE, ESCAPED, r"\[REDACTED: ", _HEX_TEXT, text=False)


def seen(data: bytes) -> Sequence[int]:
    """Which signs of a secret a text shows."""
    return _signs()(data) or ()


def is_clean(signs: Sequence[int]) -> bool:
    """True where these signs hide nothing."""
    return not signs or (len(signs) == 1 and signs[0] in _CLEAN_ALONE)


def _find(data: bytes, depth: int = 0) -> Iterator[Span]:
    """Everything in one view of a text that has to go."""
    signs = seen(data)
    if _SPEAKS in signs:
        yield from urls.spans(data)
        for spans in (shapes.spans, names.spans, urls.passwords):
            for start, end in spans(data):
                yield start, end, None
    if _RUN in signs and _MIXED in signs:
        for start, end, run in runs(data):
            if is_aws_secret(run) or _holds_secret(run, depth):
                yield start, end, None
    if _HEX in signs and depth < _MAX_LAYERS:
        for found in _HEX_RUN.finditer(data):
            if _spells_secret(found.group(), depth):
                yield *found.span(), None


def _spells_secret(run: bytes, depth: int) -> bool:
    """True for base 16 of a secret; a digit too many may stand in front."""
    for skip in range(2):
        decoded = bytes.fromhex(run[skip : skip + (len(run) - skip) // 2 * 2].decode("ascii"))
        if is_text(decoded) and next(_find(decoded, depth + 1), None) is not None:
            return True
    return False


def _holds_secret(run: bytes, depth: int) -> bool:
    """True for base64 of a secret; names count only where the bytes read as text."""
    # A run may start in front of what was encoded, so all four alignments are tried.
    inside = [unbase64(run[skip:]) for skip in range(4)]
    signs = seen(b"\n".join(inside))
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


def without_secrets(text: str) -> str:
    """The text without them; what `redact.scrub` promises."""
    encoded = text.encode("utf-8", "surrogatepass")
    signs = seen(encoded)
    if is_clean(signs):
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
