"""Every labelled case is right, and the two files made from them are fresh."""

from __future__ import annotations

import json

import pytest

from orchestrator.failure.kinds import Kind
from tests.cases.golden import golden
from tests.cases.load import HERE, differences, load, verdict
from tests.cases.report import FILES, report

DISAGREEMENTS = json.loads((HERE / "disagreements.json").read_text("utf-8"))
"""Cases whose label we think is wrong: id and reason."""


@pytest.mark.parametrize("name", FILES)
def test_every_case_that_is_not_doubtful_is_right(name):
    wrong = {
        case["id"]: found
        for case in load(name)
        if case["confidence"] != "low"
        and case["id"] not in DISAGREEMENTS
        and (found := differences(case, verdict(case)))
    }
    assert wrong == {}


def test_every_case_has_its_own_id_and_says_what_is_expected():
    cases = [case for name in FILES for case in load(name)]
    assert len({case["id"] for case in cases}) == len(cases)
    assert all(case["expect"]["kind"] in set(Kind) for case in cases)


def test_there_are_at_least_150_near_misses_and_each_says_what_it_mutates():
    cases = load("near_misses.jsonl")
    assert len(cases) >= 150
    assert all(case["mutates"] for case in cases)


def test_every_kind_has_a_case():
    cases = [case for name in FILES for case in load(name)]
    assert {case["expect"]["kind"] for case in cases} == {kind.value for kind in Kind}


def test_a_disagreement_names_a_case_and_a_reason_and_is_still_one():
    known = {case["id"]: case for case in load("failures.jsonl")}
    for name, reason in DISAGREEMENTS.items():
        assert len(reason) > 20
        assert differences(known[name], verdict(known[name])), f"{name} agrees by now"


def test_the_report_is_fresh():
    assert (HERE / "REPORT.md").read_text("utf-8") == report(), "run python -m tests.cases.report"


def test_every_title_is_the_one_that_somebody_read():
    assert (HERE / "titles.golden").read_text("utf-8") == golden(), (
        "run python -m tests.cases.golden"
    )
