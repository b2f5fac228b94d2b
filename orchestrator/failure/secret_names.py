"""A value is a secret because of the name beside it: `api_key=...`, `"password": "..."`, a header.

Here is where the two meet: what joins them in a text, in JSON and in a URL.  What each says by
itself is in `secret_words`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, Final

from orchestrator.failure.linear import compile_linear, find_all
from orchestrator.failure.randomness import mixed_case, random_enough
from orchestrator.failure.secret_words import (
    CALL,
    HEX,
    IDENTIFIER_1,
    LONG,
    MEDIUM,
    NONE,
    SECRET_WORD,
    SHORT,
    STRONG,
    WEAK,
    is_password,
    is_placeholder,
    qualifies,
    strength,
)

_MAX_FIELDS = 2_000
"""Fields of one object that are looked at for a name; more are a table."""
_REMEMBERED = 40
"""Bytes before a name's core that are read to see the whole name."""
_SHORT_SIGNATURE = 8
_LOOKED_AT = 192
"""Bytes of a value that are judged; an accepted one is followed to its end."""

# -- names and values in a text -------------------------------------------------------------------

_CORE = (
    r"(?:pass(?:word|wd|phrase|code)?s?|pwd|passwort|kennwort|senha|contrase(?:\xc3\xb1|n)a"
    r"|wachtwoord|mot de passe|secrets?|tokens?|keys?|auth|authorization|cookies?2?|credentials?"
    r"|creds|signature|sig|sas|jwt|session(?:[_-]?(?:id|key))?|sid|otp|pin|pat|dsn|hmac"
    r"|connection[_ -]?string|connstr"
    r"|\xe5\xaf\x86\xe7\xa0\x81|\xe3\x83\x91\xe3\x82\xb9\xe3\x83\xaf\xe3\x83\xbc\xe3\x83\x89)"
    r"(?:[_-]?(?:id|value|val|plain|text|raw|b64|base64|old|new|prod|dev|test|live|main|[0-9]{1,2}))?"
)
_VALUE_KEY = r"(?:value|val|content|data|default|defaultvalue|text|secret|string_?value)"
_NAME_KEY = r"(?:name|key|header|field|id|var|variable|param|parameter|env|setting|option)"
_FIELD = r"(?:[\"'][^\"'\n]*[\"']\s*:\s*(?:[\"'][^\"'\n]*[\"']|[\w.+-]+)\s*,\s*){0,3}"
_ASSIGNED = (
    rf"(?i){_CORE}(?:"
    r"([\"'`\])]{0,2}[ \t]*(?:=>|:=|={1,3}|:|\xef\xbc\x9a)[ \t]*)"
    rf"|([\"']\s*[,}}]\s*{_FIELD}[\"']?{_VALUE_KEY}[\"']?\s*[:=]\s*)"
    r"|([\"']\s*,\s*[brfu]?(?:[\"']))"
    rf"|([ \t]*\r?\n[ \t]*{_VALUE_KEY}[ \t]*:[ \t]*|[\"']\s+{_VALUE_KEY}\s*=\s*"
    r"|[ \t]*[,;]?[ \t]+value[ \t]*[:=][ \t]*)"
    r"|(>)"
    r"|([ \t]+(?:(?:is|was|provided|used|value|given|set to|of)[ \t]*[:=]?[ \t]*|[\"'`(]))"
    r")"
)
_ASSIGN, _NEIGHBOUR, _PAIR, _BELOW, _XML, _PROSE = range(1, 7)
_FLAG = rf"(?i)(?:^|[\s\"'\[,(])--?[a-z0-9-]*{_CORE}[a-z0-9-]*(?:[ \t]+|[\"']\s*,\s*[\"'])"
_REVERSED = (
    rf"(?i)[\"']{_VALUE_KEY}[\"']\s*:\s*[\"']([^\"'\n]*)[\"']\s*,\s*{_FIELD}"
    rf"[\"']{_NAME_KEY}[\"']\s*:\s*[\"']([^\"'\n]*)[\"']"
)
_BESIDE = (
    # `API key 9f86... is invalid`: nothing joins the two, so both have to be unmistakable.
    r"(?i)\b(?:x-)?(?:api|access|auth|subscription|client|private|secret|refresh|bearer|account)"
    r"[ _-]?(?:key|token|secret)s?[ \t]*(?:->|[/:=<(`\"'\[ \t])[ \t]*[\"'`<(\[]{0,2}"
    r"([A-Za-z0-9_-]{20,512})"
)
_IDENTIFIER_BYTES = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-$ "
_VALUE = re.compile(
    rb"\s*(?:[\[({]+\s*)?(?:(?:String|Some|Optional|SecretStr|Secret|Sensitive)\(+)*"
    rb"(?:[brfu]{0,2}(?:\"(?P<double>(?:[^\"\\\n]|\\.)*)|'(?P<single>(?:[^'\\\n]|\\.)*)|`(?P<tick>[^`\n]*)))"
    rb"|(?:[ \t\[({]*)(?P<bare>[^\s\"'`<>]+)"
)
_SCHEME = re.compile(
    rb"(?i)(?:bearer|basic|token|apikey|api-key|key|bot|negotiate|ntlm|gnap|dpop|splunk|ssws|"
    rb"sso-key|genie(?:key)?|zoho-oauthtoken|githubtoken)[ \t]+[\"']?([^\s\"'`<>,\])}]+)"
)
_WITH_PARAMETERS = re.compile(
    rb"(?i)(?:digest|aws4-[a-z0-9-]+|signature|oauth|hawk|mac|sharedkey)(?=[ \t])"
)
_LINE: Final[Mapping[bytes, re.Pattern[bytes]]] = {
    quote: re.compile(rb"(?:[^\r\n\\%b]|\\[^\r\nrn])*" % quote) for quote in (b"", b'"', b"'", b"`")
}
"""The rest of a line, by the quotation mark that ends it earlier."""
_OPENING = re.compile(rb"[ \t\[({]*(?:[bfru]?([\"'`]))?")
_BEHIND_A_TEXT = frozenset((b"", *(bytes((char,)) for char in b" ,;:.)]}+")))
_COOKIE = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_|~-]{1,128}=[^\s;,]|\$Version=")
_NEXT_PAIR = re.compile(rb"[,;&|](?=\s|$|[A-Za-z_][A-Za-z0-9_.-]*\s*[=:])|[,;&|][\"'\]})]")


