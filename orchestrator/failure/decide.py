"""How a verdict is taken: opened once, walked, worded.

Exits and typed records have short tables of their own (`exits`, `typed`); everything else, and what
those leave open, goes through the ordered walk over the rules (`walk`).
"""

from __future__ import annotations

from functools import cache

from orchestrator.failure.exits import find_exit
from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import RawFailure, Surface
from orchestrator.failure.rule import RuleSet, compile_set
from orchestrator.failure.rules.catalogue import ALL_RULES
from orchestrator.failure.speakers import speaker_named
from orchestrator.failure.typed import find_typed
from orchestrator.failure.verdict import Context, Verdict
from orchestrator.failure.view import View, open_failure
from orchestrator.failure.walk import Finding, walk
from orchestrator.failure.wording import worded


def decide(
    raw: RawFailure, speaker: str | None, context: Context, rules: RuleSet | None
) -> Verdict:
    """Understand one failure, by the rules of this package where none are given."""
    view = open_failure(raw, speaker_named(speaker), context)
    return worded(view, find(view, rules or built_in()))


@cache
def built_in() -> RuleSet:
    """The rules of this package, compiled once: at the first failure, or by `warm`."""
    return compile_set(ALL_RULES)


def find(view: View, rules: RuleSet) -> Finding:
    """Walk the short tables of this surface, then the order."""
    surface = view.raw.surface
    if surface is Surface.TEXT_CHUNK and view.raw.message_id:
        return Finding(Kind.NOT_A_FAILURE, "text.the_model_wrote_it")
    if surface in (Surface.RECORD, Surface.ENVELOPE):
        return find_typed(view, lambda: walk(view, rules))
    if surface is Surface.EXIT:
        return find_exit(view, walk(view, rules))
    return walk(view, rules)
