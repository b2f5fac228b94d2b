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
- Three kinds of evidence count: a URL (`_suspicious_urls`), a shape (`secret_shapes`), and a name
  beside a value (`secret_names`).  Runs of base64 are decoded and looked at in the same way.
- Rounds repeat until nothing changes.  A text that still changes after the last round is dropped
  whole: better no text than a secret.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from attrs import frozen

from orchestrator.failure import secret_names as names
from orchestrator.failure.linear import compile_linear
from orchestrator.failure.secret_shapes import SHAPES

CREDENTIAL_TAG: Final = "[REDACTED: credential]"
MAX_LINE: Final = 2000
"""Characters of `one_line` before the dropped length is named."""

_SHORT = 160
_UNKNOWN_HOST = "unknown host"
_MAX_ROUNDS = 6
_MAX_VIEWS = 3
_MAX_DEPTH = 64
"""Levels of a value that are walked; nothing a provider sends is deeper."""

_MAX_BITS = 10_000
"""Longest number written out; Python refuses to print much longer ones."""

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


@cache
def _shapes() -> Any:
    return compile_linear("|".join(f"(?P<{s.name}>{s.pattern})" for s in SHAPES))


@cache
def _shape_rows() -> Mapping[int, tuple[int, Callable[[bytes], int | None] | None]]:
    """Least length and check by the number of the row's group."""
    groups = _shapes().groupindex
    return {groups[s.name.encode()]: (s.least, _CHECKS.get(s.check)) for s in SHAPES}


# -- second looks ---------------------------------------------------------------------------------

_DIGIT = re.compile(rb"[0-9]")
_LETTER = re.compile(rb"[A-Za-z]")
_BEARER = re.compile(rb"(?i)bearer(?:[ \t:=]+|%20)[\"']?")
_BASIC = re.compile(rb"(?i)basic(?:[ \t]+|%20)")
_CURL = re.compile(rb"[\s\"',\[(]*-[a-z-]+[\s=\"',]+")


def _prefix(pattern: re.Pattern[bytes], secret: bytes) -> int:
    match = pattern.match(secret)
    return match.end() if match else 0


def _looks_random(secret: bytes) -> int | None:
    """Letters and digits mixed, or a masked middle; a word with hyphens is neither."""
    if b"*" in secret or (_DIGIT.search(secret, 4) and _LETTER.search(secret, 4)):
        return 0
    return None


def _bearer(secret: bytes) -> int | None:
    start = _prefix(_BEARER, secret)
    token = secret[start:]
    if _DIGIT.search(token) or len(token) >= 24 or names.mixed_case(token):  # noqa: PLR2004
        return start
    return None


def _basic(secret: bytes) -> int | None:
    start = _prefix(_BASIC, secret)
    decoded = _unbase64(secret[start:])
    if b":" in decoded and all(32 <= byte < 127 or byte > 127 for byte in decoded):  # noqa: PLR2004
        return start
    return None


def _after_flag(secret: bytes) -> int | None:
    return _prefix(_CURL, secret)


def _discord(secret: bytes) -> int | None:
    first, middle, last = secret.split(b".")
    fits = 20 <= len(first) <= 30 and 5 <= len(middle) <= 8 and len(last) >= 26  # noqa: PLR2004
    return 0 if fits else None


def _mixed(secret: bytes) -> int | None:
    return 0 if _DIGIT.search(secret) and names.mixed_case(secret) else None


_CHECKS: Final[Mapping[str, Callable[[bytes], int | None]]] = {
    "discord": _discord,
    "mixed": _mixed,
    "last": lambda secret: len(secret) - len(secret.split()[-1]),
    "sshpass": lambda secret: len(secret) - len(secret.split(b"-p", 1)[1].lstrip()),
    "random": _looks_random,
    "bearer": _bearer,
    "basic": _basic,
    "flag": _after_flag,
}
"""Each answers how many leading bytes stay readable, or None for ordinary text."""


