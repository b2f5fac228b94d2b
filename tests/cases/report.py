"""Write REPORT.md: how the classifier stands on every labelled case, by provider and kind.

`python -m tests.cases.report` writes it; a test fails when it is stale.
"""

from __future__ import annotations

import json
from collections import defaultdict

from orchestrator.failure.kinds import Kind
from tests.cases.load import HERE, differences, load, verdict

FILES = ("failures.jsonl", "wider.jsonl", "near_misses.jsonl", "held_out.jsonl")
_TITLES = {
    "failures.jsonl": "Failures that real people met",
    "wider.jsonl": "The same kinds in other words, from other providers",
    "near_misses.jsonl": "Near misses, and kinds that no real case shows",
    "held_out.jsonl": "Real failures that no rule was written for when they were first met",
}

_PROVIDERS = (
    # First match wins; read in the whole case.
    ("bedrock", ("bedrock", "amazonaws", "throttlingexception", "security token", "aws")),
    ("google", ("gemini", "google", "vertex", "resource_exhausted")),
    ("openrouter", ("openrouter",)),
    ("azure", ("azure",)),
    ("local model", ("ollama", "lmstudio", "lm studio", "llama", "localhost:1234")),
    ("copilot", ("copilot",)),
    ("other vendors", ("deepseek", "mistral", "groq", "alibaba", "minimax", "glm", "kimi")),
    ("kiro", ('"speaker": "kiro"', '"speaker": "kas"')),
    ("openai", ("openai", "codex", "chatgpt", "gpt-")),
    ("anthropic", ("anthropic", "claude")),
)


def provider(case):
    text = json.dumps(case, ensure_ascii=False).lower()
    return next((name for name, words in _PROVIDERS if any(w in text for w in words)), "any")


def outcome(case):
    """Right, wrong, or unsure: differs from a label that itself has low confidence."""
    if not differences(case, verdict(case)):
        return "right"
    return "unsure" if case["confidence"] == "low" else "wrong"


def table(rows, head):
    lines = [f"| {head} | right | wrong | unsure |", "|---|---:|---:|---:|"]
    total = defaultdict(int)
    for name, counts in rows:
        cells = [counts[o] for o in ("right", "wrong", "unsure")]
        lines.append(f"| {name} | " + " | ".join(map(str, cells)) + " |")
        for o in ("right", "wrong", "unsure"):
            total[o] += counts[o]
    cells = [total[o] for o in ("right", "wrong", "unsure")]
    lines.append("| **all** | " + " | ".join(f"**{c}**" for c in cells) + " |")
    return "\n".join(lines)


def section(name):
    by_kind = {kind.value: defaultdict(int) for kind in Kind}
    by_provider = defaultdict(lambda: defaultdict(int))
    for case in load(name):
        result = outcome(case)
        by_kind[case["expect"]["kind"]][result] += 1
        by_provider[provider(case)][result] += 1
    kinds = [(kind, counts) for kind, counts in by_kind.items() if counts]
    providers = sorted(by_provider.items())
    return "\n\n".join(
        (f"## {_TITLES[name]} (`{name}`)", table(providers, "provider"), table(kinds, "kind"))
    )


def first_contact():
    """What the classifier said of the held-out failures before any rule was changed for them."""
    cases = load("held_out.jsonl")
    right = sum(case["first_contact"] == case["expect"]["kind"] for case in cases)
    return (
        f"When they were first met, {right} of these {len(cases)} were right.  Six of them stood"
        " under another label then, which the table of kinds corrected."
    )


def report():
    head = (
        "# How the classifier stands on its cases\n\n"
        "Right means that kind, category, transient, network path, recovery, actions and wait,\n"
        "as far as a case states them, are as labelled.  Unsure means that the verdict differs\n"
        "from a label of low confidence.  Labels we disagree with: `disagreements.json`.\n"
        "Written by `python -m tests.cases.report`."
    )
    return "\n\n".join((head, *(section(name) for name in FILES), first_contact())) + "\n"


if __name__ == "__main__":
    (HERE / "REPORT.md").write_text(report(), "utf-8")
