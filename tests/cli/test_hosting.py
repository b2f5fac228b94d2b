"""What `demo` and `run` stand on."""

from __future__ import annotations

import sys
import threading

import anyio
import anyio.from_thread

from orchestrator.acp.process import Command
from orchestrator.cli import hosting
from orchestrator.settings.model import Settings


async def test_what_a_first_failure_needs_is_made_ready_while_the_agent_starts(
    anyio_backend, monkeypatch
):
    warmed, threads = anyio.Event(), []

    def warm():
        threads.append(threading.current_thread())
        anyio.from_thread.run_sync(warmed.set)

    monkeypatch.setattr(hosting, "warm", warm)
    with anyio.fail_after(20):
        async with hosting.hosted(Command((sys.executable, "-c", ""), "."), Settings()):
            await warmed.wait()
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()