def _shape_spans(data: bytes) -> Iterator[Span]:
    rows = _shape_rows()
    start, size, search = 0, len(data), _shapes().search
    while start < size and (match := search(data, start)):
        first, end = match.span()
        least, check = rows[match.lastindex]
        kept = 0 if end - first >= least else None
        if kept is not None and check:
            kept = check(match.group())
        if kept is not None:
            yield first + kept, end, None
            start = end
        elif end - first > _SHORT:
            start = end
        else:
            # What failed may hide another shape; it is short, so the second look is cheap.
            start = first + 1


# -- base64 ---------------------------------------------------------------------------------------

_BASE64 = r"[A-Za-z0-9+/_-]{16,}={0,2}"
_STANDARD = bytes.maketrans(b"-_", b"+/")


@cache
def _base64() -> Any:
    return compile_linear(_BASE64)


def _unbase64(run: bytes) -> bytes:
    run = run.translate(_STANDARD).rstrip(b"=")
    run = run[: len(run) - (len(run) % 4 == 1)]
    try:
        return base64.b64decode(run + b"=" * (-len(run) % 4))
    except binascii.Error:
        return b""


def _base64_spans(data: bytes, depth: int = 0) -> Iterator[Span]:
    """Runs of base64 that hold a secret, at whichever of the four alignments it was encoded."""
    for match in _base64().finditer(data):
        run = match.group()
        if _is_aws_secret(run) or any(
            _holds_secret(_unbase64(run[skip:]), depth) for skip in range(4)
        ):
            yield match.start(), match.end(), None


_AWS_SECRET = re.compile(rb"[A-Za-z0-9+/]{40}")
_WORD = re.compile(rb"[a-z]{6}")
_VOWEL = re.compile(rb"[aeiouAEIOU]")
_AWS_ENTROPY = 4.2
_AWS_VOWELS = 14


def _is_aws_secret(run: bytes) -> bool:
    """A secret access key, which has no mark of its own: 40 characters of noise."""
    return bool(
        _AWS_SECRET.fullmatch(run)
        and _DIGIT.search(run)
        and names.mixed_case(run)
        and not _WORD.search(run)
        and len(_VOWEL.findall(run)) < _AWS_VOWELS
        and names.entropy(run) >= _AWS_ENTROPY
        and not _unbase64(run).isascii()
    )


def _is_text(decoded: bytes) -> bool:
    try:
        return decoded.decode("utf-8").replace("\n", " ").isprintable()
    except UnicodeDecodeError:
        return False


def _holds_secret(decoded: bytes, depth: int) -> bool:
    """True for decoded bytes with a secret; names count only where the bytes read as text."""
    if _is_aws_secret(decoded) or any(True for _ in _shape_spans(decoded)):
        return True
    if not _is_text(decoded):
        return False
    if any(True for _ in _suspicious_urls(decoded)) or any(True for _ in names.spans(decoded)):
        return True
    return depth < 1 and any(True for _ in _base64_spans(decoded, depth + 1))


# -- URLs -----------------------------------------------------------------------------------------

_URL = re.compile(rb"\b[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s\"'<>`\\^]+")
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\]")
_PORT = re.compile(rb":\d{0,5}$")
_PARAMETER = re.compile(rb"[?&#;]([^=&#;?]{1,80})=([^&#;]*)")
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_AUTHORITY_END = re.compile(rb"[/?#]")
_QUERY_START = re.compile(rb"[?#;]")
_LONG_VALUE = 200
_LONG_QUERY = 512
_MANY_ESCAPES = 24
_SMUGGLED = re.compile(rb"[A-Za-z0-9+/_=-]{40,}")


def _suspicious_urls(data: bytes) -> Iterator[Span]:
    if b"://" not in data:
        return
    for match in _URL.finditer(data):
        url = match.group().rstrip(b".,;:!?)]}")
        if _is_suspicious(url):
            yield match.start(), match.start() + len(url), _host(url)


