"""How much ordinary text the scrubber touches: `python -m tests.failure.false_positives`."""

from pathlib import Path

from orchestrator.failure.redact import scrub

DATA = Path(__file__).parent / "data" / "ordinary.txt"


def touched():
    """The lines that lost something, and what is left of them."""
    lines = DATA.read_text(encoding="utf-8").splitlines()
    return [(line, clean) for line in lines if (clean := scrub(line)) != line], len(lines)


def main():
    changed, total = touched()
    for line, clean in changed:
        print(f"- {line}\n+ {clean}")  # noqa: T201 - printing is its work
    share = len(changed) / total
    print(f"{len(changed)} of {total} ordinary lines touched ({share:.2%})")  # noqa: T201


if __name__ == "__main__":
    main()
