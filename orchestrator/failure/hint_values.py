"""Single values that say how long or until when: numbers, durations, instants.

Everything here answers None for what can't be right: a negative, infinite or absurd delay, an
instant long gone or years ahead, a time zone that does not exist.  0 is an answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Final

import durationpy
from attrs import frozen

MAX_DELAY_S: Final = 366 * 86_400.0
"""Longest wait that is believed, in seconds: a yearly allowance and nothing beyond."""
GRACE_S: Final = 120.0
"""Seconds an instant may lie in the past and still mean "now": clocks differ, reset times are
rounded, and an answer takes a while to arrive."""
_MAX_TEXT = 64
_EPOCH_S, _EPOCH_MS, _EPOCH_END = 1e9, 1e12, 1e14
"""A number from 1e9 on is an instant in POSIX seconds, from 1e12 on in milliseconds."""


@frozen
class Hint:
    """What a failure says about time.  A field is None when unsaid; 0 is an answer."""

    retry_after_s: float | None = None
    """Seconds the provider asks to wait before the next try."""
    resets_at: float | None = None
    """POSIX seconds at which a limit resets; for people."""
    resets_in_s: float | None = None
    """Seconds until then; for the machine."""


NOTHING: Final = Hint()


@frozen
class Moment:
    """When the failure was read."""

    now: float | None
    """POSIX seconds here; None disables every hint that needs a clock."""
    there: float | None = None
    """POSIX seconds on the provider's own clock, where its answer tells (RFC 9110, Date)."""
    zone: tzinfo | None = None
    """Zone of clock times that name none; None is the zone of this machine."""

    def until(self, instant: float) -> float | None:
        """Seconds to an instant by the provider's clock, else by ours."""
        base = self.now if self.there is None else self.there
        if base is None:
            return None
        ahead = instant - base
        return 0.0 if -GRACE_S <= ahead < 0 else believable(ahead)


def believable(seconds: float | None) -> float | None:
    """The delay, or None where nobody can mean it."""
    if seconds is None or not math.isfinite(seconds) or not 0 <= seconds <= MAX_DELAY_S:
        return None
    return float(seconds)


def retry(seconds: float | None) -> Hint:
    """A wait before the next try."""
    return Hint(retry_after_s=believable(seconds))


def reset_in(seconds: float | None, moment: Moment) -> Hint:
    """A limit that resets after so many seconds; the next try can wait for that."""
    delay = believable(seconds)
    if delay is None:
        return NOTHING
    at = None if moment.now is None else moment.now + delay
    return Hint(retry_after_s=delay, resets_at=at, resets_in_s=delay)


def reset_at(instant: float | None, moment: Moment) -> Hint:
    """A limit that resets at an instant (POSIX seconds)."""
    if instant is None or not math.isfinite(instant):
        return NOTHING
    if moment.now is None and moment.there is None:
        plausible = _EPOCH_S <= instant < _EPOCH_S * 5
        return Hint(resets_at=instant) if plausible else NOTHING
    ahead = moment.until(instant)
    return NOTHING if ahead is None else Hint(resets_at=instant, resets_in_s=ahead)


# -- numbers and durations ------------------------------------------------------------------------

_NUMBER = re.compile(r"[+]?\d{1,18}(?:\.\d{0,18})?|\.\d{1,18}")
_PROTOBUF = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)s")
_CLOCKED = re.compile(r"(\d{1,3}):([0-5]\d):([0-5]\d)")


