"""The observer that moves the series.

`MetricsObserver` is called after each event that a turn machine handled.  It decides nothing and
keeps nothing about a turn beyond its end.  A count is a plain addition, brought into the collectors
when somebody collects.

A turn's id appears only as an exemplar.  Made for one event loop; a scrape from another thread
reads, and never loses a count.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final

import prometheus_client as prometheus
from attrs import define
from prometheus_client.multiprocess import MultiProcessCollector

from orchestrator.failure.kinds import Kind
from orchestrator.incident.record import Record
from orchestrator.metrics.collectors import build, children, many_processes, spread, tallied
from orchestrator.metrics.series import (
    OTHER,
    RECOVERING,
    SERIES,
    WAITING,
    AttemptOutcome,
    Labels,
    RecoveryOutcome,
    RevisionKind,
    StepOutcome,
    TurnOutcome,
    Type,
)
from orchestrator.settings.model import Metrics
from orchestrator.turn.effects import (
    Cancel,
    Dispatch,
    Drop,
    Effect,
    End,
    Family,
    How,
    Publish,
    Send,
    Wait,
)
from orchestrator.turn.events import (
    Began,
    DropReason,
    Event,
    Failed,
    Finished,
    Recovered,
    Refused,
    Started,
)
from orchestrator.turn.machine import TurnMachine
from orchestrator.version import __version__


@define(eq=False)
class _Track:
    """A turn that met something other than an answer.  Gone with its end."""

    turn: TurnMachine
    """Kept so that its identity is not given to another turn."""
    pending: Family | None = None
    """What will send next."""
    last: Family | None = None
    """What sent last; None is the turn's first send."""
    recovered: bool = False
    """A family that recovers has sent."""
    failed_at: float | None = None
    """When the turn first failed."""


