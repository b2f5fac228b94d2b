"""Take wrappers off: JSON in text in JSON, reprs of four languages, bytes, hard-wrapped lines.

The wrapper lies and the inner cause decides, so every string is opened, at most `MAX_LEVEL` deep,
and what stands inside is handed on as sentences (to read) and facts (to look up).  Objects are
searched field by field; fields that echo the user's or the model's words are not searched at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import Any, Final

from attrs import define, field, frozen

from orchestrator.failure.linear import compile_text

MAX_LEVEL: Final = 4
"""Wrappers opened behind each other."""
MAX_TEXT: Final = 1 << 18
"""Characters read of one string; of a longer one its two ends, where causes stand."""
MAX_ALL: Final = 4 * MAX_TEXT
"""Characters read of one failure, each as often as it stood in a wrapper."""
_MAX_NODES: Final = 4000
"""Values visited in one structure."""
_MAX_DEPTH: Final = 64
_MAX_FACT: Final = 200
"""A longer string is no code and no name."""
_MAX_SEGMENTS: Final = 64
_MAX_LOOSE: Final = 64_000
"""Characters of a text in which `key: value` pairs are looked for."""
_MAX_PAIRS: Final = 200
_MAX_DIGITS: Final = 10
"""Longer runs of digits are ids."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SENTENCE_KEYS: Final = _words(
    "message msg detail details error errormessage errordescription description reason title "
    "raw body cause stderr text exception errors errormsg errmsg userfacingsessionerrormessage "
    "additionaldetails localizedmessage statustext failure summary suggestion responsebody data "
    "warning explanation err"
)
"""Fields in which somebody explains something."""

_ECHO_KEYS: Final = _words(
    "prompt messages content input history request conversation tools arguments stack traceback "
    "requestbodyvalues requestbody parameters params headers responseheaders command args cwd "
    "env output transcript user sessionid requestid"
)
"""Fields that repeat the user's or the model's words, or say nothing: never searched."""


_SYMBOL_KEYS: Final = _words(
    "code errno type name errortype errorname errorkind errorcode status grpcstatus reason"
)
"""Fields whose value is a symbol: one word that names an error."""


@frozen
class Sentence:
    """One text that somebody wrote to explain the failure."""

    original: str
    """As it arrived, for display."""
    plain: bytes
    """Lower case, single spaces, straight quotes, UTF-8: what the rules read."""
    provider: bool
    """From the field where this speaker puts provider errors."""
    level: int
    """Wrappers taken off before it was found."""
    keyed: bool = False
    """It stood in a message field, so it is a sentence by itself."""
    code: bool = False
    """A symbol from a code field, such as ECONNRESET: read by the rules, never shown."""


