"""What a first failure would wait for can be had before, and no import pays for it."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from orchestrator.failure.classify import classify, warm
from orchestrator.failure.raw import RawFailure

COUNTING = """
import re2
from orchestrator.failure.classify import warm

warm()
made = []
for holder, name in ((re2, "compile"), (re2.Set, "SearchSet")):
    make = getattr(holder, name)
    setattr(holder, name, lambda *given, make=make: made.append(given) or make(*given))

from tests.cases.load import load, verdict

for file in ("failures.jsonl", "wider.jsonl", "near_misses.jsonl"):
    for case in load(file):
        verdict(case)
assert not made, made
"""


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=False).returncode


def test_once_warm_no_failure_compiles_anything():
    assert run(COUNTING) == 0


def test_importing_the_classifier_loads_neither_the_engine_nor_a_rule():
    assert (
        run(
            "import sys, orchestrator.failure.classify\n"
            "sys.exit(any(name in sys.modules for name in"
            " ('re2', 'orchestrator.failure.rules.catalogue', 'orchestrator.failure.wording')))"
        )
        == 0
    )


def test_warming_changes_nothing_and_may_run_beside_failures():
    raw = RawFailure.http(429, None, "too many requests")
    before = classify(raw)
    with ThreadPoolExecutor(4) as threads:
        warming = [threads.submit(warm) for _ in range(3)]
        verdicts = [threads.submit(classify, raw) for _ in range(20)]
    assert [done.result() for done in warming] == [None] * 3
    assert {verdict.result() for verdict in verdicts} == {before}
