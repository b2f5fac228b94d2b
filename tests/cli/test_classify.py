"""`orchestrator classify`."""

import io
import json
import os
import subprocess
import sys

import pytest

from orchestrator.cli.app import run
from orchestrator.cli.classify import as_json
from orchestrator.cli.codes import Exit
from orchestrator.cli.rows import read_row
from orchestrator.failure.kinds import Kind
from orchestrator.failure.rule import Step
from orchestrator.failure.verdict import Verdict

OVERLOADED = {"surface": "http", "input": {"status": 529}, "id": "a"}
REFUSED = {"surface": "exception", "input": {"text": "ECONNREFUSED", "type": "httpx.ConnectError"}}
STRANGE = {"surface": "acp_error", "input": {"message": "zzyzx qwfp"}, "id": "s"}
FIELDS = [
    "kind",
    "cause",
    "category",
    "transient",
    "network_path",
    "recovery",
    "actions",
    "structural",
    "retry_after_s",
    "resets_at",
    "title",
    "rule",
]


class _Input:
    def __init__(self, text, *, terminal=False):
        self.buffer = io.BytesIO(text)
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.fixture
def classify(capsys, monkeypatch):
    def _classify(*rows, tokens=()):
        lines = [r if isinstance(r, bytes) else json.dumps(r).encode() for r in rows]
        monkeypatch.setattr(sys, "stdin", _Input(b"\n".join(lines)))
        code = run(["classify", *tokens])
        out, err = capsys.readouterr()
        return code, [json.loads(line) for line in out.splitlines()], err

    return _classify


def test_each_line_gets_one_verdict_with_every_field(classify):
    code, rows, err = classify(OVERLOADED, b"", REFUSED)
    assert code == Exit.OK
    assert err == ""
    assert [row["kind"] for row in rows] == ["overloaded", "connection_lost"]
    assert list(rows[0]) == ["id", *FIELDS]
    assert list(rows[1]) == FIELDS
    assert rows[0]["transient"] is True
    assert rows[0]["actions"] == ["retry"]
    assert rows[1]["network_path"] is True


def test_a_bad_line_is_named_and_the_others_still_come_out(classify):
    bad = {"surface": "http", "input": {"status": "x\x1b[31m"}}
    code, rows, err = classify(OVERLOADED, bad, b"{", REFUSED)
    assert code == Exit.USAGE
    assert len(rows) == 2
    first, second, last = err.splitlines()
    assert first == (
        'error: line 2: input.status: "x\\u001b[31m" is not allowed; a whole number is'
    )
    assert second.startswith("error: line 3: not JSON: ")
    assert second.endswith('; for example {"surface": "http", "input": {"status": 529}}')
    assert last == "error: 2 of 4 lines could not be read as a failure"


def test_with_json_each_complaint_is_an_object(classify):
    code, rows, err = classify(OVERLOADED, b"[]", tokens=["--json"])
    assert code == Exit.USAGE
    assert len(rows) == 1
    complaint, end = map(json.loads, err.splitlines())
    assert complaint["code"] == "bad_input"
    assert complaint["line"] == 2
    assert end["code"] == "bad_input"


def test_a_failure_that_no_rule_knows_is_exit_code_4(classify):
    code, rows, err = classify(OVERLOADED, STRANGE)
    assert code == Exit.NO_RULE
    assert rows[1]["kind"] == "unknown"
    assert err.startswith("error: 1 of 2 failures matched no rule\nhint: ")


def test_nothing_in_is_nothing_out(classify):
    assert classify() == (Exit.OK, [], "")


def test_the_speaker_of_the_line_wins_over_the_option(classify, monkeypatch):
    seen = []

    def remember(raw, *, speaker, context, rules):
        seen.append((speaker, context.wall_now))
        return Verdict.of(Kind.OVERLOADED, "t")

    monkeypatch.setattr("orchestrator.cli.classify.understand", remember)
    classify(OVERLOADED, OVERLOADED | {"speaker": "kiro"}, tokens=["--speaker", "codex", "--now=5"])
    classify(OVERLOADED, tokens=["--now", "2026-11-30T20:00:00Z"])
    assert seen == [("codex", 5.0), ("kiro", 5.0), (None, 1796068800.0)]


@pytest.mark.parametrize("now", ["x", "nan", "inf", "-1", "1e12", ""])
def test_a_wrong_moment_is_refused(classify, now):
    code, _, err = classify(OVERLOADED, tokens=[f"--now={now}"])
    assert code == Exit.USAGE
    assert f"--now: {now!r} is not a moment" in err


def test_a_file_is_read_and_a_missing_one_is_one_sentence(capsys, tmp_path):
    file = tmp_path / "failures.jsonl"
    file.write_text(json.dumps(OVERLOADED))
    assert run(["classify", str(file)]) == Exit.OK
    assert json.loads(capsys.readouterr().out)["kind"] == "overloaded"
    for name, reason in (("none", "No such file"), (str(tmp_path), "directory"), ("a\0", "null")):
        assert run(["classify", name]) == Exit.USAGE
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("error: FILE: ")
        assert reason in line


