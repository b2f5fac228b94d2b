"""What a name says about its value, and a value about itself.

The name decides how much the value has to prove.  A *strong* name (`client_secret`) takes nearly
any value; a *medium* one (`token`) wants letters mixed with digits; a *weak* one (`key`) wants a
long random run.  Ordinary words, placeholders and pieces of code are never values.

Used by `secret_names`; values are bytes, for the reasons given in `secret_search`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from orchestrator.failure.randomness import random_enough

STRONG, MEDIUM, WEAK, NONE = 3, 2, 1, 0

LONG = 64
"""A value this long is never an ordinary word; it also bounds what a refusal has looked at."""
SHORT = 4
"""A PIN and a parameter of a URL may be as short."""

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
    r"|(?:github|gitlab|azure|ado|azdo|devops|jira|personal)_?pat"
    r"|shared_?access_?signature|connection_?string|conn_?str|credentials?|creds"
    r"|(?:proxy_)?authorization|(?:set_)?cookies?2?|session_?(?:cookie|secret)"
    r"|x_amz_(?:signature|credential)|x_goog_signature|authkey|passkey))" + _SUFFIX + r"$"
)
_MEDIUM_NAME = re.compile(
    r"(?:^|_)(?:tokens?|pass|auth|jwt|sid|session_?key|otp|totp|mfa|pin|bearer"
    r"|sas|dsn|sig|code_verifier|nonce_key)" + _SUFFIX + r"$"
)
_WEAK_NAME = re.compile(r"(?:key|signature|hmac|code|webhook)" + _SUFFIX + r"$")
_OTHER_THINGS = re.compile(
    r"(?:^|_)(?:public|primary|foreign|partition|sort|cache|lookup|dedupe?|idempotency|host|known|sub"
    r"|row|group|map|object|s3|bucket|registry|unique|index|next|page|pagination|continuation"
    r"|cursor|sync|unexpected|eos|bos|pad|stop|end|start|special|completion|prompt|input|output"
    r"|cached|reasoning|max|min|total|status|error|exit|country|zip|postal|return|response|source"
    r"|qr|bar|vs|model|quota|metric|routing|thinking)"
    r"_?(?:tokens?|keys?|pass|auth|codes?|session|signature|credentials?)(?:_?id)?$"
)
"""Keys, tokens and codes of another sense, also where the two words stand apart."""
_FLAGS = re.compile(r"(?:^|_)(?:has|is|no|use|need|needs|missing|expected)_[a-z_]+$")
"""`has_password`: the answer to a question."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_JOINTS = re.compile(r"[\W_]+")


def strength(name: str) -> int:
    """How far a name alone makes its value a secret; reads the end of a long name only."""
    return _strength(name[-LONG:])


@lru_cache(maxsize=2048)
def _strength(name: str) -> int:
    name = name.strip()
    last = name.rpartition(" ")[2]
    plain = _plain(last)
    if _FLAGS.search(plain) or _OTHER_THINGS.search(plain):
        return NONE
    if _STRONG_NAME.search(plain):
        return STRONG
    # "api key" is one name in two words, and so is "completion token".
    plain = _plain(name)
    if _OTHER_THINGS.search(plain):
        return NONE
    if _STRONG_NAME.search(plain):
        return STRONG
    level = MEDIUM if _MEDIUM_NAME.search(plain) else WEAK if _WEAK_NAME.search(plain) else NONE
    # The environment of a process names its secrets in capitals.
    return level + 1 if level and "_" in last and last.isupper() else level


def _plain(name: str) -> str:
    return _JOINTS.sub("_", _CAMEL.sub("_", name)).strip("_").lower()


# -- values ---------------------------------------------------------------------------------------

HEX = re.compile(rb"[0-9a-fA-F-]+")
UUID = re.compile(rb"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_VERSION = re.compile(rb"[0-9]+(?:\.[0-9]+)+|0x[0-9a-fA-F]+")
_IDENTIFIER = re.compile(rb"[A-Za-z_][A-Za-z_]*(?:\.[A-Za-z_]\w*)*")
_DOTTED = re.compile(rb"[A-Za-z_]+\d?(?:\.[A-Za-z_]+\d?)+")
IDENTIFIER_1 = re.compile(rb"[A-Za-z_]+\d?[A-Za-z_]*")
CALL = re.compile(rb"(?:(?:[A-Za-z_]\w*\.)+\w+|[A-Za-z_]+)[(\[]")
_PLACEHOLDER = re.compile(
    rb"(?i)<[^>]*>?|(?:\{[^{}]*\}?[:@/.-]?)+|\$\{[^}]*\}?|\$\(.*|\$[A-Z_][A-Z0-9_]*|\$env:\w+|%[A-Z_]+%"
    rb"|%\(?\w*\)?s|\.{2,}|-+|_+|\[[^\]]*\]?|your[-_ ].*|my[-_ ]?(?:api|secret|token|pass).*"
    rb"|x{3,}|\xe2\x80\xa6|\xff|\xfe[\xf5-\xfc]+\xfd"
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
SECRET_WORD = re.compile(rb"(?i)pass|secret|token|key|cred|auth|cookie|header|config|setting|env")


def is_placeholder(value: bytes) -> bool:
    """True for what stands where a secret belongs: `<key>`, `${KEY}`, `your-key`, a tag of ours."""
    return bool(_PLACEHOLDER.fullmatch(value))


def qualifies(level: int, value: bytes, *, quoted: bool, password: bool) -> bool:
    """True where a value behind a name of this level is a secret."""
    value = value.strip()
    if not value or is_placeholder(value) or (not password and _VERSION.fullmatch(value)):
        return False
    if level == STRONG:
        return len(value) > LONG or not _is_ordinary(value, quoted=quoted, password=password)
    if value.lower() in _ORDINARY or UUID.fullmatch(value) or (not quoted and _is_code(value)):
        return False
    if level == MEDIUM:
        if value.isdigit():
            return password and len(value) >= SHORT
        whole = quoted and len(value) >= 16 and not re.search(rb"[\s_./:-]", value)  # noqa: PLR2004
        return whole or random_enough(value, 6)
    return random_enough(value, 20) and not HEX.fullmatch(value)


def _is_ordinary(value: bytes, *, quoted: bool, password: bool) -> bool:
    lower = value.lower().rstrip(b".,;:!?)")
    if lower in _ORDINARY:
        return True
    if value.isdigit():
        return len(value) < (4 if password else 12)
    words = lower.split()
    if len(words) > 1:
        return not _SENTENCE.isdisjoint(words)
    return _is_code(value) if not quoted else bool(UUID.fullmatch(value)) and not password


def _is_code(value: bytes) -> bool:
    """A variable, an attribute or a call, as in a line of source."""
    if _DOTTED.fullmatch(value):
        return True
    return bool(_IDENTIFIER.fullmatch(value) and SECRET_WORD.search(value))


def is_password(name: str) -> bool:
    """True for what people choose: it may be a word or a number."""
    lower = name.lower()
    return any(word in lower for word in ("passw", "passphrase", "passcode", "pwd", "pin", "otp"))
