"""Comparisons that wording alone can't make: numbers, lists and moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import islice
from types import MappingProxyType
from typing import Final

from orchestrator.failure.linear import Signs, compile_signs, compile_text
from orchestrator.failure.verdict import Delivery, Phase
from orchestrator.failure.view import View

_HOUR_S: Final = 3600.0


_BUDGET = r"limit:? ([\d,]+)(?:[ ,;]+(?:current|used):? ([\d,]+))?[ ,;]+requested:? ([\d,]+)"
_NAMED_MODEL = (
    r"the model '([^']+)' is not available|invalid model id: ?([^ ,;'\"]+)"
    r"|model[ :]+['\"`]([^'\"`]+)['\"`]"
)


def asks_more_than_a_budget(view: View) -> bool:
    """`Requested > Limit`: no waiting makes room; `Used + Requested > Limit` is a throttle."""
    for sentence in view.sentences:
        for found in islice(compile_text(_BUDGET).finditer(sentence.plain), _MAX_COMPARED):
            limit, _, requested = found.groups()
            if _whole(requested) > _whole(limit):
                return True
    return False


_MAX_COMPARED: Final = 20
"""Budgets compared in one text; providers name one."""


def _whole(digits: bytes) -> int:
    return int(digits.replace(b",", b"")[:18] or b"0")


def rejected_model(view: View) -> str:
    """The model a provider names as rejected, in its own spelling, or nothing."""
    for sentence in view.sentences:
        if not sentence.provider:
            continue
        found = compile_text(f"(?i){_NAMED_MODEL}").search(
            sentence.original.encode("utf-8", "replace")
        )
        if found is not None:
            name = next(g for g in found.groups() if g)
            return str(name.decode("utf-8", "replace"))[:200]
    return ""


def named_model_is_not_served(view: View) -> bool:
    """The named model is absent from a known, non-empty list of served ones."""
    served = view.context.advertised_models
    if not served:
        return False
    model = rejected_model(view)
    return bool(model) and model.lower() not in {served_one.lower() for served_one in served}


def waits_an_hour(view: View) -> bool:
    """The stated wait is no throttle's: an hour or more."""
    wait = view.wait_s
    return wait is not None and wait >= _HOUR_S


def waits_less_than_an_hour(view: View) -> bool:
    """A wait is stated, and a throttle's."""
    wait = view.wait_s
    return wait is not None and wait < _HOUR_S


def not_a_short_wait(view: View) -> bool:
    """No wait is stated, or a long one: what is spent does not come back within the hour."""
    return not waits_less_than_an_hour(view)


_OF_A_DAY, _OF_A_MINUTE = range(2)
_DAY = r"per_?-?day|/day\b|\bdaily"
_MINUTE = r"per_?-?min(?:ute)?|per_?-?second|/min\b|\brpm\b|\btpm\b"


def names_a_day_quota(view: View) -> bool:
    """A quota id or metric names a day and none names a minute."""
    return _quota_names(view, _OF_A_DAY) and not _quota_names(view, _OF_A_MINUTE)


def names_a_minute_quota(view: View) -> bool:
    """A quota id or metric names a minute or less."""
    return _quota_names(view, _OF_A_MINUTE)


_QUOTA_FIELDS: Final = frozenset(
    {"quotaid", "quotametric", "quotalimit", "quotalimitname", "limitname", "metric", "subject"}
)
_QUOTA_TOKENS = r"(?i)(?:generate\w*|\w+)(?:requests|tokens?|count)\w*per\w+|\w+_per_\w+"


def _quota_names(view: View, window: int) -> bool:
    for name, value in view.contents.facts:
        if name in _QUOTA_FIELDS and window in _windows(value.encode("utf-8", "replace")):
            return True
    tokens = compile_text(_QUOTA_TOKENS)
    return any(
        window in _windows(token)
        for sentence in view.sentences
        if window in _windows(sentence.plain)
        for token in tokens.findall(sentence.plain)
    )


def _windows(text: bytes) -> list[int]:
    return _window_signs()(text) or []


@cache
def _window_signs() -> Signs:
    return compile_signs(f"(?i){_DAY}", f"(?i){_MINUTE}")


def bare_while_loading(view: View) -> bool:
    """An adapter fails to load a session and does not say why."""
    return view.context.phase is Phase.LOAD and adapter_says_nothing(view)


_BOILERPLATE: Final = frozenset({b"internal error", b"internal error.", b"error", b"unknown error"})


def adapter_says_nothing(view: View) -> bool:
    """A JSON-RPC error with nothing in it, from an agent whose errors are not all like that."""
    return (
        view.speaker.family != "kiro"
        and not view.contents.facts
        and all(s.plain in _BOILERPLATE for s in view.sentences)
    )


def not_told_to_change(view: View) -> bool:
    """No status says that the request itself is at fault: a router hands on what it was told."""
    return not any(status in _CHANGE_IT for status in view.statuses([]))


_CHANGE_IT: Final = frozenset({400, 401, 403, 404, 405, 409, 410, 413, 415, 422})


def registration_on_one_line(view: View) -> bool:
    """The refusal and its reason on ONE line of stderr, before any text or tool."""
    if not nothing_happened_yet(view):
        return False
    for line in view.raw.stderr.lower().splitlines():
        if "registration failed" in line and compile_text(_THROTTLED).search(
            line.encode("utf-8", "replace")
        ):
            return True
    return False


_THROTTLED = r"http 429|too many requests|requested too many times"


_NETWORK_MODULES: Final = (
    "aiohttp",
    "httpx",
    "httpcore",
    "requests",
    "urllib",
    "http.",
    "ssl",
    "socket",
    "websockets",
)


def not_over_network(view: View) -> bool:
    """The broken pipe is the agent's own, not a socket to a provider."""
    return not (view.raw.host or view.raw.over_socket) and not any(
        name.startswith(_NETWORK_MODULES) for name in view.raw.exception_types
    )


def while_starting(view: View) -> bool:
    """The agent's process or its handshake was under way."""
    return view.context.phase in (Phase.START, Phase.HANDSHAKE)


def nothing_happened_yet(view: View) -> bool:
    """No text, no tool, and the prompt is not half delivered: a replay repeats nothing."""
    context = view.context
    return not (context.text_shown or context.tool_run or view.raw.delivery is Delivery.AMBIGUOUS)


CHECKS: Final[Mapping[str, Callable[[View], bool]]] = MappingProxyType(
    {
        "asks_more_than_a_budget": asks_more_than_a_budget,
        "named_model_is_not_served": named_model_is_not_served,
        "waits_an_hour": waits_an_hour,
        "waits_less_than_an_hour": waits_less_than_an_hour,
        "nothing_happened_yet": nothing_happened_yet,
        "not_a_short_wait": not_a_short_wait,
        "names_a_day_quota": names_a_day_quota,
        "names_a_minute_quota": names_a_minute_quota,
        "bare_while_loading": bare_while_loading,
        "adapter_says_nothing": adapter_says_nothing,
        "not_told_to_change": not_told_to_change,
        "registration_on_one_line": registration_on_one_line,
        "not_over_network": not_over_network,
        "while_starting": while_starting,
    }
)
