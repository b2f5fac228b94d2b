"""Rules that a user adds: the same rows, from decoded TOML, judged as a whole before any counts.

    [[rule]]
    name = "acme.credits"            # unique, in small letters
    kind = "billing"                 # a kind, or `forbids = [kinds]`
    pattern = "acme credits? (?:are )?gone"   # or a list; RE2, in lower case
    step = "allowance"               # optional: by default where rules of this kind stand

Also: facts = [["field", "value"]], statuses, errors, errnos, unless, scope, speakers, surfaces,
check, priority (by default before the built-in rules of the step), cause.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Final

from attrs import frozen

from orchestrator.failure.compare import CHECKS
from orchestrator.failure.kinds import Kind
from orchestrator.failure.linear import compile_text
from orchestrator.failure.raw import Surface
from orchestrator.failure.rule import Rule, RuleSet, Scope, Step, compile_set
from orchestrator.failure.rules.catalogue import ALL_RULES
from orchestrator.failure.verdict import Cause

_FIRST: Final = 50
"""Default priority: before every built-in rule of the same step."""


class BadRulesError(ValueError):
    """Rules that can't take effect; `problems` names every one of them."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


@frozen
class Compiled:
    """User rules and built-in rules in one set."""

    rules: RuleSet
    warnings: tuple[str, ...]
    """One per file that could not be read."""


def compile_rules(documents: Iterable[tuple[str, Mapping[str, Any] | None]]) -> Compiled:
    """Compile the rules of several files, each as (name, decoded TOML), with the built-in ones.

    A document that is None could not be read: it drops out with one warning.  Raises BadRulesError
    with all problems when anything in the others is wrong, so that the old rules stay in force.
    """
    warnings: list[str] = []
    problems: list[str] = []
    added: list[Rule] = []
    sources: list[tuple[str, str]] = []
    for file, document in documents:
        if document is None:
            warnings.append(f"{file}: could not be read, so its rules are left out")
            continue
        added += _read_document(file, document, problems)
        sources += [(name, file) for name in _names(document)]
    problems += _duplicates(sources)
    if problems:
        raise BadRulesError(problems)
    return Compiled(compile_set((*added, *ALL_RULES)), tuple(warnings))


def _names(document: Mapping[str, Any]) -> list[str]:
    """The names of all rows, readable or not."""
    rows = document.get("rule")
    names = (
        [r.get("name") for r in rows if isinstance(r, Mapping)] if isinstance(rows, list) else []
    )
    return [name for name in names if isinstance(name, str)]


def _duplicates(sources: list[tuple[str, str]]) -> list[str]:
    """Names used twice, all in one sentence, so that each can be renamed before the next try."""
    built_in = {rule.name for rule in ALL_RULES}
    counted = Counter(name for name, _ in sources)
    doubled = sorted(n for n, count in counted.items() if count > 1 or n in built_in)
    if not doubled:
        return []
    where = {
        name: [f for n, f in sources if n == name] + ["the built-in rules"] * (name in built_in)
        for name in doubled
    }
    listed = ", ".join(f"{name} ({' and '.join(where[name])})" for name in doubled)
    return [f"rule names are not unique: {listed}"]


def _read_document(file: str, document: Mapping[str, Any], problems: list[str]) -> list[Rule]:
    unknown = sorted(str(key) for key in document if key != "rule")
    if unknown:
        problems.append(f"{file}: unknown key {', '.join(unknown)}; only [[rule]] is allowed")
    rows = document.get("rule", [])
    if not isinstance(rows, list):
        problems.append(f"{file}: rule: {rows!r:.80} is not allowed; write [[rule]]")
        return []
    rules = (_read_row(f"{file}: rule[{n}]", row, problems) for n, row in enumerate(rows))
    return [rule for rule in rules if rule is not None]


def _read_row(place: str, row: Any, problems: list[str]) -> Rule | None:
    if not isinstance(row, Mapping):
        problems.append(f"{place}: {row!r:.80} is not allowed; a table is")
        return None
    before = len(problems)
    values: dict[str, Any] = {}
    for key, value in row.items():
        reader = _READERS.get(key)
        if reader is None:
            problems.append(f"{place}.{key}: unknown field; allowed: {', '.join(_READERS)}")
            continue
        try:
            values[key] = reader(value)
        except ValueError as error:
            problems.append(f"{place}.{key}: {value!r:.80} is not allowed; {error}")
    problems += [f"{place}: {problem}" for problem in _missing(row)]
    if len(problems) > before:
        return None
    if "step" not in values:
        values["step"] = _home(values.get("kind"))
    values.setdefault("priority", _FIRST)
    return Rule(**values)


