"""One failure, opened: what the rules look at."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from attrs import define, evolve, field

from orchestrator.failure.linear import compile_text
from orchestrator.failure.raw import RawFailure, Surface
from orchestrator.failure.speakers import Speaker
from orchestrator.failure.unwrap import Contents, Sentence
from orchestrator.failure.verdict import Context

if TYPE_CHECKING:
    from orchestrator.failure.hint_values import Hint

_STATUS_FIELDS: Final = (
    "httpstatuscode",
    "statuscode",
    "httpstatus",
    "status",
    "code",
    "errorcode",
)
"""Fields that hold an HTTP status, the most certain first."""
_FIRST_STATUS, _LAST_STATUS = 400, 599


@define
class View:
    """A raw failure with its contents, its speaker and its moment."""

    raw: RawFailure
    speaker: Speaker
    context: Context
    contents: Contents
    stream_cut: bool = False
    """A wrapper said that the stream was cut; it counts when nothing inside says more."""
    hint_worded: bool = True
    """Some sentence may say how long to wait; the walk knows, everybody else must look."""
    _hint: Hint | None = field(default=None, init=False)
    _statuses: tuple[int, ...] | None = field(default=None, init=False)

    @property
    def hint(self) -> Hint:
        """How long to wait and when a limit resets, read once."""
        if self._hint is None:
            self._hint = self._read_hint()
        return self._hint

    def _read_hint(self) -> Hint:
        # Loaded at a failure, not at import: everybody imports this room.
        if not (self.hint_worded or self.contents.hinted or self.raw.headers):
            from orchestrator.failure.hint_values import NOTHING  # noqa: PLC0415

            return NOTHING
        from orchestrator.failure.hints import read_hint  # noqa: PLC0415

        return read_hint(
            headers=self.raw.headers,
            data=self.contents.trees,
            texts=[sentence.original for sentence in self.contents.sentences],
            now=self.context.wall_now,
        )

    @property
    def wait_s(self) -> float | None:
        """Seconds stated until trying again can help, as a wait or as a reset."""
        hint = self.hint
        return hint.resets_in_s if hint.retry_after_s is None else hint.retry_after_s

    @property
    def sentences(self) -> list[Sentence]:
        return self.contents.sentences

    def statuses(self, worded: list[Sentence]) -> tuple[int, ...]:
        """HTTP statuses that say failure: the surface's, those in fields, those in wording."""
        if self._statuses is None:
            found = [] if self.raw.status is None else [self.raw.status]
            if numbers := self.contents.numbers:
                found += [int(numbers[name]) for name in _STATUS_FIELDS if name in numbers]
            if self.raw.surface is Surface.ACP_ERROR and self.raw.code is not None:
                found.append(self.raw.code)
            for sentence in worded:
                found += _worded_statuses(sentence)
            good = [s for s in found if _FIRST_STATUS <= s <= _LAST_STATUS]
            self._statuses = tuple(dict.fromkeys(good))
        return self._statuses


STATUS_RULE: Final = "status.wording"
HINT_RULE: Final = "hint.wording"

HINT_WORDING: Final = (
    # A word that opens a time, and a time behind it; or any text of another script with a digit.
    r"(?:\br[eé]?tr|\btry|\bre-?set|\brefresh|\brenew|\breplenish|regain|restored|lifted"
    r"|unlock|\bwait"
    r"|back(?:ing)?[ -]?off|sleeping|reconnect|next attempt|available|\bresum|come back|again"
    r"|until|delay|intent|tent[ae]|versuch|wiederhol|riprov|nouvelle|[|])"
    r".*(?:\d|tomorrow|today|midnight|noon|\ban? |\bone\b)"
    r"|\d.*(?:erneut|until|before)|[^\x00-\x7f].*\d|\d.*[^\x00-\x7f]"
)
"""Where a wait or a reset can stand at all; `hints` reads only those texts."""

