"""What `demo` and `run` share: one agent, one orchestrator, and its metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread
from attrs import frozen

from orchestrator.acp.agent import AcpAgent
from orchestrator.acp.options import Options
from orchestrator.acp.process import Command
from orchestrator.acp.runtime import Runtime
from orchestrator.cli.loop_noise import LoopNoise
from orchestrator.failure.classify import warm
from orchestrator.metrics import MetricsObserver
from orchestrator.runner import Observer, Orchestrator, Session
from orchestrator.settings.model import Settings
from orchestrator.sinks import Sink

if TYPE_CHECKING:
    from orchestrator.service.serve import Listener

T = TypeVar("T")


def run_async(main: Callable[..., Awaitable[T]], *arguments: object) -> T:
    """Run an event loop.  One error inside it comes out as itself, not as a group of one."""
    try:
        return anyio.run(main, *arguments)
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None


@frozen
class Hosted:
    """One conversation with one agent, ready for turns."""

    runtime: Runtime
    agent: AcpAgent
    session: Session
    metrics: MetricsObserver

    def put_in_force(self, settings: Settings) -> None:
        """Use these from the next turn on."""
        self.session.orchestrator.settings = settings
        self.runtime.watchdogs = settings.watchdogs


class Served:
    """The scrape endpoint beside the turns.  Its packages are an extra."""

    def __init__(self, listener: Listener, metrics: MetricsObserver) -> None:
        from orchestrator.service.app import LOOPBACK_HOSTS, create_app  # noqa: PLC0415 - extra
        from orchestrator.service.incidents import Incidents  # noqa: PLC0415 - extra

        self.incidents = Incidents()
        self._orchestrator: Orchestrator | None = None
        self._listener = listener
        hosts = LOOPBACK_HOSTS if listener.address.loopback else None
        self._app = create_app(
            metrics,
            incidents=self.incidents,
            not_ready=self._not_ready,
            hosts=hosts,
        )

    def watch(self, orchestrator: Orchestrator) -> None:
        """Answer `/readyz` for this orchestrator."""
        self._orchestrator = orchestrator

    def _not_ready(self) -> list[str]:
        from orchestrator.service.readiness import reasons  # noqa: PLC0415 - extra

        return [] if self._orchestrator is None else reasons(self._orchestrator)

    async def serve(self) -> None:
        """Serve until cancelled."""
        from orchestrator.service.serve import serve  # noqa: PLC0415 - extra

        await serve(self._app, self._listener)


@asynccontextmanager
async def hosted(
    command: Command,
    settings: Settings,
    *,
    sinks: Iterable[Sink] = (),
    observers: Iterable[Observer] = (),
    listener: Listener | None = None,
    allow_tools: bool = False,
    load: str = "",
    settings_ok: bool = True,
) -> AsyncIterator[Hosted]:
    """Run an orchestrator over one agent.  At the end the agent's whole tree is gone.

    `settings_ok` is False when the settings file could not be used and these are the defaults.
    """
    noise, metrics = LoopNoise(), MetricsObserver(settings.metrics)
    metrics.settings_loaded(ok=settings_ok)
    noise.install()
    runtime = Runtime(command, settings.watchdogs, allow_tools=allow_tools)
    served = None if listener is None else Served(listener, metrics)
    orchestrator = Orchestrator(
        settings,
        sinks=[*sinks, *([] if served is None else [served.incidents])],
        observers=[metrics, noise, *observers],
    )
    async with anyio.create_task_group() as tasks:
        if served is not None:
            served.watch(orchestrator)
            tasks.start_soon(served.serve)
        # While the agent starts: no turn shall wait for it at its first failure.
        tasks.start_soon(partial(anyio.to_thread.run_sync, warm, abandon_on_cancel=True))
        async with runtime, orchestrator:
            agent = AcpAgent(
                runtime, session_id=load, canary_timeout_s=settings.recoveries.canary_timeout_s
            )
            session = orchestrator.session("cli", agent)
            agent.on_options = lambda options: _tell(session, options)
            yield Hosted(runtime, agent, session, metrics)
        tasks.cancel_scope.cancel()


def _tell(session: Session, options: Options) -> None:
    session.update(model=options.model, served=options.served)
