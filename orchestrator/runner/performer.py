"""What a turn is told, and what it does about it at once.

The machine is handed an event, and the effects that take no time are performed on the spot: a Stop
has taken effect when `stop()` returns.  Deliveries to sinks do take time, and the machine wants a
whole tuple performed before the next event; so while some are owed, events queue up behind them
(`_backlog`), and `settle` hands them in after.  With no sinks nothing is ever owed.  What remains,
the last effect of a tuple, is the owner's (`drive.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import anyio
from attrs import define, evolve

from orchestrator.failure.kinds import Category, Kind
from orchestrator.incident.ledger import NOTHING_ACTIVE, Mark
from orchestrator.incident.record import Record
from orchestrator.runner.agent import Attempt, Prompt
from orchestrator.runner.audience import Audience
from orchestrator.runner.backlog import Backlog
from orchestrator.runner.cancellation import CANCELLED, is_ours
from orchestrator.runner.clock import Sleep
from orchestrator.runner.delivery import PATIENCE_S
from orchestrator.runner.endings import titled
from orchestrator.runner.progress import (
    NoteDelivered,
    Outcome,
    Progress,
    RecordRevised,
    TextShown,
)
from orchestrator.turn.effects import (
    Cancel,
    CancelWait,
    Drop,
    Effect,
    End,
    Note,
    Payload,
    Publish,
    SessionState,
)
from orchestrator.turn.events import (
    Advised,
    Due,
    Event,
    Evidence,
    Facts,
    Live,
    Rebound,
    Retrying,
    Saw,
    UserSpoke,
)
from orchestrator.turn.machine import TurnMachine
from orchestrator.turn.state import State

if TYPE_CHECKING:
    from orchestrator.runner.session import Session

logger = logging.getLogger("orchestrator")

_QUEUED: Final = frozenset({State.READY, State.WAITING})


@define(eq=False, repr=False)
class Performer:
    """One turn on its machine, without the task that owns it."""

    session: Session
    prompt: Prompt
    id: str
    """The host's id of the user's message, or one of ours."""
    facts: Facts
    machine: TurnMachine
    """The machine of this turn.  Public to read; only the runner may hand it events."""
    opening: Payload = Payload.VERBATIM
    """What the first send carries: a continue when a turn is retried after it showed text."""
    outcome: Outcome | None = None
    """How the turn ended; None while it has not."""
    record: Record | None = None
    """The last revision that was delivered for this turn."""
    stopping: bool = False
    """A Stop that was pressed on this turn is in flight."""
    outlived: int = 0
    """Stops that did not end it: what is owed to somebody goes on while it waits."""
    waited_s: float = 0.0
    """Seconds spent waiting before retries."""
    mark: Mark = NOTHING_ACTIVE
    """What was active in the session when the last attempt began."""
    unread: tuple[str, ...] = ()
    """Steers and follow-ups that no attempt is known to have read, in order."""

    _begun: bool = False
    _beside: bool = False
    """It runs in a task of the orchestrator, beside its `async with`."""
    _next: Effect | None = None
    """What the machine wants done next: the last effect of its last answer."""
    _flight: Attempt | None = None
    """The attempt that is in the agent's hands."""
    _pause: anyio.CancelScope | Sleep | None = None
    """Where the owner pauses, in line or before a retry.  Cancelled by anything that happens."""
    _work: anyio.CancelScope | None = None
    """Where the owner is inside the agent's code.  Cancelled only when the turn is over."""
    _patience: anyio.CancelScope | None = None
    """Where a helper waits for an attempt to end: in its own way, or at all."""
    _held: anyio.CancelScope | asyncio.Task[Any] | None = None
    """What gets the owner out of an agent's code that has a `cancel` of its own and is deaf to it.

    On asyncio the task, since a scope around each attempt costs as much as the rest of a turn.
    """
    _pulls: int = 0
    """How often it was cancelled for that, and has not been given back."""
    _backlog: Backlog | None = None
    """What the sinks are still owed, and events that arrived meanwhile."""
    _observed: bool = False
    """Observers are looking at an answer that is not performed yet; one of them may press Stop."""
    _last: Evidence | None = None
    """Evidence that was the last event of all."""
    _audience: Audience | None = None
    """Those who watch a turn that somebody else runs."""
    _error: BaseException | None = None
    """What the last attempt raised; let go before any wait, since it holds whole frames."""
    _chunks: list[str] | None = None
    """All that was shown."""
    _drops: tuple[Drop, ...] = ()
    _notes: tuple[Note, ...] = ()

    @property
    def raised(self) -> BaseException | None:
        """What the last attempt raised.  A wait lets it go."""
        return self._error

    # What others tell it --------------------------------------------------------------------------

    def feed(self, event: Event) -> None:
        """Hand in an event from outside, and see to it that the answer is performed."""
        if isinstance(self._next, End):
            return  # it is over, and only not yet performed
        if self._backlog is not None or self._observed:
            self._behind().arrived.append(event)
        else:
            self._handle(event)
            self._nudge()

    def look(self, kind: type[UserSpoke | Rebound]) -> None:
        """Ask the rule again after the session's world changed."""
        if self._begun and self.outcome is None and self.machine.state is not State.IDLE:
            now = self.session.clock.now()
            self.feed(kind(now, self._live(now)))

    def saw(self, attempt: Attempt, evidence: Evidence, chunk: str = "") -> None:
        if self._flight is not attempt:
            return  # agents answer late
        if chunk:
            self._chunks = self._chunks or []
            self._chunks.append(chunk)
            self._tell(TextShown(attempt.number, chunk))
        if self._last is not evidence:  # the same again, and nothing between, says nothing new
            self.feed(Saw(attempt.number, evidence))
            self._last = evidence

    def agent_retries(self, attempt: Attempt, title: str, category: Category) -> None:
        if self._flight is attempt:
            self.feed(Retrying(attempt.number, titled(title), category))

    def advised(self, attempt: Attempt, key: str, title: str, category: Category) -> None:
        if self._flight is attempt:
            self.feed(Advised(key, titled(title), category))

    def consumed(self, text: str) -> None:
        if text in self.unread:
            unread = list(self.unread)
            unread.remove(text)
            self.unread = tuple(unread)
            self.session.refresh()

    def take_place(self, state: SessionState) -> None:
        """Go on: this turn is the first in line.  It takes up what the one before it left."""
        self.machine.session = state
        if self._pause is not None:
            self._pause.cancel()

    async def settle(self) -> None:
        """Deliver what the sinks are owed, then hand in what arrived meanwhile."""
        while (backlog := self._backlog) is not None:
            if backlog.settled is not None:  # somebody is at it
                await backlog.settled.wait()
                continue
            backlog.settled = settled = anyio.Event()
            try:
                await self._work_off(backlog)
                self._backlog = None
            finally:
                backlog.settled = None
                settled.set()
                self._nudge()

    async def _work_off(self, backlog: Backlog) -> None:
        owed, arrived = backlog.owed, backlog.arrived
        while owed or arrived:
            if owed:
                await self._deliver(*owed[0])
                owed.popleft()
            else:
                event = arrived.popleft()
                if not isinstance(self._next, End):
                    self._handle(event)

    # What the machine asks for --------------------------------------------------------------------

    def _handle(self, event: Event) -> None:
        """Hand an event to the machine; perform what takes no time and note what comes next."""
        self._last = None
        effects = self.machine.handle(event)
        if self.stopping and self.machine.state in _QUEUED:
            self.stopping = False
            self.outlived += 1
        delivery = self.session.delivery
        if delivery.observers:
            self._observed = True
            delivery.observe(self.machine, event, effects)
            self._observed = False
        for effect in effects:
            perform = self._AT_ONCE.get(type(effect))
            if perform is None:
                self._next = effect
            else:
                perform(self, effect)

    def _nudge(self) -> None:
        """Wake whoever can perform what the machine now wants."""
        if self._pause is not None:
            if self._next is not None or self._backlog is not None:
                self._pause.cancel()
            return
        if self._work is not None and self._next is not None:
            self._work.cancel()
        if self._backlog is not None and (self._work or self._flight):
            self.session.orchestrator.spawn(self.settle)

    def _cancel(self, effect: Cancel) -> None:
        attempt, cancel = self._flight, self.session.agent_cancel
        if attempt is None:
            return
        spawn = self.session.orchestrator.spawn
        if cancel is not None:
            spawn(self._foreign, "cancel", partial(cancel, attempt, hard=effect.hard))
        if self._work is not None and (cancel is None or effect.hard):
            self._work.cancel()
        if not effect.hard:
            spawn(self._mind_stop_budget)
        elif self._held is not None:
            spawn(self._insist, attempt)

    def _drop(self, effect: Drop) -> None:
        self._drops = (*self._drops, effect)

    def _publish(self, effect: Publish) -> None:
        verdict = self.machine.verdict
        kind = Kind.SERVER_ERROR if verdict is None else verdict.kind
        notice = effect.record.id.startswith(f"{self.session.id}:notice:")
        self._owe(effect.record, Kind.ADVISORY if notice else kind)

    def _note(self, effect: Note) -> None:
        self._notes = (*self._notes, effect)
        self._owe(effect, Kind.ADVISORY)

    def _owe(self, item: Record | Note, kind: Kind) -> None:
        """Deliver now where nobody has to be waited for, else put it into the outbox."""
        if self.session.delivery.configured:
            self._behind().owed.append((item, kind))
        elif isinstance(item, Record):
            self._delivered(self.session.ledger.restamp(item), kind)
        else:
            self._tell(NoteDelivered(item))

    def _behind(self) -> Backlog:
        if self._backlog is None:
            self._backlog = Backlog()
        return self._backlog

    async def _deliver(self, item: Record | Note, kind: Kind) -> None:
        """Delivery first: only what arrived somewhere moves the ledger."""
        session = self.session
        if isinstance(item, Record):
            record = session.ledger.restamp(item)
            if await session.delivery.deliver(record):
                self._delivered(record, kind)
        elif await session.delivery.deliver(item):
            self._tell(NoteDelivered(item))

    def _delivered(self, record: Record, kind: Kind) -> None:
        if kind is not Kind.ADVISORY:
            self.record = record
        self.session.ledger.delivered(record, kind)
        if self._audience is not None:
            self._tell(RecordRevised(record))

    async def _mind_stop_budget(self) -> None:
        """Tick the machine when the time for a soft Stop is over."""
        if self.machine.next_deadline() is None:
            return  # the attempt ended before this could begin
        clock = self.session.clock
        await self._be_patient(self._wait_s(clock.now()))
        if self._flight is not None:
            now = clock.now()
            self.feed(Due(now, self._live(now)))

    async def _insist(self, attempt: Attempt) -> None:
        """Get the owner out of an attempt that does not end although it was told to, hard."""
        try:
            await self._be_patient(self.machine.settings.watchdogs.cancel_s)
        finally:  # an orchestrator that closes waits no longer
            held = self._held
            if self._flight is attempt and held is not None:
                self._pulls += not isinstance(held, anyio.CancelScope)
                held.cancel()

    async def _be_patient(self, seconds: float) -> None:
        """Wait until an attempt has ended, but not longer than this."""
        if self._patience is not None:
            self._patience.cancel()
        with anyio.CancelScope() as self._patience:
            await self.session.clock.sleep(seconds)

    def _was_pulled(self) -> bool:
        """Give back what got the owner out; say whether nobody else wanted that."""
        pulls, self._pulls = self._pulls, 0
        if not pulls or not isinstance(self._held, asyncio.Task):
            return False
        left = [self._held.uncancel() for _ in range(pulls)]
        return not left[-1]

    def _wait_s(self, now: float) -> float:
        deadline = self.machine.next_deadline()
        if deadline is None:
            raise RuntimeError(f"turn {self.id}: nothing to do and nothing to wait for")
        return max(0.0, deadline - now)

    async def _foreign(self, name: str, method: Callable[[], Awaitable[None]]) -> None:
        """Call what an agent may have.  A kill is finished even when all else is cancelled."""
        try:
            with anyio.move_on_after(PATIENCE_S, shield=True):
                await method()
        except (Exception, CANCELLED) as error:  # passed on, it would end every turn's helpers
            if isinstance(error, CANCELLED) and is_ours():
                raise
            logger.warning("agent.%s raised %s", name, type(error).__name__)

    def _tell(self, progress: Progress) -> None:
        if self._audience is not None:
            self._audience.tell(progress)

    def _live(self, now: float) -> Live:
        session = self.session
        live = session.live_at(now) if session.orchestrator.budgeted else session.live
        stops = self.outlived + self.stopping
        if not stops:
            return live
        return evolve(
            live,
            surface_stops=live.surface_stops + stops,
            session_stops=live.session_stops + stops,
            stopping=self.stopping,
        )

    _AT_ONCE: ClassVar[dict[type[Effect], Callable[[Any, Any], None]]] = {
        CancelWait: lambda _drive, _effect: None,  # the pause ends when the owner is woken
        Cancel: _cancel,
        Drop: _drop,
        Publish: _publish,
        Note: _note,
    }
    """Effects that take no time.  The others are what the owner does next."""
