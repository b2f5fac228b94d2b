"""Run scripted turns on a virtual clock."""

import trio
import trio.testing

from orchestrator import Orchestrator


def virtually(function, *arguments):
    return trio.run(function, *arguments, clock=trio.testing.MockClock(autojump_threshold=0))


async def run_turn(agent, observer, settings, turns):
    """Run some turns of one session, one after another; the last outcome, and the orchestrator."""
    outcome = None
    async with Orchestrator(settings, observers=[observer], seed=1) as orchestrator:
        session = orchestrator.session("chat", agent)
        for number in range(turns):
            outcome = await session.turn("hello", turn_id=str(number))
    return outcome, orchestrator
