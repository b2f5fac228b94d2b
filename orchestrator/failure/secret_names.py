"""A value is a secret because of the name beside it: `api_key=...`, `"password": "..."`, a header.

The name decides how much the value has to prove.  A *strong* name (`client_secret`) takes nearly
any value; a *medium* one (`token`) wants letters mixed with digits; a *weak* one (`key`) wants a
long random run.  Ordinary words, placeholders and pieces of code are never values.

Used by `redact`; works on bytes, for the reasons given there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, Final

from orchestrator.failure.linear import compile_linear

STRONG, MEDIUM, WEAK, NONE = 3, 2, 1, 0

_REMEMBERED = 40
"""Bytes before a name's core that are read to see the whole name."""
_SHORT_SIGNATURE, _SHORT_PARAMETER = 8, 4
_LONG = 64
"""A value this long is never an ordinary word; it also bounds what a refusal has looked at."""

# -- names ----------------------------------------------------------------------------------------

_SUFFIX = (
    r"(?:_?(?:id|value|val|plain|text|raw|b64|base64|old|new|prod|dev|test|live|main|[0-9]{1,2}))?"
)
_STRONG_NAME = re.compile(
    r"(?:(?:pass_?(?:word|wd|phrase)|passwort|api_?key|auth_?token|access_?token|client_?secret"
    r"|private_?key|secret_?key)s?|(?:^|_)(?:passcode|pwd|kennwort|senha|contrase[nñ]a|wachtwoord"
    r"|mot_de_passe|密码|パスワード|secrets?|(?:api|app|access|account|admin|auth|client|consumer|customer|deploy"
    r"|encryption|integration|license|master|private|project|root|secret|security|service"
    r"|shared_access|signing|ssh|storage|subscription|user|webhook|write|ingest)_?(?:secret|key)s?"
    r"|(?:api|app|access|admin|auth|authentication|bearer|bot|client|deploy|github|gitlab|id"
    r"|identity|installation|jwt|login|npm|oauth|oauth2|personal|personal_access|private|pypi"
    r"|refresh|registration|root|sas|secret|security|service|session|slack|user|vault|x_auth"
    r"|x_vault|x_amz_security)_?token"
    r"|shared_?access_?signature|connection_?string|conn_?str|credentials?|creds"
    r"|(?:proxy_)?authorization|(?:set_)?cookies?2?|session_?(?:cookie|secret)"
    r"|x_amz_(?:signature|credential)|x_goog_signature|authkey|passkey))" + _SUFFIX + r"$"
)
_MEDIUM_NAME = re.compile(
    r"(?:^|_)(?:tokens?|pass|auth|jwt|sid|session_?key|otp|totp|mfa|pin|bearer|pat"
    r"|sas|dsn|sig|code_verifier|nonce_key)" + _SUFFIX + r"$"
)
_WEAK_NAME = re.compile(r"(?:key|signature|hmac|code|webhook)" + _SUFFIX + r"$")
_HARMLESS_NAME = re.compile(
    r"(?:^|_)(?:public|primary|foreign|partition|sort|cache|lookup|dedupe?|idempotency|host|known|sub"
    r"|row|group|map|object|s3|bucket|registry|unique|index|next|page|pagination|continuation"
    r"|cursor|sync|unexpected|eos|bos|pad|stop|end|start|special|completion|prompt|input|output"
    r"|cached|reasoning|max|min|total|status|error|exit|country|zip|postal|return|response|source"
    r"|qr|bar|vs|model|has|is|no|use|need|needs|missing|expected|quota|metric|routing|thinking)"
    r"_?(?:api_)?(?:tokens?|keys?|pass(?:word)?|auth|codes?|secrets?|session|signature|credentials?)"
    r"(?:_?id)?$"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_JOINTS = re.compile(r"[\W_]+")


@lru_cache(maxsize=2048)
def strength(name: str) -> int:
    """How far a name alone makes its value a secret; reads the end of a long name only."""
    plain = _JOINTS.sub("_", _CAMEL.sub("_", name[-_LONG:])).strip("_").lower()
    if _HARMLESS_NAME.search(plain):
        return NONE
    if _STRONG_NAME.search(plain):
        return STRONG
    level = MEDIUM if _MEDIUM_NAME.search(plain) else WEAK if _WEAK_NAME.search(plain) else NONE
    # The environment of a process names its secrets in capitals.
    return level + 1 if level and "_" in name and name.isupper() else level


# -- values ---------------------------------------------------------------------------------------

_DIGIT = re.compile(rb"[0-9]")
_LETTER = re.compile(rb"[A-Za-z]")
_UPPER_INSIDE = re.compile(rb"[a-z0-9][A-Z]")
_LOWER = re.compile(rb"[a-z]")
_HEX = re.compile(rb"[0-9a-fA-F-]+")
_UUID = re.compile(rb"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_VERSION = re.compile(rb"[0-9]+(?:\.[0-9]+)+")
_IDENTIFIER = re.compile(rb"[A-Za-z_][A-Za-z_]*(?:\.[A-Za-z_]\w*)*")
_DOTTED = re.compile(rb"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_CALL = re.compile(rb"(?:(?:[A-Za-z_]\w*\.)+\w+|[A-Za-z_]+)[(\[]")
_PLACEHOLDER = re.compile(
    rb"(?i)<[^>]*>?|\{[^}]*\}?|\$\{[^}]*\}?|\$\(.*|\$[A-Z_][A-Z0-9_]*|\$env:\w+|%[A-Z_]+%|%\(?\w*\)?s"
    rb"|\.{2,}|-+|_+|\[[^\]]*\]?|your[-_ ].*|my[-_ ]?(?:api|secret|token|pass).*|x{3,}|\xe2\x80\xa6"
)
_ORDINARY = frozenset(
    b"none null nil true false undefined nan str string text bytes int integer float bool boolean "
    b"object dict list array tuple set any optional required missing invalid valid incorrect wrong "
    b"empty unset blank unknown expired revoked disabled enabled hidden redacted masked removed "
    b"default basic bearer digest token password passwd pwd secret key value user username name "
    b"self this not is was the a an in of on or and to for from error failed failure ok yes no "
    b"auto env file prompt keyring vault oauth apikey header cookie query body path stdin with "
    b"on off include omit same-origin same_origin allow deny manual automatic see".split()
)
_SENTENCE = frozenset(
    b"the a an is are was must should can could not your you please required enter to of for in "
    b"with and or from this that has have been no will may invalid".split()
)
_SECRET_WORD = re.compile(rb"(?i)pass|secret|token|key|cred|auth|cookie|header|config|setting|env")


def mixed_case(value: bytes) -> bool:
    """A capital inside, beside small letters: base64, not prose."""
    return bool(_UPPER_INSIDE.search(value) and _LOWER.search(value))


def random_enough(value: bytes, length: int) -> bool:
    """Long, in one piece, digits among the letters, and no single character that dominates."""
    if len(value) < length or not _DIGIT.search(value) or not _LETTER.search(value):
        return False
    sample = value[:256]
    if b" " in sample or sample.startswith((b"/", b"./", b"../", b"~/")):
        return False
    return entropy(sample) >= min(3.0, math.log2(length) * 0.7)


def entropy(value: bytes) -> float:
    """Bits per character."""
    shares = (value.count(byte) / len(value) for byte in set(value))
    return -sum(share * math.log2(share) for share in shares)


def _qualifies(level: int, value: bytes, *, quoted: bool, password: bool) -> bool:
    value = value.strip()
    if not value or _PLACEHOLDER.fullmatch(value):
        return False
    if level == STRONG:
        return len(value) > _LONG or not _is_ordinary(value, quoted=quoted, password=password)
    if value.lower() in _ORDINARY or _UUID.fullmatch(value) or (not quoted and _is_code(value)):
        return False
    if level == MEDIUM:
        if value.isdigit():
            return password and len(value) >= _SHORT_PARAMETER
        whole = quoted and len(value) >= 16 and not re.search(rb"[\s_./:-]", value)  # noqa: PLR2004
        return whole or random_enough(value, 6)
    return random_enough(value, 20) and not _HEX.fullmatch(value)


def _is_ordinary(value: bytes, *, quoted: bool, password: bool) -> bool:
    lower = value.lower().rstrip(b".,;:!?)")
    if lower in _ORDINARY:
        return True
    if value.isdigit():
        return len(value) < (4 if password else 12)
    if _VERSION.fullmatch(value):
        return True
    words = lower.split()
    if len(words) > 1:
        return not _SENTENCE.isdisjoint(words)
    return _is_code(value) if not quoted else bool(_UUID.fullmatch(value)) and not password


def _is_code(value: bytes) -> bool:
    """A variable, an attribute or a call, as in a line of source."""
    if _DOTTED.fullmatch(value) and not _DIGIT.search(value):
        return True
    return bool(_IDENTIFIER.fullmatch(value) and _SECRET_WORD.search(value))


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
    rf"|([\"']\s*[,}}]\s*{_FIELD}[\"']{_VALUE_KEY}[\"']\s*:\s*)"
    r"|([\"']\s*,\s*[brfu]?(?:[\"']))"
    rf"|([ \t]*\r?\n[ \t]*{_VALUE_KEY}[ \t]*:[ \t]*)"
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
_NEXT_PAIR = re.compile(rb"[,;&|](?=\s|$|[A-Za-z_][A-Za-z0-9_.-]*\s*[=:])|[,;&|][\"'\]})]")


@cache
def _patterns() -> tuple[Any, Any, Any]:
    return compile_linear(_ASSIGNED), compile_linear(_FLAG), compile_linear(_REVERSED)


def spans(data: bytes) -> Iterator[tuple[int, int]]:
    """Where the values of secret names stand in a text."""
    assigned, flag, reversed_ = _patterns()
    done = 0
    for match in assigned.finditer(data):
        start, end = match.span()
        if start < done:
            continue
        found = _assigned(data, start, end, match.lastindex, match.start(match.lastindex))
        if found and found[0] < found[1]:
            yield found
            done = found[1]
    if b"-" in data:
        for match in flag.finditer(data):
            value = _VALUE.match(data, match.end())
            if value and _flag_counts(match.group(), value):
                yield _span(value)
    if b"value" in data or b"Value" in data:
        for match in reversed_.finditer(data):
            if hides(match.group(2).decode("utf-8", "replace"), match.group(1)):
                yield match.span(1)


def _span(value: re.Match[bytes]) -> tuple[int, int]:
    return value.span(value.lastgroup or 0)


def _flag_counts(flag: bytes, value: re.Match[bytes]) -> bool:
    name = flag.strip(b" \t\"',[(-").decode("utf-8", "replace")
    level = strength(name)
    text = value.group(value.lastgroup or 0)
    if level == NONE or text.startswith(b"-"):
        return False
    quoted = value.lastgroup != "bare"
    return _qualifies(level, text, quoted=quoted, password=_is_password(name)) and (
        level < STRONG or quoted or flag.lstrip(b" \t\"',[(").startswith(b"--")
    )


def _assigned(data: bytes, start: int, end: int, how: int, named: int) -> tuple[int, int] | None:
    before = data[max(0, start - _REMEMBERED) : start]
    lead = before[len(before.rstrip(_IDENTIFIER_BYTES)) :]
    name = (lead + data[start:named]).decode("utf-8", "replace")
    level = strength(name)
    if level == NONE:
        return None
    if how == _XML and not before.endswith(b"<" + lead):
        return None
    if how == _PAIR:
        end -= 1
    lower = name.lower()
    if how == _ASSIGN and ("cookie" in lower or "authorization" in lower):
        found = _header(data, end, lower, before)
        if found:
            return found
    value = _VALUE.match(data, end)
    if value is None or (how == _ASSIGN and _closes(value, before, data[named:end])):
        return None
    return _judged(data, value, level, how, name)


def _closes(value: re.Match[bytes], before: bytes, joint: bytes) -> bool:
    """The quotation mark behind the name ends the text it stands in: `prompt="Password: "`."""
    start, end = _span(value)
    around = before.rstrip(_IDENTIFIER_BYTES)[-1:]
    if value.lastgroup == "bare" or around != value.string[start - 1 : start] or around in joint:
        return False
    return value.string[start : min(end, start + 1)] in _BEHIND_A_TEXT


def _header(data: bytes, end: int, name: str, before: bytes) -> tuple[int, int] | None:
    """A header's credential: what follows the scheme, or the whole line of a cookie."""
    opening = _OPENING.match(data, end)
    start = opening.end() if opening else end
    around = before.rstrip(_IDENTIFIER_BYTES[:-1])[-1:]
    quote = (opening and opening.group(1)) or (around if around in _LINE else b"")
    if "cookie" in name:
        line = _LINE[quote].match(data, start)
        return line.span() if line and b"=" in line.group() else None
    scheme = _SCHEME.match(data, start)
    if scheme:
        # A placeholder is no credential, and neither is the scheme in front of it.
        return (start, start) if _PLACEHOLDER.fullmatch(scheme[1]) else scheme.span(1)
    line = _LINE[quote].match(data, start)
    return line.span() if line and _WITH_PARAMETERS.match(data, start) else None


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
    if how in {_PAIR, _PROSE} and not (random_enough(text, 6) or b"*" in text):
        return None
    if not quoted and len(text) <= _LONG and _reads_on(data, start, end, value.start()):
        return None
    ok = _qualifies(level, text, quoted=quoted, password=_is_password(name))
    return (start, end) if ok else None


def _reads_on(data: bytes, start: int, end: int, sep_end: int) -> bool:
    """A call, an index, or a word in the middle of a sentence."""
    after = data[end : end + 2]
    if after[:1] in {b"(", b"["} or _CALL.match(data, start, end):
        return True
    word = data[start:end]
    spaced = data[sep_end - 1 : sep_end] in {b" ", b"\t"} or start > sep_end
    return spaced and word.isalpha() and after[:1] == b" " and after[1:].isalpha()


def _is_password(name: str) -> bool:
    lower = name.lower()
    return any(word in lower for word in ("passw", "passphrase", "passcode", "pwd", "pin", "otp"))


# -- names and values in JSON and in URLs ---------------------------------------------------------

_NAME_KEYS: Final = re.compile(rf"(?i){_NAME_KEY}")
_VALUE_KEYS: Final = re.compile(rf"(?i){_VALUE_KEY}s?")


def is_secret(name: str) -> bool:
    """True for a name whose value has to be looked at."""
    return strength(name) != NONE


def is_value_key(key: str) -> bool:
    """True for the field that holds the value where another field holds the name."""
    return bool(_VALUE_KEYS.fullmatch(key[:_LONG]))


def neighbour(value: Mapping[Any, Any]) -> str:
    """The secret name that one field of an object gives to another, or nothing."""
    for key, item in value.items():
        named = isinstance(key, str) and isinstance(item, str) and _NAME_KEYS.fullmatch(key[:_LONG])
        if named and len(item) <= _LONG and is_secret(item):
            return str(item)
    return ""


def names_next(item: str) -> bool:
    """True for an element of a list that names the next one: a header, a flag."""
    return len(item) <= _LONG and " " not in item and strength(item.lstrip("-")) != NONE


def hides(name: str, value: str | bytes) -> bool:
    """True where a field of this name has to hide this value."""
    raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    return _qualifies(strength(name), raw, quoted=True, password=_is_password(name))


def hides_number(name: str) -> bool:
    """True for a password or pin written as a number."""
    return bool(name) and strength(name) == STRONG and _is_password(name)


def in_url(name: bytes, value: bytes) -> bool:
    """True for a parameter of a URL that carries a credential."""
    level = strength(name.decode("utf-8", "replace"))
    if level == NONE or _PLACEHOLDER.fullmatch(value):
        return False
    if level == WEAK:
        signed = name.lower().endswith(b"signature") and len(value) >= _SHORT_SIGNATURE
        return signed or random_enough(value, 16)
    return len(value) >= _SHORT_PARAMETER
