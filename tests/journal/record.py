# ruff: noqa: T201 - it is a program
"""Make the golden journals: real agents' recordings, through the real client and the real runner.

`python -m tests.journal.record` writes `tests/journals/<agent>.jsonl` anew.  Each turn of a journal
is one recording; the clock is virtual, so a journal holds the recorded times and no others.
"""

from pathlib import Path

import trio
import trio.testing

from orchestrator import Orchestrator
from orchestrator.acp.agent import AcpAgent
from orchestrator.acp.process import Command
from orchestrator.acp.runtime import Runtime
from orchestrator.journal import JournalObserver
from orchestrator.settings.model import Settings, Watchdogs
from tests.acp.replay_agent import AGENTS, recordings, replay_wire

FOLDER = Path(__file__).parent.parent / "journals"
BOUND_S = 44.0
"""The recordings cancel a silent turn after 45 s; so do we, before."""
SETTINGS = Settings(watchdogs=Watchdogs(first_sign_s=BOUND_S, silence_s=BOUND_S))
WALL = 1_796_000_000.0


def names(agent):
    """The recordings of an agent that begin a conversation."""
    return [name for name in recordings(agent) if not name.endswith(".2")]


def record(agent, name, journal, settings=SETTINGS):
    """Play one recording as a turn, with the journal on.  Its retries meet the recording again."""

    async def main():
        command = Command((f"/bin/{agent}",), "/project")
        wire_of = lambda _: replay_wire(agent, name)  # noqa: E731
        runtime = Runtime(command, settings.watchdogs, spawn=wire_of, wall=lambda: WALL)
        orchestrator = Orchestrator(settings, observers=[journal], seed=1, wall_clock=lambda: WALL)
        async with runtime, orchestrator:
            session = orchestrator.session(f"{agent}-{name}", AcpAgent(runtime), provider=agent)
            session.epoch = session.ledger.epoch = "recorded"
            async with session.turn("hello", turn_id=name) as turn:
                if name.startswith("cancel_"):
                    await trio.sleep(2)
                    turn.stop()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def write(agent, path):
    journal = JournalObserver(path, fsync="never", wall_clock=lambda: WALL)
    journal._run = agent
    for name in names(agent):
        record(agent, name, journal)
    journal.close()


def main():
    for agent in AGENTS:
        path = FOLDER / f"{agent}.jsonl"
        path.unlink(missing_ok=True)
        write(agent, path)
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
