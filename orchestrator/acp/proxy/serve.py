"""Put a proxy together and run it until its client, or somebody's signal, ends it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus
from attrs import define, field

from orchestrator.acp.process import Command
from orchestrator.acp.proxy.client import ClientWire
from orchestrator.acp.proxy.decisions import Decisions
from orchestrator.acp.proxy.peer import Peer
from orchestrator.acp.proxy.relay import Proxy
from orchestrator.acp.proxy.sessions import Sessions
from orchestrator.acp.proxy.store import Store
from orchestrator.acp.proxy.turns import Turns
from orchestrator.acp.proxy.upstream import Upstream
from orchestrator.failure.classify import warm
from orchestrator.runner import Observer, Orchestrator
from orchestrator.settings.model import Settings
from orchestrator.sinks import Sink

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _nowhere(_: str) -> None:
    return


@define(eq=False)
class Setup:
    """What one proxy is made of."""

    command: Command
    settings: Settings = field(factory=Settings)
    stdin: int = 0
    stdout: int = 1
    notices: bool = False
    """Short rows of text for a client that reads no records."""
    store: Store | None = None
    write: Callable[[str], None] = _nowhere
    """Takes the lines of the log."""
    sinks: Sequence[Sink] = ()
    observers: Iterable[Observer] = ()
    seed: int | str | None = None
    beside: Callable[[Callable[[Settings], None]], Coroutine[Any, Any, None]] | None = None
    """Runs beside the proxy; it is given what puts other settings in force."""
    spawn: Callable[[Command], Any] | None = None
    """Makes the agent's wire; None starts its process."""

    def build(self) -> tuple[Proxy, Orchestrator]:
        """The proxy, and the orchestrator that runs its turns."""
        log = Decisions(self.write)
        upstream = Upstream(self.command, self.settings.watchdogs)
        if self.spawn is not None:
            upstream.spawn = self.spawn
        peer = Peer(ClientWire(self.stdin, self.stdout), rows=self.notices)
        store = self.store or Store(None, "")
        sessions = Sessions(peer, upstream, store, say=log.say)
        turns = Turns(peer, sessions, say=log.say)
        sessions.on_options, sessions.on_closed = turns.tell_options, turns.close
        orchestrator = Orchestrator(
            self.settings,
            sinks=[turns, *self.sinks],
            observers=[log, turns.observe, *self.observers],
            seed=self.seed,
        )
        turns.orchestrator = orchestrator
        return Proxy(peer, upstream, sessions, turns, say=log.say), orchestrator

    async def run(self) -> None:
        """Relay until the client is gone or a signal comes.  Then no process is left."""
        proxy, orchestrator = self.build()
        proxy.sessions.store.tidy()
        try:
            async with anyio.create_task_group() as tasks:
                await tasks.start(_mind_signals, tasks.cancel_scope)
                # While the agent starts: no turn shall wait for it at its first failure.
                tasks.start_soon(partial(anyio.to_thread.run_sync, warm, abandon_on_cancel=True))
                if self.beside is not None:
                    use = partial(_put_in_force, proxy, orchestrator)
                    tasks.start_soon(self.beside, use)
                async with proxy.upstream, orchestrator:
                    await proxy.serve()
                tasks.cancel_scope.cancel()
        finally:
            with suppress(OSError):
                proxy.peer.wire.restore()


def _put_in_force(proxy: Proxy, orchestrator: Orchestrator, settings: Settings) -> None:
    """Turns that run keep what they began with."""
    orchestrator.settings = settings
    proxy.upstream.watchdogs = settings.watchdogs


async def _mind_signals(scope: anyio.CancelScope, *, task_status: TaskStatus[None]) -> None:
    with anyio.open_signal_receiver(*_SIGNALS) as signals:
        task_status.started()
        async for _ in signals:
            scope.cancel()
