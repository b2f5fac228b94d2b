"""What classifying costs: `python -m tests.bench.classify`.

Median and p99 over the case file, what dominates, a naive list of the same patterns in the same
run, and how the cost grows with the text.
"""

from __future__ import annotations

import re
import time
from statistics import median

from orchestrator.failure.classify import classify
from orchestrator.failure.decide import built_in, find
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.redact import one_line
from orchestrator.failure.rules.catalogue import ALL_RULES
from orchestrator.failure.speakers import speaker_named
from orchestrator.failure.view import open_failure
from orchestrator.failure.wording import worded
from tests.cases.load import context, load, raw_failure

ROUNDS = 7


def best(work, rounds=ROUNDS):
    """Processor seconds of the quickest round: what the work costs when nobody else runs."""
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def per_case(work, cases):
    return [best(lambda case=case: work(*case)) * 1e6 for case in cases]


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def naive_list():
    """Every pattern by itself, tried in order on every text: what most harnesses do."""
    patterns = [
        re.compile(r.pattern.replace(r"\z", r"\Z"), re.MULTILINE)
        for r in ALL_RULES
        if r.pattern and r"\p" not in r.pattern
    ]

    def search(raw, speaker, where):
        view = open_failure(raw, speaker_named(speaker), where)
        for sentence in view.sentences:
            text = sentence.plain.decode("utf-8", "replace")
            for pattern in patterns:
                pattern.search(text)

    return search


def phases(cases):
    """Microseconds a case spends opening, walking, reading hints and wording, on average."""
    spent = [_phases(*case) for case in cases]
    return {name: sum(one[name] for one in spent) / len(spent) * 1e6 for name in spent[0]}


def _phases(raw, speaker, where):
    rules, who = built_in(), speaker_named(speaker)
    opening = best(lambda: open_failure(raw, who, where))
    view = open_failure(raw, who, where)
    finding = find(view, rules)

    def hints():
        fresh = open_failure(raw, who, where)
        fresh.hint_worded = view.hint_worded
        return fresh.hint

    hinted = best(hints)
    view.hint  # noqa: B018 - read once, so that wording does not pay for it
    verdict = worded(view, finding)
    frame = {"code": raw.code, "message": raw.message, "data": raw.data, "body": raw.body}
    return {
        "opening": opening,
        "walking": best(lambda: find(open_failure(raw, who, where), rules)) - opening,
        "hints": hinted - opening,
        "wording": best(lambda: worded(view, finding)),
        "of it the log line": best(lambda: one_line(frame)) if verdict.raw_detail else 0.0,
    }


def growth():
    """Times that 1 MB costs what 50 kB cost, for texts made to hurt."""
    worst = ("", 0.0, 0.0)
    for unit in (
        "word ",
        '{"message": "',
        "error: 'x' ",
        "[[[[",
        "limit 5 requested 3 ",
        "at a ( ",
    ):
        small, large = (_long_text(unit, size) for size in (50_000, 1_000_000))
        worst = max(worst, (unit, large / small, large), key=lambda row: row[1])
    return worst


def _long_text(unit, size):
    raw = RawFailure.exception_text(unit * (size // len(unit)))
    return best(lambda: classify(raw), 5)


HOSTILE = (
    '{"message": "',
    "limit 5 requested 3 ",
    "api_key=aB3dE5fG7hJ ",
    "%25",
    "try again in 5 \n",
    "\U0001f600 error: ",
)
"""Units that the readers of JSON, numbers, secrets, escapes and waits can't pass over."""


def hostile(size=10_000_000):
    """The dearest text of this size in every field that is read: what it costs at the worst."""
    return max(
        (best(lambda raw=raw: classify(raw), 3), unit)
        for unit in HOSTILE
        for text in (unit * (size // len(unit)),)
        for raw in (
            RawFailure.exception_text(text),
            RawFailure.http(500, {"retry-after": text[:2000]}, {"error": {"message": text}}),
            RawFailure.exit(1, stderr=text),
        )
    )


def rows():
    """The figures, as (what, figure)."""
    start = time.perf_counter()
    rules = built_in()
    compiled = time.perf_counter() - start
    cases = [(raw_failure(c), c.get("speaker"), context(c)) for c in load("failures.jsonl")]
    whole = per_case(
        lambda raw, speaker, where: classify(raw, speaker=speaker, context=where), cases
    )
    decide = per_case(
        lambda raw, speaker, where: find(open_failure(raw, speaker_named(speaker), where), rules),
        cases,
    )
    naive = per_case(naive_list(), cases)
    unit, times, large = growth()
    worst, of_unit = hostile()
    yield "rules, and patterns in one set", f"{len(rules.rules)}, {len(rules.owners)}"
    yield "loading and compiling them, once", f"{compiled * 1e3:.0f} ms"
    yield "classify, median", f"{median(whole):.0f} us"
    yield "classify, p99", f"{percentile(whole, 0.99):.0f} us"
    yield "deciding alone (open, walk), median", f"{median(decide):.0f} us"
    yield "deciding alone, p99", f"{percentile(decide, 0.99):.0f} us"
    yield "the same patterns one by one (stdlib re), median", f"{median(naive):.0f} us"
    yield "the same patterns one by one, p99", f"{percentile(naive, 0.99):.0f} us"
    for name, microseconds in phases(cases).items():
        yield f"on average, {name}", f"{microseconds:.0f} us"
    yield (
        f"1 MB against 50 kB, worst of six texts ({unit!r})",
        f"{times:.0f}x, {large * 1e3:.0f} ms",
    )
    yield (
        f"10 MB, worst of {len(HOSTILE) * 3} hostile failures ({of_unit!r})",
        f"{worst * 1e3:.0f} ms",
    )


if __name__ == "__main__":
    for what, figure in rows():
        print(f"{what:58} {figure}")  # noqa: T201 - printing is its work