def joined() -> str:
    """Everything that starts a search here, as one pattern, for a gate."""
    return "|".join(f"(?:{pattern})" for pattern in (_ASSIGNED, _FLAG, _REVERSED, _BESIDE))


@cache
def _patterns() -> tuple[Any, Any, Any, Any]:
    assigned, flag, backwards, beside = map(compile_linear, (_ASSIGNED, _FLAG, _REVERSED, _BESIDE))
    return assigned, flag, backwards, beside


def spans(data: bytes) -> Iterator[tuple[int, int]]:
    """Where the values of secret names stand in a text."""
    assigned, flag, reversed_, beside = _patterns()
    done = 0
    for match in find_all(assigned, data):
        found = _assigned(data, match) if match.start() >= done else None
        if found and found[0] < found[1]:
            yield found
            done = found[1]
    for match in find_all(flag, data) if b"-" in data else ():
        found = _flagged(data, match)
        if found:
            yield found
    for match in find_all(reversed_, data) if b"alue" in data else ():
        if hides(match.group(2).decode("utf-8", "replace"), match.group(1)):
            yield match.span(1)
    for match in find_all(beside, data):
        if _is_noise(match.group(1)):
            yield match.span(1)


def _is_noise(value: bytes) -> bool:
    """A long run that nobody reads: digits of base 16, or both cases and digits."""
    hexadecimal = len(value) >= _HEX_KEY and HEX.fullmatch(value)
    return bool(hexadecimal or mixed_case(value)) and random_enough(value, 20)


_HEX_KEY = 32


def _span(value: re.Match[bytes]) -> tuple[int, int]:
    return value.span(value.lastgroup or 0)


def _whole(data: bytes, value: re.Match[bytes]) -> tuple[int, int]:
    """The value to its end, once it is known to be one."""
    if value.end() < value.endpos:
        return _span(value)
    full = _VALUE.match(data, value.start())
    return _span(full or value)


def _flagged(data: bytes, match: Any) -> tuple[int, int] | None:
    """The argument behind a flag of the command line."""
    name = match.group().strip(b" \t\"',[(-").decode("utf-8", "replace")
    level = strength(name)
    value = _VALUE.match(data, match.end(), match.end() + _LOOKED_AT)
    if level == NONE or value is None:
        return None
    start, end = _span(value)
    text, quoted = data[start:end], value.lastgroup != "bare"
    if text.startswith(b"-"):
        return None
    ok = qualifies(level, text, quoted=quoted, password=is_password(name))
    return _whole(data, value) if ok else None


def _assigned(data: bytes, match: Any) -> tuple[int, int] | None:
    """The value behind a name; `how` says what joins them."""
    (start, end), how = match.span(), match.lastindex
    named = match.start(how)
    before = data[max(0, start - _REMEMBERED) : start]
    lead = before[len(before.rstrip(_IDENTIFIER_BYTES)) :]
    name = (lead + data[start:named]).decode("utf-8", "replace")
    level = strength(name)
    if level == NONE or (how == _XML and not before.endswith(b"<" + lead)):
        return None
    lower = name.lower()
    cookie = "cookie" in lower
    if how == _ASSIGN and (cookie or "authorization" in lower):
        found = _header(data, end, before, cookie=cookie)
        if found:
            return found
    at = end - 1 if how == _PAIR else end
    value = _VALUE.match(data, at, at + _LOOKED_AT)
    if value is None or (how == _ASSIGN and _closes(value, before, data[named:end])):
        return None
    compared = b"==" in data[named:end] and value.lastgroup == "bare"
    level = min(level, MEDIUM) if cookie else level
    return None if compared else _judged(data, value, level, how, name)


