"""From a raw failure to a verdict.  Pure, total, and linear in the input.

Theory of operation.  A failure is opened once into sentences and facts (`unwrap`, `view`).  The
first rule in the contract's order that has an opinion decides (`decide`, `walk`), and what was
found is worded (`wording`).

All of that loads at the first failure, or by `warm`: a program whose turns all land never does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final

from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Context, Verdict

if TYPE_CHECKING:
    from orchestrator.failure.rule import RuleSet

_NO_CONTEXT: Final = Context()


def classify(
    raw: RawFailure,
    *,
    speaker: str | None = None,
    context: Context = _NO_CONTEXT,
    rules: RuleSet | None = None,
) -> Verdict:
    """Understand one failure.  Never raises, whatever arrived."""
    return _decide()(raw, speaker, context, rules)


@cache
def _decide() -> Callable[[RawFailure, str | None, Context, RuleSet | None], Verdict]:
    from orchestrator.failure.decide import decide  # noqa: PLC0415

    return decide


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