class MetricsObserver:
    """Counts what turns do.  Call it after each event that a turn machine handled.

    `registry` takes the collectors; by default each observer has its own.  Two observers in one
    registry are refused by prometheus-client, as they would count the same thing twice.
    """

    def __init__(
        self,
        settings: Metrics | None = None,
        registry: prometheus.CollectorRegistry | None = None,
    ) -> None:
        self.registry = prometheus.CollectorRegistry() if registry is None else registry
        self.active: Callable[[], Iterable[Record]] = tuple
        """Where to read the active incidents; whoever owns the ledgers sets it."""
        self._providers = dict.fromkeys((*(settings or Metrics()).providers, OTHER))
        self._tracks: dict[int, _Track] = {}
        self._bind()

    # What is called ------------------------------------------------------------------------------

    def __call__(self, turn: TurnMachine, event: Event, effects: tuple[Effect, ...]) -> None:
        if not effects:  # evidence, a late report, an early tick
            return
        last = effects[-1]
        track = self._tracks.get(id(turn)) if self._tracks else None
        if track is not None:
            self._look(track, event, effects, last)
        elif not self._shortest(turn, event, effects, last):
            track = self._tracks[id(turn)] = _Track(turn)
            self._look(track, event, effects, last)

    def resumed(self, turn: TurnMachine) -> None:
        """Take in a turn that was restored from a snapshot: no `Started` will come."""
        self._in_progress.inc()
        track = self._tracks[id(turn)] = _Track(turn)
        self._awaits(track, turn.pending)

    def sink_opened(self, name: str) -> None:
        """Create the series of a sink or an observer; it is on."""
        self._sink_errors.labels(name)
        self._sink_disabled.labels(name).set(0)

    def sink_failed(self, name: str) -> None:
        self._sink_errors.labels(name).inc()

    def sink_switched_off(self, name: str) -> None:
        self._sink_disabled.labels(name).set(1)

    def settings_loaded(self, *, ok: bool) -> None:
        """Tell whether the newest settings were taken over just now."""
        self._reload_ok.set(ok)
        if ok:
            self._reloaded_at.set_to_current_time()

    def scraped(self) -> prometheus.CollectorRegistry:
        """Return the registry to expose: all processes' when there is a multi-process directory."""
        if not many_processes():
            return self.registry
        self.refresh()
        everything = prometheus.CollectorRegistry()
        MultiProcessCollector(everything)  # type: ignore[no-untyped-call]
        return everything

    def refresh(self) -> None:
        """Bring in what is only read when somebody collects.

        A collection of our own registry does it.  Where other processes expose this one's numbers
        (a multi-process directory), call it every few seconds.
        """
        for collector in self._folded:
            collector.fold()
        counts = dict.fromkeys(self._incidents, 0)
        for record in self.active():
            counts[record.category, record.severity] += 1
        for labels, count in counts.items():
            self._incidents[labels].set(count)

    # What it counts ------------------------------------------------------------------------------

    def _shortest(
        self, turn: TurnMachine, event: Event, effects: tuple[Effect, ...], last: Effect
    ) -> bool:
        """Count an event on the shortest way from a message to its answer; False for any other."""
        what = type(event)
        if what is Started:
            self._in_progress.inc()
            return type(last) is Dispatch
        if what is Began:
            return type(last) is Send
        if what is not Finished or type(last) is not End or last.outcome is not How.LANDED:
            return False
        self._in_progress.inc(-1)
        self._landed_clean.inc(1, exemplar(turn.ids.turn_id))
        self._attempt_landed.inc()
        if len(effects) > 1:
            for effect in effects:
                if type(effect) is Publish:
                    self._published(effect)
        return True

    def _look(self, track: _Track, event: Event, effects: tuple[Effect, ...], last: Effect) -> None:
        """Count one tuple of a turn that is not on the shortest way to its answer."""
        end = last if isinstance(last, End) else None
        if isinstance(event, _ENDS_ATTEMPT):
            self._attempt_ended(track, event.now, end)
        elif isinstance(event, Recovered):
            done = StepOutcome.DONE if event.ok else StepOutcome.FAILED
            self._steps[event.step, done].inc()
        elif end is not None and any(type(effect) is Cancel for effect in effects):
            self._attempt_closed(track, AttemptOutcome.STOPPED)
        for effect in effects:
            count = self._COUNTED.get(type(effect))
            if count is not None:
                count(self, track, effect)
        if end is None:
            self._awaits(track, track.turn.pending)
        else:
            self._ended_as(track, event, end)

    def _attempt_ended(self, track: _Track, now: float, end: End | None) -> None:
        """Count how an attempt ended, as the machine understood it."""
        how, verdict = None if end is None else end.outcome, track.turn.verdict
        if how is How.LANDED or how is How.STOPPED or verdict is None:
            # What an agent answers to a cancel says nothing about the provider.
            landed = how is How.LANDED
            self._attempt_closed(track, AttemptOutcome.LANDED if landed else AttemptOutcome.STOPPED)
            return
        refused = verdict.kind is Kind.CONTENT_REFUSED
        self._attempt_closed(track, AttemptOutcome.REFUSED if refused else AttemptOutcome.FAILED)
        if track.failed_at is None:
            track.failed_at = now
        provider = track.turn.ids.provider
        provider = provider if provider in self._providers else OTHER
        self._failures[verdict.kind, provider].inc()
        if verdict.kind is Kind.UNKNOWN:
            self._unclassified[provider].inc()

    def _attempt_closed(self, track: _Track, outcome: AttemptOutcome) -> None:
        self._attempts[outcome].inc()
        if track.last in _RECOVERING:
            self._recoveries[track.last, _LED_TO[outcome]].inc()

    def _awaits(self, track: _Track, pending: Family | None) -> None:
        """Keep scheduled = sent + dropped + pending, family by family: this side of it."""
        if pending is not None and track.pending is None:
            self._scheduled[pending].inc()
            self._pending[pending].inc()
            track.pending = pending

    def _left(self, track: _Track, counter: Any) -> None:
        """Take a turn out of those that wait for a re-send; its first send is none."""
        if track.pending is not None:
            counter.inc()
            self._pending[track.pending].inc(-1)
            track.pending = None

    def _send(self, track: _Track, send: Send) -> None:
        track.last = family = send.family
        if family is not None:
            self._left(track, self._sent[family])
            track.recovered = track.recovered or family in _RECOVERING

    def _drop(self, track: _Track, drop: Drop) -> None:
        self._left(track, self._dropped[drop.family, drop.reason])
        if drop.family in _RECOVERING:
            # Only a step that did not work is a recovery that failed; the rest is people.
            failed = drop.reason is DropReason.DENIED
            led_to = RecoveryOutcome.FAILED if failed else RecoveryOutcome.DROPPED
            self._recoveries[drop.family, led_to].inc()

    def _wait(self, track: _Track, wait: Wait) -> None:
        self._backoff[wait.family].observe(wait.delay, exemplar(track.turn.ids.turn_id))

    def _published(self, publish: Publish) -> None:
        record = publish.record
        revision = RevisionKind.FIRST if record.revision == 1 else RevisionKind.UPDATE
        self._records[record.severity, revision].inc()

    _COUNTED: ClassVar[Mapping[type[Effect], Callable[[Any, _Track, Any], None]]] = {
        Send: _send,
        Drop: _drop,
        Wait: _wait,
        Publish: lambda self, _, publish: self._published(publish),
    }

    def _ended_as(self, track: _Track, event: Event, end: End) -> None:
        turn, family = track.turn, track.last
        self._turns[_outcome(track, end.outcome)].inc(1, exemplar(turn.ids.turn_id))
        self._in_progress.inc(-1)
        del self._tracks[id(turn)]
        if family is None:
            return
        if end.outcome is How.LANDED and isinstance(event, Finished):
            took = max(0.0, event.now - (event.now if track.failed_at is None else track.failed_at))
            self._took[family].observe(took, exemplar(turn.ids.turn_id))
        if end.outcome is How.FAILED and family in WAITING and _wanted_more(event):
            self._exhausted[family].inc()

    # How it is laid out --------------------------------------------------------------------------

    def _bind(self) -> None:
        """Build every collector, create every label set at 0 and keep its children at hand."""
        built = {series.name: build(series, self.registry) for series in SERIES}
        built["incidents_active"].before = self.refresh
        bound: dict[str, dict[Any, Any]] = {
            series.name: children(series, built[series.name], self._providers) for series in SERIES
        }
        bound["turns_in_progress"] = {"": built["turns_in_progress"]}
        self._folded = tuple(built[name] for name in _TALLIED)
        for name in _TALLIED:
            bound[name] = tallied(built[name], bound[name])
        for series in SERIES:
            if series.type is Type.HISTOGRAM:
                bound[series.name] = spread(series, built[series.name], bound[series.name])
        self._turns = bound["turns_total"]
        self._landed_clean = self._turns[TurnOutcome.LANDED_CLEAN]
        self._in_progress = bound["turns_in_progress"][""]
        self._pending = bound["turns_pending"]
        self._attempts = bound["attempts_total"]
        self._attempt_landed = self._attempts[AttemptOutcome.LANDED]
        self._failures = bound["failures_total"]
        self._unclassified = bound["unclassified_total"]
        self._scheduled = bound["retries_scheduled_total"]
        self._sent = bound["retries_sent_total"]
        self._dropped = bound["retries_dropped_total"]
        self._exhausted = bound["ladder_exhausted_total"]
        self._recoveries = bound["recoveries_total"]
        self._steps = bound["recovery_steps_total"]
        self._backoff = bound["backoff_seconds"]
        self._took = bound["time_to_recovery_seconds"]
        self._incidents = bound["incidents_active"]
        self._records = bound["records_published_total"]
        self._sink_errors = built["sink_errors_total"]
        self._sink_disabled = built["sink_disabled"]
        self._reload_ok = built["settings_last_reload_successful"]
        self._reloaded_at = built["settings_last_reload_success_timestamp_seconds"]
        self.settings_loaded(ok=True)
        bound["build_info"][__version__, platform.python_version()].set(1)


