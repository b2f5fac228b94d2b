"""One conversation with an agent: its place in line, its ledger, and what the host knows of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, cast
from uuid import uuid4
from weakref import ReferenceType, ref

import anyio
from attrs import define, evolve

from orchestrator.errors import AgentError, RuntimeFailure
from orchestrator.failure.classify import classify
from orchestrator.failure.kinds import KINDS, Action, Category, Kind
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Context, Phase, Verdict
from orchestrator.incident.ledger import Ledger
from orchestrator.incident.record import Record, Severity
from orchestrator.runner import allowed
from orchestrator.runner.agent import CONTINUE, Agent, Attempt, Prompt
from orchestrator.runner.drive import Drive
from orchestrator.runner.endings import redacted
from orchestrator.runner.turn import Turn
from orchestrator.turn.case import TEXT, TOOL
from orchestrator.turn.effects import End, Family, How, Payload, SessionState
from orchestrator.turn.events import (
    Event,
    Facts,
    Failed,
    Live,
    Rebound,
    RuntimeReplaced,
    SignedIn,
    Step,
    UserSpoke,
)
from orchestrator.turn.incidents import TurnIds
from orchestrator.turn.machine import TurnMachine
from orchestrator.turn.state import FRESH
from orchestrator.turn.table import ROWS

if TYPE_CHECKING:
    from orchestrator.runner.orchestrator import Orchestrator

_PLAIN: Final = Facts()
_REPLACES_RUNTIME: Final = frozenset({Step.RESPAWN, Step.RESET, Step.DISCARD, Step.DEDICATED})
_REMEMBERED: Final = 64
"""Failed turns that `retry` can still run again; an older one is a new message."""


class RetryRefusedError(ValueError):
    """`session.retry` was asked for something that can't be tried again; the text says why."""


@define
class _Again:
    """What it takes to run a failed turn again."""

    prompt: Prompt
    facts: Facts
    clean: bool
    structural: bool
    tried: ReferenceType[Turn] | None = None
    """The turn that does; one that nobody holds any more was never run."""

    @property
    def is_being_tried(self) -> bool:
        turn = None if self.tried is None else self.tried()
        return turn is not None and turn.outcome is None


