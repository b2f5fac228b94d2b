"""What the user reads: the provider's own sentence, or ours where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.failure.compare import rejected_model
from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import Surface
from orchestrator.failure.redact import one_line, scrub
from orchestrator.failure.verdict import Verdict

if TYPE_CHECKING:
    from orchestrator.failure.classify import Finding
    from orchestrator.failure.view import View

_MAX_TITLE: Final = 240

FALLBACKS: Final[Mapping[Kind, str]] = MappingProxyType(
    {kind: kind.value.replace("_", " ").capitalize() + "." for kind in Kind}
)


def worded(view: View, finding: Finding) -> Verdict:
    """Fill a verdict: the finding decides, this only words it."""
    title = ""
    sentence = finding.sentence or (view.sentences[-1] if view.sentences else None)
    if sentence is not None:
        title = scrub(" ".join(sentence.original.split()))[:_MAX_TITLE]
    hint = view.hint
    kind = finding.kind
    return Verdict.of(
        kind,
        title or FALLBACKS[kind],
        cause=finding.cause,
        raw_detail=one_line(view.raw.message or view.raw.stderr),
        retry_after_s=hint.retry_after_s,
        resets_at=hint.resets_at,
        resets_in_s=hint.resets_in_s,
        delivery=view.raw.delivery,
        provider_said=view.raw.surface in (Surface.ACP_ERROR, Surface.HTTP, Surface.RECORD),
        rejected_model=rejected_model(view),
        rule=finding.rule,
    )