_TALLIED: Final = (
    "turns_in_progress",
    "turns_pending",
    *(
        series.name
        for series in SERIES
        if series.type is Type.COUNTER and Labels.CONFIGURED not in series.labels.values()
    ),
)
"""Series that only go up and down, with every label set known from the start."""
_ENDS_ATTEMPT: Final = (Failed, Refused, Finished)
_RECOVERING: Final = frozenset(RECOVERING)
_LED_TO: Final = {
    AttemptOutcome.LANDED: RecoveryOutcome.LANDED,
    AttemptOutcome.FAILED: RecoveryOutcome.FAILED,
    AttemptOutcome.REFUSED: RecoveryOutcome.FAILED,
    AttemptOutcome.STOPPED: RecoveryOutcome.DROPPED,
}

_LONGEST_EXEMPLAR: Final = 128 - len("turn_id")
"""OpenMetrics allows 128 characters for names and values together."""


def exemplar(turn_id: str) -> dict[str, str] | None:
    """Label a sample with its turn.  A cut id would name no turn, so a long one is left out."""
    return {"turn_id": turn_id} if 0 < len(turn_id) <= _LONGEST_EXEMPLAR else None


def _wanted_more(event: Event) -> bool:
    """Tell a ladder that came to its end from one that another failure or a budget cut short."""
    return isinstance(event, Failed) and event.verdict.transient and event.live.may_retry


def _outcome(track: _Track, how: How) -> TurnOutcome:
    if how is How.LANDED and track.recovered:
        return TurnOutcome.LANDED_AFTER_RECOVERY
    retried = track.last is not None
    return _OUTCOMES.get((how, retried)) or TurnOutcome(how)


_OUTCOMES: Final = {
    (How.LANDED, False): TurnOutcome.LANDED_CLEAN,
    (How.LANDED, True): TurnOutcome.LANDED_AFTER_RETRY,
    (How.FAILED, False): TurnOutcome.FAILED_AT_ONCE,
    (How.FAILED, True): TurnOutcome.FAILED_AFTER_RETRY,
}