def _closes(value: re.Match[bytes], before: bytes, joint: bytes) -> bool:
    """The quotation mark behind the name ends the text it stands in: `prompt="Password: "`."""
    start, end = _span(value)
    around = before.rstrip(_IDENTIFIER_BYTES)[-1:]
    if value.lastgroup == "bare" or around != value.string[start - 1 : start] or around in joint:
        return False
    return value.string[start : min(end, start + 1)] in _BEHIND_A_TEXT


def _header(data: bytes, end: int, before: bytes, *, cookie: bool) -> tuple[int, int] | None:
    """A header's credential: what follows the scheme, or the whole line of a cookie.

    An empty span says that a placeholder stands there: no credential, and no scheme either.
    """
    opening = _OPENING.match(data, end)
    start = opening.end() if opening else end
    around = before.rstrip(_IDENTIFIER_BYTES[:-1])[-1:]
    quote = (opening and opening.group(1)) or (around if around in _LINE else b"")
    whole_line = _COOKIE if cookie else _WITH_PARAMETERS
    if whole_line.match(data, start):
        line = _LINE[quote].match(data, start)
        return line.span() if line else None
    scheme = None if cookie else _SCHEME.match(data, start)
    if scheme is None:
        return None
    return (start, start) if is_placeholder(scheme[1][:_LOOKED_AT]) else scheme.span(1)


def _judged(
    data: bytes, value: re.Match[bytes], level: int, how: int, name: str
) -> tuple[int, int] | None:
    start, end = _span(value)
    quoted = value.lastgroup != "bare"
    if not quoted:
        cut = _NEXT_PAIR.search(data, start, end)
        end = cut.start() if cut else end
        end = start + len(data[start:end].rstrip(b"\\.,;:!?)]}"))
    text = data[start:end]
    if how == _XML and data[end : end + 1] not in {b"<", b""}:
        return None
    if how in {_PAIR, _PROSE} and not _stands_out(text, level):
        return None
    if not quoted and len(text) <= LONG and _reads_on(data, start, end, value.start(), name):
        return None
    if not qualifies(level, text, quoted=quoted, password=is_password(name)):
        return None
    return _whole(data, value) if end == value.end() else (start, end)


def _stands_out(text: bytes, level: int) -> bool:
    """Where only the neighbourhood of two texts speaks for a secret, the second has to as well."""
    if IDENTIFIER_1.fullmatch(text) and SECRET_WORD.search(text):
        return False
    return b"*" in text or random_enough(text, 6 if level == STRONG else 12)


def _reads_on(data: bytes, start: int, end: int, sep_end: int, name: str) -> bool:
    """A call, an index, another assignment, the name itself, or a word of a sentence."""
    after = data[end : end + 3]
    word = data[start:end]
    if after[:1] in {b"(", b"["} or after.lstrip()[:1] == b"=" or CALL.match(data, start, end):
        return True
    if word.decode("utf-8", "replace") in name:
        return True
    spaced = data[sep_end - 1 : sep_end] in {b" ", b"\t"} or start > sep_end
    return spaced and word.isalpha() and after[:1] == b" " and after[1:2].isalpha()


# -- names and values in JSON and in URLs ---------------------------------------------------------

_NAME_KEYS: Final = re.compile(rf"(?i){_NAME_KEY}")
_VALUE_KEYS: Final = re.compile(rf"(?i){_VALUE_KEY}s?")


def is_secret(name: str) -> bool:
    """True for a name whose value has to be looked at."""
    return strength(name) != NONE


def is_value_key(key: str) -> bool:
    """True for the field that holds the value where another field holds the name."""
    return bool(_VALUE_KEYS.fullmatch(key[:LONG]))


def neighbour(value: Mapping[Any, Any]) -> str:
    """The secret name that one field of an object gives to another, or nothing."""
    for key, item in islice(value.items(), _MAX_FIELDS):
        named = isinstance(key, str) and isinstance(item, str) and _NAME_KEYS.fullmatch(key[:LONG])
        if named and len(item) <= LONG and is_secret(item):
            return str(item)
    return ""


def names_next(item: str) -> bool:
    """True for an element of a list that names the next one: a header, a flag."""
    return len(item) <= LONG and " " not in item and strength(item.lstrip("-")) != NONE


def user_and_password(flag: str, item: str) -> bool:
    """True for the argument of `curl -u` and its kin."""
    return flag in {"-u", "--user", "--proxy-user"} and ":" in item[1:-1]


def hides(name: str, value: str | bytes) -> bool:
    """True where a field of this name has to hide this value."""
    raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    return qualifies(strength(name), raw, quoted=True, password=is_password(name))


def hides_number(name: str) -> bool:
    """True for a password or pin written as a number."""
    return bool(name) and strength(name) == STRONG and is_password(name)


def in_url(name: bytes, value: bytes) -> bool:
    """True for a parameter of a URL that carries a credential."""
    level = strength(name.decode("utf-8", "replace"))
    if level == NONE or is_placeholder(value):
        return False
    if level == WEAK:
        signed = name.lower().endswith(b"signature") and len(value) >= _SHORT_SIGNATURE
        return signed or random_enough(value, 16)
    return len(value) >= SHORT