def test_a_terminal_as_input_is_not_waited_for_unless_asked(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", _Input(b"", terminal=True))
    assert run(["classify"]) == Exit.USAGE
    assert "nothing to read: name a FILE or pipe JSON lines in" in capsys.readouterr().err
    assert run(["classify", "-"]) == Exit.OK


def test_on_a_terminal_a_verdict_is_a_line_for_people(classify, capsys, monkeypatch):
    verdicts = iter(
        [
            Verdict.of(Kind.OVERLOADED, "Overloaded \x1b[31m\u202e", retry_after_s=12.0),
            Verdict.of(Kind.OVERLOADED, "Overloaded"),
            Verdict.of(Kind.USAGE_LIMIT, "Spent", resets_at=1796068800.0),
            Verdict.of(Kind.BILLING, "Pay"),
            Verdict.of(Kind.AGENT_DIED, "Died"),
        ]
    )
    monkeypatch.setattr("orchestrator.cli.classify.understand", lambda *_, **__: next(verdicts))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", _Input(b"\n".join([json.dumps(OVERLOADED).encode()] * 5)))
    monkeypatch.setenv("NO_COLOR", "1")
    run(["classify"])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert [line.split(None, 1)[1].split("  ")[0].strip() for line in out.splitlines()] == [
        "again after 12 s",
        "again",
        "until 11-30 20:00Z",
        "ends",
        "death",
    ]
    assert r"Overloaded \x1b[31m\u202e" in out


LIMIT = {
    "surface": "http",
    "input": {
        "status": 429,
        "body": {"error": {"type": "rate_limit_error", "message": "You hit your 5-hour limit"}},
    },
}


def test_explain_has_every_step_in_order_and_the_same_verdict(classify):
    _, (plain,), _ = classify(LIMIT)
    code, (row,), _ = classify(LIMIT, tokens=["--explain"])
    explanation = row.pop("explanation")
    assert code == Exit.OK
    assert row == plain
    assert [step["step"] for step in explanation["steps"]] == [s.name.lower() for s in Step]
    assert explanation["decided_by"] == plain["rule"]
    deciding = [
        rule
        for step in explanation["steps"]
        for rule in step["rules"]
        if rule["opinion"] == "decides"
    ]
    assert [rule["rule"] for rule in deciding] == [plain["rule"]]
    assert deciding[0]["matched"] == "5-hour limit"


def test_explain_reads_well_and_shows_no_secret(classify, capsys, monkeypatch):
    secret = "sk-ant-api03-" + "a" * 80
    lines = [json.dumps(LIMIT), json.dumps({"surface": "stderr", "input": {"stderr": secret}})]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys, "stdin", _Input("\n".join(lines).encode()))
    monkeypatch.setenv("NO_COLOR", "1")
    run(["classify", "--explain"])
    out = capsys.readouterr().out
    assert secret not in out
    assert '(usage_limit) decides: "5-hour limit"' in out
    assert "  no opinion   notice, start, structured, entitlement\n" in out
    assert "  field        type=rate_limit_error\n" in out
    assert "  decided by   unknown\n" in out


@pytest.fixture
def rules(tmp_path):
    def _rules(name, text):
        file = tmp_path / name
        file.write_text(text)
        return f"--rules={file}"

    return _rules


def test_own_rules_speak_before_the_built_in_ones(classify, rules):
    mine = rules("mine.toml", '[[rule]]\nname = "acme.gone"\nkind = "billing"\npattern = "zzyzx"')
    more = rules("more.toml", '[[rule]]\nname = "acme.529"\nkind = "billing"\nstatuses = [529]')
    code, rows, err = classify(STRANGE, OVERLOADED, tokens=[mine, more])
    assert (code, err) == (Exit.OK, "")
    assert [(row["kind"], row["rule"]) for row in rows] == [
        ("billing", "acme.gone"),
        ("billing", "acme.529"),
    ]


def test_bad_rules_are_all_named_and_none_is_used(classify, rules):
    bad = rules("bad.toml", '[[rule]]\nname = "acme"\nkind = "biling"\npattern = "ZZ"')
    code, rows, err = classify(STRANGE, tokens=[bad])
    assert code == Exit.USAGE
    assert rows == []
    assert err.startswith("error: --rules: the rules cannot be used, so none of them is\n")
    assert [line.split()[1] for line in err.splitlines()[1:]] == [
        "rule[0].name:",
        "rule[0].kind:",
        "rule[0].pattern:",
    ]


def test_one_unreadable_rules_file_of_several_drops_only_itself(classify, rules, tmp_path):
    mine = rules("mine.toml", '[[rule]]\nname = "acme.gone"\nkind = "billing"\npattern = "zzyzx"')
    missing = f"--rules={tmp_path / 'none.toml'}"
    code, (row,), err = classify(STRANGE, tokens=[mine, missing])
    assert code == Exit.OK
    assert row["rule"] == "acme.gone"
    assert err == (
        f"warning: {tmp_path / 'none.toml'}: there is no such file; its rules are left out\n"
    )
    code, rows, err = classify(STRANGE, tokens=[missing])
    assert code == Exit.USAGE
    assert rows == []
    assert "there is no such file" in err


def test_the_json_of_a_verdict_survives_any_title():
    row = read_row(json.dumps(OVERLOADED).encode(), speaker=None, now=None)
    verdict = Verdict.of(Kind.USAGE_LIMIT, "a\nb\u2028", resets_at=5.0, retry_after_s=0.0)
    assert as_json(row, verdict)["resets_at"] == 5.0
    assert as_json(row, verdict)["retry_after_s"] == 0.0


def test_the_real_command_answers_each_line_as_it_comes():
    command = [sys.executable, "-m", "orchestrator.cli", "classify"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"NO_COLOR": "1"}
    ) as child:
        for _ in range(2):
            child.stdin.write(json.dumps(OVERLOADED).encode() + b"\n")
            child.stdin.flush()
            assert json.loads(child.stdout.readline())["kind"] == "overloaded"
        child.stdin.close()
        assert child.wait() == Exit.OK
