"""How `classify --explain` prints the walk that led to a verdict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from orchestrator.failure.explain import Explanation, Opinion, RuleTrace
from orchestrator.failure.redact import terminal_line
from orchestrator.failure.rule import Step

_STYLES: Final = {
    Opinion.DECIDES: "bold green",
    Opinion.FORBIDS: "yellow",
    Opinion.PASSED_OVER: "dim",
    Opinion.TOO_LATE: "dim",
}
_WIDTH: Final = max(len(step.name) for step in Step)


def walk_as_json(walk: Explanation) -> dict[str, object]:
    """Everything, with every step in order."""
    return {
        "decided_by": walk.decided_by,
        "texts": walk.texts,
        "facts": walk.facts,
        "steps": [
            {"step": step.step.name.lower(), "rules": [_rule_as_json(r) for r in step.rules]}
            for step in walk.steps
        ],
    }


def _rule_as_json(trace: RuleTrace) -> dict[str, object]:
    return {
        "rule": trace.rule,
        "kind": trace.kind,
        "opinion": trace.opinion,
        "matched": trace.matched,
        "reason": trace.reason or None,
    }


def walk_for_people(walk: Explanation) -> Iterator[Text]:
    """What was read, then each step in order; those in which nothing spoke share a line."""
    for label, parts in (("text", walk.texts), ("field", walk.facts)):
        yield from (_labelled(label, Text(terminal_line(part))) for part in parts)
    silent: list[str] = []
    for step in walk.steps:
        if not step.rules:
            silent.append(step.step.name.lower())
            continue
        yield from _no_opinion(silent)
        silent = []
        yield from (_labelled(step.step.name.lower(), _rule(trace)) for trace in step.rules)
    yield from _no_opinion(silent)
    yield _labelled("decided by", Text(walk.decided_by, "bold green"))


def _labelled(label: str, text: Text) -> Text:
    return Text.assemble(f"  {label.ljust(_WIDTH)}  ", text)


def _no_opinion(steps: list[str]) -> Iterator[Text]:
    if steps:
        yield _labelled("no opinion", Text(", ".join(steps), "dim"))


def _rule(trace: RuleTrace) -> Text:
    kind = f" ({trace.kind})" if trace.kind else ""
    line = Text.assemble((f"{trace.rule}{kind} {trace.opinion}", _STYLES[trace.opinion]))
    line.append(terminal_line(f': "{trace.matched}"'))
    return line.append(terminal_line(f", {trace.reason}") if trace.reason else "")
