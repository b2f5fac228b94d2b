"""THE table of what may follow a failure: one row per family, first match wins.

A row says what triggers it, what its budget is, how it waits, which steps it takes and what it
sends.  Its words (gates, targets) name the predicates below; no row holds code, and a new row needs
no new branch anywhere.  Gates on every row, kept in `machine.py`: the turn is not nested, and it is
below its cap of sends.

What the rows cannot show: a verdict that names a recovery is served by the rows of that recovery
alone; a row that yields does not match while the user has spoken; a row that only ever sends
verbatim does not match once the turn is not clean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from attrs import field, frozen

from orchestrator.failure.kinds import Kind, Recovery
from orchestrator.failure.verdict import Delivery
from orchestrator.turn.case import Case, Counter, reset_of
from orchestrator.turn.curve import Ladder, Pace, Pause
from orchestrator.turn.effects import Family
from orchestrator.turn.events import Step


class Word(StrEnum):
    """A trigger or a gate: the name of one predicate in `PREDICATES`."""

    TRANSIENT = "transient"
    NETWORK = "network"
    LIMIT_WITH_RESET = "limit with a reset"
    SHORT_HINT = "short hint"
    NOT_AMBIGUOUS = "not ambiguous"
    INTERACTIVE = "interactive"
    NO_SUBAGENTS = "no sub-agents"
    NO_OWN_IMAGE = "no own image"
    SUBAGENT_OR_OPTED_FRESH = "sub-agent or opted in"
    MAY_RETRY = "may retry"
    SHARED_DEATHS_LEFT = "shared deaths below the limit"
    CURVE_DONE = "curve done"
    STREAK = "streak"
    CANDIDATE_LEFT = "candidate left"
    OTHER_MODEL = "other model"
    HOP_MODEL = "other model to hop to"
    OPTED_RIDE_OUT = "opted in to ride out"
    OPTED_RESUME = "opted in to resume"
    RESETS_SOON = "resets soon"


class Shown(StrEnum):
    """What the failed attempt may have shown."""

    ANY = "any"
    FRESH = "fresh"
    """No text and no tool; a thought alone keeps it fresh."""
    SILENT = "silent"
    """Nor a thought."""
    SHOWN = "shown"


class Carries(StrEnum):
    """What the re-send carries."""

    BY_CLEAN = "by clean"
    """Verbatim while the turn is clean, a continue otherwise."""
    VERBATIM_ONLY = "verbatim only"
    CONTINUE = "continue"


class IfItFails(StrEnum):
    """What a failed step leads to."""

    END = "end"
    AGAIN = "again"
    """The same row once more, its cursor moved."""
    NEXT_ROW = "next row"


class Rewind(StrEnum):
    """What happens to the curve when the row's send goes out."""

    KEEPS = ""
    TO_ZERO = "curve 0"
    TO_ONE_LEFT = "curve to retries - 1"


class Target(StrEnum):
    """Which model a swap sets."""

    NONE = ""
    CANDIDATE = "next candidate"
    SERVED = "first served that is not the rejected one"
    HOP = "configured, else recommended"


@frozen
class Row:
    """One family.  Empty means no condition, no wait, no step."""

    family: Family
    recovery: Recovery | None = None
    """Trigger: the verdict names this recovery.  None: it names none."""
    kinds: tuple[Kind, ...] = ()
    """Trigger: one of these kinds."""
    when: tuple[Word, ...] = ()
    """Trigger: all of these hold."""
    shown: Shown = Shown.ANY
    gates: tuple[Word, ...] = ()
    counter: Counter | None = None
    """None: bounded by a cursor that only moves on."""
    limit: str = ""
    """Path of the setting that bounds the count; empty for a window or a cursor."""
    window: str = ""
    """Path of the setting that bounds the time since the curve's start."""
    pause: Pause | None = None
    steps: tuple[tuple[Step, IfItFails], ...] = ()
    target: Target = Target.NONE
    carries: Carries = Carries.BY_CLEAN
    yields: bool = False
    """Gives way to a message of the user."""
    rewind: Rewind = Rewind.KEEPS
    counted: bool = field(default=True, kw_only=True)
    """Its sends count against the turn's cap; those bounded by time do not."""
    standing: bool = False
    """One warning stands for all of its retries."""
    sticky: bool = False
    """The model it swapped to stays the session's."""
    verbatim_in_new_session: bool = False
    """A native session that knows nothing of the turn is never asked to continue."""

    @property
    def budgeted(self) -> bool:
        """The fleet's retry budget has a say in its sends, and each of them costs."""
        return Word.MAY_RETRY in self.gates


