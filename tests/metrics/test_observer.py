"""What the observer counts, over real machines."""

import threading
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics

from orchestrator.failure.kinds import KINDS, Category, Kind
from orchestrator.failure.verdict import Refusal, Verdict
from orchestrator.incident.record import Record, Severity
from orchestrator.metrics import MetricsObserver
from orchestrator.metrics.series import RECOVERING, SERIES, WAITING, Labels, TurnOutcome
from orchestrator.service.demo import MODELS, Script, Traffic, scripts
from orchestrator.service.incidents import Incidents
from orchestrator.settings.model import Metrics, Settings
from orchestrator.turn.effects import Drop, End, Family, Send
from orchestrator.turn.events import (
    Began,
    DropReason,
    Due,
    Evidence,
    Failed,
    Finished,
    Live,
    Recovered,
    Refused,
    Saw,
    Started,
    Stopped,
    StopReason,
    UserSpoke,
)
from orchestrator.turn.incidents import TurnIds
from orchestrator.turn.machine import TurnMachine
from orchestrator.turn.table import TABLE

HERE = Live(binding="chat", model=MODELS[0])


class Driver:
    """One machine and one observer, told the same things."""

    def __init__(self, observer=None, turn_id="turn-1", provider="anthropic", **options):
        self.observer = observer or MetricsObserver()
        ids = TurnIds(turn_id, "session", "e1", provider)
        self.machine = TurnMachine(options.pop("settings", Settings()), ids, **options)

    def tell(self, *events):
        effects = ()
        for event in events:
            effects = self.machine.handle(event)
            self.observer(self.machine, event, effects)
        return effects

    def attempt(self, now=0.0, live=HERE):
        """Begin, whatever number it is."""
        if self.machine.number == 0:
            self.tell(Started(now, live))
        return self.tell(Began(now, live))

    def fail(self, kind=Kind.OVERLOADED, now=1.0, live=HERE, **more):
        verdict = Verdict.of(kind, "It failed.", **more)
        return self.tell(Failed(now, live, self.machine.number, verdict))

    def land(self, now=2.0, live=HERE):
        return self.tell(Finished(now, live, self.machine.number))

    def wait(self, live=HERE):
        until = self.machine.next_deadline()
        return self.tell(Due(until, live), Began(until, live))

    def value(self, name, **labels):
        return value(self.observer, name, **labels)


def value(observer, name, **labels):
    return observer.registry.get_sample_value(f"orchestrator_{name}", labels)


def outcomes(observer):
    every = {outcome: value(observer, "turns_total", outcome=outcome) for outcome in TurnOutcome}
    return {str(outcome): count for outcome, count in every.items() if count}


def test_every_series_exists_at_zero_before_the_first_turn():
    observer = MetricsObserver()
    families = {metric.name: metric for metric in observer.registry.collect()}
    for series in SERIES:
        family = families[series.full_name.removesuffix("_total")]
        assert family.type == series.type
        if Labels.CONFIGURED in series.labels.values():
            assert family.samples == []
            continue
        expected = 1
        for values in series.labels.values():
            expected *= len(Metrics().providers) + 1 if values is Labels.PROVIDER else len(values)
        counted = [s for s in family.samples if "le" not in s.labels and s.name[-4:] != "_sum"]
        assert len(counted) == expected, series.name
        quiet = "settings", "build"
        if not series.name.startswith(quiet):
            assert {s.value for s in family.samples} == {0}, series.name


def test_the_table_of_series_is_whole_and_unique():
    names = [series.name for series in SERIES]
    assert len(set(names)) == len(names)
    assert all(series.help.endswith(".") for series in SERIES)
    assert all((series.type == "counter") == series.name.endswith("_total") for series in SERIES)
    assert all(bool(series.buckets) == (series.type == "histogram") for series in SERIES)


def test_families_that_recover_are_those_with_steps_in_the_turn_table():
    assert set(RECOVERING) == {row.family for row in TABLE if row.steps}
    assert set(RECOVERING) | set(WAITING) == set(Family)
    assert not set(RECOVERING) & set(WAITING)