_MARKS: Final = r"[\"'(\[\s✗✘✕✖❌⚠⎿]{0,5}"
"""What terminals put in front of an error."""
_REASONS: Final = (
    r"bad request|unauthorized|payment required|forbidden|not found|request timeout|conflict"
    r"|payload too large|request entity too large|unprocessable|too many requests"
    r"|internal server error|not implemented|bad gateway|service unavailable"
    r"|service temporarily unavailable|gateway time-?out|overloaded"
)
_NUMBER: Final = r"['\"]? ?[:=]? ?[(\['\"]?([45]\d\d)(?:[^\w.:%-]|[.:] |[.:]?$)"
STATUS_WORDING: Final = (
    # A word that makes a number a status.
    r"\b(?:https?(?:/\d(?:\.\d)?)?(?: (?:error|status|response|code))*|status(?:[ _-]?code)?"
    rf"|(?:api|server|client) error|\w*(?:api|http|status)error|error(?:[ _]?code)?){_NUMBER}"
    r"|\b(?:failed|rejected|failure|errored|response)(?:: ?| ?\()(?:https? |status )?([45]\d\d)\b"
    r"|\breturned:? ([45]\d\d)(?:[.,;:]|$)"
    # A number in front of its own reason phrase.
    rf"|\b([45]\d\d) ?(?:[-:(] ?)?(?:{_REASONS})"
    # Or behind it.
    rf"|\b(?:{_REASONS}) \(([45]\d\d)\)"
    # A number that stands where a status line does.
    rf"|^{_MARKS}([45]\d\d)(?:\]?: | [a-z{{\"'(]|$)"
)
"""Where a three-digit number is a status; anywhere else it is noise."""

_LINE_START: Final = (
    rf"^{_MARKS}[45]\d\d(?:\s+(?:[A-Z{{\"'(]|status|invalid|bad|error|no )|\]?: |\s*$)"
)
"""In the text as it arrived: a status line goes on with a capital, a count with its unit."""


@cache
def _status_pattern() -> Any:
    return compile_text(f"(?m){STATUS_WORDING}")


def _worded_statuses(sentence: Sentence) -> Iterator[int]:
    for found in islice(_status_pattern().finditer(sentence.plain), _MAX_STATUSES):
        *behind_a_word, line_start = found.groups()
        number = next((n for n in behind_a_word if n), b"")
        if not number and line_start:
            original = sentence.original[:_LINE].encode("utf-8", "replace")
            number = line_start if _line_start().search(original) else b""
        if number:
            yield int(number)


@cache
def _line_start() -> Any:
    return compile_text(f"(?m){_LINE_START}")


_LINE: Final = 2000
_MAX_STATUSES: Final = 20


_TRANSPORT_WRAPPERS: Final = (
    r"^(?:.{0,120}?)??(?:stream disconnected before completion: "
    r"|(?:litellm\.)?(?:exceptions\.)?(?:\w+\.)?api_?connection_?error: "
    r"|\w+exception - )"
)
"""Wrappers that claim a lost connection whatever is inside."""


@cache
def _transport_wrapper() -> Any:
    return compile_text(_TRANSPORT_WRAPPERS)


def open_failure(raw: RawFailure, speaker: Speaker, context: Context) -> View:
    """Collect every sentence and fact of a failure; never raises."""
    contents = Contents()
    fields = speaker.provider_fields
    provider_message = raw.surface is not Surface.ACP_ERROR or "message" in fields
    if raw.data is not None:
        contents.add(raw.data)
    if raw.body is not None:
        contents.add(raw.body)
    if raw.message:
        contents.add(raw.message, provider=provider_message)
    for cause in raw.causes:
        contents.add(cause, key="cause")
    if raw.stderr:
        contents.add(raw.stderr)
    view = View(raw, speaker, context, contents)
    for index, sentence in enumerate(contents.sentences):
        plain = sentence.plain
        if b"before completion: " in plain or b"connection" in plain or b"exception - " in plain:
            contents.sentences[index] = evolve(sentence, plain=_unwrapped(view, plain))
    return view


def _unwrapped(view: View, plain: bytes) -> bytes:
    """A sentence without the wrappers that lie about it."""
    for _ in range(_MAX_WRAPPERS):
        wrapper = _transport_wrapper().search(plain)
        if wrapper is None or not plain[wrapper.end() :].strip(b" .:"):
            break
        view.stream_cut = view.stream_cut or b"stream disconnected" in wrapper.group()
        plain = plain[wrapper.end() :]
    return plain


_MAX_WRAPPERS: Final = 4
