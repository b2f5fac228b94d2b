"""A provider's text as a person may read it: redacted, out of its envelopes, without diagnostics.

The words stay the provider's.  What goes is what helps nobody in a title: stack traces, statuses
and exception names in front, retry counters behind, URLs (their host stays), absolute paths (their
last part stays), and advice that names a command of one program only.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

from orchestrator.failure.linear import Signs, compile_signs, compile_text
from orchestrator.failure.redact import head

MAX_READ: Final = 16_000
"""Characters of one text that are worded; what a person reads stands in front."""
_MAX_ENVELOPES: Final = 8

_ENVELOPES: Final = (
    r"^error -\d{5} ",
    # Tags and marks that a terminal interface puts in front.
    r"^\[[\w ./-]{1,40}\]:? ",
    r"^[\s*\[✕✗✘✖■⚠❌🥲•·⎿\x{fe0f}|>\"'`(]+",
    # A vendor's number in brackets, its sentence in the next.
    r"^\d{3,5}\]\[",
    (
        r"^(?:an? )?(?:(?:internal|api|codex|chat|openai|anthropic|gemini|deepseek|acp|agent"
        r"|stream|protocol|unhandled|fatal|unexpected) )*"
        r"(?:error|exception)(?: \(?-?\d{3,5}\)?| code:? -?\d+| details)?(?: -)?(?::|,| -) ?"
    ),
    r"^(?:[\w$]+\.)*\w+(?:error|exception|failure|timeout)\b(?: \[[\w.]+\])?(?::| -) ",
    r"^encountered an error in the response stream: |^<unknown status code>:? |^payment required: ",
    r"^stream disconnected before completion: ",
    (
        r"^(?:error sending prompt|error running remote compact task|ran into this error|kiro"
        r" is having trouble responding right now"
        r"|error invoking the model|error from llm provider|api request failed|api returned an"
        r" error|model call failed|execution failed"
        r"|failed to send the request|error details|api validation failed|an unknown error"
        r" occurred|message)"
        r"(?: \(attempt \d+/\d+\))?: ?"
    ),
    r"^event: error(?: data:?)?",
    r"^(?:request rejected|api error|error) \(?[1-5]\d\d\)?(?: ?-)? ?",
    (
        r"^(?:got status|http(?:/[\d.]+)?(?: status)?|status(?: code)?|error code|unexpected"
        r" status|api returned unexpected status code):? \(?[1-5]\d\d\)?"
        r"(?: (?:bad request|unauthorized|forbidden|not found|too many requests|internal"
        r" server error|bad gateway|service unavailable|gateway time-?out))?(?: ?[:.-])* ?"
    ),
    r"^\(?[45]\d\d\)?(?:[ :-]+|$)",
    (
        r"^(?:an )?error occurred \(\w+\) when calling the \w+ operation(?: \(reached max"
        r" retries: \d+\))?: "
    ),
    r"^(?-i:[A-Z]{3,}(?:_[A-Z]+)+): ",
    # Where in the request the fault is: of use to the agent's author only.
    r"^messages\.\d+(?:\.\w+)*(?: ?\w+\.\w+(?:\.\w+)*)?: ",
)
"""What stands in front of the sentence and says nothing that the sentence does not."""

_TAILS: Final = (
    (
        r"[ ·(]*\bretrying (?:in|after|with) [^.]*(?:\d+\.\d+[^.]*)?(?:\.\.\.|…|\.)?(?:"
        r" ?\(?attempt \d+(?:/| of )\d+\)?)?\)?\.*$"
    ),
    r" ?\(attempt \d+(?:/| of )\d+\)",
    (
        r"[( ]*\b(?:copilot |gh )?(?:request|req|conversation|trace|correlation)[ _-]?id\b['\" ]*"
        r"[:=] ?['\"]?[\w:.-]{4,}['\"),]*"
    ),
    r",? ?\(?cf-ray: [\w-]+\)?|\]\[[0-9a-f]{12,40}\]?$",
    r",? url: \S+",
    r" ?\((?:http )?status(?: code)?: ?\w+\)| ?\(http \d{3}\)",
    r" ?\(code:? -?\d+\)",
    r"[\s,;:\[({-]+$",
)
"""Counters, ids and half-open brackets."""

_DROPPED: Final = (
    # Advice that fits one program: its commands, keys and settings.
    (
        r"(?:^|[\s'\"`(])/(?:login|model|compact|clear|usage|new|resume|status|quit|logout"
        r"|auth|help|mcp|config)\b"
    ),
    r"\bdouble press esc\b|\bpress esc\b|\bverbose: ?`?true\b|\brun codex resume\b",
    r"\b[A-Z]{3,}(?:_[A-Z]+)+ environment variable\b",
    r"\bset (?:the )?environment variable\b|\benvironment variable pointing\b",
    r"\bprocess\.env\b|\bsteer\(\) or followup\(\)",
    # Where to read on, and what a wrapper says about every error.
    (
        r"^(?:for (?:more )?(?:information|details)|to learn more|learn more|see also|see|read"
        r" more|documentation|please refer to|visit|browse to|to monitor)\b.*https?://"
    ),
    r"^\W*https?://\S+$",
    r"^please retry if you think this is a transient or recoverable error",
    r"^\W*(?:grpc )?status: ?\w+\W*$|^\W*exit code: -?\d+\W*$|^\W*unknown error\W*$",
    r"^type \"continue\" to try again|^retrying\b|^turn failed\.?$|^\[codex\] turn failed",
)
"""A sentence with one of these is left out, unless nothing else was said."""

_WHEN: Final = (
    r"\bresets? (?:at|in|on|after|\d)|\bwill reset\b|\btry again (?:at|in|on|after) \S*\d"
    r"|\btry again (?:at|on) [A-Z]|\bregain access\b|\bretry (?:in|after) \d|redefinido em"
)
"""A sentence that says when is never left out."""

_TRACE: Final = (
    r"(?is)(?:\n\s*at (?:async )?[\w$.<>\[\] /]{1,120} ?\(.*|\n\s*at (?:async )?(?:file://"
    r"|node:|/|[A-Za-z]:\\|[\w./-]+:\d+:\d+).*"
    r"|\s+at (?:async )?(?:[\w$.<>\[\]]{1,80} \()?(?:file://|node:|[\w./-]+:\d+:\d+).*"
    r"|\s*\btraceback \(most recent call last\):.*|\s*\blocation:\s+crates/.*|\s*\bstack"
    r"(?:trace)?: .*|\s*-----? native stack trace.*"
    r"|\n *(?:message|name|code|\$fault|\$metadata|errno|syscall): .*|\n +\[cause\]: .*)"
)

_URL: Final = (
    r"\b(?:https?|wss?|ftp|file)://(?:[^\s/@\"'<>]*@)?"
    r"([^\s/?#\"'()<>\[\]{}|\\,]+)[^\s\"'()<>\[\]{}|\\]*"
)
_PATH: Final = r"(^|[\s\"'(=:\[`])(?:~|\.\.?)?(?:/[\w.@+~ -]{0,0}[\w.@+~-]+)+/([\w.@+~-]+)/?"
_WINDOWS_PATH: Final = r"\b[A-Za-z]:\\+(?:[^\\\s\"'<>|:*?]+\\+)+([^\\\s\"'<>|:*?]+)"
_PLACES: Final = ((_URL, rb"\1"), (_PATH, rb"\1\2"), (_WINDOWS_PATH, rb"\1"))
"""Places, in the order in which they go, and what stays of each."""
_REQUEST_ID: Final = r"(?i)\b(?:request|req)[ _-]?id\b['\" ]*[:=] ?['\"]?([\w:.-]{4,64})"


@cache
def _engine(patterns: tuple[str, ...]) -> Any:
    return compile_text(_joined(patterns))


def _joined(patterns: tuple[str, ...]) -> str:
    return "(?i)" + "|".join(f"(?:{p})" for p in patterns)


def without_places(text: str) -> str:
    """URLs become their host, absolute paths their last part."""
    raw = text.encode("utf-8", "replace")
    if b"/" in raw or b"\\" in raw:
        # What goes for one of them may uncover another, of those behind it only.
        first = min(_placed()(raw) or (len(_PLACES),))
        for pattern, rest in _PLACES[first:]:
            raw = compile_text(pattern).sub(rest, raw)
    return str(raw.decode("utf-8", "replace"))


@cache
def _placed() -> Signs:
    return compile_signs(*(pattern for pattern, _ in _PLACES))


def request_id(text: str) -> str:
    """The provider's id of the request, where a text names it."""
    found = compile_text(_REQUEST_ID).search(text[:MAX_READ].encode("utf-8", "replace"))
    return "" if found is None else str(found.group(1).decode("utf-8", "replace")).rstrip(".")


