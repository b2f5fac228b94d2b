"""No secret leaves the classifier, whatever the surface and the field it came in."""

import json

import pytest

from orchestrator.failure.classify import classify
from orchestrator.failure.explain import explain
from orchestrator.failure.raw import RawFailure
from tests.failure.planting import BARE, NAMED, survives


class ExplodedError(RuntimeError):
    pass


def chained(text):
    error = ExplodedError(f"request failed: {text}")
    error.__cause__ = ConnectionResetError(text)
    return error


SURFACES = {
    "acp message": lambda t: RawFailure.acp_error(-32603, f"Internal error: {t}"),
    "acp data text": lambda t: RawFailure.acp_error(-32603, "Internal error", t),
    "acp data field": lambda t: RawFailure.acp_error(-32000, "Failed", {"details": t, "x": [t]}),
    "acp data JSON text": lambda t: RawFailure.acp_error(-32603, "E", json.dumps({"message": t})),
    "http text": lambda t: RawFailure.http(500, {"x-debug": t}, f"upstream said {t}"),
    "http JSON": lambda t: RawFailure.http(401, {}, {"error": {"message": t, "type": "x"}}),
    "exception": lambda t: RawFailure.exception(chained(t)),
    "exception text": lambda t: RawFailure.exception_text(f"RuntimeError: {t}"),
    "exit": lambda t: RawFailure.exit(1, stderr=f"starting\nError: {t}\nbye"),
    "stderr": lambda t: RawFailure.from_stderr(f"npm error code E401\nnpm error {t}"),
    "record": lambda t: RawFailure.from_record(
        {"id": "x", "revision": 1, "severity": "error", "category": "service", "title": t}
    ),
    "envelope": lambda t: RawFailure.from_envelope({"type": "provider.internal", "message": t}),
    "text chunk": lambda t: RawFailure.text_chunk(f"API Error: 500 {t}"),
}


@pytest.mark.parametrize("surface", SURFACES)
def test_no_secret_reaches_the_verdict(surface):
    build = SURFACES[surface]
    left = []
    for name, secret, text in [(name, secret, secret) for name, secret in BARE] + NAMED:
        verdict = classify(build(text))
        shown = {
            "title": verdict.title,
            "details": verdict.details,
            "raw_detail": verdict.raw_detail,
            "rejected_model": verdict.rejected_model,
        }
        left += [(name, field) for field, out in shown.items() if survives(secret, out)]
    assert left == []


def test_no_secret_reaches_the_explanation():
    left = [
        name
        for name, secret, text in NAMED
        if survives(secret, repr(explain(RawFailure.acp_error(-32603, f"Internal: {text}"))))
    ]
    assert left == []
