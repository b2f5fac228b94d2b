"""An independent observer: it sees events, effects and the next deadline, and nothing else.

It knows the families from `POLICY` below, written down a second time on purpose, and asserts what a
reader of the effects alone can hold a turn to: invariants 1, 3 to 6, 10, 12 to 15 and 17.
`key` is what it remembers that matters for the future, so that a search can tell histories apart.
"""

from __future__ import annotations

from typing import NamedTuple, get_args

from attrs import evolve

from orchestrator.failure.kinds import Recovery
from orchestrator.failure.verdict import Delivery
from orchestrator.incident.record import Carrier, Severity
from orchestrator.turn import (
    Began,
    Cancel,
    CancelWait,
    Dispatch,
    Drop,
    DropReason,
    Due,
    Effect,
    End,
    Evidence,
    Failed,
    Family,
    Finished,
    How,
    Live,
    Note,
    Payload,
    Publish,
    Recover,
    Refused,
    Retrying,
    RetryNow,
    Saw,
    Send,
    SessionState,
    Started,
    Stopped,
    Wait,
)


class Policy(NamedTuple):
    budget: str | None
    yields: bool
    limit: object = None  # from settings to the number allowed; None for windows and cursors
    window: object = None
    counted: bool = True
    rewinds: str = ""


POLICY = {
    Family.BUSY: Policy("busy", False, lambda s: s.ladders.busy_retries),
    Family.DEATH: Policy("deaths", False, lambda s: s.recoveries.deaths),
    Family.REGISTRATION: Policy("curve", False, lambda s: s.ladders.registration_retries),
    Family.LOST_SESSION: Policy("lost", True, lambda s: s.recoveries.lost_session),
    Family.THINKING: Policy("discard", True, lambda s: s.recoveries.discard, rewinds="zero"),
    Family.IMAGE: Policy("discard", True, lambda s: s.recoveries.discard, rewinds="zero"),
    Family.FRESH_SESSION: Policy("fresh", True, lambda s: s.recoveries.fresh_session),
    Family.TRANSIENT: Policy("curve", False, lambda s: s.ladders.transient_retries),
    Family.CONNECTION: Policy(
        "curve", False, window=lambda s: s.ladders.connection_window_s, counted=False
    ),
    Family.MODEL_FALLBACK: Policy(None, True, rewinds="one left"),
    Family.CONTINUE_AFTER_OUTPUT: Policy(
        "continued", True, lambda s: s.recoveries.continue_after_output
    ),
    Family.ENTITLEMENT_SWAP: Policy("entitlement", True, lambda s: s.recoveries.entitlement_swap),
    Family.RIDE_OUT: Policy(
        "curve", True, window=lambda s: s.ladders.ride_out_window_s, counted=False
    ),
    Family.POISONED: Policy("discard", True, lambda s: s.recoveries.discard, rewinds="zero"),
    Family.RESUME_AT_RESET: Policy(
        "resume", True, lambda s: s.recoveries.resume_at_reset, counted=False
    ),
    Family.CONTENT_FILTER_HOP: Policy("hop", True, lambda s: s.recoveries.content_filter_hop),
}

RANK = {CancelWait: 0, Cancel: 0, Drop: 1, Note: 2, Publish: 3}
"""Order inside a tuple; everything else is last, once."""

_DOES = {kind: f"do_{kind.__name__.lower()}" for kind in get_args(Effect)}

NOT_FAILURES = frozenset({"cancelled", "advisory", "not_a_failure"})


class Broken(AssertionError):  # noqa: N818 - says what an invariant is
    """An invariant does not hold; the number is the design's."""

    def __init__(self, number, message):
        super().__init__(f"invariant {number}: {message}")
        self.number = number


def hold(number, holds, message, *told):
    """Insist on an invariant; the message is put together only when it does not hold."""
    if not holds:
        raise Broken(number, message.format(*told))