_RESPAWN = ((Step.RESPAWN, IfItFails.END),)
_DISCARD = ((Step.DISCARD, IfItFails.END),)
_SWAP = ((Step.SWAP, IfItFails.END),)

TABLE: Final[tuple[Row, ...]] = (
    Row(
        Family.BUSY,
        recovery=Recovery.BUSY,
        counter=Counter.BUSY,
        limit="ladders.busy_retries",
        pause=Pause(Ladder.BUSY),
    ),
    Row(
        Family.DEATH,
        recovery=Recovery.DEATH,
        gates=(Word.SHARED_DEATHS_LEFT,),
        counter=Counter.DEATHS,
        limit="recoveries.deaths",
        steps=_RESPAWN,
    ),
    Row(
        Family.REGISTRATION,
        recovery=Recovery.REGISTRATION,
        shown=Shown.FRESH,
        gates=(Word.SHORT_HINT, Word.NOT_AMBIGUOUS),
        counter=Counter.CURVE,
        limit="ladders.registration_retries",
        pause=Pause(before_steps=True),
        steps=_RESPAWN,
        carries=Carries.VERBATIM_ONLY,
    ),
    Row(
        Family.LOST_SESSION,
        recovery=Recovery.LOST_SESSION,
        counter=Counter.LOST,
        limit="recoveries.lost_session",
        steps=((Step.RESET, IfItFails.END),),
        yields=True,
        verbatim_in_new_session=True,
    ),
    Row(
        Family.THINKING,
        recovery=Recovery.CONVERSATION_DISCARD,
        kinds=(Kind.THINKING_BINDING,),
        shown=Shown.SILENT,
        gates=(Word.NO_SUBAGENTS,),
        counter=Counter.DISCARD,
        limit="recoveries.discard",
        steps=_DISCARD,
        carries=Carries.VERBATIM_ONLY,
        yields=True,
        rewind=Rewind.TO_ZERO,
    ),
    Row(
        Family.IMAGE,
        recovery=Recovery.CONVERSATION_DISCARD,
        kinds=(Kind.IMAGE_REJECTED,),
        gates=(Word.NO_SUBAGENTS, Word.NO_OWN_IMAGE),
        counter=Counter.DISCARD,
        limit="recoveries.discard",
        steps=_DISCARD,
        carries=Carries.VERBATIM_ONLY,
        yields=True,
        rewind=Rewind.TO_ZERO,
    ),
    Row(
        Family.FRESH_SESSION,
        recovery=Recovery.FRESH_SESSION,
        shown=Shown.FRESH,
        gates=(Word.SUBAGENT_OR_OPTED_FRESH,),
        counter=Counter.FRESH,
        limit="recoveries.fresh_session",
        steps=((Step.DEDICATED, IfItFails.END),),
        carries=Carries.VERBATIM_ONLY,
        yields=True,
    ),
    Row(
        Family.TRANSIENT,
        when=(Word.TRANSIENT,),
        shown=Shown.FRESH,
        gates=(Word.SHORT_HINT, Word.MAY_RETRY),
        counter=Counter.CURVE,
        limit="ladders.transient_retries",
        pause=Pause(),
    ),
    Row(
        Family.CONNECTION,
        when=(Word.TRANSIENT, Word.NETWORK),
        shown=Shown.FRESH,
        gates=(Word.SHORT_HINT, Word.INTERACTIVE, Word.MAY_RETRY),
        counter=Counter.CURVE,
        window="ladders.connection_window_s",
        pause=Pause(cap="ladders.connection_cap_s"),
        counted=False,
        standing=True,
    ),
    Row(
        Family.MODEL_FALLBACK,
        when=(Word.TRANSIENT,),
        shown=Shown.FRESH,
        gates=(Word.CURVE_DONE, Word.CANDIDATE_LEFT),
        pause=Pause(pace=Pace.FIRST),
        steps=((Step.SWAP, IfItFails.AGAIN),),
        target=Target.CANDIDATE,
        yields=True,
        rewind=Rewind.TO_ONE_LEFT,
        sticky=True,
    ),
    Row(
        Family.CONTINUE_AFTER_OUTPUT,
        when=(Word.TRANSIENT,),
        shown=Shown.SHOWN,
        gates=(Word.SHORT_HINT,),
        counter=Counter.CONTINUED,
        limit="recoveries.continue_after_output",
        pause=Pause(pace=Pace.FIRST),
        carries=Carries.CONTINUE,
        yields=True,
    ),
    Row(
        Family.ENTITLEMENT_SWAP,
        recovery=Recovery.ENTITLEMENT_SWAP,
        shown=Shown.FRESH,
        gates=(Word.OTHER_MODEL,),
        counter=Counter.ENTITLEMENT,
        limit="recoveries.entitlement_swap",
        steps=_SWAP,
        target=Target.SERVED,
        yields=True,
        sticky=True,
    ),
    Row(
        Family.RIDE_OUT,
        kinds=(Kind.OVERLOADED, Kind.RATE_LIMITED),
        shown=Shown.FRESH,
        gates=(Word.SHORT_HINT, Word.OPTED_RIDE_OUT, Word.MAY_RETRY),
        counter=Counter.CURVE,
        window="ladders.ride_out_window_s",
        pause=Pause(cap="ladders.ride_out_cap_s"),
        yields=True,
        counted=False,
        standing=True,
    ),
    Row(
        Family.POISONED,
        when=(Word.TRANSIENT,),
        shown=Shown.SILENT,
        gates=(Word.NO_SUBAGENTS, Word.STREAK, Word.CURVE_DONE),
        counter=Counter.DISCARD,
        limit="recoveries.discard",
        steps=((Step.CANARY, IfItFails.NEXT_ROW), (Step.DISCARD, IfItFails.END)),
        carries=Carries.VERBATIM_ONLY,
        yields=True,
        rewind=Rewind.TO_ZERO,
    ),
    Row(
        Family.RESUME_AT_RESET,
        when=(Word.LIMIT_WITH_RESET,),
        gates=(Word.OPTED_RESUME, Word.RESETS_SOON),
        counter=Counter.RESUME,
        limit="recoveries.resume_at_reset",
        pause=Pause(pace=Pace.AT_RESET),
        yields=True,
        counted=False,
        standing=True,
    ),
    Row(
        Family.CONTENT_FILTER_HOP,
        recovery=Recovery.CONTENT_FILTER_HOP,
        gates=(Word.HOP_MODEL,),
        counter=Counter.HOP,
        limit="recoveries.content_filter_hop",
        steps=_SWAP,
        target=Target.HOP,
        yields=True,
    ),
)

