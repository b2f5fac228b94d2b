"""What one recogniser is: a row, its step in the walk, and the set that all rows compile into.

A rule is three-valued.  It has *no opinion* when nothing of it matches, it *yields* its kind, or
it *forbids* kinds.  Within a step the higher priority speaks first; a forbidden kind is out for the
whole walk unless the rule that yields it has the higher priority.

All wordings of all rules form one RE2 set.  One pass over a text finds every row that matches, in
time linear in the text whatever the patterns are: RE2 has no backtracking.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum, StrEnum
from typing import Any

from attrs import field, frozen

from orchestrator.failure.kinds import Kind
from orchestrator.failure.linear import Signs, compile_patterns, matcher
from orchestrator.failure.raw import Surface
from orchestrator.failure.verdict import Cause


class Step(IntEnum):
    """The order of the walk.  First match wins; the order is part of the contract."""

    NOTICE = -2
    """Short table: what is no failure at all."""
    START = -1
    """Short table: failures to start, and processes that an adapter says are gone."""
    STRUCTURED = 0
    ENTITLEMENT = 1
    ALLOWANCE = 2
    SHAPE = 3
    MODEL = 4
    THROTTLE = 5
    PROPAGATION = 6
    ACCESS = 7
    MODEL_LIST = 8
    CONNECTION = 9
    SIZE_AS_5XX = 10
    SERVER = 11
    WRAPPER = 12
    REQUEST = 13
    UNKNOWN = 14


class Scope(StrEnum):
    """Which fields a wording is read in."""

    ANY = "any"
    PROVIDER = "provider"
    """Only the field where the speaker puts provider errors: an echo elsewhere decides nothing."""


@frozen
class Rule:
    """One recogniser.  It matches when any of its triggers does and all of its conditions hold."""

    name: str
    """Unique; `speaker.what`.  The verdict carries it."""
    step: Step
    kind: Kind | None = None
    """What it yields; None for a rule that only forbids."""
    pattern: str = ""
    """Trigger: RE2 syntax, read in lower-case text whose white space is single spaces."""
    facts: tuple[tuple[str, str], ...] = ()
    """Trigger: structured fields, as (field, value), both in lower case."""
    statuses: tuple[int, ...] = ()
    """Trigger: HTTP statuses, from a field or behind a word that makes a number a status."""
    errors: tuple[str, ...] = ()
    """Trigger: exception type names, lower case, without the module."""
    errnos: tuple[str, ...] = ()
    """Trigger: names of errno values."""
    check: str = ""
    """Condition: name of a comparison in `compare.CHECKS` that must hold as well."""
    unless: str = ""
    """Condition: a pattern that must not match anywhere."""
    scope: Scope = Scope.ANY
    speakers: frozenset[str] = frozenset()
    """Condition: only these speakers; empty for all."""
    surfaces: frozenset[Surface] = frozenset()
    """Condition: only these surfaces; empty for all."""
    forbids: frozenset[Kind] = frozenset()
    """Kinds that are out for the whole walk when this rule matches."""
    priority: int = 0
    cause: Cause | None = None


def says(name: str, step: Step, kind: Kind, *alternatives: str, **conditions: Any) -> Rule:
    """A wording: any of the alternatives."""
    return Rule(name, step, kind, pattern="|".join(alternatives), **conditions)


def field_is(name: str, step: Step, kind: Kind, key: str, *values: str, **conditions: Any) -> Rule:
    """A structured field with one of these values."""
    return Rule(name, step, kind, facts=tuple((key, value) for value in values), **conditions)


def status_is(name: str, step: Step, kind: Kind, *statuses: int, **conditions: Any) -> Rule:
    """One of these HTTP statuses."""
    return Rule(name, step, kind, statuses=statuses, **conditions)


def raised(name: str, step: Step, kind: Kind, *errors: str, **conditions: Any) -> Rule:
    """An exception type, by its bare name."""
    return Rule(name, step, kind, errors=tuple(e.lower() for e in errors), **conditions)


def errno_is(name: str, step: Step, kind: Kind, *errnos: str, **conditions: Any) -> Rule:
    """An errno, by its symbol."""
    return Rule(name, step, kind, errnos=errnos, **conditions)


def forbid(name: str, kinds: Iterable[Kind], *alternatives: str, **conditions: Any) -> Rule:
    """A wording under which these kinds can't be."""
    conditions.setdefault("priority", 10)
    return Rule(
        name,
        Step.STRUCTURED,
        None,
        pattern="|".join(alternatives),
        forbids=frozenset(kinds),
        **conditions,
    )


@frozen(eq=False)
class RuleSet:
    """Rules, compiled: every trigger is an index into `rules`, which is in walking order."""

    rules: tuple[Rule, ...]
    matches: Signs
    """Asks the RE2 set over every `pattern` and `unless`: the numbers of those found in a text."""
    owners: tuple[tuple[int, bool], ...]
    """For each pattern of the set: index of its rule, and whether it is an `unless`."""
    by_fact: Mapping[tuple[str, str], tuple[int, ...]]
    by_status: Mapping[int, tuple[int, ...]]
    by_error: Mapping[str, tuple[int, ...]]
    by_errno: Mapping[str, tuple[int, ...]]
    fact_fields: frozenset[str] = field(factory=frozenset)
    """Fields that at least one rule reads."""


def in_walking_order(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Sort by step, then priority, then the order of writing."""
    return tuple(sorted(rules, key=lambda rule: (rule.step, -rule.priority)))


def compile_set(rules: Iterable[Rule]) -> RuleSet:
    """Compile rules into one set.  Raises ValueError naming the rules that can't be."""
    ordered = in_walking_order(rules)
    patterns: list[str] = []
    owners: list[tuple[int, bool]] = []
    tables: tuple[dict[Any, list[int]], ...] = ({}, {}, {}, {})
    for index, rule in enumerate(ordered):
        for pattern, is_unless in ((rule.pattern, False), (rule.unless, True)):
            if pattern:
                patterns.append(f"(?m){pattern}")
                owners.append((index, is_unless))
        triggers = (rule.facts, rule.statuses, rule.errors, rule.errnos)
        for table, keys in zip(tables, triggers, strict=True):
            for key in keys:
                table.setdefault(key, []).append(index)
    wordings, bad = compile_patterns(patterns)
    if bad:
        names = ", ".join(ordered[owners[number][0]].name for number in bad)
        raise ValueError(f"pattern is not valid in: {names}")
    facts, statuses, errors, errnos = (
        {key: tuple(indexes) for key, indexes in table.items()} for table in tables
    )
    return RuleSet(
        ordered,
        matcher(wordings),
        tuple(owners),
        facts,
        statuses,
        errors,
        errnos,
        frozenset(key for key, _ in facts),
    )
