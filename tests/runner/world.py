"""A small world for the runner's tests: an orchestrator on a manual clock, and who watches it."""

from contextlib import asynccontextmanager

from attrs import evolve

from orchestrator import Orchestrator, Settings
from orchestrator.settings.model import Curve, Ladders
from orchestrator.testing import ManualClock, Recorder, RecordingSink

SETTINGS = Settings(ladders=Ladders(curve=Curve(first_s=2.0, jitter=0.0)))
"""Waits of exactly 2, 4 and 8 seconds."""


class World:
    def __init__(self, orchestrator, clock, recorder, sink):
        self.orchestrator = orchestrator
        self.clock = clock
        self.recorder = recorder
        self.sink = sink

    def session(self, agent, key="chat", **kwargs):
        return self.orchestrator.session(key, agent, **kwargs)


@asynccontextmanager
async def a_world(*, settings=SETTINGS, sinks=None, observers=(), clock=None, **changes):
    recorder, sink = Recorder(), RecordingSink()
    clock = ManualClock() if clock is None else clock
    orchestrator = Orchestrator(
        evolve(settings, **changes),
        sinks=[sink] if sinks is None else sinks,
        observers=[recorder, *observers],
        clock=clock,
        wall_clock=lambda: 1_800_000_000.0 + clock.now(),
        seed=1,
    )
    async with orchestrator:
        yield World(orchestrator, clock, recorder, sink)
