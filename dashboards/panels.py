"""What the dashboard shows: one row per panel, in the order in which an operator asks.

`SELECT` and its kin stand for the label matchers; `build.py` lays the panels out and writes the
file.  A description says what the panel shows and ends with what to do about it.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import field, frozen

WHERE: Final = 'job=~"$job", instance=~"$instance"'
BY_FAMILY: Final = f'{WHERE}, family=~"$family"'
BY_PROVIDER: Final = f'{WHERE}, provider=~"$provider"'

RATE: Final = "[$__rate_interval]"
TRIED: Final = 'outcome=~"landed_.+|failed_.+"'
"""Turns that came to an answer or an error; stopped, superseded and refused ones did neither."""


@frozen
class Query:
    expr: str
    legend: str = ""
    """Template of a series' name, such as `{{family}}`."""
    instant: bool = False
    """Only the newest value, as a table needs it."""
    heatmap: bool = False


@frozen
class Panel:
    title: str
    kind: str
    """`stat`, `timeseries`, `heatmap` or `table`."""
    queries: tuple[Query, ...]
    unit: str
    description: str
    width: int = 8
    """Of 24 columns."""
    height: int = 8
    stacked: bool = False
    no_value: str = "0"
    thresholds: tuple[tuple[float, str], ...] = ()
    """Lower bounds and their colours; none where no value is better than another."""
    mappings: dict[str, tuple[str, str]] = field(factory=dict)
    """Value to the text and colour shown for it."""
    colors: dict[str, str] = field(factory=dict)
    """Series name to a fixed colour."""
    many: bool = False
    """So many series that the legend stands beside the plot and scrolls."""
    maximum: float | None = None
    decimals: int | None = None


@frozen
class Row:
    title: str
    panels: tuple[Panel, ...]


OUTCOME_COLORS: Final = {
    "landed_clean": "green",
    "landed_after_retry": "blue",
    "landed_after_recovery": "purple",
    "failed_at_once": "red",
    "failed_after_retry": "orange",
    "refused": "yellow",
    "stopped": "#8e8e8e",
    "superseded": "#bfbfbf",
}
END_COLORS: Final = {
    "landed": "green",
    "failed": "red",
    "refused": "yellow",
    "stopped": "#8e8e8e",
    "dropped": "#8e8e8e",
    "done": "green",
}
SEVERITY_COLORS: Final = {"warning": "orange", "error": "red"}


def per_second(metric: str, by: str, where: str) -> str:
    return f"sum by ({by}) (rate(orchestrator_{metric}{{{where}}}{RATE}))"


def share(outcome: str, window: str) -> str:
    """Share of the turns that came to an end by themselves which ended with this outcome."""
    one = f'{WHERE}, outcome=~"{outcome}"'
    return (
        f"sum(rate(orchestrator_turns_total{{{one}}}{window}))"
        f" / sum(rate(orchestrator_turns_total{{{WHERE}, {TRIED}}}{window}))"
    )


def quantile(q: float, metric: str) -> str:
    return f"histogram_quantile({q}, {per_second(metric + '_bucket', 'le', BY_FAMILY)})"


def trend(title: str, query: Query, unit: str, description: str, **more: Any) -> Panel:
    return Panel(title, "timeseries", (query,), unit, description, **more)


def number(title: str, expr: str, unit: str, description: str, **more: Any) -> Panel:
    more = {"width": 4, "height": 5, **more}
    return Panel(title, "stat", (Query(expr),), unit, description, **more)