def readable(text: str) -> str:
    """The sentences inside a text, redacted; empty when there were only envelopes."""
    text = head(text, MAX_READ)
    if not text.isascii() or "\n" in text or " at " in text or "stack" in text:
        text = _without_trace(text)
    parts = sentences(_paragraphs(text))
    noticed = [_noticed(part) for part in parts]
    kept = [_kept(part, seen) for part, seen in zip(parts, noticed, strict=True)]
    clean = " ".join(s for s in kept if s.strip(" ·"))
    again = noticed[0] if parts == [clean] else _noticed(clean)
    return _balanced(_trimmed(without_places(clean), again))


def _without_trace(text: str) -> str:
    """What stands in front of a stack trace, as valid UTF-8."""
    raw = text.encode("utf-8", "replace")
    cut = compile_text(_TRACE).search(raw)
    if cut is not None and raw[: cut.start()].strip():
        raw = raw[: cut.start()]
    return str(raw.decode("utf-8", "replace"))


def _paragraphs(text: str) -> str:
    """One line, in which the end of a paragraph stays the end of a sentence."""
    if "\n" not in text and "\r" not in text:
        return " ".join(text.split())
    blocks = [" ".join(block.split()) for block in text.replace("\r", "").split("\n\n")]
    blocks = [block for block in blocks if block]
    for index, block in enumerate(blocks[:-1]):
        if block[-1] not in _ENDS and blocks[index + 1][0].isupper():
            blocks[index] = f"{block}."
    return " ".join(blocks)