ROWS: Final[Mapping[Family, Row]] = MappingProxyType({row.family: row for row in TABLE})
PLACES: Final[Mapping[Family, int]] = MappingProxyType(
    {row.family: place for place, row in enumerate(TABLE)}
)
"""Where in the order a family stands."""
SERVING: Final[Mapping[Recovery | None, tuple[tuple[int, Row], ...]]] = MappingProxyType(
    {
        recovery: tuple((at, row) for at, row in enumerate(TABLE) if row.recovery is recovery)
        for recovery in (None, *Recovery)
    }
)
"""The rows of each recovery, with their places: no other row serves a verdict that names it."""


def _eligible(case: Case, model: str) -> bool:
    """Served to this account, and not the model that just failed.

    What is served may be unknown; then nothing is.
    """
    return model in (case.live.served or ()) and model != case.live.model


def _candidate(case: Case) -> str:
    candidates = case.settings.recoveries.fallback_models[case.cursor :]
    return next((model for model in candidates if _eligible(case, model)), "")


def _served(case: Case) -> str:
    served = case.live.served or ()
    rejected = case.verdict.rejected_model
    return next((m for m in served if m != rejected and _eligible(case, m)), "")


def _hop(case: Case) -> str:
    refusal = case.verdict.refusal
    recommended = refusal.recommended_model if refusal else ""
    model = case.settings.recoveries.content_filter_model or recommended
    return model if _eligible(case, model) else ""