NOW: Final = Row(
    "Now",
    (
        number(
            "Turns in progress",
            f"sum(orchestrator_turns_in_progress{{{WHERE}}})",
            "short",
            "Turns that began and have not ended. "
            "If it only grows, turns hang: look at Turns pending, then at the agents themselves.",
        ),
        number(
            "Turns pending",
            f"sum(orchestrator_turns_pending{{{BY_FAMILY}}})",
            "short",
            "Turns that wait, recover or stand in line behind a retry. "
            "If most turns are here, a provider or the network is down: see Failures by kind.",
        ),
        number(
            "Answered",
            share("landed_.+", RATE),
            "percentunit",
            "Share of turns that got an answer, of those that were not stopped, superseded or "
            "refused. Below 99 % the error budget burns: find the kind in Failures by kind.",
            thresholds=((0, "red"), (0.95, "orange"), (0.99, "green")),
            maximum=1,
            decimals=1,
            no_value="no turns",
        ),
        number(
            "Active incidents",
            f"sum(orchestrator_incidents_active{{{WHERE}}})",
            "short",
            "Incidents that nothing has cleared yet. "
            "List them with GET /v1/incidents?active=true and act on what their titles say.",
        ),
        number(
            "Unclassified failures",
            f"sum(rate(orchestrator_unclassified_total{{{BY_PROVIDER}}}{RATE}))",
            "ops",
            "Failures that no rule recognised. Any steady rate means that a provider changed its "
            "wording: run `orchestrator classify` on the raw frames and add a rule.",
            thresholds=((0, "green"), (0.001, "orange")),
        ),
        number(
            "Processes up",
            'sum(up{job=~"$job", instance=~"$instance"})',
            "short",
            "Processes that answered the last scrape. "
            "Fewer than you run: follow the runbook section Target down.",
            thresholds=((0, "red"), (1, "green")),
        ),
        trend(
            "Turns pending, by what will send",
            Query(f"sum by (family) (orchestrator_turns_pending{{{BY_FAMILY}}}) > 0", "{{family}}"),
            "short",
            "Which ladder, window or recovery the waiting turns are in. Many in connection: "
            "nothing answers, check the network path. Many in transient: the provider is unwell.",
            width=12,
            stacked=True,
            no_value="nothing pending",
        ),
        trend(
            "Active incidents, by severity",
            Query(f"sum by (severity) (orchestrator_incidents_active{{{WHERE}}})", "{{severity}}"),
            "short",
            "Warnings may still succeed by themselves; errors wait for somebody. "
            "Work off the errors first; a warning that stands for long is a window about to close.",
            width=12,
            stacked=True,
            colors=SEVERITY_COLORS,
        ),
    ),
)

BOUGHT: Final = Row(
    "What retrying buys",
    (
        trend(
            "How turns end",
            Query(per_second("turns_total", "outcome", WHERE), "{{outcome}}"),
            "ops",
            "All turns by outcome. Blue and purple are what retrying bought, red and orange what "
            "it could not save. Orange growing: retries are spent on what they can't mend.",
            width=16,
            stacked=True,
            colors=OUTCOME_COLORS,
        ),
        trend(
            "Attempts, by how they end",
            Query(per_second("attempts_total", "outcome", WHERE), "{{outcome}}"),
            "ops",
            "Sends of a prompt. The distance between all attempts and all turns is what retrying "
            "costs the provider; lower the retries in the settings when it buys nothing.",
            stacked=True,
            colors=END_COLORS,
        ),
        number(
            "Saved by a retry",
            share("landed_after_retry", RATE),
            "percentunit",
            "Share of turns that landed only because they were sent again after a wait. "
            "Compare it with the attempts per turn before you change a ladder.",
            width=6,
            decimals=2,
            no_value="no turns",
        ),
        number(
            "Saved by a recovery",
            share("landed_after_recovery", RATE),
            "percentunit",
            "Share of turns that landed only because a session, process or model was replaced. "
            "If it is high, find out in Recoveries what breaks so often.",
            width=6,
            decimals=2,
            no_value="no turns",
        ),
        number(
            "Attempts per turn",
            f"sum(rate(orchestrator_attempts_total{{{WHERE}}}{RATE}))"
            f" / sum(rate(orchestrator_turns_total{{{WHERE}}}{RATE}))",
            "none",
            "What one turn costs in sends; 1 is a day without failures. "
            "Above 2 for long, most load on the provider is retries: consider the retry budget.",
            width=6,
            decimals=2,
            thresholds=((0, "green"), (1.5, "orange"), (2, "red")),
            no_value="no turns",
        ),
        number(
            "Given up after retries",
            share("failed_after_retry", RATE),
            "percentunit",
            "Share of turns that failed although they were sent again: all cost, no answer. "
            "See Ladders used up for which ladder is too short for what happens.",
            width=6,
            decimals=2,
            no_value="no turns",
        ),
        trend(
            "Share saved over time",
            Query(share("landed_after_retry|landed_after_recovery", RATE), "saved"),
            "percentunit",
            "Turns that would have failed without retries and recoveries. "
            "When it falls while failures stay, the ladders no longer fit: re-tune them.",
            width=12,
        ),
        Panel(
            "Turns that failed, against the objective",
            "timeseries",
            (
                Query(share("failed_.+", RATE), "failed"),
                Query("vector(0.01)", "objective"),
            ),
            "percentunit",
            "Failures that users saw. Above the objective's line the error budget burns; "
            "the alerts TurnErrorBudgetBurn look at the same ratio: follow their runbook.",
            width=12,
            colors={"failed": "red", "objective": "#8e8e8e"},
        ),
    ),
)

