# ruff: noqa: T201 - a table on stdout is what this is for
"""What a turn costs, beside its peers and in the same run.

    python -m tests.bench.turns            all of it, about two minutes
    python -m tests.bench.turns --quick    fewer repeats, for a look

Four figures, each as a multiple of a plain `try/except` loop around the same awaited call: a call
that succeeds at once, the memory of one waiting retry, and 10,000 concurrent turns that each fail
three times and wait a millisecond; then what importing costs.  Each sample is a process of its
own, contenders take turns, and the table shows medians.  Processor time is what is compared: on a
machine that does other things too, wall time measures those.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import time
import tracemalloc
from contextlib import asynccontextmanager
from functools import partial
from importlib.util import find_spec

import anyio
import anyio.lowlevel

TURNS = 10_000
RETRIES = 3
ATTEMPTS = 5
TINY_S = 0.001
LONG_S = 3600.0
CALLS = 400
"""Calls in a batch; a sample is the best of many batches."""


class BusyError(Exception):
    pass


async def target(state):
    """Fail `state[0]` times, then answer."""
    if state[0]:
        state[0] -= 1
        state[1] += 1
        raise BusyError
    return 1


# The contenders: each gives a function from a state to a call without arguments ------------------


@asynccontextmanager
async def plain(wait):
    async def call(state):
        for number in range(1, ATTEMPTS + 1):
            try:
                return await target(state)
            except BusyError:
                if number == ATTEMPTS:
                    raise
            await anyio.sleep(wait)
        return None

    yield lambda state: partial(call, state)


@asynccontextmanager
async def bare_machine(_):
    """The machine alone, as a host that owns its loop drives it; it only lands."""
    from orchestrator import Facts, Live, Settings, TurnIds, TurnMachine
    from orchestrator.turn.events import Began, Finished, Started

    settings, ids, live, facts = Settings(), TurnIds("t", "s", "e"), Live(), Facts()

    async def call(state):
        machine = TurnMachine(settings, ids)
        machine.handle(Started(0.0, live, facts))
        machine.handle(Began(0.0, live))
        await target(state)
        machine.handle(Finished(1.0, live, 1))

    yield lambda state: partial(call, state)


class Agent:
    def __init__(self, state):
        self.state = state

    async def attempt(self, _):
        await target(self.state)

    async def recover(self, _):
        raise AssertionError


class AgentWithCancel(Agent):
    async def cancel(self, attempt, *, hard):
        raise AssertionError


@asynccontextmanager
async def over_orchestrator(wait, *, agent=AgentWithCancel, metrics=True):
    from orchestrator import Kind, MetricsObserver, Orchestrator, Settings, Verdict
    from orchestrator.errors import error_for
    from orchestrator.settings.model import Curve, Ladders

    curve = Curve(first_s=wait or TINY_S, factor=1.0, cap_s=wait or TINY_S, jitter=0.0)
    long = max(LONG_S, wait)
    settings = Settings(ladders=Ladders(curve=curve, connection_cap_s=long, ride_out_cap_s=long))
    verdict = Verdict.of(Kind.OVERLOADED, "The service is busy. Try again.")

    class Understood(agent):
        """Fails with a verdict, as the peers are told which exception to retry."""

        async def attempt(self, _):
            try:
                await target(self.state)
            except BusyError:
                raise error_for(verdict) from None

    async with Orchestrator(
        settings, observers=[MetricsObserver()] if metrics else []
    ) as orchestrator:
        numbers = iter(range(TURNS * 10))

        def make(state):
            kind = Understood if state[0] else agent
            session = orchestrator.session(str(next(numbers)), kind(state))
            return lambda: session.turn("hi").wait()

        yield make


@asynccontextmanager
async def with_backoff(wait):
    import backoff

    decorate = backoff.on_exception(
        backoff.constant, BusyError, max_tries=ATTEMPTS, jitter=None, logger=None, interval=wait
    )
    call = decorate(target)
    yield lambda state: partial(call, state)


@asynccontextmanager
async def with_tenacity(wait):
    import tenacity

    call = tenacity.retry(
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        wait=tenacity.wait_fixed(wait),
        retry=tenacity.retry_if_exception_type(BusyError),
        reraise=True,
    )(target)
    yield lambda state: partial(call, state)


@asynccontextmanager
async def with_stamina(wait):
    import stamina
    import stamina.instrumentation

    stamina.instrumentation.set_on_retry_hooks([])
    call = stamina.retry(
        on=BusyError,
        attempts=ATTEMPTS,
        timeout=None,
        wait_initial=wait,
        wait_max=wait,
        wait_jitter=0,
        wait_exp_base=1,
    )(target)
    yield lambda state: partial(call, state)


PLAIN = "plain try/except loop"
CONTENDERS = {
    PLAIN: plain,
    "bare machine": bare_machine,
    "Orchestrator": over_orchestrator,
    "Orchestrator, no metrics": partial(over_orchestrator, metrics=False),
    "Orchestrator, agent without cancel": partial(over_orchestrator, agent=Agent),
    "backoff": with_backoff,
    "tenacity": with_tenacity,
    "stamina": with_stamina,
}
NEEDS = {"backoff": "backoff", "tenacity": "tenacity", "stamina": "stamina"}


# The measurements, each in a process of its own ---------------------------------------------------


async def at_once(contender):
    """Microseconds per call that succeeds at once."""
    best = float("inf")
    async with contender(0) as make:
        call = make([0, 0])
        gc.collect()
        gc.freeze()
        for _ in range(60):
            began = time.process_time()
            for _ in range(CALLS):
                await call()
            best = min(best, (time.process_time() - began) / CALLS)
    return best * 1e6


async def waiting(contender):
    """Bytes of one turn that waits before its first retry; its session was there before."""
    turns = TURNS // 5
    async with contender(LONG_S) as make:
        states = [[1, 0] for _ in range(turns + 1)]
        calls = [make(state) for state in states]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(calls.pop())  # so that what is made once is not counted
            while not states[-1][1]:
                await anyio.lowlevel.checkpoint()
            await anyio.sleep(0.01)
            gc.collect()
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            for call in calls:
                tasks.start_soon(call)
            while not all(state[1] for state in states):  # noqa: ASYNC110 - peers raise no event
                await anyio.sleep(0.01)
            await anyio.sleep(0.05)
            gc.collect()
            used = tracemalloc.get_traced_memory()[0] - before
            tracemalloc.stop()
            tasks.cancel_scope.cancel()
    return used / turns


async def storm(contender):
    """Seconds of processor time for many turns at once, each with three retries of 1 ms."""
    async with contender(TINY_S) as make:
        calls = [make([RETRIES, 0]) for _ in range(TURNS)]
        gc.collect()
        began = time.process_time()
        async with anyio.create_task_group() as tasks:
            for call in calls:
                tasks.start_soon(call)
        return time.process_time() - began


MEASUREMENTS = {
    "lands at once": at_once,
    "one waiting retry": waiting,
    "10,000 turns, 3 retries each": storm,
}
LANDS, WAITS, STORM = MEASUREMENTS
ONLY_LANDS = {"bare machine"}
TARGETS = {
    ("bare machine", LANDS): 5.0,
    ("Orchestrator", LANDS): 12.0,
    ("Orchestrator", WAITS): 1.3,
    ("Orchestrator", STORM): 1.6,
}
FORMATS = {LANDS: "{:.2f} us", WAITS: "{:,.0f} B", STORM: "{:.2f} s"}
IMPORTS = (
    "import anyio, tenacity, attrs",
    "import orchestrator",
    "from orchestrator import Orchestrator",
    "import stamina",
)
IMPORT_AIM = 1.3


def sample(name, measurement):
    command = [sys.executable, "-m", "tests.bench.turns", "--worker", name, measurement]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def import_ms(statement):
    code = (
        f"import time; began = time.perf_counter(); {statement}; "
        "print((time.perf_counter() - began) * 1e3)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measure(repeats):
    """Return the median of each measurement, by contender; contenders take turns."""
    present = [n for n in CONTENDERS if n not in NEEDS or find_spec(NEEDS[n]) is not None]
    samples = {}
    for _ in range(repeats):
        for measurement in MEASUREMENTS:
            for name in present:
                if measurement == LANDS or name not in ONLY_LANDS:
                    samples.setdefault((name, measurement), []).append(sample(name, measurement))
    return present, {key: statistics.median(values) for key, values in samples.items()}


def cell(name, measurement, medians):
    """A figure, how many times the plain loop's it is, and what it should be."""
    value = medians.get((name, measurement))
    if value is None:
        return ""
    ratio = f"{value / medians[PLAIN, measurement]:.2f}x"
    aim = TARGETS.get((name, measurement))
    told = f"{FORMATS[measurement].format(value)}  {ratio}"
    return told if aim is None else f"{told} (aim {aim:g}x)"