def test_a_turn_that_lands_at_once_is_clean():
    turn = Driver()
    turn.attempt()
    assert turn.value("turns_in_progress") == 1
    turn.land()
    assert turn.value("turns_in_progress") == 0
    assert outcomes(turn.observer) == {"landed_clean": 1}
    assert turn.value("attempts_total", outcome="landed") == 1
    assert turn.value("retries_scheduled_total", family="transient") == 0


def test_many_clean_turns_are_counted_once_however_often_somebody_looks():
    observer = MetricsObserver()
    for number in range(10):
        turn = Driver(observer, f"turn-{number}")
        turn.attempt()
        turn.land()
        assert outcomes(observer) == {"landed_clean": number + 1}
    assert value(observer, "attempts_total", outcome="landed") == 10


def test_a_scrape_from_another_thread_loses_no_count_and_adds_none():
    observer = MetricsObserver()
    stop = threading.Event()

    def scrape():
        while not stop.is_set():
            value(observer, "turns_total", outcome="landed_clean")

    scrapers = [threading.Thread(target=scrape) for _ in range(2)]
    for scraper in scrapers:
        scraper.start()
    for number in range(300):
        turn = Driver(observer, f"turn-{number}")
        turn.attempt()
        turn.land()
    stop.set()
    for scraper in scrapers:
        scraper.join()
    assert value(observer, "turns_total", outcome="landed_clean") == 300
    assert value(observer, "attempts_total", outcome="landed") == 300
    assert value(observer, "turns_in_progress") == 0


def test_a_turn_saved_by_a_retry_says_so_and_how_long_it_took():
    turn = Driver()
    turn.attempt()
    turn.fail(now=10.0)
    assert turn.value("turns_pending", family="transient") == 1
    assert turn.value("retries_scheduled_total", family="transient") == 1
    assert turn.value("retries_sent_total", family="transient") == 0
    turn.wait()
    assert turn.value("turns_pending", family="transient") == 0
    assert turn.value("retries_sent_total", family="transient") == 1
    turn.land(now=17.0)
    assert outcomes(turn.observer) == {"landed_after_retry": 1}
    assert turn.value("time_to_recovery_seconds_sum", family="transient") == 7
    assert turn.value("backoff_seconds_sum", family="transient") == 2
    assert turn.value("failures_total", kind="overloaded", provider="anthropic") == 1
    assert turn.value("attempts_total", outcome="failed") == 1
    assert turn.value("attempts_total", outcome="landed") == 1


def test_a_turn_saved_by_a_recovery_says_so():
    turn = Driver()
    turn.attempt()
    recover = turn.fail(Kind.AGENT_DIED)[-1]
    turn.tell(Recovered(3.0, HERE, recover.step, ok=True))
    turn.attempt(4.0)
    turn.land()
    assert outcomes(turn.observer) == {"landed_after_recovery": 1}
    assert turn.value("recovery_steps_total", step="respawn", outcome="done") == 1
    assert turn.value("recoveries_total", family="death", outcome="landed") == 1


def test_a_recovery_whose_step_does_not_work_is_dropped_and_failed():
    turn = Driver()
    turn.attempt()
    recover = turn.fail(Kind.AGENT_DIED)[-1]
    turn.tell(Recovered(3.0, HERE, recover.step, ok=False))
    assert outcomes(turn.observer) == {"failed_at_once": 1}
    assert turn.value("recovery_steps_total", step="respawn", outcome="failed") == 1
    assert turn.value("recoveries_total", family="death", outcome="failed") == 1
    assert turn.value("retries_dropped_total", family="death", reason="denied") == 1
    assert turn.value("turns_pending", family="death") == 0


def test_a_recovery_whose_attempt_fails_again_has_failed():
    turn = Driver()
    turn.attempt()
    recover = turn.fail(Kind.SESSION_NOT_FOUND)[-1]
    turn.tell(Recovered(3.0, HERE, recover.step, ok=True))
    turn.attempt(4.0)
    turn.fail(Kind.SESSION_NOT_FOUND)
    assert outcomes(turn.observer) == {"failed_after_retry": 1}
    assert turn.value("recoveries_total", family="lost_session", outcome="failed") == 1