LADDERS: Final = Row(
    "Ladders",
    (
        trend(
            "Scheduled",
            Query(
                f"{per_second('retries_scheduled_total', 'family', BY_FAMILY)} > 0", "{{family}}"
            ),
            "ops",
            "Re-sends that were decided. A step up is the start of an outage: "
            "open Failures by kind at the same moment.",
            width=12,
            many=True,
            no_value="none",
        ),
        trend(
            "Sent",
            Query(f"{per_second('retries_sent_total', 'family', BY_FAMILY)} > 0", "{{family}}"),
            "ops",
            "Re-sends that reached the agent; only these cost anything. "
            "If it stays below Scheduled, users stop waiting: shorten the first waits.",
            width=12,
            many=True,
            no_value="none",
        ),
        trend(
            "Dropped, by reason",
            Query(f"{per_second('retries_dropped_total', 'reason', BY_FAMILY)} > 0", "{{reason}}"),
            "ops",
            "Re-sends that were never sent and cost nothing. Many stopped: waits are too long for "
            "people. Denied: a step did not work, see Recoveries. Lost: the host forgot it.",
            width=12,
            no_value="none",
        ),
        trend(
            "Ladders used up",
            Query(f"{per_second('ladder_exhausted_total', 'family', BY_FAMILY)} > 0", "{{family}}"),
            "ops",
            "Turns that failed after the last retry they were allowed. "
            "Try a longer ladder with `orchestrator plan FAMILY` before you deploy it.",
            width=12,
            no_value="none",
        ),
        Panel(
            "Waits before a re-send",
            "heatmap",
            (
                Query(
                    f"sum by (le) (increase(orchestrator_backoff_seconds_bucket"
                    f"{{{BY_FAMILY}}}{RATE}))",
                    "{{le}}",
                    heatmap=True,
                ),
            ),
            "s",
            "How long waits are, as decided: the ladders' steps show as bands, hints of a server "
            "lie between them. Most in the top rows: outages last, people wait; see Turns pending.",
            width=12,
        ),
        Panel(
            "Time to recovery",
            "timeseries",
            (
                Query(quantile(0.5, "time_to_recovery_seconds"), "half of them"),
                Query(quantile(0.95, "time_to_recovery_seconds"), "95 of 100"),
            ),
            "s",
            "From a turn's first failure to its answer, for turns that were saved. "
            "If half take longer than people wait, Dropped shows stops: shorten the ladder.",
            width=12,
            no_value="none saved",
        ),
    ),
)

FAILURES: Final = Row(
    "Failures",
    (
        trend(
            "Failures by kind",
            Query(f"{per_second('failures_total', 'kind', BY_PROVIDER)} > 0", "{{kind}}"),
            "ops",
            "What goes wrong, attempt by attempt. Overloaded and rate_limited pass; auth_required, "
            "billing and usage_limit need a person: sign in, pay, or wait for the reset.",
            width=12,
            many=True,
            stacked=True,
            no_value="none",
        ),
        trend(
            "Failures by provider",
            Query(f"{per_second('failures_total', 'provider', BY_PROVIDER)} > 0", "{{provider}}"),
            "ops",
            "Who it goes wrong with. One provider alone: read its status page. "
            "All at once: it is your network, proxy or release.",
            width=6,
            stacked=True,
            no_value="none",
        ),
        trend(
            "Unclassified, by provider",
            Query(per_second("unclassified_total", "provider", BY_PROVIDER), "{{provider}}"),
            "ops",
            "Failures that no rule recognised; they are never retried. "
            "Collect the raw frames from the log, run `orchestrator classify`, add a rule.",
            width=6,
        ),
        Panel(
            "Failures in the range shown",
            "table",
            (
                Query(
                    "sort_desc(sum by (kind, provider) "
                    f"(increase(orchestrator_failures_total{{{BY_PROVIDER}}}[$__range])) > 0)",
                    instant=True,
                ),
            ),
            "short",
            "How often each kind was seen with each provider. Start with the first line: "
            "the kind's meaning and what helps stand in the table of kinds in the README.",
            width=24,
            decimals=0,
            no_value="none",
        ),
    ),
)

