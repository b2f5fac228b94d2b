"""From a raw failure to a verdict.  Pure, total, and linear in the input.

Theory of operation.  A failure is opened once into sentences and facts (`unwrap`, `view`).  Exits
and typed records have short tables of their own (`exits`, `typed`); everything else, and what those
leave open, goes through the ordered walk over the rules (`walk`).  What was found is then worded.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from orchestrator.failure.exits import find_exit
from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import RawFailure, Surface
from orchestrator.failure.rule import RuleSet, compile_set
from orchestrator.failure.speakers import speaker_named
from orchestrator.failure.typed import find_typed
from orchestrator.failure.verdict import Context, Verdict
from orchestrator.failure.view import View, open_failure
from orchestrator.failure.walk import Finding, walk

_NO_CONTEXT: Final = Context()


def classify(
    raw: RawFailure,
    *,
    speaker: str | None = None,
    context: Context = _NO_CONTEXT,
    rules: RuleSet | None = None,
) -> Verdict:
    """Understand one failure.  Never raises, whatever arrived."""
    from orchestrator.failure.wording import worded  # noqa: PLC0415 - loaded at the first failure

    view = open_failure(raw, speaker_named(speaker), context)
    return worded(view, find(view, rules or built_in()))


@cache
def built_in() -> RuleSet:
    """The rules of this package, compiled once: at the first failure, or by `warm`."""
    from orchestrator.failure.rules.catalogue import ALL_RULES  # noqa: PLC0415

    return compile_set(ALL_RULES)


def find(view: View, rules: RuleSet) -> Finding:
    """Walk the short tables of this surface, then the order."""
    surface = view.raw.surface
    if surface is Surface.TEXT_CHUNK and view.raw.message_id:
        return Finding(Kind.NOT_A_FAILURE, "text.the_model_wrote_it")
    if surface in (Surface.RECORD, Surface.ENVELOPE):
        return find_typed(view, lambda: walk(view, rules))
    if surface is Surface.EXIT:
        return find_exit(view, walk(view, rules))
    return walk(view, rules)


def warm() -> None:
    """Load and compile all that a first failure would otherwise wait for: 60 to 250 ms, once.

    For hosts that would rather pay at their start.  May run in a thread of its own, also while
    failures are classified, and does nothing when it runs again.
    """
    for raw in _SAMPLES:
        classify(raw, context=Context(wall_now=0.0, advertised_models=("x",)))


_SAMPLES: Final = (
    RawFailure.acp_error(
        -32603,
        "Internal error",
        {
            "message": "API Error: 529 Overloaded (request id: 0000-0000), 5 s until the retry",
            "details": 'retry_after: 5 "key=y" {"a": "eyJhIjoiQiIsImMiOiJEIn0/x"} \\u0041 (code 5)',
        },
    ),
    RawFailure.http(429, None, {"status": "resource_exhausted", "quotaId": "PerDay"}),
    RawFailure.http(429, None, "Too many tokens: limit 5, requested 9. " + "It goes on, " * 30),
    RawFailure.http(404, None, "Invalid model id: y"),
    RawFailure.exception_text("Connection error: ECONNREFUSED h.example:5\n    at x (/a/b/c:1:1)"),
    RawFailure.exit(1, stderr="error: y"),
    RawFailure.exit(1, stderr="registration failed: HTTP 429 too many requests"),
    RawFailure.exit(127, stderr="sh: y: not found"),
    RawFailure.exception_text(
        "409 No, nothing in https://h.example/b, /a/b/c, c:\\d\\e\\f\n  at x"
    ),
    RawFailure.text_chunk("nothing of the kind"),
)
"""Between them they need every pattern."""
