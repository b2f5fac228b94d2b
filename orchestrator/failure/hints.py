"""How long a provider asks to wait, and when a limit resets.

Read from headers, from fields of JSON, and from wording, in that order of trust.  A hint never
makes a terminal kind retryable; it only says when.

| source | unit or form |
|---|---|
| `retry-after-ms`, `x-ms-retry-after-ms`, `x-amz-retry-after`, `grpc-retry-pushback-ms` | ms [1] |
| `retry-after` | seconds, decimals too; an HTTP date, measured from `date` [2] |
| `ratelimit` with `ratelimit-policy` | seconds: `t`, else the window `w` [3] |
| `ratelimit-reset` | seconds [3] |
| `x-ratelimit-reset*` | Go duration, seconds, POSIX seconds or milliseconds [4] |
| `anthropic-ratelimit-*-reset` | RFC 3339; the `unified` ones POSIX seconds [5] |
| `x-codex-*-reset-after-seconds`, `x-codex-*-reset-at` | seconds; POSIX seconds [6] |
| `retryDelay`, `quotaResetDelay` | protobuf duration; Go duration [7] |
| `resets_at`, `resets_in_seconds`, `retry_after*` | POSIX or RFC 3339; seconds [6] |

[1] Client libraries of OpenAI, Azure and AWS; gRFC A6.  [2] RFC 9110, section 10.2.3.
[3] draft-ietf-httpapi-ratelimit-headers; `ratelimit-reset` in drafts 0 to 7.  [4] OpenAI and Groq
print Go durations, GitHub POSIX seconds, OpenRouter POSIX milliseconds.  [5] Anthropic, "Rate
limits".  [6] Bodies and headers of codex' `usage_limit_reached`.  [7] google.rpc.RetryInfo and the
metadata of google.rpc.ErrorInfo.

A header that says when a bucket is full again counts only where the bucket is empty, or where
nothing is said about what remains.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import tzinfo
from functools import partial
from itertools import islice
from typing import Any, Final

from orchestrator.failure import hint_wording as wording
from orchestrator.failure.hint_values import (
    NOTHING,
    Hint,
    Moment,
    duration,
    http_date,
    instant,
    number,
    reset_at,
    reset_in,
    retry,
    seconds,
)

__all__ = ["Hint", "read_hint"]

_MAX_NODES = 2_000
"""Fields of a value that are read."""
_MAX_DEPTH = 24
_MAX_JSON = 200_000
"""Characters of a text that are tried as JSON."""
_MAX_LAYERS = 4
"""Levels of JSON inside text inside JSON."""
_MAX_TEXTS = 64


def read_hint(
    *,
    headers: Mapping[str, str],
    data: object,
    texts: Iterable[str],
    now: float | None,
    zone: tzinfo | None = None,
) -> Hint:
    """Read the hint of one failure.

    `now` is POSIX seconds; without it, what needs a clock is not read.  `zone` is the zone of
    clock times that name none, by default this machine's, where a local agent runs as well.
    """
    found = _Found()
    lowered = _lowered(headers)
    # A clock that is no number is no clock.
    moment = Moment(number(now), http_date(lowered.get("date", "")), zone)
    buckets = found.headers(lowered, moment)
    inner_texts: list[str] = []
    for hint in _walk(data, moment, inner_texts, found):
        found.add(hint)
    found.add_reset(buckets)
    for text in dict.fromkeys((*texts, *inner_texts)):
        if found.complete:
            break
        if isinstance(text, str):
            for hint in wording.read(text, moment, _read_field):
                found.add(hint)
    for hint in (*found.nested_buckets, buckets):
        found.add(hint)
    return found.hint


class _Found:
    """The first answer to each of the two questions."""

    def __init__(self) -> None:
        self.hint = NOTHING
        self.nested_buckets: list[Hint] = []
        """Of headers inside a body: what a field says about the limit is nearer to the answer."""

    @property
    def complete(self) -> bool:
        return self.hint.retry_after_s is not None and self.hint.resets_at is not None

    def add(self, hint: Hint) -> None:
        if self.hint.retry_after_s is None and hint.retry_after_s is not None:
            self.hint = Hint(hint.retry_after_s, self.hint.resets_at, self.hint.resets_in_s)
        self.add_reset(hint)

    def add_reset(self, hint: Hint) -> None:
        unsaid = self.hint.resets_at is None and self.hint.resets_in_s is None
        if unsaid:
            self.hint = Hint(self.hint.retry_after_s, hint.resets_at, hint.resets_in_s)

    def headers(self, headers: Mapping[str, str], moment: Moment) -> Hint:
        """Add what the headers ask for; hand back what they say about buckets, for later."""
        for name, read in _ASKED:
            if name in headers:
                self.add(read(headers[name], moment))
        return _buckets(headers, moment)


# -- headers --------------------------------------------------------------------------------------


def _lowered(headers: Mapping[Any, Any]) -> dict[str, str]:
    return {
        str(name).lower(): str(value).strip()
        for name, value in headers.items()
        if isinstance(value, str | int | float)
    }


def _milliseconds(value: str, _moment: Moment) -> Hint:
    plain = number(value)
    return retry(None if plain is None else plain / 1000)


def _retry_after(value: str, moment: Moment) -> Hint:
    plain = seconds(value)
    if plain is None:
        at = instant(value)
        plain = None if at is None else moment.until(at)
    return retry(plain)


_ASKED: Final[tuple[tuple[str, Callable[[str, Moment], Hint]], ...]] = (
    ("retry-after-ms", _milliseconds),
    ("x-ms-retry-after-ms", _milliseconds),
    ("grpc-retry-pushback-ms", _milliseconds),
    ("x-amz-retry-after", _milliseconds),
    ("retry-after", _retry_after),
    ("x-retry-after", _retry_after),
)
"""Headers that ask for a wait, most exact first."""

_RESET_NAME = re.compile(r"(?:x-|anthropic-)?rate-?limit.*reset.*|x-codex-.*reset.*")
_BUCKET_RESET = re.compile(r"reset(?:-after-seconds|-after|-at|-time)?")


def _buckets(headers: Mapping[str, str], moment: Moment) -> Hint:
    """When the emptiest bucket is full again; unknown fullness counts only if none is empty."""
    ends: dict[bool, list[Hint]] = {True: [], False: []}
    for name, value in headers.items():
        if _RESET_NAME.fullmatch(name):
            empty = _is_empty(name, headers)
            if empty is not False:
                ends[bool(empty)].append(_bucket_end(value, moment))
    for empty, delay in _rate_limit(headers):
        ends[empty].append(reset_in(delay, moment))
    known = [hint for hint in ends[True] or ends[False] if hint is not NOTHING]
    return max(known, key=lambda hint: hint.resets_in_s or hint.resets_at or 0, default=NOTHING)


def _is_empty(name: str, headers: Mapping[str, str]) -> bool | None:
    """True for an empty bucket, False for one with something left, None when unsaid."""
    if (left := number(headers.get(_BUCKET_RESET.sub("remaining", name)))) is not None:
        return left == 0
    if (used := number(headers.get(_BUCKET_RESET.sub("used-percent", name)))) is not None:
        return used >= 100  # noqa: PLR2004 - percent
    status = headers.get(_BUCKET_RESET.sub("status", name))
    return None if status is None else status == "rejected"


def _bucket_end(value: str, moment: Moment) -> Hint:
    if (at := instant(value)) is not None:
        hint = reset_at(at, moment)
        return Hint(hint.resets_in_s, hint.resets_at, hint.resets_in_s)
    return reset_in(seconds(value), moment)


_QUOTED = re.compile(r'"[^"]*"')
_PARAMETER = re.compile(r"\b(r|t|w|remaining|reset|limit)\s*=\s*(\d{1,15})")


def _rate_limit(headers: Mapping[str, str]) -> Iterator[tuple[bool, float]]:
    """Empty or unknown buckets of the `RateLimit` field, in its list form and its older one."""
    windows = [
        float(value)
        for name, value in _PARAMETER.findall(_QUOTED.sub("", headers.get("ratelimit-policy", "")))
        if name == "w"
    ]
    field = _QUOTED.sub('""', headers.get("ratelimit", ""))
    # The older form is one bucket over several members, the list form one bucket per member.
    for item in [field] if "reset" in field else field.split(","):
        named = dict(_PARAMETER.findall(item))
        left = named.get("r", named.get("remaining"))
        end = named.get("t", named.get("reset"))
        delay = float(end) if end else max(windows, default=None) if left == "0" else None
        if delay is not None and (left is None or float(left) == 0):
            yield left is not None, delay


# -- fields ---------------------------------------------------------------------------------------


def _asked_in(value: object, _moment: Moment, *, scale: float = 1.0) -> Hint:
    plain = number(value)
    return retry(duration(value) if plain is None else plain * scale)


def _asked_flexibly(value: object, moment: Moment) -> Hint:
    return _retry_after(value, moment) if isinstance(value, str) else retry(number(value))


def _delay(value: object, _moment: Moment) -> Hint:
    """`RetryInfo.retryDelay`; a bare number has no unit, so it is not believed."""
    return retry(duration(value))


def _resets_in(value: object, moment: Moment, *, scale: float = 1.0) -> Hint:
    plain = number(value)
    return reset_in(duration(value) if plain is None else plain * scale, moment)


def _resets_at(value: object, moment: Moment) -> Hint:
    return reset_at(instant(value), moment)


_MS = 0.001
_FIELDS: Final[Mapping[str, Callable[[object, Moment], Hint]]] = {
    "retrydelay": _delay,
    "retryafter": _asked_flexibly,
    "retryafterseconds": _asked_in,
    "retryaftersecs": _asked_in,
    "retryaftersec": _asked_in,
    "retryafters": _asked_in,
    "retryinseconds": _asked_in,
    "retrydelayseconds": _asked_in,
    "waitseconds": _asked_in,
    "retryafterms": partial(_asked_in, scale=_MS),
    "retryaftermillis": partial(_asked_in, scale=_MS),
    "retrydelayms": partial(_asked_in, scale=_MS),
    "resetsinseconds": _resets_in,
    "resetinseconds": _resets_in,
    "resetsafterseconds": _resets_in,
    "resetafterseconds": _resets_in,
    "secondsuntilreset": _resets_in,
    "resetsins": _resets_in,
    "resetsinms": partial(_resets_in, scale=_MS),
    "resetinms": partial(_resets_in, scale=_MS),
    "quotaresetdelay": _resets_in,
    "quotaresettimestamp": _resets_at,
    "resetsat": _resets_at,
    "resetat": _resets_at,
    "resettime": _resets_at,
    "resettimestamp": _resets_at,
    "resetdate": _resets_at,
    "ratelimitresetsat": _resets_at,
    "ratelimitresetat": _resets_at,
}
"""Fields by their name in small letters without joints; the first of a kind found wins."""

_JOINTS = str.maketrans("", "", "-_ .")
_HEADER_FIELDS = frozenset({"headers", "responseheaders"})
_TEXT_FIELDS = frozenset(
    {"message", "detail", "details", "error", "reason", "title", "description", "msg", "text"}
)


def _read_field(name: str, value: object, moment: Moment) -> Hint:
    read = _FIELDS.get(name.translate(_JOINTS).lower())
    return NOTHING if read is None else read(value, moment)


def _walk(data: object, moment: Moment, texts: list[str], found: _Found) -> Iterator[Hint]:
    """Every field of a value, breadth first; texts that people read are set aside."""
    queue: list[tuple[object, int, int]] = [(data, 0, 0)]
    for value, depth, layer in queue:
        if isinstance(value, str):
            parsed = _parsed(value) if layer < _MAX_LAYERS else None
            if parsed is not None:
                queue.append((parsed, depth + 1, layer + 1))
            elif len(texts) < _MAX_TEXTS:
                texts.append(value)
        elif isinstance(value, Mapping):
            yield from _fields(value, moment, found)
        children = _children(value)
        if children and depth < _MAX_DEPTH and len(queue) < _MAX_NODES:
            queue += [(child, depth + 1, layer) for child in children[: _MAX_NODES - len(queue)]]


def _fields(value: Mapping[Any, Any], moment: Moment, found: _Found) -> Iterator[Hint]:
    for name, item in islice(value.items(), _MAX_NODES):
        if not isinstance(name, str):
            continue
        if isinstance(item, Mapping) and name.translate(_JOINTS).lower() in _HEADER_FIELDS:
            inner = _lowered(item)
            there = http_date(inner.get("date", ""))
            nested = Moment(moment.now, there, moment.zone)
            found.nested_buckets.append(found.headers(inner, nested))
        yield _read_field(name, item, moment)


def _children(value: object) -> list[object]:
    if isinstance(value, Mapping):
        return [
            item
            for name, item in islice(value.items(), _MAX_NODES)
            if isinstance(item, Mapping | list | tuple)
            or (isinstance(item, str) and isinstance(name, str) and name.lower() in _TEXT_FIELDS)
        ]
    return list(value[:_MAX_NODES]) if isinstance(value, list | tuple) else []


def _parsed(text: str) -> object:
    """The JSON object, list or text in a text, or None."""
    plain = text.strip()
    if len(plain) > _MAX_JSON or plain[:1] not in {"{", "[", '"'}:
        return None
    try:
        parsed: object = json.loads(plain)
    except (ValueError, RecursionError):
        return None
    return parsed
