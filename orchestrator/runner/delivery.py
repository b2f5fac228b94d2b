"""Who is told: sinks get records and notes, observers every event and effect.

Both are foreign code.  One that raises, or a sink that takes longer than `PATIENCE_S`, is switched
off, counted and logged; it never breaks a turn, and it does not come back by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeAlias, runtime_checkable

import anyio

from orchestrator.failure.redact import one_line
from orchestrator.incident.record import Record
from orchestrator.runner.cancellation import CANCELLED, is_ours, without_failures
from orchestrator.sinks import Sink
from orchestrator.turn.effects import Effect, Note
from orchestrator.turn.events import Event
from orchestrator.turn.machine import TurnMachine

logger = logging.getLogger("orchestrator")

PATIENCE_S: Final = 10.0
"""How long one delivery may take: the turn waits for it."""

Observer: TypeAlias = Callable[[TurnMachine, Event, tuple[Effect, ...]], None]
"""Called after each event that a machine handled, before its effects are performed."""


@runtime_checkable
class SinkWatcher(Protocol):
    """An observer that also counts what happens to sinks and observers, as the metrics do."""

    def sink_opened(self, name: str) -> None: ...

    def sink_failed(self, name: str) -> None: ...

    def sink_switched_off(self, name: str) -> None: ...


@runtime_checkable
class IncidentReader(Protocol):
    """An observer that wants to read the active incidents when somebody collects."""

    active: Callable[[], Iterable[Record]]


class Delivery:
    """The sinks and observers of one orchestrator, and which of them still work."""

    __slots__ = ("_names", "_watchers", "configured", "observers", "sinks", "switched_off")

    def __init__(self, sinks: Iterable[Sink], observers: Iterable[Observer]) -> None:
        self.sinks: tuple[Sink, ...] = tuple(sinks)
        """Those that still work, in order."""
        self.observers: tuple[Observer, ...] = tuple(observers)
        """Those that still work, in order."""
        self.configured = bool(self.sinks)
        """There were sinks to begin with."""
        self.switched_off: dict[str, str] = {}
        """Name of a sink or observer that was switched off, and why."""
        self._names = _unique_names((*self.sinks, *self.observers))
        listening: tuple[object, ...] = self.observers
        self._watchers = tuple(o for o in listening if isinstance(o, SinkWatcher))
        for watcher in self._watchers:
            for name in self._names.values():
                watcher.sink_opened(name)

    def observe(self, turn: TurnMachine, event: Event, effects: tuple[Effect, ...]) -> None:
        """Tell each observer what a machine was told and what it answered."""
        for observer in self.observers:
            try:
                observer(turn, event, effects)
            except Exception as error:  # noqa: BLE001 - foreign code
                self.observers = tuple(o for o in self.observers if o is not observer)
                self._switch_off(observer, error)

    async def deliver(self, item: Record | Note) -> bool:
        """Hand a record or note to each sink; say whether it got anywhere.

        One sink that took it is enough, since a receiver goes by the highest revision it saw.
        Where no sink was ever configured the host reads the turn itself, and that is delivery too.
        """
        taken = not self.configured
        for sink in self.sinks:
            taken = await self._guarded(sink, "deliver", item) or taken
        return taken

    async def flush(self) -> None:
        """Let each sink that has a `flush` write what it holds back."""
        for sink in self.sinks:
            if hasattr(sink, "flush"):
                await self._guarded(sink, "flush")

    async def _guarded(self, sink: Sink, method: str, *arguments: object) -> bool:
        try:
            with anyio.fail_after(PATIENCE_S):
                await getattr(sink, method)(*arguments)
        except (Exception, CANCELLED) as error:
            if isinstance(error, CANCELLED) and is_ours():
                raise
            self.sinks = tuple(s for s in self.sinks if s is not sink)
            self._switch_off(sink, error)
            return False
        except BaseExceptionGroup as group:
            raise without_failures(group) from None
        return True

    def _switch_off(self, what: Sink | Observer, error: BaseException) -> None:
        name = self._names[id(what)]
        if name in self.switched_off:
            return  # two deliveries met the same end
        self.switched_off[name] = type(error).__name__
        reason = one_line(f"{type(error).__name__}: {error}")
        logger.error("%s was switched off: %s", name, reason)
        for watcher in self._watchers:
            if id(watcher) != id(what):
                self._count(watcher, name)

    def _count(self, watcher: SinkWatcher, name: str) -> None:
        """One that can't count is asked no more; it may still observe."""
        try:
            watcher.sink_failed(name)
            watcher.sink_switched_off(name)
        except Exception as error:  # noqa: BLE001 - foreign code
            self._watchers = tuple(w for w in self._watchers if w is not watcher)
            reason = one_line(f"{type(error).__name__}: {error}")
            logger.error("what happened to %s was not counted: %s", name, reason)  # noqa: TRY400


def _unique_names(parts: Iterable[object]) -> dict[int, str]:
    """Name each part after its class or function; the second of a name gets a number."""
    names: dict[int, str] = {}
    seen: dict[str, int] = {}
    for part in parts:
        if id(part) in names:
            continue
        name = getattr(part, "name", None) or getattr(part, "__name__", None)
        if not isinstance(name, str):
            name = type(part).__name__
        seen[name] = seen.get(name, 0) + 1
        names[id(part)] = name if seen[name] == 1 else f"{name}-{seen[name]}"
    return names