def _missing(row: Mapping[str, Any]) -> list[str]:
    found = []
    if "name" not in row:
        found.append("name is missing")
    if ("kind" in row) == ("forbids" in row):
        found.append("exactly one of kind and forbids is needed")
    if not any(key in row for key in ("pattern", "facts", "statuses", "errors", "errnos")):
        found.append("one of pattern, facts, statuses, errors, errnos is needed")
    return found


def _home(kind: Kind | None) -> Step:
    """The step in which most built-in rules of this kind stand."""
    steps = Counter(rule.step for rule in ALL_RULES if rule.kind is kind and kind is not None)
    return steps.most_common(1)[0][0] if steps else Step.STRUCTURED


# -- fields ---------------------------------------------------------------------------------------


def _name(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[a-z0-9_]+(?:\.[a-z0-9_]+)+", value):
        raise ValueError("speaker.what in small letters is, such as acme.credits")
    return value


def _pattern(value: Any) -> str:
    parts = [value] if isinstance(value, str) else value
    if not isinstance(parts, list) or not parts or not all(isinstance(p, str) and p for p in parts):
        raise ValueError("a pattern or a list of patterns is")
    for part in parts:
        if (
            re.sub(r"\\.|\[\[:\w+:\]\]|\\p\{\w+\}", "", part)
            != re.sub(r"\\.|\[\[:\w+:\]\]|\\p\{\w+\}", "", part).lower()
        ):
            raise ValueError("text is read in lower case, so write the pattern in lower case")
        try:
            empty = compile_text(part).search(b"")
        except Exception as error:  # noqa: BLE001 - the engine's own error type, loaded lazily
            raise ValueError(f"it is no RE2 pattern: {error}") from None
        if empty is not None:
            raise ValueError("it matches every text")
    return "|".join(parts)


def _one_of(options: type[Enum], by_name: bool = False) -> Callable[[Any], Any]:  # noqa: FBT001, FBT002
    names = {(o.name.lower() if by_name else str(o.value)): o for o in options}

    def read(value: Any) -> Any:
        if not isinstance(value, str) or value not in names:
            raise ValueError(f"one of {', '.join(names)} is")
        return names[value]

    return read


def _many(read: Callable[[Any], Any], collect: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    def read_all(value: Any) -> Any:
        if not isinstance(value, list) or not value:
            raise ValueError("a list is")
        return collect([read(item) for item in value])

    return read_all


def _word(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text is")
    return value.strip().lower()


def _symbol(value: Any) -> str:
    return _word(value).upper()


def _status(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 400 <= value <= 599:  # noqa: PLR2004
        raise ValueError("a status from 400 to 599 is")
    return value


def _fact(value: Any) -> tuple[str, str]:
    if not isinstance(value, list) or len(value) != 2:  # noqa: PLR2004 - a pair
        raise ValueError('a pair such as ["type", "acme_limit"] is')
    name, text = _word(value[0]), _word(value[1])
    return name.replace("_", "").replace("-", ""), text


def _priority(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -100 <= value <= 100:  # noqa: PLR2004
        raise ValueError("a whole number from -100 to 100 is")
    return value


def _check(value: Any) -> str:
    if value not in CHECKS:
        raise ValueError(f"one of {', '.join(CHECKS)} is")
    return str(value)


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "name": _name,
    "kind": _one_of(Kind),
    "step": _one_of(Step, by_name=True),
    "pattern": _pattern,
    "facts": _many(_fact, tuple),
    "statuses": _many(_status, tuple),
    "errors": _many(_word, tuple),
    "errnos": _many(_symbol, tuple),
    "unless": _pattern,
    "scope": _one_of(Scope),
    "speakers": _many(_word, frozenset),
    "surfaces": _many(_one_of(Surface), frozenset),
    "forbids": _many(_one_of(Kind), frozenset),
    "check": _check,
    "priority": _priority,
    "cause": _one_of(Cause),
}
"""Every field of a row, and how its value is read."""