def turn_rows(repeats):
    present, medians = measure(repeats)
    yield ("", *MEASUREMENTS)
    for name in present:
        yield (name, *(cell(name, measurement, medians) for measurement in MEASUREMENTS))
    for name in CONTENDERS:
        if name not in present:
            yield (name, *["not installed: pip install '.[bench]'"] * len(MEASUREMENTS))


def import_rows(repeats):
    medians = {}
    for statement in IMPORTS:
        package = statement.split()[1].rstrip(",")
        if find_spec(package) is not None:
            medians[statement] = statistics.median(import_ms(statement) for _ in range(repeats))
    base = medians[IMPORTS[0]]
    for statement, value in medians.items():
        aim = f" (aim {IMPORT_AIM:g}x)" if statement == "import orchestrator" else ""
        yield (statement, f"{value:.1f} ms  {value / base:.2f}x{aim}", "", "")


def rows(repeats=3):
    """All figures, as (what, at once, waiting, storm)."""
    return [*turn_rows(repeats), *import_rows(3 * repeats)]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats, for a look")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        name, measurement = options.worker
        print(json.dumps(anyio.run(MEASUREMENTS[measurement], CONTENDERS[name])))
        return
    table = rows(1 if options.quick else 5)
    widths = [max(len(row[n]) for row in table) for n in range(len(table[0]))]
    for row in table:
        print("  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