def test_a_ladder_that_is_used_up_is_told_from_a_turn_that_fails_for_good():
    used_up, for_good = Driver(), Driver()
    used_up.attempt()
    used_up.fail()
    for _ in range(3):
        used_up.wait()
        used_up.fail()
    for_good.attempt()
    for_good.fail()
    for_good.wait()
    for_good.fail(Kind.AUTH_REQUIRED)
    for turn in (used_up, for_good):
        assert outcomes(turn.observer) == {"failed_after_retry": 1}
    assert used_up.value("ladder_exhausted_total", family="transient") == 1
    assert for_good.value("ladder_exhausted_total", family="transient") == 0


def test_a_retry_budget_that_is_empty_is_no_ladder_used_up():
    turn = Driver()
    turn.attempt()
    turn.fail()
    turn.wait()
    turn.fail(live=Live(binding="chat", model=MODELS[0], may_retry=False))
    assert outcomes(turn.observer) == {"failed_after_retry": 1}
    assert turn.value("ladder_exhausted_total", family="transient") == 0


def test_a_failure_that_nothing_serves_ends_the_turn_at_once():
    turn = Driver()
    turn.attempt()
    turn.fail(Kind.AUTH_REQUIRED)
    assert outcomes(turn.observer) == {"failed_at_once": 1}
    assert turn.value("records_published_total", severity="error", revision="first") == 1


@pytest.mark.parametrize("way", ["event", "verdict", "stop reason"])
def test_a_refusal_counts_the_same_from_each_of_its_three_ways_in(way):
    turn = Driver()
    turn.attempt()
    if way == "event":
        turn.tell(Refused(1.0, HERE, 1, Refusal("policy", "No.", "")))
    elif way == "verdict":
        turn.fail(Kind.CONTENT_REFUSED)
    else:
        turn.tell(Finished(1.0, HERE, 1, StopReason.REFUSAL))
    assert outcomes(turn.observer) == {"refused": 1}
    assert turn.value("attempts_total", outcome="refused") == 1
    assert turn.value("failures_total", kind="content_refused", provider="anthropic") == 1


def test_a_turn_limit_reached_inside_the_agent_is_a_failure():
    turn = Driver()
    turn.attempt()
    turn.tell(Finished(1.0, HERE, 1, StopReason.MAX_TURN_REQUESTS))
    assert outcomes(turn.observer) == {"failed_at_once": 1}
    assert turn.value("failures_total", kind="budget_exhausted", provider="anthropic") == 1


def test_a_cancel_that_nobody_asked_for_lands_and_is_no_failure():
    turn = Driver()
    turn.attempt()
    turn.fail(Kind.CANCELLED)
    assert outcomes(turn.observer) == {"landed_clean": 1}
    assert turn.value("attempts_total", outcome="landed") == 1


def test_what_an_agent_answers_to_a_cancel_is_no_failure_of_the_provider():
    turn = Driver()
    turn.attempt()
    turn.tell(Stopped(1.0, HERE))
    turn.fail(Kind.INTERNAL_ERROR)
    assert outcomes(turn.observer) == {"stopped": 1}
    assert turn.value("attempts_total", outcome="stopped") == 1
    assert turn.value("failures_total", kind="internal_error", provider="anthropic") == 0


def test_a_hard_stop_ends_the_attempt_it_cuts():
    turn = Driver()
    turn.attempt()
    turn.tell(Stopped(1.0, HERE, hard=True))
    assert outcomes(turn.observer) == {"stopped": 1}
    assert turn.value("attempts_total", outcome="stopped") == 1
    assert turn.value("turns_in_progress") == 0


def test_a_stop_during_a_wait_drops_the_retry():
    turn = Driver()
    turn.attempt()
    turn.fail()
    turn.tell(Stopped(2.0, HERE))
    assert outcomes(turn.observer) == {"stopped": 1}
    assert turn.value("retries_dropped_total", family="transient", reason="stopped") == 1
    assert turn.value("turns_pending", family="transient") == 0
    assert turn.value("recoveries_total", family="death", outcome="dropped") == 0


