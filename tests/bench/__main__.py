"""`make bench`: every figure beside its peers of the same run, in one table.

Each part runs in a process of its own, one after the other, so that none warms or burdens another.
Figures are for reading: no test asserts a time.
"""

from __future__ import annotations

import json
import subprocess
import sys

PARTS = ("turns", "metrics", "classify", "simulate", "proxy")
_ROWS = """
import importlib, json, sys
rows = importlib.import_module(f"tests.bench.{sys.argv[1]}").rows()
print(json.dumps([[str(cell) for cell in row] for row in rows]))
"""


def rows_of(part):
    """What one part measured, as (what, figure, beside what) rows."""
    command = [sys.executable, "-c", _ROWS, part]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"tests.bench.{part} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    for part in PARTS:
        rows = rows_of(part)
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        print(f"\n{part}")  # noqa: T201 - printing is its work
        for row in rows:
            cells = [f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)]
            print("  " + "  ".join(cells).rstrip())  # noqa: T201 - printing is its work


if __name__ == "__main__":
    main()
