"""The ordered walk: every rule that has an opinion about an opened failure, and which one decides.

One pass of the RE2 set over each sentence, and one lookup per fact, status, exception name and
errno, give every rule that has an opinion.  The candidates are then taken in the order of the
steps; the first whose conditions hold and whose kind no stronger rule forbids decides.
"""

from __future__ import annotations

import errno as errno_table
from collections.abc import Iterator

from attrs import define, evolve, field, frozen

from orchestrator.failure.compare import CHECKS
from orchestrator.failure.kinds import KINDS, Kind
from orchestrator.failure.linear import compile_text
from orchestrator.failure.raw import Surface
from orchestrator.failure.rule import Rule, RuleSet, Scope
from orchestrator.failure.unwrap import Sentence
from orchestrator.failure.verdict import Cause
from orchestrator.failure.view import HINT_RULE, STATUS_RULE, View


@frozen
class Finding:
    """What the walk decided."""

    kind: Kind
    rule: str
    cause: Cause | None = None
    sentence: Sentence | None = None
    """The sentence in which the rule's wording stands."""
    transient: bool = False
    """For the one kind whose row leaves it to the failure."""


@define
class Match:
    """One rule that has an opinion, and where it found it."""

    rule: Rule
    provider: bool = False
    """Found in the field where this speaker puts provider errors, or in structure."""
    sentence: Sentence | None = None
    trigger: str = ""
    """What set it off: `wording`, or the fact, status, exception or errno."""


@define
class Candidates:
    """Every opinion about one failure, by the rule's place in the walking order."""

    matches: dict[int, Match] = field(factory=dict)
    excluded: set[int] = field(factory=set)
    """Rules whose `unless` was found."""

    def add(self, index: int, match: Match) -> None:
        known = self.matches.get(index)
        if known is None or (match.provider and not known.provider):
            self.matches[index] = match

    def in_order(self) -> list[tuple[int, Match]]:
        return sorted(self.matches.items())


def walk(view: View, rules: RuleSet) -> Finding:
    """The first rule in order whose conditions hold; `unknown` when none does."""
    candidates = gather(view, rules)
    ordered = candidates.in_order()
    forbidden = forbidden_kinds(view, candidates)
    for index, match in ordered:
        rule = match.rule
        if rule.kind is None or why_not(view, candidates, index, match, forbidden):
            continue
        finding = Finding(rule.kind, rule.name, rule.cause, match.sentence)
        if rule.kind is not Kind.COMPACTION_FAILED:
            return finding
        inner = (
            m.rule.kind
            for i, m in ordered
            if m.rule.kind not in {None, Kind.COMPACTION_FAILED}
            and not why_not(view, candidates, i, m, forbidden)
        )
        payload = next(inner, None)
        return evolve(finding, transient=payload is not None and KINDS[payload].transient)
    return _nothing_known(view)


def _nothing_known(view: View) -> Finding:
    """No rule has an opinion: terminal, and for a text chunk nobody's failure."""
    if view.raw.surface is Surface.TEXT_CHUNK and not (
        view.speaker.authors_bare_chunks or _begins_as_an_error(view)
    ):
        return Finding(Kind.NOT_A_FAILURE, "text.not_an_error")
    return Finding(Kind.UNKNOWN, "unknown")


def _begins_as_an_error(view: View) -> bool:
    """A chunk that opens like an adapter's report: nobody knows the error, but it is one."""
    opening = compile_text(
        r"^[^a-z]{0,8}(?:(?:api|system|internal|acp|fatal|unexpected|provider|agent) )?"
        r"(?:error|exception)\b"
        r"(?: \w+){0,3}[:(\]]"
    )
    return any(opening.search(sentence.plain) for sentence in view.sentences)


