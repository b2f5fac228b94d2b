"""Read labelled cases: one JSON object a line, as raw failures with what is expected of them."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from orchestrator.failure.classify import classify
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Context, Phase

HERE = Path(__file__).parent
FIELDS = ("kind", "category", "transient", "network_path", "recovery", "actions", "retry_after_s")
CASE_TIME = 1_775_000_000.0
"""POSIX seconds at which cases without a moment of their own happen."""


def load(name):
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines() if line]


def _exit(given):
    number = given.get("signal")
    if isinstance(number, str):
        number = int(signal.Signals[number])
    return RawFailure.exit(given.get("exit_code"), signal=number, stderr=given.get("stderr"))


_CONSTRUCTORS = {
    "acp_error": lambda g: RawFailure.acp_error(g.get("code"), g.get("message"), g.get("data")),
    "http": lambda g: RawFailure.http(g.get("status"), g.get("headers"), g.get("body")),
    "exception": lambda g: RawFailure.exception_text(g.get("text"), type_name=g.get("type", "")),
    "exit": _exit,
    "stderr": lambda g: RawFailure.from_stderr(g.get("stderr")),
    "text_chunk": lambda g: RawFailure.text_chunk(g.get("text"), message_id=g.get("messageId")),
    "record": RawFailure.from_record,
    "envelope": RawFailure.from_envelope,
}


def raw_failure(case):
    return _CONSTRUCTORS[case["surface"]](case["input"])


def context(case):
    given = case["input"] if isinstance(case["input"], dict) else {}
    models = given.get("advertised_models")
    return Context(
        advertised_models=tuple(models) if models is not None else None,
        phase=Phase(given.get("phase", "prompt")),
        text_shown=given.get("text_shown", False),
        tool_run=given.get("tool_run", False),
        attachments=given.get("attachments", False),
        wall_now=given.get("now", CASE_TIME),
    )


def verdict(case):
    return classify(raw_failure(case), speaker=case.get("speaker"), context=context(case))


def differences(case, got):
    """What differs between a case's label and a verdict, as (field, expected, got)."""
    found = []
    for name, want in case["expect"].items():
        if name not in FIELDS:
            continue
        have = getattr(got, name)
        if name == "actions":
            have = [str(a) for a in have]
        if name == "category" and want is None:
            if have not in {"unknown", "service"}:
                found.append((name, "unknown or service", str(have)))
        elif isinstance(want, float) or name == "retry_after_s":
            if have is None or abs(have - want) > 1e-6:
                found.append((name, want, have))
        elif have != want:
            found.append((name, want, None if have is None else str(have)))
    return found
