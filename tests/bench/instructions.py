# ruff: noqa: T201 - a table on stdout is what this is for
"""Instructions of a turn, beside its peers: the same figure whatever else the machine does.

    python -m tests.bench.instructions        needs valgrind; about three minutes

The contenders are those of `turns`.  A process runs a few calls, another one many; the difference
is what a call costs.  The collector is off, and the calls come one after another.
"""

from __future__ import annotations

import gc
import os
import re
import shutil
import subprocess
import sys

import anyio

from tests.bench.turns import CONTENDERS, ONLY_LANDS, PLAIN, RETRIES, TINY_S

FEW, MANY = 100, 300
SCENES = {"lands at once": (0, 0), "three retries": (TINY_S, RETRIES)}
COUNTED = (PLAIN, "bare machine", "Orchestrator", "Orchestrator, no metrics", "tenacity")


async def play(contender, scene, calls):
    wait, failures = SCENES[scene]
    async with contender(wait) as make:
        call = make([0, 0])
        for _ in range(50 + calls):
            await (make([failures, 0]) if failures else call)()


def instructions(name, scene, calls):
    """Of a whole process."""
    done = subprocess.run(
        [
            *("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"),
            *(sys.executable, "-m", "tests.bench.instructions", name, scene, str(calls)),
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "0"},
    )
    return int(re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)[1].replace(",", ""))


def of_one_call(name, scene):
    few, many = (instructions(name, scene, calls) for calls in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def main():
    if len(sys.argv) > 1:
        name, scene, calls = sys.argv[1:]
        gc.disable()
        anyio.run(play, CONTENDERS[name], scene, int(calls))
        return
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed; it counts the instructions")
    for scene in SCENES:
        base = of_one_call(PLAIN, scene)
        for name in COUNTED:
            if scene == "lands at once" or name not in ONLY_LANDS:
                count = base if name == PLAIN else of_one_call(name, scene)
                print(f"{scene:14}  {name:26}  {count:11,.0f}  {count / base:6.2f}x")


if __name__ == "__main__":
    main()
