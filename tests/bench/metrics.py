"""What metrics cost: `python -m tests.bench.metrics`.

The share of a landed turn that counting takes, with and without it in the same run, in time of the
processor so that a busy machine does not blur it; and a scrape of the registry after many turns.
"""

from __future__ import annotations

import gzip
import time

import anyio
from prometheus_client import generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics

from orchestrator import Orchestrator
from orchestrator.metrics import MetricsObserver
from orchestrator.service.demo import Traffic
from orchestrator.service.incidents import Incidents
from orchestrator.settings.model import Settings
from orchestrator.turn.events import Began, Finished, Live, Started
from orchestrator.turn.incidents import TurnIds
from orchestrator.turn.machine import TurnMachine

ROUNDS = 25
TURNS = 1_000
SCRAPED_AFTER = 10_000


class Answers:
    """An agent that answers at once."""

    async def attempt(self, attempt):
        attempt.text("yes")

    async def recover(self, recover):
        raise AssertionError(recover)


async def round_of(observers):
    """Microseconds of one landed turn."""
    async with Orchestrator(observers=observers) as orchestrator:
        session = orchestrator.session("chat", Answers())
        start = time.process_time()
        for _ in range(TURNS):
            await session.turn("hi")
        return (time.process_time() - start) / TURNS * 1e6


async def over_the_runner():
    """Best of interleaved rounds, without and with metrics."""
    without, counted = [], []
    for _ in range(ROUNDS):
        without.append(await round_of(()))
        counted.append(await round_of((MetricsObserver(),)))
    return min(without), min(counted)


def observer_alone():
    """Microseconds that the observer's calls of one landed turn take by themselves."""
    observer, live = MetricsObserver(), Live()
    machine = TurnMachine(Settings(), TurnIds("turn-1", "session", "e1"))
    events = (Started(0.0, live), Began(0.0, live), Finished(1.0, live, 1))
    told = [(event, machine.handle(event)) for event in events]
    taken = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(TURNS):
            for event, effects in told:
                observer(machine, event, effects)
        taken.append((time.process_time() - start) / TURNS * 1e6)
    return min(taken)


def scrape():
    """A registry after many turns of every kind: text, OpenMetrics and what a scrape takes."""
    observer = MetricsObserver()
    Traffic(observer, Incidents(), gap_s=1.0).advance(float(SCRAPED_AFTER))
    taken = []
    for _ in range(ROUNDS):
        start = time.process_time()
        body = generate_latest(observer.registry)
        taken.append(time.process_time() - start)
    return body, openmetrics(observer.registry), min(taken) * 1e3


def rows():
    """The figures, as (what, figure)."""
    without, counted = anyio.run(over_the_runner)
    yield "a landed turn without metrics", f"{without:.2f} us"
    yield "a landed turn with metrics", f"{counted:.2f} us"
    yield (
        "share that metrics take (aim: below 30 %)",
        f"{100 * (counted - without) / counted:.0f} %",
    )
    yield "the observer's calls alone", f"{observer_alone():.2f} us"
    body, modern, milliseconds = scrape()
    series = sum(not line.startswith(b"#") for line in body.splitlines())
    yield f"series after {SCRAPED_AFTER:,} turns", f"{series:,}"
    yield "one scrape, text format", f"{len(body) / 1e3:.0f} kB, {milliseconds:.1f} ms"
    yield "one scrape, OpenMetrics with exemplars", f"{len(modern) / 1e3:.0f} kB"
    yield "on the wire, packed", f"{len(gzip.compress(body, 1)) / 1e3:.0f} kB"


if __name__ == "__main__":
    for what, figure in rows():
        print(f"{what:58} {figure}")  # noqa: T201 - printing is its work