def _is_suspicious(url: bytes) -> bool:
    rest = url.partition(b"://")[2]
    if _userinfo(url) or any(True for _ in _shape_spans(rest)):
        return True
    query = rest[len(_QUERY_START.split(rest, maxsplit=1)[0]) :]
    return bool(query) and (
        len(query) > _LONG_QUERY
        or len(_ESCAPE.findall(query)) > _MANY_ESCAPES
        or any(_smuggles(*pair.groups()) for pair in _PARAMETER.finditer(query))
    )


def _smuggles(name: bytes, value: bytes) -> bool:
    if len(value) > _LONG_VALUE or names.in_url(name, value):
        return True
    return bool(_SMUGGLED.fullmatch(value) and _DIGIT.search(value) and names.mixed_case(value))


def _userinfo(url: bytes) -> bytes:
    """A password, or a token in the place of a user name; nothing for a plain user name."""
    scheme, _, rest = url.partition(b"://")
    end = len(_AUTHORITY_END.split(rest, maxsplit=1)[0])
    authority = rest[:end]
    if b"@" not in authority:
        # A password may hold / ? or #; what stands before it is then no port.
        if b"@" not in rest or b":" not in authority or _PORT.search(authority):
            return b""
        authority = rest
    info = authority.rpartition(b"@")[0]
    user, colon, password = info.partition(b":")
    if colon:
        return b"" if _MARKS.fullmatch(password) or not password else password
    plain = scheme.lower() in {b"ssh", b"sftp"} or not names.random_enough(user, 16)
    return b"" if plain else user


def _host(url: bytes) -> str:
    rest = url.partition(b"://")[2]
    info = _userinfo(url)
    end = len(_AUTHORITY_END.split(rest, maxsplit=1)[0])
    authority = rest if info and b"@" not in rest[:end] else rest[:end]
    authority = re.split(rb"[/?#,;\\]", authority.rpartition(b"@")[2])[0]
    host = _PORT.sub(b"", authority).decode("ascii", "replace").lower()
    if len(host) > 253 or not _HOST.fullmatch(host) or any(_shape_spans(host.encode())):  # noqa: PLR2004
        return _UNKNOWN_HOST
    return host.strip("[]")


# -- views ----------------------------------------------------------------------------------------

_ENCODED = re.compile(
    rb"\\+(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|([nrt\"'/=:&-]))"
    rb"|%(?:25)*([0-9A-Fa-f]{2})"
    rb"|&(?:amp;)*(?:#x([0-9A-Fa-f]{1,4});|#([0-9]{1,5});|(quot|apos|amp|lt|gt);)"
)
_PLAIN: Final[Mapping[bytes, bytes]] = {
    b"n": b"\n", b"r": b"\r", b"t": b"\t",
    b"quot": b'"', b"apos": b"'", b"amp": b"&", b"lt": b"<", b"gt": b">",
}  # fmt: skip


def _decoded(match: re.Match[bytes]) -> bytes:
    four, two, char, percent, hexadecimal, decimal, entity = match.groups()
    if char or entity:
        return _PLAIN.get(char or entity, char)
    if two or percent:
        byte = int(two or percent, 16)
        # No text holds the bytes that marks are made of, so an escape must not make one.
        return bytes((byte,)) if byte < 0xF5 else b"?"  # noqa: PLR2004
    code = int(decimal) if decimal else int(four or hexadecimal, 16)
    return chr(code).encode("utf-8", "surrogatepass")


@frozen
class _View:
    """The text with its escapes undone, and where each stretch of it came from."""

    data: bytes
    here: list[int]
    """Offsets in `data` from which a stretch runs in step with the text below."""
    there: list[int]
    below: _View | None

    def origin(self, offset: int) -> int:
        """The place in the text as written."""
        if self.below is None:
            return offset
        index = bisect_right(self.here, offset) - 1
        return self.below.origin(self.there[index] + offset - self.here[index])


