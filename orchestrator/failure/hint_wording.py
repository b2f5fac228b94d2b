"""Waits and reset times that a provider says in words.

A *trigger* ("try again", "resets", "重试") opens the search; behind it stand a few small words and
then a duration ("in 1m3.2s"), an instant ("at 2026-11-30T20:00:00Z") or a clock time ("Monday at
9am (Europe/Berlin)").  Texts may be hard-wrapped, in the middle of a word too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, tzinfo
from functools import cache
from itertools import islice
from typing import Any, Final

from orchestrator.failure.hint_values import (
    GRACE_S,
    NOTHING,
    Hint,
    Moment,
    instant,
    posix,
    reset_at,
    reset_in,
    retry,
    rfc3339,
    wall_clock,
    zone,
)
from orchestrator.failure.linear import Signs, compile_linear, compile_signs

ReadField = Callable[[str, object, Moment], Hint]

_MAX_CHARS = 16_000
"""Characters read at each end of a text; a hint stands near one of them."""
_MAX_TRIGGERS = 24
_WINDOW = 160
"""Characters behind a trigger in which its time has to stand."""


def read(text: str, moment: Moment, read_field: ReadField) -> Iterator[Hint]:
    """Every hint of one text, in the order in which they can be trusted."""
    if len(text) > 2 * _MAX_CHARS:
        text = f"{text[:_MAX_CHARS]} {text[-_MAX_CHARS:]}"
    # "a<newline>gain": once with the words apart, once joined.
    for form in (" ".join(text.split()), _WRAP.sub("", text) if "\n" in text else ""):
        data = form.encode("utf-8", "surrogatepass")
        signs = _signs()(data)
        if signs is None:
            continue
        found = _fields(data, moment, read_field) if _NAMED in signs else []
        found += _said(data, moment) if _OPENED in signs else []
        if _BEFORE in signs:
            found.append(_said_before(data))
        found = [hint for hint in found if hint != NOTHING]
        if found:
            yield from found
            return


_WRAP = re.compile(r"[ \t]*\r?\n[ \t│|]*")


# -- fields in a text -----------------------------------------------------------------------------

_FIELD = (
    r"(?i)\b(retry[-_ ]?delay|quota[-_]?reset[-_]?delay|quota[-_]?reset[-_]?time[-_]?stamp"
    r"|retry[-_]?after(?:[-_]?(?:seconds|secs?|ms|millis|s))?|retry[-_]?in[-_]?seconds"
    r"|retry[-_]?delay[-_]?(?:ms|seconds)|resets?[-_]?(?:in|after)[-_]?(?:seconds|ms|s)"
    r"|(?:rate[-_]?limit[-_]?)?resets?[-_]?(?:at|time|timestamp|date)|seconds[-_]?until[-_]?reset)"
    r"[\\\"'\s]*(?:=>|=|:)\s*(?:[A-Za-z]+\()?[\\\"']*([0-9][^\s\"'\\,)}\]]*)"
)


@cache
def _field_pattern() -> Any:
    return compile_linear(_FIELD)


def _fields(data: bytes, moment: Moment, read_field: ReadField) -> list[Hint]:
    found = []
    for match in _field_pattern().finditer(data):
        name, value = (group.decode("utf-8", "replace") for group in match.groups())
        found.append(read_field(name, value.rstrip(".;"), moment))
    return found


# -- triggers -------------------------------------------------------------------------------------

_TRIGGERS = (
    r"(?i)(?:"
    r"(\bresets?\b|\bresetting|\brefresh(?:es)?\b|\brenews?\b|\breplenish(?:es)?\b|regain access"
    r"|\brestored\b|\blifted\b|\bunlocks?\b)"
    r"|(\bretry[-_ ]after\b)"
    r"|(\btry(?:ing)?\b|\bretry(?:ing)?\b|\bretries\b|\bwait(?:ing)?\b|\bback(?:ing)?[ -]?off\b"
    r"|\bsleeping\b|\breconnect(?:ing)?\b|\bnext attempt\b|\bavailable\b|\bresum(?:e|es|ing)\b"
    r"|\bcome back\b|\bagain\b|\buntil\b)"
    r"|(r\xc3\xa9essay\w*|nouvelle tentative|int\xc3\xa9nt\w*|intente\w*|reint\xc3\xa9nt\w*"
    r"|reintent\w*|vuelv\w* a intentar\w*|tent(?:e|ar) novamente|versuchen|erneut|wiederhol\w*"
    r"|riprov\w*|\xd0[\x9f\xbf]\xd0\xbe\xd0\xb2\xd1\x82\xd0\xbe\xd1\x80[^\s]*"
    r"|\xd0[\x9f\xbf]\xd0\xbe\xd0\xbf\xd1\x80\xd0\xbe\xd0\xb1[^\s]*"
    r"|\xe8\xaf\xb7|\xe8\xab\x8b|\xe7\xad\x89\xe5\xbe\x85)"
    r"|(\|)"
    r")"
)
_RESET, _AFTER, _RETRY, _LOCAL, _PIPE = range(1, 6)
# Where the time stands before the verb: "20秒後に再試行", "20초 후에 다시 시도".
_TIME_FIRST = (
    r"(?i)([0-9][0-9.,]*\s?(?:\xe7\xa7\x92|\xe5\x88\x86|\xe6\x99\x82\xe9\x96\x93|\xe5\xb0\x8f\xe6\x97\xb6"
    r"|\xec\xb4\x88|\xeb\xb6\x84|\xec\x8b\x9c\xea\xb0\x84|[a-z]+)[^0-9]{0,24}?)"
    r"(?:\xe5\x86\x8d\xe8\xa9\xa6\xe8\xa1\x8c|\xe3\x82\x84\xe3\x82\x8a\xe7\x9b\xb4|\xe9\x87\x8d\xe8\xaf\x95"
    r"|\xe9\x87\x8d\xe8\xa9\xa6|\xeb\x8b\xa4\xec\x8b\x9c|\xec\x9e\xac\xec\x8b\x9c\xeb\x8f\x84"
    r"|\berneut\b|until (?:the )?(?:retry|reset)|before (?:the next |trying|retry))"
)


_NAMED, _OPENED, _BEFORE = range(3)


@cache
def _signs() -> Signs:
    return compile_signs(_FIELD, _TRIGGERS, _TIME_FIRST, text=False)


@cache
def _trigger_pattern() -> Any:
    return compile_linear(_TRIGGERS)


@cache
def _time_first_pattern() -> Any:
    return compile_linear(_TIME_FIRST)


_OPENING = r"[\s:=,·•(\[~≈—\u2013\"'-]*"
_FILLERS = (
    "again", "later", "your", "the", "this", "that", "request", "message", "it", "es", "sie",
    "bitte", "automatically", "attempts?", r"#?\d{1,3}\s?(?:/|of)\s?\d{1,3}\)?", "please",
    "quota", "limits?", "usage", "next", "connection", "will", "be", "is", "time", "until", "reset",
    "with",
    "exponential", "backoff", "access", "window", "once more", "daily", "every day", "each day",
    "de nuevo", "nuevamente", "plus tard", "novamente", "at least", "or", "around",
    "попытку", "снова", "ещё раз",
)  # fmt: skip
"""Small words between a trigger and its time."""
_SMALL = re.compile(rf"(?:{_OPENING}(?:{'|'.join(_FILLERS)})\b){{0,6}}", re.IGNORECASE)
_PREPOSITIONS = "in|after|for|within|about|at|on|by|from|dans|en|em|nach|tra|fra|через|在"
_PREPOSITION = re.compile(
    rf"{_OPENING}({_PREPOSITIONS})?(?:\b|(?=\d))[\s:=~≈\"'(]*"
    r"(?:about|approximately|at least|another|around|~|≈)?\s*",
    re.IGNORECASE,
)


def _said(data: bytes, moment: Moment) -> list[Hint]:
    found = []
    for match in islice(_trigger_pattern().finditer(data), _MAX_TRIGGERS):
        end = match.end()
        tail = data[end : end + _WINDOW].decode("utf-8", "replace")
        if _TIME.search(tail):
            found.append(_behind(tail, match.lastindex, moment))
    return found


def _said_before(data: bytes) -> Hint:
    first = _time_first_pattern().search(data)
    said = first.group(1).decode("utf-8", "replace") if first else ""
    return retry(spoken_duration(said))


_TIME = re.compile(
    r"\d|\b(?:an?\b|one\b|eine|une\b|today|tomorrow|midnight|noon|mon|tue|wed|thu|fri|sat|sun)",
    re.IGNORECASE,
)
"""Stands in everything below that is read as a time."""


_UNITLESS = re.compile(r"\d{1,7}(?:\.\d{1,9})?(?![\d:/%\w-])")
_PIPED = re.compile(r"\s?(\d{10}|\d{13})(?!\d)")


def _behind(tail: str, trigger: int, moment: Moment) -> Hint:
    """What stands behind one trigger."""
    if trigger == _PIPE:
        piped = _PIPED.match(tail)
        return reset_at(instant(piped[1]), moment) if piped else NOTHING
    small = _SMALL.match(tail)
    rest = tail[small.end() if small else 0 :]
    lead = _PREPOSITION.match(rest)
    word = (lead[1] or "").lower() if lead else ""
    rest = rest[lead.end() if lead else 0 :]
    if (delay := spoken_duration(rest)) is not None and word not in {"at", "on", "by", "from"}:
        return reset_in(delay, moment) if trigger == _RESET else retry(delay)
    if trigger == _AFTER and (plain := _UNITLESS.match(rest)):
        return retry(float(plain[0]))
    return reset_at(spoken_instant(rest, moment), moment)


# -- durations ------------------------------------------------------------------------------------

_UNIT_WORDS: Final = (
    (1e-9, "ns"),
    (1e-6, "us µs μs"),
    (1e-3, "ms msec msecs millis millisecond milliseconds"),
    (1.0, "s sec secs second seconds sek sekunde sekunden seconde secondes segundo segundos"),
    (1.0, "seg secondo secondi сек секунду секунды секунд"),
    (60.0, "m min mins minute minutes minuten minuto minutos minuti мин минуту минуты минут"),
    (
        3600.0,
        "h hr hrs hour hours std stunde stunden heure heures hora horas ora ore час часа часов",
    ),
    (86_400.0, "d day days tag tage tagen jour jours día días dia dias giorno giorni"),
    (86_400.0, "день дня дней"),
    (604_800.0, "w wk week weeks woche wochen semaine semaines semana semanas"),
    (2_592_000.0, "month months monat monate monaten mois mes meses mês"),
)
_UNITS_S: Final = {unit: size for size, units in _UNIT_WORDS for unit in units.split()}
_JOINED_UNITS_S: Final = (
    ("毫秒", 1e-3), ("秒", 1.0), ("分", 60.0), ("小时", 3600.0), ("小時", 3600.0), ("時間", 3600.0),
    ("天", 86_400.0), ("日", 86_400.0), ("초", 1.0), ("분", 60.0), ("시간", 3600.0),
)  # fmt: skip
"""Units of scripts that put no space behind them; the longer word first."""
_PART = re.compile(r"(\d[\d.,]*|an?\b|one\b|eine[rm]?\b|une\b)\s?([^\W\d_]+)", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:\s*,)?\s*(?:(?:and|und|et|y|e)\s+)?", re.IGNORECASE)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_HOURS = re.compile(r"(\d{1,3}):([0-5]\d):([0-5]\d)(?![\d:])")


def spoken_duration(text: str) -> float | None:
    """Seconds at the start of a text: "1m3.2s", "5 days 22 hours 11 minutes", "20 秒"."""
    if clock := _HOURS.match(text):
        return int(clock[1]) * 3600.0 + int(clock[2]) * 60 + int(clock[3])
    total, at, found = 0.0, 0, False
    while part := _PART.match(text, at):
        size = _unit(part[2])
        count = _count(part[1])
        if size is None or count is None:
            break
        total, found = total + count * size, True
        between = _BETWEEN.match(text, part.end())
        at = between.end() if between else part.end()
    return total if found else None


def _unit(word: str) -> float | None:
    exact = _UNITS_S.get(word.lower())
    if exact is not None:
        return exact
    return next((size for unit, size in _JOINED_UNITS_S if word.startswith(unit)), None)


def _count(text: str) -> float | None:
    if not text[0].isdigit():
        return 1.0
    text = text.rstrip(".,")
    plain = text.replace(",", "") if _THOUSANDS.fullmatch(text) else text.replace(",", ".")
    try:
        return float(plain) if len(plain) <= 18 else None  # noqa: PLR2004
    except ValueError:
        return None


# -- instants and clock times ---------------------------------------------------------------------

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH = r"(?P<{0}>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
_CLOCK = (
    r"(?:(?P<hour>\d{1,2})(?:[:.](?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d))?)?\s?(?P<half>[ap])\.?m\b\.?"
    r"|(?P<hour24>[01]?\d|2[0-4]):(?P<minute24>[0-5]\d)(?::(?P<second24>[0-5]\d))?(?:\s?Uhr)?"
    r"|(?P<word>midnight|noon))"
)
_DATE = (
    r"(?:(?P<near>today|tomorrow)\b|(?:(?P<weekday>mon|tue|wed|thu|fri|sat|sun)(?:day|s|sday|nesday|rsday|r|rs|urday)?\b\.?,?\s*)?"
    rf"(?:{_MONTH.format('month')}\s*(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s*(?P<year>\d{{4}}))?"
    rf"|(?P<day2>\d{{1,2}})(?:st|nd|rd|th|\.)?\s*{_MONTH.format('month2')}(?:,?\s*(?P<year2>\d{{4}}))?"
    r"|(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4}))?)"
)
_WHEN = re.compile(rf"(?:{_DATE}(?:,?\s*(?:at|@|um|à|a las|·)?\s*{_CLOCK})?)", re.IGNORECASE)
_CLOCK_ONLY = re.compile(_CLOCK, re.IGNORECASE)
_DATE_BEHIND = re.compile(rf",?\s*(?:on\s+)?{_DATE}", re.IGNORECASE)
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:(?:T|,?\s(?:at\s)?)(\d\d:\d\d(?::\d\d)?)(?:\.(\d{1,9}))?)?\s?(Z\b|[+-]\d\d:?\d\d|UTC|GMT)?",
    re.IGNORECASE,
)
_EPOCH = re.compile(r"(\d{10}|\d{13})(?![\d.:-])")
_IN_PARENTHESES = re.compile(r"[\s,]*\(([^()]{1,40})\)")
_ZONE = re.compile(
    r"[\s,]*(?:([A-Z][A-Za-z]+/[A-Za-z_+-]+(?:/[A-Za-z_+-]+)?\d*|(?:UTC|GMT)\s?[+-]\d{1,2}(?::?\d\d)?"
    r"|[+-]\d\d:?\d\d)|([A-Z]{1,5})(?![A-Za-z])|(Pacific|Eastern|Mountain|Central)\b)"
)
_LOCAL_WORDS = re.compile(r"(?i).*\b(?:local|your)\b.*")


def spoken_instant(text: str, moment: Moment) -> float | None:
    """POSIX seconds of an instant or a clock time at the start of a text."""
    if epoch := _EPOCH.match(text):
        return instant(epoch[1])
    if iso := _ISO.match(text):
        offset = (iso[4] or "Z").upper().replace("UTC", "Z").replace("GMT", "Z")
        named = _named_zone(text[iso.end() :]) if iso[4] is None else None
        if isinstance(named, tzinfo):
            return _iso_in(f"{iso[1]}T{iso[2] or '00:00'}", named)
        return None if named is False else rfc3339(f"{iso[1]}T{iso[2] or '00:00'}{offset}")
    return _clock_time(text, moment)


def _iso_in(text: str, named: tzinfo) -> float | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=named).timestamp()
    except (ValueError, OverflowError):
        return None


def _named_zone(text: str) -> tzinfo | bool:
    """The zone at the start of a text; True when none is named, False for one that is unknown."""
    if inside := _IN_PARENTHESES.match(text):
        word = inside[1].strip()
        if _LOCAL_WORDS.fullmatch(word):
            return True
        found = zone(word)
        looks_like_one = "/" in word or word.isupper()
        return found or (not looks_like_one)
    if outside := _ZONE.match(text):
        word = outside[1] or outside[2] or outside[3]
        found = zone(word)
        return found or not (outside[1] or word.endswith("T"))
    return True


def _clock_time(text: str, moment: Moment) -> float | None:
    when = _CLOCK_ONLY.match(text)
    end = when.end() if when else 0
    parts = dict.fromkeys(_WHEN.groupindex)
    if when:
        parts.update(when.groupdict())
        named = _named_zone(text[end:])
        behind = _DATE_BEHIND.match(text, end + _zone_length(text[end:]))
        if behind:
            parts.update(behind.groupdict())
    else:
        when = _WHEN.match(text)
        if when is None or not when[0]:
            return None
        parts.update(when.groupdict())
        named = _named_zone(text[when.end() :])
    if named is False:
        return None
    return _resolve(parts, moment, named if isinstance(named, tzinfo) else None)


def _zone_length(text: str) -> int:
    match = _IN_PARENTHESES.match(text) or _ZONE.match(text)
    return match.end() if match else 0


def _resolve(parts: dict[str, str | None], moment: Moment, named: tzinfo | None) -> float | None:
    """The next moment that fits what was said, in the zone that was named."""
    today = wall_clock(moment, named)
    clock = _time_of_day(parts)
    if today is None or clock is None:
        return None
    try:
        day = _day(parts, today)
        wall = (day or today).replace(hour=0, minute=0, second=0, microsecond=0) + clock
        if day is None and wall < today - timedelta(seconds=GRACE_S):
            wall += timedelta(days=7 if parts["weekday"] else 1)
    except (ValueError, OverflowError):
        return None
    return posix(wall, moment, named)


def _time_of_day(parts: dict[str, str | None]) -> timedelta | None:
    if parts["word"]:
        # Midnight said without a day is the one to come.
        return timedelta(hours=12 if parts["word"].lower() == "noon" else 0)
    hour = int(parts["hour"] or parts["hour24"] or 0)
    minute = int(parts["minute"] or parts["minute24"] or 0)
    second = int(parts["second"] or parts["second24"] or 0)
    if parts["half"]:
        if not 1 <= hour <= 12:  # noqa: PLR2004 - a 12-hour clock
            return None
        hour = hour % 12 + (12 if parts["half"].lower() == "p" else 0)
    return timedelta(hours=hour, minutes=minute, seconds=second)


def _day(parts: dict[str, str | None], today: datetime) -> datetime | None:
    """The day that was said, or None for the next one that fits."""
    if near := parts["near"]:
        return today + timedelta(days=near.lower() == "tomorrow")
    month = parts["month"] or parts["month2"]
    if month or parts["m"]:
        number = _MONTHS.index(month.lower()[:3]) + 1 if month else int(parts["m"] or 0)
        day = int(parts["day"] or parts["day2"] or parts["d"] or 0)
        said = parts["year"] or parts["year2"] or parts["y"]
        when = today.replace(year=int(said or today.year), month=number, day=day)
        # A month without a year is the nearest one that is not long past.
        past = said is None and when < today - timedelta(days=31)
        return when.replace(year=when.year + 1) if past else when
    if weekday := parts["weekday"]:
        ahead = (_DAYS.index(weekday.lower()[:3]) - today.weekday()) % 7
        return today + timedelta(days=ahead) if ahead else None
    return None