def test_a_newer_message_drops_a_recovery_that_yields():
    turn = Driver()
    turn.attempt()
    turn.fail(Kind.SESSION_NOT_FOUND)
    spoken = Live(binding="chat", model=MODELS[0], user_input=True)
    turn.tell(UserSpoke(2.0, spoken))
    assert outcomes(turn.observer) == {"superseded": 1}
    assert turn.value("retries_dropped_total", family="lost_session", reason="superseded") == 1
    assert turn.value("recoveries_total", family="lost_session", outcome="dropped") == 1


def test_a_failure_that_no_rule_knows_is_counted_by_provider():
    turn = Driver(provider="google")
    turn.attempt()
    turn.fail(Kind.UNKNOWN)
    assert turn.value("unclassified_total", provider="google") == 1
    assert turn.value("failures_total", kind="unknown", provider="google") == 1


def test_a_provider_that_the_settings_do_not_name_is_counted_as_other():
    turn = Driver(MetricsObserver(Metrics(providers=("anthropic",))), provider="Acme <script>")
    turn.attempt()
    turn.fail(Kind.UNKNOWN)
    assert turn.value("unclassified_total", provider="other") == 1
    assert b"Acme" not in generate_latest(turn.observer.registry)


def test_late_reports_and_evidence_count_nothing():
    turn = Driver()
    turn.attempt()
    before = generate_latest(turn.observer.registry)
    turn.tell(Failed(1.0, HERE, 7, Verdict.of(Kind.OVERLOADED, "Late.")))
    turn.tell(Saw(1, Evidence.TEXT))
    assert generate_latest(turn.observer.registry) == before


def test_incidents_that_are_active_are_read_when_somebody_looks():
    observer = MetricsObserver()
    record = Record("a:error", 1, Category.ACCESS, Severity.ERROR, "Sign in.")
    active = [record, record.revised(), Record("b", 1, Category.LIMIT, Severity.WARNING, "Wait.")]
    observer.active = lambda: active
    assert value(observer, "incidents_active", category="access", severity="error") == 2
    assert value(observer, "incidents_active", category="limit", severity="warning") == 1
    active.clear()
    assert value(observer, "incidents_active", category="access", severity="error") == 0


def test_sinks_have_their_series_from_the_moment_they_are_opened():
    observer = MetricsObserver()
    observer.sink_opened("log")
    assert value(observer, "sink_errors_total", sink="log") == 0
    assert value(observer, "sink_disabled", sink="log") == 0
    observer.sink_failed("log")
    observer.sink_switched_off("log")
    assert value(observer, "sink_errors_total", sink="log") == 1
    assert value(observer, "sink_disabled", sink="log") == 1


def test_a_reload_that_fails_leaves_the_time_of_the_last_good_one():
    observer = MetricsObserver()
    taken_over = value(observer, "settings_last_reload_success_timestamp_seconds")
    assert taken_over > 0
    observer.settings_loaded(ok=False)
    assert value(observer, "settings_last_reload_successful") == 0
    assert value(observer, "settings_last_reload_success_timestamp_seconds") == taken_over
    observer.settings_loaded(ok=True)
    assert value(observer, "settings_last_reload_successful") == 1


def test_a_turn_that_was_restored_while_it_waits_keeps_the_sums_right():
    before = Driver()
    before.attempt()
    before.fail()
    after = Driver()
    after.machine = TurnMachine.restore(before.machine.snapshot())
    after.observer.resumed(after.machine)
    assert after.value("turns_in_progress") == 1
    assert after.value("turns_pending", family="transient") == 1
    after.wait()
    after.land(now=60.0)
    assert outcomes(after.observer) == {"landed_after_retry": 1}
    assert after.value("retries_sent_total", family="transient") == 1
    assert after.value("turns_in_progress") == 0


# Exemplars ----------------------------------------------------------------------------------------


def exemplar_lines(observer):
    return [line for line in openmetrics(observer.registry).decode().splitlines() if " # {" in line]


def test_the_turn_behind_a_sample_is_named_by_an_exemplar():
    turn = Driver(turn_id="turn-42")
    turn.attempt()
    turn.fail()
    turn.wait()
    turn.land()
    names = {line.split("{")[0] for line in exemplar_lines(turn.observer)}
    assert names == {
        "orchestrator_turns_total",
        "orchestrator_backoff_seconds_bucket",
        "orchestrator_time_to_recovery_seconds_bucket",
    }
    assert all('turn_id="turn-42"' in line for line in exemplar_lines(turn.observer))