RECOVERIES: Final = Row(
    "Recoveries",
    (
        trend(
            "Recoveries, by what they led to",
            Query(per_second("recoveries_total", "outcome", BY_FAMILY), "{{outcome}}"),
            "ops",
            "Landed: the answer came. Failed: the step or the attempt after it failed. Dropped: "
            "a Stop or a newer message came first. More failed than landed: see the next panel.",
            width=6,
            stacked=True,
            colors=END_COLORS,
        ),
        trend(
            "Share that lands, by family",
            Query(
                f"sum by (family) (rate(orchestrator_recoveries_total"
                f'{{{BY_FAMILY}, outcome="landed"}}{RATE}))'
                f" / (sum by (family) (rate(orchestrator_recoveries_total"
                f'{{{BY_FAMILY}, outcome=~"landed|failed"}}{RATE})) > 0)',
                "{{family}}",
            ),
            "percentunit",
            "Which recoveries are worth their time. One that stays near 0 only delays the error: "
            "set its limit to 0 in the settings, or mend what it rebuilds.",
            width=9,
            many=True,
            maximum=1,
            no_value="none",
        ),
        trend(
            "Steps",
            Query(
                f"{per_second('recovery_steps_total', 'step, outcome', WHERE)} > 0",
                "{{step}} {{outcome}}",
            ),
            "ops",
            "Processes respawned, sessions reset or discarded, models swapped. "
            "Respawn done at a steady rate: the agent keeps dying, read the tail of its stderr.",
            width=9,
            many=True,
            no_value="none",
        ),
    ),
)

PLUMBING: Final = Row(
    "Plumbing",
    (
        trend(
            "Records published",
            Query(
                per_second("records_published_total", "severity, revision", WHERE),
                "{{severity}} {{revision}}",
            ),
            "ops",
            "What users are told: first revisions are new incidents, updates revise one in place. "
            "Many updates per first: a standing warning flaps, look at the connection.",
            stacked=True,
        ),
        trend(
            "Sink errors",
            Query(per_second("sink_errors_total", "sink", WHERE), "{{sink}}"),
            "ops",
            "Deliveries that a sink or an observer answered with an exception. The log names the "
            "exception; mend the sink, then restart: one that raises is switched off at once.",
            no_value="no sinks",
        ),
        Panel(
            "Sinks switched off",
            "stat",
            (
                Query(
                    f"max by (sink) (orchestrator_sink_disabled{{{WHERE}}})",
                    "{{sink}}",
                ),
            ),
            "none",
            "A sink or observer that raised is off until the process restarts, and users may see "
            "no records. Follow the runbook section Sink disabled.",
            mappings={"0": ("on", "green"), "1": ("OFF", "red")},
            no_value="no sinks",
        ),
        Panel(
            "Settings",
            "stat",
            (Query(f"min(orchestrator_settings_last_reload_successful{{{WHERE}}})"),),
            "none",
            "Whether the newest settings file is the one in force. "
            "Refused: run `orchestrator settings check`, mend what it names, reload.",
            width=4,
            height=6,
            mappings={"0": ("refused", "red"), "1": ("in force", "green")},
        ),
        Panel(
            "Settings taken over",
            "stat",
            (
                Query(
                    "time() - min("
                    f"orchestrator_settings_last_reload_success_timestamp_seconds{{{WHERE}}})"
                ),
            ),
            "s",
            "How long ago the oldest process took its settings over. Older than your last change: "
            "that process was not told to reload; do it, or restart it.",
            width=4,
            height=6,
        ),
        trend(
            "Scrapes: how long",
            Query(
                'max by (instance) (scrape_duration_seconds{job=~"$job", instance=~"$instance"})',
                "{{instance}}",
            ),
            "s",
            "Time a scrape takes. Above a second the process is short of CPU: "
            "look at its load before you lengthen the scrape interval.",
            height=6,
        ),
        Panel(
            "Versions",
            "table",
            (
                Query(
                    f"count by (version, python) (orchestrator_build_info{{{WHERE}}})",
                    instant=True,
                ),
            ),
            "short",
            "How many processes run which version. Two versions for longer than a deploy takes: "
            "finish the deploy or roll it back.",
            height=6,
            decimals=0,
        ),
    ),
)

ROWS: Final = (NOW, BOUGHT, LADDERS, FAILURES, RECOVERIES, PLUMBING)