class Session:
    """One conversation.  Made by `Orchestrator.session`; its turns run one after another."""

    def __init__(
        self,
        orchestrator: Orchestrator,
        key: str,
        agent: Agent,
        *,
        provider: str = "other",
        speaker: str | None = None,
        state: SessionState | None = None,
        continue_prompt: Prompt = CONTINUE,
    ) -> None:
        self.orchestrator = orchestrator
        self.id = allowed.name("session", key)
        self.provider = provider
        """Value of the metrics' label `provider`."""
        self.speaker = speaker
        """Whose failures these are, for the classifier; None when unknown."""
        self.state = FRESH if state is None else state
        """What outlives a turn.  A host that restarts stores it and hands it in again."""
        self.continue_prompt = continue_prompt
        self.live = Live(binding=key)
        """The world as of now; `update` and `rebind` change it."""
        self.epoch = uuid4().hex
        self.ledger = Ledger(key, self.epoch)
        self.current: Drive | None = None
        """The turn that has the agent; the others stand in line."""
        self.delivery = orchestrator.delivery
        self.clock = orchestrator.clock
        self.luck = orchestrator.luck
        self._line: list[Drive] = []
        self._turns = 0
        self._again: dict[str, _Again] = {}
        self._reporting: anyio.Lock | None = None
        self.use(agent)

    def __repr__(self) -> str:
        return f"<Session {self.id}>"

    def use(self, agent: Agent) -> None:
        """Go on with this agent, from the next attempt on."""
        allowed.agent(agent)
        self.agent = agent
        self.agent_cancel: Callable[..., Awaitable[None]] | None = getattr(agent, "cancel", None)
        self.agent_steer: Callable[[Attempt, str], Awaitable[None]] | None = getattr(
            agent, "steer", None
        )

    # For the host ---------------------------------------------------------------------------------

    def turn(self, prompt: Prompt, *, turn_id: str | None = None, facts: Facts = _PLAIN) -> Turn:
        """Make a turn: await it, or enter it with `async with` to watch it.

        `turn_id` is the host's own id of the user's message, so that a failure that is replayed
        from history keeps its id.
        """
        self.orchestrator.check_open()
        if not isinstance(prompt, str):
            allowed.prompt(prompt)
        if facts is not _PLAIN:
            allowed.of(Facts, "facts", facts)
        if turn_id is None:
            self._turns += 1
            turn_id = f"{self.epoch}-{self._turns}"
        return Turn(self, prompt, turn_id, facts, self._machine_for(turn_id, facts))

    def retry(self, incident_id: str, *, turn_id: str | None = None) -> Turn:
        """Make the turn behind the action `retry` of a turn that failed or was stopped.

        It has a new, full ladder.  It sends the message again if nothing was shown or run, else it
        asks to continue.  Raises
        RetryRefusedError when the message can't succeed, is being tried again already (a button
        that was pressed twice), or is not known (any more).
        """
        again = self._again.get(incident_id)
        if again is None:
            raise RetryRefusedError(
                f"retry: {incident_id!r} is no failed turn of this session; send the message again"
            )
        if again.structural:
            raise RetryRefusedError(
                "retry: this message can't succeed in this conversation; change it, or start a new"
                " session"
            )
        if again.is_being_tried:
            raise RetryRefusedError("retry: this message is being tried again; wait for its end")
        turn = self.turn(again.prompt, turn_id=turn_id, facts=again.facts)
        again.tried = ref(turn)
        if not again.clean:
            turn.opening = Payload.CONTINUE
            turn.machine.clean = False  # what was shown then is shown now
        return turn

    def stop(self, *, hard: bool = False) -> None:
        """Stop everything that runs or waits in this session."""
        for turn in self.turns:
            turn.stop(hard=hard)
        live = self.live
        self.live = evolve(
            live,
            surface_stops=live.surface_stops + 1,
            session_stops=live.session_stops + 1,
        )

    def follow_up(self, text: str) -> bool:
        """Tell that the user queued a message.  False when no turn runs: send it as a turn."""
        allowed.of(str, "text", text)
        if self.current is None:
            return False
        self.hears(self.current, text)
        return True

    def rebind(self, key: str) -> None:
        """Move the slot to another conversation; what is pending for the old one is dropped."""
        self.live = evolve(self.live, binding=allowed.of(str, "key", key))
        for turn in self.turns:
            turn.look(Rebound)

    def update(
        self,
        *,
        model: str | None = None,
        served: Sequence[str] | None = None,
        shared_deaths: int | None = None,
    ) -> None:
        """Tell what changed: the model in use, those served, deaths of a shared runtime.

        Picking a model by hand also ends what an earlier fallback had stuck to.
        """
        live = self.live
        self.live = evolve(
            live,
            model=live.model if model is None else allowed.of(str, "model", model),
            served=live.served if served is None else allowed.names("served", served),
            shared_deaths=(
                live.shared_deaths
                if shared_deaths is None
                else allowed.of(int, "shared_deaths", shared_deaths)
            ),
        )
        if model is not None and self.state.fallback_model not in {"", model}:
            self.state = evolve(self.state, fallback_model="")

    async def report(self, failure: RawFailure | Exception | Verdict) -> Record | None:
        """Tell of a failure outside a turn.

        It starts no ladder: the next prompt meets the recovery that its kind names.  None when it
        is not a failure, or nobody could be told.
        """
        if not isinstance(failure, RawFailure | Exception | Verdict):
            raise allowed.wrong("failure", failure, "a RawFailure, an exception or a Verdict")
        verdict = self.understood(failure)
        if not KINDS[verdict.kind].is_failure:
            return None
        if self._reporting is None:
            self._reporting = anyio.Lock()
        async with self._reporting:  # one at a time: an id is counted when it is delivered
            return await self._report(verdict)

    async def _report(self, verdict: Verdict) -> Record | None:
        record = Record(
            id=self.ledger.next_session_error_id(),
            revision=1,
            category=verdict.category,
            severity=Severity.ERROR,
            title=verdict.title,
            actions=verdict.actions,
            details=verdict.details,
        )
        if not await self.delivery.deliver(record):
            return None
        self.ledger.delivered(record, verdict.kind)
        return record

    def signed_in(self) -> None:
        """Tell that the user has signed in."""
        self.ledger.sign_in()
        if self.current is not None:
            self.current.feed(SignedIn(self.clock.now()))

    def runtime_replaced(self) -> None:
        """Tell that the process or the native session was replaced, other than by a recovery."""
        self.ledger.new_runtime()
        if self.current is not None:
            self.current.feed(RuntimeReplaced(self.clock.now()))

    def restore(self, records: Iterable[Record | tuple[Record, Kind]]) -> None:
        """Take in what a stored conversation still has active, oldest first.

        A record alone does not say what ends it; then its category stands for its kind.
        """
        for record, kind in [_with_kind(item) for item in records]:
            self.ledger.delivered(record, kind)

    @property
    def active(self) -> tuple[Record, ...]:
        """Incidents that nothing has ended yet, oldest first."""
        return tuple(active.record for active in self.ledger.active)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Turns that run or stand in line, in order."""
        current = [] if self.current is None else [self.current]
        return tuple(cast("list[Turn]", current + self._line))

    # For its turns --------------------------------------------------------------------------------

    def enter(self, turn: Drive, *, ahead: bool) -> bool:
        """Give the turn the agent, or a place in line.  A nested turn runs inside another one."""
        if self.current is turn or turn.facts.nested:
            return True
        if self.current is None:
            self.current = turn
            turn.machine.session = self.state
            return True
        place = sum(map(_goes_ahead, self._line)) if ahead else len(self._line)
        self._line.insert(place, turn)
        self.refresh()
        if self.current is not None:
            self.current.look(UserSpoke)
        return False

    def pays_for(self, family: Family) -> None:
        """Pay for a re-send from the fleet's retry budget."""
        if self.orchestrator.budgeted and ROWS[family].budgeted:
            self.orchestrator.bucket(self.provider).spend(self.clock.now())

    def answered(self, turn: Drive, event: Event) -> None:
        """An attempt ended; see whether the agent answered it at all."""
        if isinstance(event, Failed) and event.verdict.category is Category.CONNECTION:
            return
        self.ledger.next_attempt(turn.mark, turn.id)

    def recovered(self, step: Step) -> None:
        """A step of a recovery succeeded; most replace the process or the native session."""
        if step in _REPLACES_RUNTIME:
            self.ledger.new_runtime()

    def keep(self, turn: Drive, end: End) -> None:
        """Keep what outlives a turn, and let the next one in line go on."""
        if not turn.facts.nested:  # else the turn around it goes by what it began with
            self.state = end.session
        if end.outcome is How.LANDED:
            self._landed(turn)
        elif turn.record is not None and (
            end.outcome is How.FAILED or Action.RETRY in turn.record.actions
        ):
            self._remember(turn, turn.record.id, end)
        self.leave(turn)

    def leave(self, turn: Drive) -> None:
        """Let the next turn in line go on."""
        if self.current is turn:
            self.current = self._line.pop(0) if self._line else None
            if self.current is not None:
                self.current.take_place(self.state)
        elif turn in self._line:
            self._line.remove(turn)
        if self.live.user_input:
            self.refresh()

    def hears(self, turn: Drive, text: str) -> None:
        """Take in a steer or a follow-up for a turn."""
        turn.unread = (*turn.unread, text)
        self.refresh()
        turn.look(UserSpoke)

    def refresh(self) -> None:
        """See whether the user has said something that the running turn has not read."""
        spoke = any(_is_users(turn) for turn in self._line)
        spoke = spoke or (self.current is not None and bool(self.current.unread))
        if spoke is not self.live.user_input:
            self.live = evolve(self.live, user_input=spoke)

    def live_at(self, now: float) -> Live:
        """Return the world as of now, with what the fleet's retry budget says."""
        may_retry = self.orchestrator.bucket(self.provider).allows(now)
        if may_retry is not self.live.may_retry:
            self.live = evolve(self.live, may_retry=may_retry)
        return self.live

    def step_budget_s(self, step: Step) -> float | None:
        """How long a recovery step may take; the host keeps the clocks of all but the canary."""
        return (
            self.orchestrator.settings.recoveries.canary_timeout_s if step is Step.CANARY else None
        )

    def understood(
        self, failure: RawFailure | BaseException | Verdict, turn: Drive | None = None
    ) -> Verdict:
        """Take the verdict on what happened, or the one that somebody has taken already."""
        return redacted(failure) if isinstance(failure, Verdict) else self.verdict_on(failure, turn)

    def verdict_on(self, failure: RawFailure | BaseException, turn: Drive | None = None) -> Verdict:
        """Take the verdict on what happened, with what is known at the moment."""
        if isinstance(failure, AgentError | RuntimeFailure):
            return redacted(failure.verdict)
        raw = failure if isinstance(failure, RawFailure) else RawFailure.exception(failure)
        shown = 0 if turn is None else turn.machine.shown
        context = Context(
            advertised_models=self.live.served,
            attachments=turn is not None and turn.facts.brings_image,
            phase=Phase.IDLE if turn is None else Phase.PROMPT,
            text_shown=bool(shown & TEXT),
            tool_run=bool(shown & TOOL),
            wall_now=self.orchestrator.wall_clock(),
        )
        return classify(raw, speaker=self.speaker, context=context)

    def _machine_for(self, turn_id: str, facts: Facts) -> TurnMachine:
        # A nested turn and the one around it count notices side by side; so that their ids never
        # meet, it counts in an epoch of its own.
        epoch = uuid4().hex if facts.nested else self.epoch
        ids = TurnIds(turn_id, self.id, epoch, self.provider)
        return TurnMachine(self.orchestrator.settings, ids, self.state)

    def _landed(self, turn: Drive) -> None:
        self.ledger.landed(turn.mark, turn.id)
        if self.orchestrator.budgeted:
            self.orchestrator.bucket(self.provider).landed(self.clock.now())

    def _remember(self, turn: Drive, incident_id: str, end: End) -> None:
        structural = end.verdict is not None and end.verdict.structural
        self._again[incident_id] = _Again(turn.prompt, turn.facts, turn.machine.clean, structural)
        while len(self._again) > _REMEMBERED:
            del self._again[next(iter(self._again))]


def _is_users(turn: Drive) -> bool:
    """Whether a queued turn is a message the user wrote."""
    return not (turn.facts.owed or turn.facts.runner_written)


def _goes_ahead(turn: Drive) -> bool:
    """Whether a queued turn went before the others; the next one that does goes behind it."""
    return turn.facts.owed and not turn.facts.runner_written


def _with_kind(item: object) -> tuple[Record, Kind]:
    match item:
        case Record():
            return item, _KIND_OF[item.category]
        case (Record() as record, Kind() as kind):
            return record, kind
    raise allowed.wrong("records", item, "a Record, or a pair of a Record and its Kind,")


_KIND_OF: Final = {
    Category.CONNECTION: Kind.CONNECTION_LOST,
    Category.ACCESS: Kind.AUTH_REQUIRED,
    Category.LIMIT: Kind.USAGE_LIMIT,
    Category.REQUEST: Kind.INVALID_REQUEST,
    Category.SERVICE: Kind.SERVER_ERROR,
    Category.UNKNOWN: Kind.UNKNOWN,
}
"""The kind that ends most carefully, for a restored record of which only the category is left."""
