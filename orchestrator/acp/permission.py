"""Answers to an agent that asks whether it may use a tool."""

from __future__ import annotations

from typing import Any, Final

_ALLOW: Final = ("allow_once", "allow_always")
_REJECT: Final = ("reject_once", "reject_always")


def answer_permission(params: dict[str, Any], *, allow: bool) -> dict[str, Any]:
    """Choose the mildest option of the wanted kind: once before always.

    With nobody to ask the answer is no.  Where the agent offers no such option, the question is
    cancelled, which every agent has to accept.
    """
    options = params.get("options")
    by_kind: dict[str, str] = {}
    for option in options if isinstance(options, list) else []:
        if isinstance(option, dict) and isinstance(option.get("optionId"), str):
            by_kind.setdefault(str(option.get("kind")), option["optionId"])
    for kind in _ALLOW if allow else _REJECT:
        if kind in by_kind:
            return {"outcome": {"outcome": "selected", "optionId": by_kind[kind]}}
    return {"outcome": {"outcome": "cancelled"}}