_ENDS: Final = frozenset(".!?:;,…\u3002\uff01\uff1f({[")


def _kept(sentence: str, noticed: list[int]) -> str:
    """One sentence as it may stay; empty when it goes."""
    if _DROP in noticed and _SAYS_WHEN not in noticed:
        return ""
    return _trimmed(sentence, noticed) + (" ·" if sentence.endswith("·") else "")


_DROP, _SAYS_WHEN, _IN_ENVELOPE, _WITH_TAIL = range(4)


@cache
def _notices() -> Signs:
    """One set for the four questions about a sentence, because most answers are no."""
    return compile_signs(*map(_joined, (_DROPPED, (_WHEN,), _ENVELOPES, _TAILS)))


def _noticed(text: str) -> list[int]:
    return _notices()(text.encode("utf-8", "replace")) or []


def _trimmed(text: str, noticed: list[int]) -> str:
    """Without what stands in front of the sentence and behind it."""
    if _IN_ENVELOPE not in noticed and _WITH_TAIL not in noticed:
        return text.strip(_LOOSE_ENDS)
    raw = text.encode("utf-8", "replace")
    for _ in range(_MAX_ENVELOPES):
        found = _engine(_ENVELOPES).search(raw) if _IN_ENVELOPE in noticed else None
        if found is None or found.end() == 0 or raw.startswith(b"[REDACTED"):
            break
        raw = _reopened(found.group(), raw[found.end() :])
        noticed = _notices()(raw) or []
        if raw[:1] in _QUOTES:
            break
    for _ in range(_MAX_TAILS):
        if _WITH_TAIL not in noticed:
            break
        raw = _engine(_TAILS).sub(b"", raw)
        noticed = _notices()(raw) or []
    return str(raw.decode("utf-8", "replace")).strip(_LOOSE_ENDS)


def _reopened(taken: bytes, rest: bytes) -> bytes:
    """The rest, with the quote that opened its first word and not the whole text."""
    first = _QUOTED_WORD.match(rest)
    return taken[-1:] + rest if first and taken[-1:] == first[1] else rest


_QUOTES: Final = frozenset((b'"', b"'", b"`"))
_QUOTED_WORD: Final = re.compile(rb"[\w./:\[\]-]{1,80}([\"'`]) ?[:=a-z]")
_MAX_TAILS: Final = 4
_LOOSE_ENDS: Final = " ,;:|-·"


def _balanced(words: str) -> str:
    """Without a bracket or quote whose partner went with an envelope."""
    if words[-1:] not in _CLOSING:
        return words
    for left, right in ("()", "[]", "{}"):
        if words.endswith(right) and words.count(left) < words.count(right):
            words = words[:-1].rstrip()
    for quote in "\"'`":
        if words.endswith(quote) and words.count(quote) % 2:
            words = words[:-1].rstrip()
    return words