def number(value: object) -> float | None:
    """A plain decimal number of either sign's good side; no exponent, no NaN, no words."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            plain = float(value)
        except OverflowError:
            return None
        return plain if math.isfinite(plain) and plain >= 0 else None
    if isinstance(value, str) and len(value) <= _MAX_TEXT and _NUMBER.fullmatch(value.strip()):
        return float(value.strip())
    return None


def duration(value: object) -> float | None:
    """Seconds of a protobuf duration (`9s`), a Go duration (`6m0s`, `12ms`) or `{seconds, nanos}`.

    Protobuf's JSON form is seconds with up to nine decimals and an `s` (protobuf.dev, Duration);
    Go's is what `time.Duration.String` prints, to microseconds.
    """
    if isinstance(value, Mapping):
        whole, nanos = number(value.get("seconds", 0)), number(value.get("nanos", 0))
        return None if whole is None or nanos is None else whole + nanos / 1e9
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        return None
    text = value.strip()
    if exact := _PROTOBUF.fullmatch(text):
        return float(exact[1])
    if clock := _CLOCKED.fullmatch(text):
        return int(clock[1]) * 3600.0 + int(clock[2]) * 60 + int(clock[3])
    try:
        return float(durationpy.from_str(text).total_seconds()) if text else None
    except (durationpy.DurationError, ValueError, OverflowError):
        return None


def seconds(value: object) -> float | None:
    """Seconds written as a number or as a duration."""
    plain = number(value)
    return duration(value) if plain is None else plain


# -- instants -------------------------------------------------------------------------------------


def instant(value: object) -> float | None:
    """POSIX seconds of an epoch (seconds or milliseconds), RFC 3339, or an HTTP date."""
    plain = number(value)
    if plain is not None:
        if _EPOCH_MS <= plain < _EPOCH_END:
            return plain / 1000
        return plain if _EPOCH_S <= plain < _EPOCH_MS else None
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        return None
    return rfc3339(value.strip()) or http_date(value.strip())


def rfc3339(text: str) -> float | None:
    """POSIX seconds of an RFC 3339 instant; without an offset it is read as UTC."""
    try:
        when = datetime.fromisoformat(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


_HTTP_DATE = re.compile(r"(?i)(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? .*")


def http_date(text: str) -> float | None:
    """POSIX seconds of an HTTP date in any of its three forms (RFC 9110, section 5.6.7)."""
    if len(text) > _MAX_TEXT or not _HTTP_DATE.fullmatch(text):
        return None
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - 18 ms that few failures need

    try:
        when = parsedate_to_datetime(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


# -- time zones -----------------------------------------------------------------------------------

_OFFSETS_H: Final[Mapping[str, float]] = {
    "UTC": 0, "GMT": 0, "Z": 0, "WET": 0,
    "EST": -5, "EDT": -4, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
    "AKST": -9, "AKDT": -8, "HST": -10, "BRT": -3,
    "WEST": 1, "CET": 1, "CEST": 2, "MEZ": 1, "MESZ": 2, "EET": 2, "EEST": 3, "MSK": 3,
    "SGT": 8, "HKT": 8, "AWST": 8, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11, "NZST": 12,
    "NZDT": 13,
}  # fmt: skip
"""Abbreviations with one common meaning, in hours; IST, BST and CST have several: no hint."""
_REGIONS: Final[Mapping[str, str]] = {
    "PT": "America/Los_Angeles",
    "ET": "America/New_York",
    "MT": "America/Denver",
    "CT": "America/Chicago",
    "PACIFIC": "America/Los_Angeles",
    "EASTERN": "America/New_York",
    "MOUNTAIN": "America/Denver",
    "CENTRAL": "America/Chicago",
}
_OFFSET = re.compile(r"(?:UTC|GMT)?\s?([+-])(\d{1,2}):?([0-5]\d)?")


def zone(name: str) -> tzinfo | None:
    """The zone of that name, abbreviation or offset; None for one that does not exist."""
    plain = name.strip().upper()
    if plain in _OFFSETS_H:
        return timezone(timedelta(hours=_OFFSETS_H[plain]))
    if offset := _OFFSET.fullmatch(plain):
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        within = minutes <= 14 * 60
        return (
            timezone(timedelta(minutes=minutes * (-1 if offset[1] == "-" else 1)))
            if within
            else None
        )
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - loaded with the first zone that is named

    key = _REGIONS.get(plain, name.strip())
    if "/" not in key:
        return None
    try:
        return ZoneInfo(key)
    except (KeyError, ValueError, OSError):
        return None


def posix(wall: datetime, moment: Moment, named: tzinfo | None) -> float | None:
    """POSIX seconds of a clock time in the named zone, or in the moment's own."""
    place = named or moment.zone
    try:
        return (wall.replace(tzinfo=place) if place else wall).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def wall_clock(moment: Moment, named: tzinfo | None) -> datetime | None:
    """What the clock on the wall shows there now; the machine's own where no zone is named."""
    if moment.now is None:
        return None
    try:
        return datetime.fromtimestamp(moment.now, named or moment.zone).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        return None
