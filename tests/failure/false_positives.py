"""How much ordinary text the scrubber touches, and what it costs.

`python -m tests.failure.false_positives`
"""

from pathlib import Path
from timeit import repeat

from orchestrator.failure.redact import scrub

DATA = Path(__file__).parent / "data" / "ordinary.txt"


def touched():
    """The lines that lost something, and what is left of them."""
    lines = DATA.read_text(encoding="utf-8").splitlines()
    return [(line, clean) for line in lines if (clean := scrub(line)) != line], len(lines)


TYPICAL = (
    "Rate limit reached for gpt-4o in organization org-xxxx on tokens per min (TPM): Limit 30000, "
    "Used 14567, Requested 24754. Please try again in 18.642s. Visit "
    "https://platform.openai.com/account/rate-limits"
)


def main():
    changed, total = touched()
    for line, clean in changed:
        print(f"- {line}\n+ {clean}")  # noqa: T201 - printing is its work
    share = len(changed) / total
    print(f"{len(changed)} of {total} ordinary lines touched ({share:.2%})")  # noqa: T201
    best = min(repeat(lambda: scrub(TYPICAL), number=1000, repeat=7)) * 1000
    print(f"{best:.1f} microseconds for a message of {len(TYPICAL)} characters")  # noqa: T201


if __name__ == "__main__":
    main()
