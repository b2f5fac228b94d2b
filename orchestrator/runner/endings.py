"""How an attempt's end becomes an event.

What an agent returned or raised is made a value before anything is decided about it.  Whether an
answer with nothing in it is an `empty_response` is the agent's to say: only the transport knows
whether it would have seen text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

from attrs import evolve

from orchestrator.failure.redact import scrub
from orchestrator.failure.sentences import shortened
from orchestrator.failure.verdict import MAX_TITLE, Refusal, Verdict
from orchestrator.runner import allowed
from orchestrator.runner.agent import AttemptEnd
from orchestrator.turn.events import Event, Failed, Finished, Live, Refused, StopReason

_Said = TypeVar("_Said", Verdict, Refusal)
_MAX_READ: Final = 4000
"""Characters in which a title is looked for."""

_TEXTS: Final[Mapping[type, tuple[str, ...]]] = MappingProxyType(
    {Verdict: ("title", "details", "raw_detail"), Refusal: ("category", "explanation")}
)
"""Where free text may stand."""


def event_of(
    end: AttemptEnd, number: int, now: float, live: Live, luck: Callable[[], float]
) -> Event:
    """Say in the machine's words how attempt `number` ended.

    Raises TypeError for something no attempt may return.
    """
    if end is None:
        return Finished(now, live, number)
    if isinstance(end, StopReason):
        return Finished(now, live, number, end)
    if isinstance(end, Verdict):
        return Failed(now, live, number, end, luck())
    if isinstance(end, Refusal):
        return Refused(now, live, number, redacted(end))
    raise allowed.wrong("attempt", end, "a StopReason, RawFailure, Verdict, Refusal or None")


def titled(said: str) -> str:
    """Make a title of what an agent says: without its secrets, and no longer than a title is."""
    return shortened(scrub(said)[:_MAX_READ], MAX_TITLE)


def redacted(said: _Said) -> _Said:
    """Take the secrets out of what a host understood by itself: its words may quote anything."""
    clean: dict[str, Any] = {}
    for name in _TEXTS[type(said)]:
        text = getattr(said, name)
        if text and (scrubbed := scrub(text)) != text:
            clean[name] = scrubbed
    return evolve(said, **clean) if clean else said