def test_a_clean_turn_is_named_too():
    turn = Driver(turn_id="turn-43")
    turn.attempt()
    turn.land()
    (line,) = exemplar_lines(turn.observer)
    assert line.startswith('orchestrator_turns_total{outcome="landed_clean"} 1.0 # ')
    assert 'turn_id="turn-43"' in line


def test_an_id_too_long_for_an_exemplar_is_left_out_whole():
    turn = Driver(turn_id="x" * 200)
    turn.attempt()
    turn.land()
    assert exemplar_lines(turn.observer) == []
    assert outcomes(turn.observer) == {"landed_clean": 1}


# What must always hold ----------------------------------------------------------------------------


class Watch:
    """Counts by itself, from effects and the machine's own word for what is pending."""

    def __init__(self):
        self.sent, self.dropped = Counter(), Counter()
        self.pending = {}
        self.open = set()

    def __call__(self, turn, event, effects):
        if isinstance(event, Started):
            self.open.add(turn.ids.turn_id)
        for effect in effects:
            if isinstance(effect, Send) and effect.family:
                self.sent[effect.family] += 1
            elif isinstance(effect, Drop):
                self.dropped[effect.family] += 1
            elif isinstance(effect, End):
                self.open.discard(turn.ids.turn_id)
        self.pending[turn.ids.turn_id] = turn.pending


FAMILIES = tuple(
    f"orchestrator_{name}"
    for name in (
        "retries_scheduled_total",
        "retries_sent_total",
        "retries_dropped_total",
        "turns_pending",
        "turns_in_progress",
    )
)


def by_family(observer):
    """Read the series of the identity, by name and family, as a scrape would."""
    sums = Counter()
    for metric in observer.registry.restricted_registry(FAMILIES).collect():
        for sample in metric.samples:
            sums[sample.name, sample.labels.get("family")] += sample.value
    return sums


def check(observer, watch):
    sums = by_family(observer)
    held = Counter(watch.pending.values())
    for family in Family:
        scheduled, sent, dropped, pending = (sums[name, family] for name in FAMILIES[:4])
        assert scheduled == sent + dropped + pending, family
        assert (sent, dropped) == (watch.sent[family], watch.dropped[family]), family
        assert pending == held[family], family
    assert sums[FAMILIES[4], None] == len(watch.open)


class Watched(MetricsObserver):
    """Checks the identity after each single event."""

    def __init__(self):
        super().__init__()
        self.watch = Watch()
        self.seen = 0

    def __call__(self, turn, event, effects):
        super().__call__(turn, event, effects)
        self.watch(turn, event, effects)
        self.seen += 1
        check(self, self.watch)


def test_scheduled_is_sent_and_dropped_and_pending_at_every_moment_for_every_family():
    observer = Watched()
    traffic = Traffic(observer, Incidents())
    traffic.advance(400.0)
    check(observer, observer.watch)
    assert observer.seen > 1500


def test_the_demo_moves_every_family_every_outcome_and_every_kind():
    observer = MetricsObserver()
    traffic = Traffic(observer, Incidents())
    traffic.advance(3_600.0)
    assert set(outcomes(observer)) == set(TurnOutcome)
    for family in Family:
        assert value(observer, "retries_scheduled_total", family=family) > 0, family
        assert value(observer, "retries_sent_total", family=family) > 0, family
    for family in WAITING:
        assert value(observer, "ladder_exhausted_total", family=family) > 0, family
    for row in KINDS.values():
        if row.is_failure:
            counts = [
                value(observer, "failures_total", kind=row.kind, provider=provider)
                for provider in (*Metrics().providers, "other")
            ]
            assert sum(counts) > 0, row.kind
    for reason in DropReason:
        dropped = [
            value(observer, "retries_dropped_total", family=family, reason=reason)
            for family in Family
        ]
        assert sum(dropped) > 0, reason