def _no_model(_: Case) -> str:
    return ""


MODELS: Final[Mapping[Target, Callable[[Case], str]]] = MappingProxyType(
    {
        Target.NONE: _no_model,
        Target.CANDIDATE: _candidate,
        Target.SERVED: _served,
        Target.HOP: _hop,
    }
)
"""Which model a swap sets; empty when there is none."""


def _limit_with_reset(case: Case) -> bool:
    """A spent allowance, or a throttle that asks for more than a plain ladder waits."""
    kind = case.verdict.kind
    return kind is Kind.USAGE_LIMIT or (kind is Kind.RATE_LIMITED and case.hint_is_long)


def _resets_soon(case: Case) -> bool:
    reset = reset_of(case.verdict)
    return reset is not None and reset <= case.settings.turn.resume_within_s


def _opted_fresh(case: Case) -> bool:
    facts = case.facts
    return facts.subagent or facts.fresh_session or case.settings.choices.fresh_session


def _opted_resume(case: Case) -> bool:
    return case.facts.resume_at_reset or case.settings.choices.resume_at_reset


def _shared_deaths_left(case: Case) -> bool:
    return case.live.shared_deaths < case.settings.recoveries.deaths


def _curve_done(case: Case) -> bool:
    """Used up, or closed for this failure by a hint too long to wait for."""
    return case.budgets.curve >= case.settings.ladders.transient_retries or case.hint_is_long


def _streak(case: Case) -> bool:
    """This used-up curve makes it the second silent cycle in a row, or a later one."""
    cycles = case.session.poisoned_streak + 1
    return not case.seen and case.used_up and cycles >= case.settings.recoveries.poisoned_cycles


PREDICATES: Final[Mapping[Word, Callable[[Case], bool]]] = MappingProxyType(
    {
        Word.TRANSIENT: lambda case: case.verdict.transient,
        Word.NETWORK: lambda case: case.verdict.network_path,
        Word.LIMIT_WITH_RESET: _limit_with_reset,
        Word.SHORT_HINT: lambda case: not case.hint_is_long,
        Word.NOT_AMBIGUOUS: lambda case: case.verdict.delivery is not Delivery.AMBIGUOUS,
        Word.INTERACTIVE: lambda case: case.facts.interactive,
        Word.NO_SUBAGENTS: lambda case: not case.facts.has_subagents,
        Word.NO_OWN_IMAGE: lambda case: not case.facts.brings_image,
        Word.SUBAGENT_OR_OPTED_FRESH: _opted_fresh,
        Word.MAY_RETRY: lambda case: case.live.may_retry,
        Word.SHARED_DEATHS_LEFT: _shared_deaths_left,
        Word.CURVE_DONE: _curve_done,
        Word.STREAK: _streak,
        Word.CANDIDATE_LEFT: lambda case: bool(_candidate(case)),
        Word.OTHER_MODEL: lambda case: bool(_served(case)),
        Word.HOP_MODEL: lambda case: bool(_hop(case)),
        Word.OPTED_RIDE_OUT: lambda case: case.facts.ride_out or case.settings.choices.ride_out,
        Word.OPTED_RESUME: _opted_resume,
        Word.RESETS_SOON: _resets_soon,
    }
)
"""The vocabulary of triggers and gates."""
