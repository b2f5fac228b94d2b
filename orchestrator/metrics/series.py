"""THE table of metrics: one row per series.

`metrics list`, the registry, the dashboards and their tests all read this table.  No label ever
holds what a user, an agent or a provider wrote: each value comes from an enum, from
`settings.metrics.providers`, or from the names of the sinks and observers that were configured.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from attrs import frozen

from orchestrator.failure.kinds import KINDS, Category
from orchestrator.incident.record import Severity
from orchestrator.turn.effects import Family
from orchestrator.turn.events import DropReason, Step
from orchestrator.turn.table import TABLE
from orchestrator.version import __version__

PREFIX: Final = "orchestrator_"
OTHER: Final = "other"
"""Value of `provider` for one that the settings do not name."""


class Type(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class TurnOutcome(StrEnum):
    """How a turn ended, and what retrying had to do with it."""

    LANDED_CLEAN = "landed_clean"
    LANDED_AFTER_RETRY = "landed_after_retry"
    LANDED_AFTER_RECOVERY = "landed_after_recovery"
    FAILED_AT_ONCE = "failed_at_once"
    FAILED_AFTER_RETRY = "failed_after_retry"
    REFUSED = "refused"
    STOPPED = "stopped"
    SUPERSEDED = "superseded"


class AttemptOutcome(StrEnum):
    """How one send of the prompt ended."""

    LANDED = "landed"
    FAILED = "failed"
    REFUSED = "refused"
    STOPPED = "stopped"


class RecoveryOutcome(StrEnum):
    """What became of one recovery."""

    LANDED = "landed"
    """The attempt it led to landed."""
    FAILED = "failed"
    """Its step failed for good, or the attempt it led to did not land."""
    DROPPED = "dropped"
    """It was never sent, or a Stop cut its attempt."""


class StepOutcome(StrEnum):
    DONE = "done"
    FAILED = "failed"


class RevisionKind(StrEnum):
    FIRST = "first"
    UPDATE = "update"


class Labels(StrEnum):
    """Label values that are known only at run time; both are finite lists."""

    PROVIDER = "provider"
    CONFIGURED = "configured"


@frozen
class Series:
    """One metric: everything that `metrics list`, the registry and the dashboards know of it."""

    name: str
    """Without the prefix."""
    type: Type
    help: str
    labels: Mapping[str, Iterable[str] | Labels] = {}
    """Label name to all its values."""
    buckets: tuple[float, ...] = ()
    """Upper bounds in seconds, of a histogram."""
    across: str = "livesum"
    """How a gauge is merged over the processes of a multi-process directory."""

    @property
    def full_name(self) -> str:
        return PREFIX + self.name


FAILURE_KINDS: Final = tuple(row.kind for row in KINDS.values() if row.is_failure)
RECOVERING: Final = tuple(row.family for row in TABLE if row.steps)
"""Families that do something before they send again."""
WAITING: Final = tuple(family for family in Family if family not in RECOVERING)
"""Families that only wait before they send again."""
_FAMILY: Final = {"family": tuple(Family)}
_C, _G, _H = Type.COUNTER, Type.GAUGE, Type.HISTOGRAM

SERIES: Final[tuple[Series, ...]] = (
    Series("turns_total", _C, "Turns that ended, by how.", {"outcome": tuple(TurnOutcome)}),
    Series("turns_in_progress", _G, "Turns that began and have not ended."),
    Series(
        "turns_pending",
        _G,
        "Turns that wait, recover or stand in line behind a retry, by the family that will send.",
        _FAMILY,
    ),
    Series(
        "attempts_total",
        _C,
        "Sends of a prompt that ended, by how.",
        {"outcome": tuple(AttemptOutcome)},
    ),
    Series(
        "failures_total",
        _C,
        "Failed or refused attempts, by what went wrong.",
        {"kind": FAILURE_KINDS, "provider": Labels.PROVIDER},
    ),
    Series(
        "unclassified_total",
        _C,
        "Failures that no rule recognised.",
        {"provider": Labels.PROVIDER},
    ),
    Series("retries_scheduled_total", _C, "Re-sends that were decided.", _FAMILY),
    Series("retries_sent_total", _C, "Re-sends that reached the agent.", _FAMILY),
    Series(
        "retries_dropped_total",
        _C,
        "Re-sends that were never sent, hence never counted against the turn.",
        {**_FAMILY, "reason": tuple(DropReason)},
    ),
    Series(
        "ladder_exhausted_total",
        _C,
        "Turns that failed after the last retry their ladder or window allowed.",
        {"family": WAITING},
    ),
    Series(
        "recoveries_total",
        _C,
        "Recoveries that came to an end, by what they led to.",
        {"family": RECOVERING, "outcome": tuple(RecoveryOutcome)},
    ),
    Series(
        "recovery_steps_total",
        _C,
        "Steps of recoveries that were carried out.",
        {"step": tuple(Step), "outcome": tuple(StepOutcome)},
    ),
    Series(
        "backoff_seconds",
        _H,
        "Length of the waits before a re-send, as decided.",
        _FAMILY,
        (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0),
    ),
    Series(
        "time_to_recovery_seconds",
        _H,
        "From a turn's first failure to its answer, by the family that sent last.",
        _FAMILY,
        (1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0),
    ),
    Series(
        "incidents_active",
        _G,
        "Incidents that nothing has cleared yet.",
        {"category": tuple(Category), "severity": tuple(Severity)},
    ),
    Series(
        "records_published_total",
        _C,
        "Records handed to the sinks.",
        {"severity": tuple(Severity), "revision": tuple(RevisionKind)},
    ),
    Series(
        "sink_errors_total",
        _C,
        "Deliveries that a sink or an observer answered with an exception.",
        {"sink": Labels.CONFIGURED},
    ),
    Series(
        "sink_disabled",
        _G,
        "1 when a sink or an observer was switched off because it raised.",
        {"sink": Labels.CONFIGURED},
        across="livemax",
    ),
    Series(
        "settings_last_reload_successful",
        _G,
        "0 when the settings file could not be used and older settings stay in force.",
        across="livemin",
    ),
    Series(
        "settings_last_reload_success_timestamp_seconds",
        _G,
        "When settings were last taken over, as POSIX time.",
        across="livemax",
    ),
    Series(
        "build_info",
        _G,
        "Always 1; the version is in the labels.",
        {"version": (__version__,), "python": (platform.python_version(),)},
        across="livemax",
    ),
)
"""Every series, exactly once."""
