"""The types of the public API, as an embedder sees them.  Checked by mypy, never run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import assert_never, assert_type

from tenacity import retry, stop_after_attempt, wait_exponential

from orchestrator import (
    Agent,
    AgentError,
    Attempt,
    AttemptEnd,
    CancellableAgent,
    Effect,
    Ended,
    Event,
    Facts,
    Item,
    Kind,
    MetricsObserver,
    NoteDelivered,
    Observer,
    Orchestrator,
    Outcome,
    Progress,
    RawFailure,
    Record,
    RecordRevised,
    Recover,
    RecoveryResult,
    RecoveryStarted,
    Refusal,
    RetryScheduled,
    RuntimeFailure,
    Session,
    SessionState,
    Settings,
    Sink,
    StopReason,
    TextShown,
    Turn,
    TurnIds,
    TurnMachine,
    Verdict,
    classify,
    recovering,
    retry_if_transient,
    wait_for_hint,
)
from orchestrator.sinks.memory import MemorySink
from orchestrator.testing import Recorder, ScriptedAgent


class SmallAgent:
    async def attempt(self, attempt: Attempt) -> AttemptEnd:
        assert_type(attempt.number, int)
        assert_type(attempt.unread, tuple[str, ...])
        attempt.text("Hello")
        attempt.thought()
        attempt.tool()
        if attempt.number == 1:
            return RawFailure.http(529)
        if attempt.number == 2:
            return Refusal("policy")
        return StopReason.END_TURN

    async def recover(self, recover: Recover) -> RecoveryResult:
        return RecoveryResult(ok=True, detail=recover.target)


class BigAgent(SmallAgent):
    async def cancel(self, attempt: Attempt, *, hard: bool) -> None: ...


class PageSink:
    async def deliver(self, item: Item) -> None:
        if isinstance(item, Record):
            assert_type(item.title, str)


def observe(turn: TurnMachine, event: Event, effects: tuple[Effect, ...]) -> None: ...


small: Agent = SmallAgent()
big: CancellableAgent = BigAgent()
scripted: Agent = ScriptedAgent(Kind.OVERLOADED, ["Hel", ConnectionResetError()], "lo")
sinks: list[Sink] = [PageSink(), MemorySink()]


async def embed(settings: Settings) -> None:
    observers: list[Observer] = [observe, MetricsObserver(), Recorder()]
    async with Orchestrator(settings, sinks=sinks, observers=observers, seed=1) as orchestrator:
        assert_type(orchestrator, Orchestrator)
        session = orchestrator.session("chat-42", small, provider="anthropic", speaker="claude")
        assert_type(session, Session)
        assert_type(session.state, SessionState)
        outcome = await session.turn("fix the tests", turn_id="m-1", facts=Facts(interactive=True))
        assert_type(outcome, Outcome)
        assert_type(outcome.unconsumed, tuple[str, ...])
        assert_type(outcome.verdict, Verdict | None)
        assert_type(session.turn([{"type": "text", "text": "blocks"}]), Turn)
        async with session.turn("watch me") as turn:
            async for progress in turn:
                assert_type(progress, Progress)
                show(progress)
            turn.stop(hard=True)
            assert_type(turn.steer("left"), bool)
            assert_type(turn.retry_now(), bool)
        try:
            assert_type(turn.result(), Outcome)
        except AgentError as error:
            assert_type(error.verdict, Verdict)
        except RuntimeFailure as error:
            assert_type(error.partial_output, str)
        assert_type(await session.report(OSError()), Record | None)
        assert_type(session.active, tuple[Record, ...])
        session.restore(session.active)
        assert_type(session.retry("m-1:error"), Turn)
        orchestrator.settings = Settings()


def show(progress: Progress) -> str:
    match progress:
        case RetryScheduled(family=family, number=number, limit=limit):
            return f"{family} {number} of {limit}"
        case RecoveryStarted(step=step):
            return step
        case RecordRevised(record=record):
            return record.title
        case NoteDelivered(note=note):
            return note.text
        case TextShown(text=text):
            return text
        case Ended(outcome=outcome):
            return outcome.how
        case _:
            assert_never(progress)


def decorate(orchestrator: Orchestrator) -> Callable[[int], Awaitable[str]]:
    @recovering(orchestrator, speaker="openai")
    async def ask(number: int) -> str:
        return str(number)

    return ask


@retry(
    retry=retry_if_transient(speaker="anthropic"),
    wait=wait_for_hint(wait_exponential(multiplier=2, max=30)),
    stop=stop_after_attempt(4),
)
async def ordinary() -> str:
    return "an ordinary tenacity retry"


def own_the_loop(settings: Settings) -> None:
    machine = TurnMachine(settings, TurnIds("m-1", "chat-42", "e1"))
    assert_type(machine.next_deadline(), float | None)
    assert_type(classify(RawFailure.http(503)), Verdict)