@define
class Contents:
    """Everything found in one failure."""

    sentences: list[Sentence] = field(factory=list)
    facts: dict[tuple[str, str], int] = field(factory=dict)
    """(field, value) in lower case, with the level it was found at."""
    numbers: dict[str, float] = field(factory=dict)
    """Numeric fields, the innermost value of each; a vendor's own code hides no HTTP status."""
    trees: list[Any] = field(factory=list)
    """Decoded structures, outermost first, for the hints."""
    hinted: bool = False
    """A field names a wait, a reset or headers, so the hints are worth reading."""
    _nodes: int = 0
    _read: int = 0

    def add(self, value: object, *, provider: bool = True, level: int = 0, key: str = "") -> None:
        """Open one value of any kind."""
        if isinstance(value, str):
            self._text(value, provider=provider, level=level, keyed=bool(key))
        elif isinstance(value, Mapping | list | tuple):
            self.trees.append(value)
            self._tree(value, provider=provider, level=level)
        elif isinstance(value, bytes | bytearray):
            text = bytes(value[:MAX_TEXT]).decode("utf-8", "replace")
            self._text(text, provider=provider, level=level, keyed=bool(key))

    def _tree(self, root: Any, *, provider: bool, level: int) -> None:
        todo: list[tuple[str, Any, int]] = [("", root, 0)]
        while todo and self._nodes < _MAX_NODES:
            key, value, depth = todo.pop()
            self._nodes += 1
            if isinstance(value, str):
                self._fact(key, value, level)
                if key in _SENTENCE_KEYS and value.strip():
                    self._text(value, provider=provider, level=level, keyed=True)
            elif isinstance(value, bool) or value is None:
                continue
            elif isinstance(value, int | float):
                self._number(key, value, level)
            elif depth < _MAX_DEPTH:
                if key == "codexerrorinfo" and isinstance(value, Mapping):
                    self.facts.update({(key, str(k).lower()): level for k in list(value)[:4]})
                todo.extend(self._children(key, value, depth + 1))

    def _children(self, key: str, value: Any, depth: int) -> Iterator[tuple[str, Any, int]]:
        """Entries of an object or array, last first because they go on a stack."""
        if isinstance(value, Mapping):
            items = islice(value.items(), _MAX_NODES)
            pairs = [(_name(k[:_MAX_FACT]), v) for k, v in items if isinstance(k, str)]
            self.hinted = self.hinted or any(_says_when(k) for k, _ in pairs)
            return ((k, v, depth) for k, v in reversed(pairs) if k not in _ECHO_KEYS)
        if isinstance(value, list | tuple):
            return ((key, v, depth) for v in reversed(value[:_MAX_NODES]))
        return iter(())

    def _fact(self, key: str, value: str, level: int) -> None:
        if key and len(value) <= _MAX_FACT:
            self.facts.setdefault((key, value.strip().lower()), level)
            if value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS:
                self._number(key, int(value), level)
            elif key in _SYMBOL_KEYS and " " not in value:
                self._symbol(value, level)

    def _symbol(self, value: str, level: int) -> None:
        encoded = value.lower().encode("utf-8", "replace")
        if len(self.sentences) < _MAX_SEGMENTS:
            self.sentences.append(Sentence(value, encoded, provider=True, level=level, code=True))

    def _number(self, key: str, value: float, level: int) -> None:
        if key and value == value and abs(value) < 1e15:  # noqa: PLR0124, PLR2004 - NaN, absurd
            if key not in self.numbers or not _is_status(self.numbers[key]) or _is_status(value):
                self.numbers[key] = value
            self.facts.setdefault(
                (key, f"{value:.0f}" if value == int(value) else str(value)), level
            )

    def _text(self, text: str, *, provider: bool, level: int, keyed: bool) -> None:
        if len(self.sentences) >= _MAX_SEGMENTS or self._read > MAX_ALL or not text:
            return
        if len(text) > MAX_TEXT:
            text = f"{text[: MAX_TEXT // 2]}\n{text[-MAX_TEXT // 2 :]}"
        self._read += len(text)
        if text.isspace():
            return
        rest = text
        if level < MAX_LEVEL and ("{" in text or '"' in text or "[" in text):
            rest = self._open_json(text, provider=provider, level=level)
        if rest and not rest.isspace():
            self._sentence(rest, provider=provider, level=level, keyed=keyed)
            if level < MAX_LEVEL and (":" in rest or "=" in rest):
                self._open_loose(rest, provider=provider, level=level)

    def _open_json(self, text: str, *, provider: bool, level: int) -> str:
        """Decode the JSON in a text; returns the text around it."""
        around: list[str] = []
        rest = text
        for _ in range(MAX_LEVEL):
            start = _json_start(rest)
            if start < 0:
                break
            value, end = _decode(rest, start)
            if end < 0 or (isinstance(value, str) and rest[end:].strip()):
                break  # "quoted" words at the start of a sentence are no wrapper
            around.append(rest[:start].removesuffix("b'"))
            rest = rest[end:].removeprefix("'")
            if isinstance(value, str) and value != text:
                self._text(value, provider=provider, level=level + 1, keyed=False)
            elif not isinstance(value, str):
                self.trees.append(value)
                self._tree(value, provider=provider, level=level + 1)
        around.append(rest)
        return " ".join(part for part in around if part.strip(" \t\r\n,;:.()[]'\""))

    def _open_loose(self, text: str, *, provider: bool, level: int) -> None:
        """Read `key: value` pairs of a repr, an inspected object or a cut-off JSON."""
        read = text[:_MAX_LOOSE].encode("utf-8", "replace")
        for found in islice(_loose().finditer(read), _MAX_PAIRS):
            key, double, single, bare = found.groups()
            value = (double or single or bare or b"").decode("utf-8", "replace")
            name = _name(key.decode())
            if double or single:
                value = value.replace("\\n", "\n").replace("\\", "")
                if name in _SENTENCE_KEYS and " " in value:
                    self._text(value, provider=provider, level=level + 1, keyed=True)
            self._fact(name, value, level)

    def _sentence(self, text: str, *, provider: bool, level: int, keyed: bool) -> None:
        plain = plain_text(text)
        for one in _variants(text, plain) if "\n" in text else (plain,):
            encoded = one.encode("utf-8", "replace")
            if not self._knows(encoded, provider=provider):
                self.sentences.append(Sentence(text, encoded, provider, level, keyed))

    def _knows(self, plain: bytes, *, provider: bool) -> bool:
        for known in self.sentences:  # noqa: SIM110 - `any` costs more than the comparison
            if known.plain == plain and known.provider >= provider:
                return True
        return False


