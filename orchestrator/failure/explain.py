"""Why a failure was understood as it was: every step of the walk, with rules and matched parts."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from attrs import frozen

from orchestrator.failure.decide import built_in, find
from orchestrator.failure.kinds import Kind
from orchestrator.failure.linear import compile_text
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.redact import head, one_line, scrub
from orchestrator.failure.rule import RuleSet, Step
from orchestrator.failure.sentences import MAX_READ
from orchestrator.failure.speakers import speaker_named
from orchestrator.failure.verdict import Context, Verdict
from orchestrator.failure.view import View, open_failure
from orchestrator.failure.walk import (
    Candidates,
    Match,
    forbidden_kinds,
    gather,
    why_not,
)
from orchestrator.failure.wording import worded

_MAX_PART: Final = 120
"""Characters of a matched part that are shown."""


class Opinion(StrEnum):
    """The three values of a rule, and what became of one that had an opinion."""

    DECIDES = "decides"
    FORBIDS = "forbids"
    PASSED_OVER = "passed over"
    """It matched, but a condition does not hold or a stronger rule forbids its kind."""
    TOO_LATE = "too late"
    """It matched, but an earlier step or a higher priority had decided."""


@frozen
class RuleTrace:
    """One rule that had an opinion."""

    rule: str
    kind: Kind | None
    opinion: Opinion
    matched: str
    """The part of the text, or the field, status or exception that set it off; redacted."""
    reason: str = ""
    """Why it was passed over."""


@frozen
class StepTrace:
    """One step of the walk."""

    step: Step
    rules: tuple[RuleTrace, ...]
    """Empty when no rule of this step had an opinion."""


@frozen
class Explanation:
    """A verdict and how it came about."""

    verdict: Verdict
    texts: tuple[str, ...]
    """The sentences that were read, as the rules saw them; redacted."""
    facts: tuple[str, ...]
    """The fields that were looked up, as `field=value`; redacted."""
    steps: tuple[StepTrace, ...]
    """Every step in order."""
    decided_by: str
    """Name of the rule; that of a short table, where one of those decided."""


def explain(
    raw: RawFailure,
    *,
    speaker: str | None = None,
    context: Context | None = None,
    rules: RuleSet | None = None,
) -> Explanation:
    """Classify, and keep every step.  The verdict is the one that `classify` gives."""
    table = rules or built_in()
    view = open_failure(raw, speaker_named(speaker), context or Context())
    finding = find(view, table)
    return Explanation(
        verdict=worded(view, finding),
        texts=tuple(one_line(_text(s.plain)) for s in view.sentences),
        facts=tuple(scrub(f"{name}={value}") for name, value in view.contents.facts),
        steps=_steps(view, table, finding.rule),
        decided_by=finding.rule,
    )


def _text(plain: bytes) -> str:
    return plain.decode("utf-8", "replace")


def _steps(view: View, rules: RuleSet, decided_by: str) -> tuple[StepTrace, ...]:
    candidates = gather(view, rules)
    forbidden = forbidden_kinds(view, candidates)
    found: dict[Step, list[RuleTrace]] = {step: [] for step in Step}
    decided = False
    for index, match in candidates.in_order():
        trace = _trace(view, candidates, index, match, forbidden, decided=decided)
        decided = decided or trace.opinion is Opinion.DECIDES
        if trace.opinion is Opinion.DECIDES and match.rule.name != decided_by:
            # A short table looked at the walk's answer and took its own.
            trace = RuleTrace(
                trace.rule,
                trace.kind,
                Opinion.PASSED_OVER,
                trace.matched,
                f"{decided_by} goes first",
            )
        found[match.rule.step].append(trace)
    return tuple(StepTrace(step, tuple(traces)) for step, traces in found.items())


def _trace(
    view: View,
    candidates: Candidates,
    index: int,
    match: Match,
    forbidden: dict[Kind, int],
    *,
    decided: bool,
) -> RuleTrace:
    rule = match.rule
    against = why_not(view, candidates, index, match, forbidden)
    if against:
        opinion = Opinion.PASSED_OVER
    elif rule.kind is None:
        opinion = Opinion.FORBIDS
    else:
        opinion = Opinion.TOO_LATE if decided else Opinion.DECIDES
    return RuleTrace(rule.name, rule.kind, opinion, _matched(match), against)


def _matched(match: Match) -> str:
    if match.sentence is None or not match.rule.pattern:
        return scrub(match.trigger)
    pattern = compile_text(f"(?m){match.rule.pattern}")
    # Scrubbed whole before it is cut: a part of a secret no longer looks like one.
    text = _text(match.sentence.plain)
    found = pattern.search(head(text, MAX_READ).encode("utf-8", "replace"))
    if found is None and len(text) > MAX_READ:
        return "(far down in a long text)"
    part = "[redacted]" if found is None else _text(found.group())
    return part if len(part) <= _MAX_PART else f"{part[:_MAX_PART]}…"
