"""Refusals of a model, from whichever side they arrive, folded onto one shape.

A refusal is an answer, not a failure: the same prompt meets the same filter.  Harnesses tell the
reason unevenly, so every field stays empty when the provider did not say it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.redact import head
from orchestrator.failure.verdict import Refusal, Verdict

STOP_REASON: Final = "refusal"
METADATA_METHOD: Final = "_kiro.dev/metadata"
"""The notification in which Kiro says why a turn was filtered, before an ordinary `end_turn`."""

_FILTERED: Final = "CONTENT_FILTERED"
_LIMITS: Final = {"category": 120, "explanation": 2000, "recommended_model": 120}
"""Characters kept of each field."""


def from_metadata(frame: object) -> Refusal | None:
    """The refusal in a Kiro metadata notification (the whole frame); None when it holds none.

    The reason comes before the end of the turn, so keep it and hand it to `ended`.
    """
    if not isinstance(frame, Mapping) or frame.get("method") != METADATA_METHOD:
        return None
    params = frame.get("params")
    if not isinstance(params, Mapping) or params.get("stopReason") != _FILTERED:
        return None
    details = params.get("stopDetails")
    told = params.get("refusal") or (
        details.get("refusal") if isinstance(details, Mapping) else None
    )
    return read(told)


def read(told: object) -> Refusal:
    """A refusal object of any harness; what is not text was not said."""
    fields: Mapping[Any, Any] = told if isinstance(told, Mapping) else {}
    model = _said(fields, "recommended_model", "recommendedModel")
    return Refusal(
        category=_said(fields, "category"),
        explanation=_said(fields, "explanation"),
        recommended_model=model,
    )


def ended(stop_reason: object, noted: Refusal | None = None) -> Refusal | None:
    """The refusal that a prompt's end amounts to; None when the model did answer.

    `noted` is what a metadata frame of the same attempt said; it turns even an `end_turn` into a
    refusal.
    """
    if noted is not None:
        return noted
    return Refusal() if stop_reason == STOP_REASON else None


def from_verdict(verdict: Verdict, noted: Refusal | None = None) -> Refusal | None:
    """The refusal that a failure amounts to; None for every other kind of failure.

    What a metadata frame noted wins: the error behind it says nothing of its own.
    """
    if noted is not None:
        return noted
    if verdict.kind is not Kind.CONTENT_REFUSED:
        return None
    return verdict.refusal or Refusal()


def _said(fields: Mapping[Any, Any], name: str, spelling: str = "") -> str:
    """One field as redacted text on its own; empty when it is missing or not text."""
    value = next((v for v in (fields.get(spelling), fields.get(name)) if isinstance(v, str)), "")
    return head(value.strip(), _LIMITS[name])[: _LIMITS[name]]