def test_the_demo_is_the_same_with_the_same_seed():
    def counted(seed):
        observer = MetricsObserver()
        Traffic(observer, Incidents(), seed=seed).advance(300.0)
        text = generate_latest(observer.registry).decode()
        return [line for line in text.splitlines() if "timestamp" not in line]

    assert counted(1) == counted(1)
    assert counted(1) != counted(2)


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_whatever_happens_to_a_turn_it_counts_as_one_outcome(data):
    observer = Watched()
    events = st.sampled_from(("fail", "die", "due", "began", "stop", "spoke", "recovered", "land"))
    turn = Driver(observer)
    turn.tell(Started(0.0, HERE))
    now = 0.0
    for step in data.draw(st.lists(events, max_size=40)):
        now += data.draw(st.sampled_from((0.0, 1.0, 30.0, 400.0)))
        machine = turn.machine
        event = {
            "fail": Failed(now, HERE, machine.number, Verdict.of(Kind.CONNECTION_LOST, "Gone.")),
            "die": Failed(now, HERE, machine.number, Verdict.of(Kind.AGENT_DIED, "Died.")),
            "due": Due(now, HERE),
            "began": Began(now, HERE),
            "stop": Stopped(now, HERE),
            "spoke": UserSpoke(now, HERE),
            "recovered": Recovered(now, HERE, "respawn", ok=now < 60),
            "land": Finished(now, HERE, machine.number),
        }[step]
        if step == "began" and machine.state != "ready":
            continue
        if step == "recovered" and machine.state != "recovering":
            continue
        turn.tell(event)
    ended = turn.machine.state in {"landed", "failed", "stopped", "superseded", "refused"}
    assert sum(outcomes(observer).values()) == (1 if ended else 0)
    assert bool(observer._tracks) <= (not ended)


# Finite -------------------------------------------------------------------------------------------


def test_ten_thousand_distinct_turns_sessions_and_messages_add_no_series():
    observer = MetricsObserver()
    before = observed_names(observer)
    verdicts = [Verdict.of(Kind.OVERLOADED, f"Message number {n}.") for n in range(100)]
    for number in range(10_000):
        ids = TurnIds(f"turn-{number}", f"session-{number}", "e1", f"provider-{number}")
        machine = TurnMachine(Settings(), ids)
        kind = number % 100
        events = [Started(0.0, HERE), Began(0.0, HERE)]
        events.append(
            Failed(1.0, HERE, 1, verdicts[kind]) if number % 3 == 0 else Finished(1.0, HERE, 1)
        )
        if number % 3 == 0:
            events.append(Stopped(2.0, HERE))
        for event in events:
            observer(machine, event, machine.handle(event))
    assert observed_names(observer) == before
    assert observer._tracks == {}
    assert sum(outcomes(observer).values()) == 10_000


def observed_names(observer):
    return {
        (sample.name, tuple(sorted(sample.labels.items())))
        for metric in observer.registry.collect()
        for sample in metric.samples
    }


# Registries ---------------------------------------------------------------------------------------


def test_two_observers_never_meet():
    one, other = Driver(), Driver()
    one.attempt()
    one.land()
    assert outcomes(one.observer) == {"landed_clean": 1}
    assert outcomes(other.observer) == {}


def test_an_embedder_may_bring_its_own_registry():
    registry = CollectorRegistry()
    turn = Driver(MetricsObserver(registry=registry))
    turn.attempt()
    turn.land()
    assert registry.get_sample_value("orchestrator_attempts_total", {"outcome": "landed"}) == 1


def test_a_scrape_of_chosen_names_is_up_to_date_too():
    turn = Driver()
    turn.attempt()
    turn.land()
    chosen = turn.observer.registry.restricted_registry(["orchestrator_attempts_total"])
    text = generate_latest(chosen).decode()
    assert 'orchestrator_attempts_total{outcome="landed"} 1.0' in text


def test_no_series_has_a_twin_that_tells_when_it_was_created():
    text = generate_latest(MetricsObserver().registry).decode()
    assert "_created" not in text


def test_scripts_give_every_family_each_way_to_leave_in_time():
    met = set()
    stream = scripts(("anthropic", "other"))
    for script, _ in zip(stream, range(5_000), strict=False):
        assert isinstance(script, Script)
        if script.answers and script.leaves:
            met.add(script.leaves)
    assert met == set(DropReason) - {DropReason.DENIED}