_CLOSING: Final = frozenset(")]}\"'`")

_SENTENCE_END: Final = re.compile("[.!?][)'\"]?[ \t\n\f\r]+|[\u3002\uff01\uff1f]| · |\n")
"""Can't backtrack: the first character says which alternative it is."""
_ABBREVIATION: Final = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|no|inc|approx|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec)"
    r"|\b[a-z]|\.\.)\.\Z",
    re.ASCII | re.IGNORECASE,
)


def sentences(text: str) -> list[str]:
    """A text cut into sentences; an abbreviation or a lower-case letter behind the dot joins."""
    parts: list[str] = []
    start = 0
    for found in _SENTENCE_END.finditer(text):
        at, end = found.span()
        dotted = text[at] == "."
        if dotted and (_flows_on(text, end) or _is_abbreviation(text, start, at)):
            continue
        parts.append(text[start:end].strip())
        start = end
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _flows_on(text: str, end: int) -> bool:
    """A small letter goes on in the middle of a sentence, unless it is an address."""
    behind = text[end : end + 4]
    return behind[:1].isascii() and behind[:1].islower() and behind != "http"


def _is_abbreviation(text: str, start: int, dot: int) -> bool:
    """The word in front of this dot is cut short, and no bracket or quote closes behind it."""
    word = max(start, dot - _LONGEST_ABBREVIATION)
    return text[dot + 1] not in ")'\"" and bool(_ABBREVIATION.search(text, word, dot + 1))


_LONGEST_ABBREVIATION: Final = 16
"""Characters, with what stands in front of it."""


def shortened(text: str, longest: int) -> str:
    """The first whole sentence that says something, and the one that says when, if both fit."""
    if len(text) <= longest:
        return text
    parts = sentences(text)
    head = next((p for p in parts if len(p) >= _SHORTEST), text).strip(" ·")
    if len(head) > longest:
        cut = head[: longest - 1]
        return (cut[: cut.rfind(" ")].rstrip(" ,;:") if " " in cut[60:] else cut) + "…"
    for part in parts:
        if part != head and _engine((_WHEN,)).search(part.encode("utf-8", "replace")):
            return f"{head} {part}" if len(head) + len(part) < longest else head
    return head


_SHORTEST: Final = 12
"""Characters of a sentence that says something; `Sorry.` does not."""

_EMPTY_WORDS: Final = (
    (
        r"^(?:an? )?(?:internal |unknown |unexpected |api |server |http |provider |upstream "
        r"|the )*(?:error|failure|exception)(?: occurred)?[ .:!]*$"
    ),
    (
        r"^(?:request )?(?:failed|error|rejected)(?: with)?(?: http)?(?: status)?(?: code)?:?"
        r" ?\d{3}[.]?$"
    ),
    r"^exceeded retry limit, last status: .*$|^unexpected status \d{3}.*$",
    r"^(?:http )?(?:error|status)(?: code)?:? ?\d{3}.*$",
    (
        r"^(?:bad request|unauthorized|forbidden|not found|payment required|too many requests"
        r"|internal server error|bad gateway|service unavailable|gateway time-?out|method not"
        r" allowed)[.]?$"
    ),
    (
        r"^(?:invalid (?:params|request|argument)|overloaded|resource (?:has been )?exhausted"
        r"|rate limit (?:reached|exceeded|hit|error)|provider returned error|access denied"
        r"|permission denied)[.]?$"
    ),
    r"^(?:\d{3} )?status code \(no body\)$",
    r"^[^\p{L}]*$",
    r"^\S*(?:[a-z][A-Z]|_)\S*$",
)
"""What is said when nothing is said."""


def says_nothing(text: str) -> bool:
    """No person learns anything from this text: a status, a symbol, `internal error`."""
    return bool(_empty()(text.encode("utf-8", "replace")))


_SYMBOLS: Final = r"\b[A-Z][a-z]+[A-Z]\w*(?:Exception|Error|Failure)\b"


@cache
def _empty() -> Signs:
    *worded, symbol = _EMPTY_WORDS
    return compile_signs("(?i:" + "|".join(worded) + f")|{symbol}", _SYMBOLS)
