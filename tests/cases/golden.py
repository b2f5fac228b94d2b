"""Write titles.golden: what a user reads for every real case.

`python -m tests.cases.golden` writes it; a test fails when a title changes, so that somebody reads
the new one.
"""

from __future__ import annotations

from tests.cases.load import HERE, load, verdict


def golden():
    lines = []
    for case in load("failures.jsonl"):
        got = verdict(case)
        lines.append(f"{case['id']} [{got.kind}] {got.title}")
        if got.details:
            lines.append(f"    details: {got.details}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (HERE / "titles.golden").write_text(golden(), "utf-8")
