"""Rules that a user adds: judged as a whole before any takes effect."""

from __future__ import annotations

import tomllib

import pytest

from orchestrator.failure.classify import classify
from orchestrator.failure.explain import Opinion, explain
from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.rules.user import BadRulesError, compile_rules

GOOD = """
[[rule]]
name = "acme.credits"
kind = "billing"
pattern = ["acme credits? (?:are )?gone", "acme wallet is empty"]

[[rule]]
name = "acme.codes"
kind = "overloaded"
facts = [["acme_code", "E77"]]
speakers = ["acme"]

[[rule]]
name = "acme.never"
forbids = ["rate_limited"]
pattern = "acme says no"
"""


def problems(*texts):
    documents = [(f"{n}.toml", tomllib.loads(text)) for n, text in enumerate(texts)]
    with pytest.raises(BadRulesError) as caught:
        compile_rules(documents)
    return caught.value.problems


def test_rows_of_a_user_speak_before_the_built_in_ones():
    rules = compile_rules([("a.toml", tomllib.loads(GOOD))]).rules
    verdict = classify(RawFailure.http(503, None, "ACME  credits\nare gone"), rules=rules)
    assert (verdict.kind, verdict.rule) == (Kind.BILLING, "acme.credits")
    assert classify(RawFailure.http(503, None, "ACME credits are gone")).kind is Kind.SERVER_ERROR


def test_a_fact_and_a_forbidding_row_work_like_built_in_ones():
    rules = compile_rules([("a.toml", tomllib.loads(GOOD))]).rules
    fact = RawFailure.acp_error(-32603, "x", {"acmeCode": "e77"})
    assert classify(fact, rules=rules).kind is not Kind.OVERLOADED
    assert (
        classify(RawFailure.exception_text("rate limit: acme says no"), rules=rules).kind
        is Kind.UNKNOWN
    )


def test_a_file_that_could_not_be_read_drops_only_itself_with_one_warning():
    compiled = compile_rules([("a.toml", None), ("b.toml", tomllib.loads(GOOD))])
    assert compiled.warnings == ("a.toml: could not be read, so its rules are left out",)
    assert any(rule.name == "acme.credits" for rule in compiled.rules.rules)


def test_duplicates_are_named_together_with_where_they_stand():
    row = '[[rule]]\nname = "{}"\nkind = "billing"\npattern = "x y"\n'
    (problem,) = problems(
        row.format("a.b") + row.format("a.b"), row.format("a.b") + row.format("status.429")
    )
    assert "a.b (0.toml and 0.toml and 1.toml)" in problem
    assert "status.429 (1.toml and the built-in rules)" in problem


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ('name = "a"\nkind = "billing"\npattern = "x"', "0.toml: rule[0].name: 'a' is not allowed"),
        (
            'name = "a.b"\nkind = "bling"\npattern = "x"',
            "rule[0].kind: 'bling' is not allowed; one of overloaded",
        ),
        (
            'name = "a.b"\nkind = "billing"\npattern = "("',
            "rule[0].pattern: '(' is not allowed; it is no RE2 pattern",
        ),
        ('name = "a.b"\nkind = "billing"\npattern = "Acme"', "write the pattern in lower case"),
        ('name = "a.b"\nkind = "billing"\npattern = "x*"', "it matches every text"),
        (
            'name = "a.b"\nkind = "billing"',
            "one of pattern, facts, statuses, errors, errnos is needed",
        ),
        ('name = "a.b"\npattern = "x"', "exactly one of kind and forbids is needed"),
        ('kind = "billing"\npattern = "x"', "rule[0]: name is missing"),
        (
            'name = "a.b"\nkind = "billing"\nstatuses = [true]',
            "rule[0].statuses: [True] is not allowed",
        ),
        ('name = "a.b"\nkind = "billing"\nstatuses = [200]', "a status from 400 to 599 is"),
        (
            'name = "a.b"\nkind = "billing"\npattern = "x"\nsteps = "x"',
            "rule[0].steps: unknown field; allowed: name",
        ),
        (
            'name = "a.b"\nkind = "billing"\npattern = "x"\npriority = 1e9',
            "a whole number from -100 to 100",
        ),
        ('name = "a.b"\nkind = "billing"\npattern = "x"\ncheck = "os.system"', "rule[0].check"),
        ('name = "a.b"\nkind = "billing"\nfacts = [["x"]]', "a pair such as"),
    ],
)
def test_a_bad_row_names_the_field_the_value_and_what_is_allowed(row, problem):
    assert any(problem in found for found in problems(f"[[rule]]\n{row}"))


def test_all_problems_come_at_once_and_none_of_the_rules_takes_effect():
    found = problems(GOOD + '\n[[rule]]\nname = "x"\n', 'other = 1\n[[rule]]\nkind = "y"\n')
    assert len(found) >= 6


def test_a_pattern_that_would_backtrack_elsewhere_costs_nothing_here():
    text = '[[rule]]\nname = "a.b"\nkind = "billing"\npattern = "(?:a+)+b!"'
    rules = compile_rules([("a.toml", tomllib.loads(text))]).rules
    assert classify(RawFailure.exception_text("a" * 50_000), rules=rules).kind is Kind.UNKNOWN


def test_an_explanation_shows_each_opinion_and_what_decided():
    raw = RawFailure.acp_error(-32603, "Internal error", "HTTP 401 connection reset")
    told = explain(raw, speaker="kiro")
    traces = [t for step in told.steps for t in step.rules]
    assert told.decided_by == told.verdict.rule == "status.401"
    assert [t.rule for t in traces if t.opinion is Opinion.DECIDES] == ["status.401"]
    late = {t.rule: t.matched for t in traces if t.opinion is Opinion.TOO_LATE}
    assert late["kiro.dispatch_failure"] == "connection reset"


def test_an_explanation_shows_why_a_rule_was_passed_over_and_no_secret():
    key = "sk-ant-api03-" + "Ab1" * 20
    raw = RawFailure.acp_error(-32603, "Improperly formed request", f"x {key}")
    told = explain(raw, speaker="kiro")
    (trace,) = [t for step in told.steps for t in step.rules if t.rule == "kiro.improperly_formed"]
    assert trace.opinion is Opinion.PASSED_OVER
    assert "outside the field" in trace.reason
    assert key.lower() not in repr(told).lower()


def test_an_exits_explanation_says_that_the_short_table_went_first():
    told = explain(RawFailure.exit(1, stderr="HTTP 429 Too Many Requests"))
    assert told.decided_by == "exit.code"
    assert any("exit.code goes first" in t.reason for step in told.steps for t in step.rules)