def gather(view: View, rules: RuleSet) -> Candidates:
    """Every rule that has an opinion."""
    found = Candidates()
    table, owners = rules.rules, rules.owners
    with_status: list[Sentence] = []
    view.hint_worded = False
    for sentence in view.sentences:
        hits = rules.matches(sentence.plain) if sentence.plain else None
        for hit in hits or ():
            index, is_unless = owners[hit]
            rule = table[index]
            if is_unless:
                found.excluded.add(index)
            elif rule.kind is not None or rule.forbids:
                found.add(index, Match(rule, sentence.provider, sentence, "wording"))
            elif rule.name == STATUS_RULE:
                with_status.append(sentence)
            elif rule.name == HINT_RULE:
                view.hint_worded = True
    _gather_structure(view, rules, found, with_status)
    return found


def _gather_structure(
    view: View, rules: RuleSet, found: Candidates, with_status: list[Sentence]
) -> None:
    for indexes, trigger in _looked_up(view, rules, with_status):
        for index in indexes:
            found.add(index, Match(rules.rules[index], provider=True, trigger=trigger))


def _looked_up(
    view: View, rules: RuleSet, with_status: list[Sentence]
) -> Iterator[tuple[tuple[int, ...], str]]:
    """The rules that each fact, status, exception name and errno sets off."""
    facts, raw = rules.by_fact, view.raw
    for fact in view.contents.facts:
        if fact in facts:
            yield facts[fact], f"{fact[0]}={fact[1]}"
    if view.stream_cut and (found := facts.get(("wrapper", "stream_cut"))):
        yield found, "stream disconnected"
    if raw.code is not None and (found := facts.get(("jsonrpc", str(raw.code)))):
        yield found, f"code {raw.code}"
    for status in view.statuses(with_status):
        if found := rules.by_status.get(status):
            yield found, f"status {status}"
    for name in (*raw.exception_types, *_printed_types(view)):
        if found := rules.by_error.get(name.rpartition(".")[2].lower()):
            yield found, name
    if raw.errno is not None:
        symbol = errno_table.errorcode.get(raw.errno, "")
        yield rules.by_errno.get(symbol, ()), symbol


def _printed_types(view: View) -> list[str]:
    """Exception names that a printed exception begins with: `a.B: c.D: what happened`."""
    if view.raw.surface is not Surface.EXCEPTION or not view.sentences:
        return []
    parts = view.sentences[0].plain[:_MAX_PRINTED].split(b": ", _MAX_CHAINED)[:_MAX_CHAINED]
    names = [part.partition(b"(")[0].decode("ascii", "replace") for part in parts]
    return [name for name in names if name.replace(".", "_").isidentifier()]


_MAX_PRINTED, _MAX_CHAINED = 400, 4


def forbidden_kinds(view: View, candidates: Candidates) -> dict[Kind, int]:
    """Kinds that are out, with the priority of the strongest rule that says so."""
    forbidden: dict[Kind, int] = {}
    for index, match in candidates.matches.items():
        rule = match.rule
        if rule.forbids and not why_not(view, candidates, index, match, {}):
            for kind in rule.forbids:
                forbidden[kind] = max(rule.priority, forbidden.get(kind, rule.priority))
    return forbidden


def why_not(
    view: View, candidates: Candidates, index: int, match: Match, forbidden: dict[Kind, int]
) -> str:
    """Why this rule does not decide, or an empty text when nothing is against it."""
    rule = match.rule
    against = ""
    if rule.scope is Scope.PROVIDER and not match.provider:
        against = "found only outside the field where this speaker puts provider errors"
    elif rule.speakers and view.speaker.family not in rule.speakers:
        against = f"not a wording of {view.speaker.family}"
    elif rule.surfaces and view.raw.surface not in rule.surfaces:
        against = f"not read on {view.raw.surface}"
    elif index in candidates.excluded:
        against = "its exception matched as well"
    elif rule.check and not CHECKS[rule.check](view):
        against = f"{rule.check} does not hold"
    if against:
        return against
    if rule.kind is not None and forbidden.get(rule.kind, rule.priority - 1) >= rule.priority:
        return f"{rule.kind} is forbidden by a stronger rule"
    return ""