def _is_status(number: float) -> bool:
    return 400 <= number < 600  # noqa: PLR2004 - HTTP's failures


@lru_cache(maxsize=1024)
def _says_when(name: str) -> bool:
    """A field name that the hints may read: a wait, a reset, headers."""
    return any(word in name for word in ("retry", "reset", "wait", "delay", "header"))


@lru_cache(maxsize=1024)
def _name(key: str) -> str:
    """A field name in one spelling: `error_kind`, `errorKind` and `error-kind` are the same."""
    return key.lower().replace("_", "").replace("-", "")


_QUOTES: Final = str.maketrans("\u2018\u2019\u201c\u201d\u00b4\u2032", "''\"\"''", "\u200b\ufeff")


def plain_text(text: str) -> str:
    """Lower case, single spaces, straight quotes: how rules and tests see a text."""
    if not text.isascii():
        text = text.translate(_QUOTES)
    return " ".join(text.lower().split())


def _variants(text: str, plain: str) -> tuple[str, ...]:
    """The text, and the text with its line breaks taken out where a terminal wrapped words."""
    if len(text) > _MAX_WRAPPED:
        return (plain,)
    joined = plain_text("".join(line.strip() for line in text.splitlines()))
    return (plain, joined)


_MAX_WRAPPED: Final = 8000
"""Characters of a text that a person copied from a terminal; longer ones are logs."""


def _json_start(text: str) -> int:
    """Where JSON may begin: a brace before a quote, or a quoted text that is the whole."""
    stripped = text.lstrip()
    if stripped[:1] == '"' and stripped.rstrip()[-1:] == '"':
        return len(text) - len(stripped)
    found = _json_opening().search(text)
    return -1 if found is None else int(found.start())


_DECODER: Final = json.JSONDecoder(strict=False)


def _decode(text: str, start: int) -> tuple[Any, int]:
    """JSON at this place and where it ends, or (None, -1)."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, -1


@cache
def _json_opening() -> Any:
    import re  # noqa: PLC0415 - beside the engine below, loaded at the first failure

    return re.compile(r'[\[{](?=[\s\[{]{0,6}["}])')


@cache
def _loose() -> Any:
    keys = (
        r"error_?kind|error_?types?|error_?name|error_?code|errno|type|code|status|status_?code"
        r"|http_?status_?code|http_?status|reason|name|message|msg|details?|error|raw|body"
        r"|description|title"
    )
    string = r'"((?:[^"\\]|\\.)*)(?:"|\z)' + "|" + r"'((?:[^'\\]|\\.)*)(?:'|\z)"
    return compile_text(
        rf"(?is)(?:^|[\s{{(,\[*])[\"']?({keys})[\"']?\s*(?::|=>|=)\s*"
        rf"(?:Some\()?(?:String\(|Optional\()?(?:{string}|([-\w.]+))"
    )
