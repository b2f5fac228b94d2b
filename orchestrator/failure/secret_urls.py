"""URLs that carry a credential, or look like a payload on its way out.

A URL goes as a whole and leaves its host.  It goes for a password or a token in front of the host,
for a parameter that names a credential, for a secret of a known shape anywhere in it, and for a
query that is very long, heavily escaped, or one run of base64.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from orchestrator.failure import secret_names as names
from orchestrator.failure import secret_shapes as shapes
from orchestrator.failure.randomness import DIGIT, mixed_case, random_enough
from orchestrator.failure.secret_words import is_placeholder

UNKNOWN_HOST = "unknown host"
_MAX_HOST = 253
_SCHEME_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-"
_MAX_SCHEME = 31
_REST = re.compile(rb"://[^\s\"'<>`\\^]*")
_TRAILING = b".,;:!?)]}"
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\]")
_HOST_END = re.compile(rb"[/?#,;\\]")
_PORT = re.compile(rb":\d{0,5}$")
_PARAMETER = re.compile(rb"[?&#;]([^=&#;?]{1,80})=([^&#;]*)")
_ESCAPE = re.compile(rb"%[0-9A-Fa-f]{2}")
_AUTHORITY_END = re.compile(rb"[/?#]")
_QUERY_START = re.compile(rb"[?#;]")
_LONG_VALUE = 200
_LONG_QUERY = 512
_MANY_ESCAPES = 24
_SMUGGLED = re.compile(rb"[A-Za-z0-9+/_=-]{40,}")
_WEB = frozenset({b"http", b"https", b"ws", b"wss"})
_PLAIN_USERS = frozenset({b"ssh", b"sftp", b"git+ssh"})
_LONG_USER = 16
_WORD_END = re.compile(rb"[\s/@\"'=]")
_LONGEST_DSN = 256


def spans(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Where such URLs stand, and the host of each."""
    at = data.find(b"://")
    while at >= 0:
        before = data[max(0, at - _MAX_SCHEME) : at]
        start = at - (len(before) - len(before.rstrip(_SCHEME_BYTES)))
        match = _REST.match(data, at)
        end = match.end() if match else at + 3
        url = data[start:end].rstrip(_TRAILING)
        if start < at and _is_suspicious(url):
            yield start, start + len(url), _host(url)
        at = data.find(b"://", end)


def passwords(data: bytes) -> Iterator[tuple[int, int]]:
    """Passwords of the one address form without a scheme: `user:password@tcp(host)`, Go's DSN."""
    at = data.find(b"@tcp(")
    while at >= 0:
        word = _WORD_END.split(data[max(0, at - _LONGEST_DSN) : at])[-1]
        user, _, password = word.partition(b":")
        if user and password:
            yield at - len(password), at
        at = data.find(b"@tcp(", at + 1)


def _is_suspicious(url: bytes) -> bool:
    rest = url.partition(b"://")[2]
    if _userinfo(url) or shapes.any_in(rest):
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
    return bool(_SMUGGLED.fullmatch(value) and DIGIT.search(value) and mixed_case(value))


def _authority(url: bytes) -> bytes:
    """What stands between the scheme and the path; a password may hold `@`, `/`, `?` or `#`."""
    scheme, _, rest = url.partition(b"://")
    authority = _AUTHORITY_END.split(rest, maxsplit=1)[0]
    if scheme.lower() not in _WEB:
        # Addresses of databases and queues: the last `@` in front of the options ends the password.
        head = rest.partition(b"?")[0]
        info, at, host = (head if b"@" in head else rest).rpartition(b"@")
        return info + at + _AUTHORITY_END.split(host, maxsplit=1)[0]
    # What stands behind the first colon is then no port.
    odd = b"@" not in authority and b"@" in rest and b":" in authority
    return rest if odd and not _PORT.search(authority) else authority


def _userinfo(url: bytes) -> bool:
    """A password, or a token in the place of a user name."""
    info, at, _ = _authority(url).rpartition(b"@")
    user, colon, password = info.partition(b":")
    if colon:
        return bool(password) and not is_placeholder(password)
    plain = url.partition(b"://")[0].lower() in _PLAIN_USERS
    return bool(at) and not plain and random_enough(user, _LONG_USER)


def _host(url: bytes) -> str:
    host = _HOST_END.split(_authority(url).rpartition(b"@")[2], maxsplit=1)[0]
    text = _PORT.sub(b"", host).decode("ascii", "replace").lower()
    if len(text) > _MAX_HOST or not _HOST.fullmatch(text) or shapes.any_in(host):
        return UNKNOWN_HOST
    return text.strip("[]")