def _views(data: bytes) -> Iterator[_View]:
    view = _View(data, [0], [0], None)
    yield view
    for _ in range(_MAX_VIEWS):
        pieces: list[bytes] = []
        here, there = [0], [0]
        size = last = 0
        for match in _ENCODED.finditer(view.data):
            plain = _decoded(match)
            pieces += (view.data[last : match.start()], plain)
            size += match.start() - last + len(plain)
            last = match.end()
            here.append(size)
            there.append(last)
        if not pieces:
            return
        pieces.append(view.data[last:])
        view = _View(b"".join(pieces), here, there, view)
        yield view


# -- rounds ---------------------------------------------------------------------------------------


def _find(data: bytes) -> Iterator[Span]:
    yield from _suspicious_urls(data)
    yield from _shape_spans(data)
    for start, end in names.spans(data):
        yield start, end, None
    yield from _base64_spans(data)


def _found(data: bytes) -> list[Span]:
    """What must go, in order, without overlaps; the longest of several names the tag."""
    spans = [
        (view.origin(start), view.origin(end), host)
        for view in _views(data)
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
    if CREDENTIAL_TAG[:12] not in text:
        return text.encode("utf-8", "surrogatepass")
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
    hosts: list[str] = []
    before = _protect(text, hosts)
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


# -- values ---------------------------------------------------------------------------------------


def scrub_value(value: object) -> Any:
    """A JSON-like value of the same structure with every secret removed.

    A name beside a value counts: `{"api_key": "..."}`, `{"name": "api_key", "value": "..."}`,
    `["authorization", "..."]`.  What JSON has no word for becomes text; what is deeper than 64
    levels, or holds itself, is left out.
    """
    return _clean(value, "", [])


def _clean(value: object, name: str, above: list[int]) -> Any:
    """Clean one value; `name` is the secret name it answers to, `above` the values around it."""
    if isinstance(value, bytes | bytearray):
        value = bytes(value).decode("utf-8", "replace")
    if isinstance(value, str):
        return CREDENTIAL_TAG if name and names.hides(name, value) else scrub(value)
    if value is None or isinstance(value, bool | int | float):
        return _clean_number(value, name)
    if len(above) >= _MAX_DEPTH or id(value) in above:
        return "[left out]"
    above.append(id(value))
    clean: Any = f"<{type(value).__name__}>"
    if isinstance(value, Mapping):
        clean = _clean_mapping(value, name, above)
    elif isinstance(value, list | tuple | set | frozenset):
        clean = _clean_items(list(value), name, above)
    above.pop()
    return clean


def _clean_number(value: object, name: str) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        return "[left out]"
    return CREDENTIAL_TAG if names.hides_number(name) else value


def _clean_mapping(value: Mapping[Any, Any], name: str, above: list[int]) -> dict[str, Any]:
    neighbour = names.neighbour(value)
    result: dict[str, Any] = {}
    for key, item in value.items():
        text = key if isinstance(key, str) else f"<{type(key).__name__}>"
        inner = neighbour if neighbour and names.is_value_key(text) else text
        if name and not names.is_secret(inner):
            inner = name
        clean = scrub(text)
        while clean in result:
            clean += "~"
        result[clean] = _clean(item, inner if names.is_secret(inner) else "", above)
    return result


def _clean_items(items: list[Any], name: str, above: list[int]) -> list[Any]:
    result = []
    for index, item in enumerate(items):
        before = items[index - 1] if index else None
        inner = before if isinstance(before, str) and names.names_next(before) else name
        result.append(_clean(item, inner, above))
    return result


def one_line(value: object) -> str:
    """A value as one line of compact ASCII JSON without secrets, cut to 2,000 characters.

    Each text is scrubbed in its own spelling before it is escaped, and the whole once more, since
    a name and its value may stand in different texts.  Only then is it cut.
    """
    line = scrub(json.dumps(scrub_value(value), ensure_ascii=True, separators=(",", ":")))
    if len(line) <= MAX_LINE:
        return line
    return f"{line[:MAX_LINE]}... ({len(line) - MAX_LINE} more characters)"


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
