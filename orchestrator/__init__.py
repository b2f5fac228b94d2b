"""Retry and recovery for chat turns over coding agents.

    async with Orchestrator(settings, sinks=[...]) as orchestrator:
        session = orchestrator.session("chat-42", agent)
        outcome = await session.turn("fix the tests")

Names load on first use: a program that only classifies failures never loads the runner, and none
loads the service, the metrics or the agent client that does not ask for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from orchestrator.errors import AgentError, RuntimeFailure
    from orchestrator.failure.classify import classify, warm
    from orchestrator.failure.kinds import Action, Category, Kind
    from orchestrator.failure.raw import RawFailure
    from orchestrator.failure.verdict import Context, Refusal, Verdict
    from orchestrator.incident.record import Record, Severity
    from orchestrator.journal.observer import JournalObserver
    from orchestrator.metrics import MetricsObserver
    from orchestrator.runner.agent import (
        Agent,
        Attempt,
        AttemptEnd,
        CancellableAgent,
        Prompt,
        RecoveryResult,
        SteerableAgent,
    )
    from orchestrator.runner.clock import Clock
    from orchestrator.runner.decorator import recovering
    from orchestrator.runner.delivery import Observer
    from orchestrator.runner.orchestrator import Orchestrator
    from orchestrator.runner.progress import (
        Ended,
        NoteDelivered,
        Outcome,
        Progress,
        RecordRevised,
        RecoveryStarted,
        RetryScheduled,
        TextShown,
    )
    from orchestrator.runner.session import RetryRefusedError, Session
    from orchestrator.runner.tenacity_bridge import retry_if_transient, verdict_on, wait_for_hint
    from orchestrator.runner.turn import Turn
    from orchestrator.settings.model import Settings
    from orchestrator.sinks import Item, Sink
    from orchestrator.turn.effects import Effect, How, Note, Recover, SessionState
    from orchestrator.turn.events import Event, Facts, Live, Step, StopReason
    from orchestrator.turn.incidents import TurnIds
    from orchestrator.turn.machine import IllegalEvent, TurnMachine
    from orchestrator.turn.state import State
    from orchestrator.version import __version__

_HOMES: Final = {
    "errors": ("AgentError", "RuntimeFailure"),
    "failure.classify": ("classify", "warm"),
    "failure.kinds": ("Action", "Category", "Kind"),
    "failure.raw": ("RawFailure",),
    "failure.verdict": ("Context", "Refusal", "Verdict"),
    "incident.record": ("Record", "Severity"),
    "journal.observer": ("JournalObserver",),
    "metrics": ("MetricsObserver",),
    "runner.agent": (
        "Agent",
        "Attempt",
        "AttemptEnd",
        "CancellableAgent",
        "Prompt",
        "RecoveryResult",
        "SteerableAgent",
    ),
    "runner.clock": ("Clock",),
    "runner.decorator": ("recovering",),
    "runner.delivery": ("Observer",),
    "runner.orchestrator": ("Orchestrator",),
    "runner.progress": (
        "Ended",
        "NoteDelivered",
        "Outcome",
        "Progress",
        "RecordRevised",
        "RecoveryStarted",
        "RetryScheduled",
        "TextShown",
    ),
    "runner.session": ("RetryRefusedError", "Session"),
    "runner.tenacity_bridge": ("retry_if_transient", "verdict_on", "wait_for_hint"),
    "runner.turn": ("Turn",),
    "settings.model": ("Settings",),
    "sinks": ("Item", "Sink"),
    "turn.effects": ("Effect", "How", "Note", "Recover", "SessionState"),
    "turn.events": ("Event", "Facts", "Live", "Step", "StopReason"),
    "turn.incidents": ("TurnIds",),
    "turn.machine": ("IllegalEvent", "TurnMachine"),
    "turn.state": ("State",),
    "version": ("__version__",),
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Action",
    "Agent",
    "AgentError",
    "Attempt",
    "AttemptEnd",
    "CancellableAgent",
    "Category",
    "Clock",
    "Context",
    "Effect",
    "Ended",
    "Event",
    "Facts",
    "How",
    "IllegalEvent",
    "Item",
    "JournalObserver",
    "Kind",
    "Live",
    "MetricsObserver",
    "Note",
    "NoteDelivered",
    "Observer",
    "Orchestrator",
    "Outcome",
    "Progress",
    "Prompt",
    "RawFailure",
    "Record",
    "RecordRevised",
    "Recover",
    "RecoveryResult",
    "RecoveryStarted",
    "Refusal",
    "RetryRefusedError",
    "RetryScheduled",
    "RuntimeFailure",
    "Session",
    "SessionState",
    "Settings",
    "Severity",
    "Sink",
    "State",
    "SteerableAgent",
    "Step",
    "StopReason",
    "TextShown",
    "Turn",
    "TurnIds",
    "TurnMachine",
    "Verdict",
    "__version__",
    "classify",
    "recovering",
    "retry_if_transient",
    "verdict_on",
    "wait_for_hint",
    "warm",
]


if not TYPE_CHECKING:  # a checker that saw this would believe in every name

    def __getattr__(name: str) -> object:
        home = _HOME_OF.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{__name__}.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
