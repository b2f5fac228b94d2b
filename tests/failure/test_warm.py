"""What a first failure would wait for can be had before, and no import pays for it."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

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
from tests.cases.report import FILES

for file in FILES:
    for case in load(file):
        verdict(case)
assert not made, made
"""


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=False).returncode


def test_once_warm_no_failure_compiles_anything():
    assert run(COUNTING) == 0


@pytest.mark.parametrize("what", ["classify", "Orchestrator, Settings"])
def test_importing_loads_neither_the_engine_nor_what_only_failures_need(what):
    late = ("decide", "rule", "walk", "wording", "secret_search", "rules.catalogue")
    modules = ["re2", *(f"orchestrator.failure.{name}" for name in late)]
    loaded = f"any(name in sys.modules for name in {modules})"
    code = f"import sys; from orchestrator import {what}; sys.exit({loaded})"
    assert run(code) == 0


def test_warming_changes_nothing_and_may_run_beside_failures():
    raw = RawFailure.http(429, None, "too many requests")
    before = classify(raw)
    with ThreadPoolExecutor(4) as threads:
        warming = [threads.submit(warm) for _ in range(3)]
        verdicts = [threads.submit(classify, raw) for _ in range(20)]
    assert [done.result() for done in warming] == [None] * 3
    assert {verdict.result() for verdict in verdicts} == {before}