class Observer:
    def __init__(self, settings, session=SessionState()):  # noqa: B008 - a frozen value
        self.settings = settings
        self.baseline = Live()
        self.facts = None
        self.stop_seen = False
        self.hard_seen = False
        self.number = 0
        self.running = False  # an attempt is
        self.recovering = False
        self.clean = True
        self.spent = {"lost": session.lost, "discard": session.discard, "deaths": session.deaths}
        self.counted = 0
        self.curve_start = None
        self.failed_at = None
        self.pending = None
        self.pending_start = None
        self.scheduled = self.sent = self.dropped = 0
        self.wait_until = None
        self.stop_at = None
        self.ids = {}  # id -> (revision, how it stands: open, error, back, output)
        self.ended = False

    def copy(self):
        twin = object.__new__(Observer)
        twin.__dict__.update(self.__dict__)
        twin.spent = dict(self.spent)
        twin.ids = dict(self.ids)
        return twin

    def key(self):
        if self.ended:
            return None
        spent = {**self.spent, "curve": min(self.spent.get("curve", 0), 20)}
        retries = self.settings.ladders.transient_retries
        if spent["curve"] > retries:
            spent["curve"] = retries + 1
        return (
            self.stop_seen,
            self.hard_seen,
            self.running,
            self.recovering,
            self.clean,
            tuple(sorted((k, v) for k, v in spent.items() if v)),
            self.counted,
            self.curve_start is None,
            self.pending,
            self.wait_until is None,
            self.stop_at is None,
            any(state == "open" for _, state in self.ids.values()),
        )

    # what an event tells

    @property
    def queued(self):
        """A place in line or in a wait: neither running nor rebuilding."""
        return not self.running and not self.recovering

    @property
    def exempt(self):
        facts = self.facts
        return facts.owed and not facts.runner_written and self.clean and self.queued

    def shows_stop(self, live):
        was = self.baseline
        moved = (live.surface_stops, live.session_stops) != (was.surface_stops, was.session_stops)
        return live.stopping or moved

    def hear(self, event):
        live = getattr(event, "live", None)
        mine = getattr(event, "attempt", None) == self.number and self.running
        if isinstance(event, Started):
            self.baseline, self.facts = live, event.facts
        if isinstance(event, Stopped) and event.hard:
            self.hard_seen = self.stop_seen = True
        shown = live is not None and self.shows_stop(live)
        if (shown or isinstance(event, Stopped)) and not self.exempt:
            self.stop_seen = True
        if isinstance(event, Saw) and mine and event.evidence is not Evidence.THOUGHT:
            self.clean = False
            for id_, (revision, state) in self.ids.items():
                if state == "open":
                    self.ids[id_] = (revision, "output")
        if isinstance(event, Failed | Refused | Finished) and mine:
            self.running = False
            self.failed_at = event.now
            verdict = getattr(event, "verdict", None)
            if verdict is not None and verdict.delivery is Delivery.AMBIGUOUS:
                self.clean = False
        return mine

    # one step

    def step(self, event, effects, deadline):
        was_ended = self.ended
        wait_was = self.wait_until
        mine = self.hear(event)
        if was_ended:
            hold(2, effects == (), "{} after the end gives {}", event, effects)
            return
        last = effects[-1] if effects else None
        if effects:
            self.check_order(effects)
            for effect in effects:
                getattr(self, _DOES[type(effect)])(effect, event)
            self.check_wait(event, effects, wait_was)
            self.check_schedule(last, event)
            hold(14, not (self.running and isinstance(last, Recover)), "{} meanwhile", last)
        if mine:
            self.check_failure(event, effects, last)
        if isinstance(last, End):
            self.finish(last)
        opened = [at for at in (self.wait_until, self.stop_at) if at is not None]
        hold(13, deadline == min(opened, default=None), "deadline {}, open {}", deadline, opened)

    def do_cancelwait(self, effect, event):
        """`check_wait` sees the whole tuple."""

    def do_note(self, effect, event):
        """A note promises nothing."""

    def do_end(self, effect, event):
        """`finish` runs when the whole tuple is read."""

    def check_order(self, effects):
        ranks = [RANK.get(type(effect), 4) for effect in effects]
        hold(2, ranks == sorted(ranks) and ranks.count(4) <= 1, "order of {}", effects)
        for place, effect in enumerate(effects):
            if isinstance(effect, Publish) and effect.record.severity is Severity.ERROR:
                hold(2, effect.carrier is Carrier.RESPONSE, "carrier of {}", effect)
                hold(2, isinstance(effects[place + 1], End), "an error stands before its End")
            elif isinstance(effect, Publish):
                hold(2, effect.carrier is Carrier.UPDATE, "carrier of {}", effect)

    def check_wait(self, event, effects, wait_was):
        cancelled = any(isinstance(effect, CancelWait) for effect in effects)
        fired = (
            isinstance(event, Due)
            and wait_was is not None
            and event.now >= wait_was
            and not cancelled
            and isinstance(effects[-1] if effects else None, Dispatch | Recover)
        )
        hold(13, not cancelled or wait_was is not None, "CancelWait without a wait")
        if wait_was is None:
            return
        goes_on = bool(effects) and isinstance(effects[-1], Dispatch | Recover | Send | Wait | End)
        hold(
            13, not goes_on or cancelled or fired, "a wait ended silently: {} -> {}", event, effects
        )
        if cancelled or fired:
            if self.wait_until == wait_was:
                self.wait_until = None
        elif goes_on:
            hold(13, False, "two waits at once")

    def check_schedule(self, last, event):
        decides = isinstance(last, Wait | Recover) or (
            isinstance(last, Dispatch) and last.number > 1
        )
        if decides and self.pending is None:
            family = getattr(last, "family", None)
            hold(12, family is not None, "scheduled without a family: {}", last)
            self.pending = family
            self.scheduled += 1
            self.pending_start = self.failed_at if self.curve_start is None else self.curve_start
        elif isinstance(last, Wait | Recover):
            hold(12, last.family == self.pending, "{} while {} is pending", last, self.pending)
        outstanding = self.scheduled - self.sent - self.dropped
        hold(
            12, outstanding == (self.pending is not None), "{} pending after {}", outstanding, event
        )

    def check_failure(self, event, effects, last):
        if isinstance(event, Finished | Refused):
            return
        if not isinstance(event, Failed) or event.verdict.kind in NOT_FAILURES:
            return
        verdict = event.verdict
        if not verdict.transient and verdict.recovery is None:
            resumes = isinstance(last, Wait) and last.family is Family.RESUME_AT_RESET
            hold(6, resumes or isinstance(last, End), "{} -> {}", verdict.kind, last)
        if verdict.recovery is Recovery.CONTENT_FILTER_HOP:
            return
        if isinstance(last, Wait | Recover):
            warned = any(state == "open" for _, state in self.ids.values())
            hold(15, warned, "{} -> {} without a warning", verdict.kind, last)

    # what an effect does

    def may_act(self, effect):
        hold(3, not self.stop_seen, "{} after a Stop", effect)

    def outlive(self, live):
        """What goes on although the world changed is judged by the changed world from then on."""
        was = self.baseline.binding
        if self.shows_stop(live) or (was and was != live.binding):
            self.baseline = evolve(live, stopping=False)

    def do_dispatch(self, effect, event):
        if not self.exempt:
            self.may_act(effect)
        elif isinstance(event, Due | RetryNow):
            self.outlive(event.live)
        self.recovering = False
        hold(14, effect.number == self.number + 1, "{} after {} sends", effect, self.number)
        if effect.payload is Payload.VERBATIM:
            hold(4, self.clean, "a verbatim place in line for a turn that is not clean")

    def do_recover(self, effect, event):
        self.may_act(effect)
        if self.exempt and isinstance(event, Due | RetryNow):
            self.outlive(event.live)
        self.recovering = True

    def do_wait(self, effect, event):
        self.may_act(effect)
        self.recovering = False
        hold(13, effect.until == event.now + effect.delay, "{} at {}", effect, event.now)
        policy = POLICY[effect.family]
        if policy.window is not None:
            start = self.failed_at if self.curve_start is None else self.curve_start
            open_ = self.failed_at < start + policy.window(self.settings)
            hold(5, open_, "{} for a failure {} s into its window", effect, self.failed_at - start)
        self.wait_until = effect.until

    def do_send(self, effect, event):
        hold(14, isinstance(event, Began), "Send answers {}", event)
        hold(14, effect.number == self.number + 1, "{} after {}", effect, self.number)
        live = event.live
        exempt = self.exempt
        if not exempt:
            self.may_act(effect)
        verbatim = effect.payload is Payload.VERBATIM
        hold(4, self.clean or not verbatim, "{} in a turn that is not clean", effect)
        if effect.family is None:
            hold(12, effect.number == 1 and self.pending is None, "{} without a family", effect)
            self.counted += 1
        else:
            hold(12, effect.family == self.pending, "{} while {} is pending", effect, self.pending)
            policy = POLICY[effect.family]
            hold(17, exempt or not (policy.yields and live.user_input), "{} over the user", effect)
            self.spend(policy)
            self.sent += 1
            self.pending = None
        if exempt:
            self.outlive(live)
        self.number = effect.number
        self.running = True

    def spend(self, policy):
        limits = self.settings
        self.counted += policy.counted
        hold(5, self.counted <= limits.turn.max_sends, "{} sends", self.counted)
        if policy.budget is not None:
            self.spent[policy.budget] = self.spent.get(policy.budget, 0) + 1
        if policy.limit is not None:
            spent, allowed = self.spent[policy.budget], policy.limit(limits)
            hold(5, spent <= allowed, "{}: {} of {}", policy.budget, spent, allowed)
        if policy.budget == "curve":
            self.curve_start = self.pending_start
        if policy.rewinds == "zero":
            self.spent["curve"], self.curve_start = 0, None
        elif policy.rewinds:
            left = max(0, limits.ladders.transient_retries - 1)
            self.spent["curve"] = min(self.spent.get("curve", 0), left)

    def do_cancel(self, effect, event):
        if effect.hard:
            self.running = False
        else:
            self.stop_at = event.now + self.settings.turn.stop_budget_s
            self.stop_seen = True

    def do_drop(self, effect, event):
        hold(12, effect.family == self.pending, "{} while {} is pending", effect, self.pending)
        if effect.reason is DropReason.SUPERSEDED:
            hold(17, POLICY[effect.family].yields, "{} of a family that does not yield", effect)
        self.dropped += 1
        self.pending = None

    def do_publish(self, effect, event):
        record = effect.record
        revision, state = self.ids.get(record.id, (0, "new"))
        hold(
            1, record.revision == revision + 1, "{} {} -> {}", record.id, revision, record.revision
        )
        if ":notice:" in record.id:
            self.ids[record.id] = (record.revision, "notice")
            return
        settles = isinstance(event, Saw | Finished) and record.severity is Severity.WARNING
        hold(1, state in ("new", "open") or (settles and state == "output"), "{} is over", record)
        others = [id_ for id_, (_, s) in self.ids.items() if s == "open" and id_ != record.id]
        hold(10, not others, "{} opens while {} stand", record.id, others)
        if isinstance(event, Retrying):
            hold(1, record.severity is Severity.WARNING, "{} for the agent's own retry", record)
        stands = "error" if record.severity is Severity.ERROR else "open"
        self.ids[record.id] = (record.revision, "back" if settles else stands)

    def finish(self, end):
        self.ended = True
        self.running = self.recovering = False
        self.stop_at = None
        if end.outcome is not How.LANDED:
            unsettled = [id_ for id_, (_, state) in self.ids.items() if state == "open"]
            hold(10, not unsettled, "{} not settled at {}", unsettled, end.outcome)
        hold(12, self.pending is None, "{} is still pending at the end", self.pending)
        hold(13, self.wait_until is None, "a wait outlives the turn")
