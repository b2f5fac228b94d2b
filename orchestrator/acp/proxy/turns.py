"""Prompts as turns: the client's prompt in, exactly one answer out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

from anyio.abc import TaskStatus
from attrs import define, field

from orchestrator.acp.framing import Frame
from orchestrator.acp.options import Options
from orchestrator.acp.proxy.conversation import Conversation, Prompted
from orchestrator.acp.proxy.ending import Ending, mistake_line, record_line, row_line
from orchestrator.acp.proxy.frames import id_key
from orchestrator.acp.proxy.once import Once
from orchestrator.acp.proxy.peer import Peer
from orchestrator.acp.proxy.records import Told
from orchestrator.acp.proxy.sessions import Sessions
from orchestrator.failure.speakers import speaker_named
from orchestrator.incident import extension
from orchestrator.incident.record import Record, Severity
from orchestrator.runner import Orchestrator, Outcome, Session
from orchestrator.sinks import Noted
from orchestrator.turn.effects import Effect, How, Recover, Wait
from orchestrator.turn.events import Event, Facts
from orchestrator.turn.machine import TurnMachine

_PROVIDERS: Final = {
    "claude": "anthropic",
    "codex": "openai",
    "gemini": "google",
    "kiro": "kiro",
    "opencode": "opencode",
}
"""Whose models an agent calls unless told otherwise: the metrics' label."""


@define(eq=False, repr=False)
class Turns:
    """Runs prompts, and is the sink of what their machines publish."""

    peer: Peer
    sessions: Sessions
    say: Callable[[str], None] = field(default=lambda _: None)
    orchestrator: Orchestrator = field(init=False)
    name: str = "client"
    """As a sink."""
    _talks: dict[str, Session] = field(factory=dict)
    """By the client's id; a session that was never prompted has none."""

    # --- the client's side -----------------------------------------------------------------------

    async def prompt(
        self, conversation: Conversation, frame: Frame, *, task_status: TaskStatus[None]
    ) -> None:
        """Run one prompt to its answer.

        The task has started, for the client's next frame, as soon as the prompt stands in line.
        """
        turn_id = uuid4().hex
        prompted = Prompted(frame, on_sent=Once(task_status.started))
        conversation.prompts[turn_id] = prompted
        try:
            session = self.session(conversation)
            if session.current is not None:
                prompted.on_sent()
            prompt = frame.message["params"]["prompt"]
            outcome = await session.turn(prompt, turn_id=turn_id, facts=_facts(prompt))
            self._answer(conversation, prompted, outcome)
        except Exception as error:  # noqa: BLE001 - told to the client and to the log
            self.peer.post(mistake_line(frame.message.get("id"), error))
        finally:
            conversation.prompts.pop(turn_id, None)
            prompted.on_sent()
        conversation.decided()

    def stop(self, conversation: Conversation) -> bool:
        """Stop everything in a session; False when nothing runs or waits."""
        session = self._talks.get(conversation.client_id)
        if session is None or not session.turns:
            return False
        session.stop()
        return True

    def stop_prompt(self, number: object) -> bool:
        """Stop the prompt of this id; False when there is none."""
        key = id_key(number)
        for client_id, session in self._talks.items():
            conversation = self.sessions.known.get(client_id)
            if conversation is None:  # it could not be loaded
                continue
            for turn in session.turns:
                prompted = conversation.prompts.get(turn.id)
                if prompted is not None and id_key(prompted.frame.message.get("id")) == key:
                    turn.stop()
                    return True
        return False

    def close(self, conversation: Conversation) -> None:
        """The client has closed the session."""
        session = self._talks.pop(conversation.client_id, None)
        if session is not None:
            session.stop()
            self.orchestrator.forget(conversation.client_id)

    def tell_options(self, conversation: Conversation, options: Options) -> None:
        """Pass on what models the agent serves."""
        session = self._talks.get(conversation.client_id)
        if session is not None:
            session.update(model=options.model, served=options.served)

    def session(self, conversation: Conversation) -> Session:
        """The runner's session of a conversation, made at its first prompt."""
        session = self._talks.get(conversation.client_id)
        if session is None or session.agent is not conversation:
            speaker = conversation.runtime.speaker
            session = self._talks[conversation.client_id] = self.orchestrator.session(
                conversation.client_id,
                conversation,
                provider=_PROVIDERS.get(speaker_named(speaker).family, "other"),
                speaker=speaker or conversation.runtime.command.name,
            )
            options = conversation.options
            session.update(model=options.model, served=options.served)
        return session

    # --- the answer ------------------------------------------------------------------------------

    def _answer(self, conversation: Conversation, prompted: Prompted, outcome: Outcome) -> None:
        ending = Ending(
            prompted.frame.message.get("id"),
            conversation.client_id,
            self.peer.capable,
            outcome,
            prompted.last,
            prompted.record,
            prompted.told,
            conversation.to_client,
        )
        if prompted.record is not None and prompted.told and self._wants_rows:
            self.peer.post(row_line(conversation.client_id, prompted.record.title))
        for line in ending.lines():
            self.peer.post(line)
        if self.peer.capable and outcome.how is How.FAILED and prompted.record is not None:
            self._learn(conversation, prompted, prompted.record)
            self.sessions.save(conversation)

    def _learn(self, conversation: Conversation, prompted: Prompted, record: Record) -> None:
        """Keep which incident of the agent's this was."""
        reply = prompted.last.reply
        texts = [_text_of(frame) for frame in prompted.last.withheld]
        if reply is not None:
            found = extension.decode(extension.find(reply.result))
            if isinstance(found, extension.Decoded):
                prompted.agent_ids.add(found.record.id)
                texts.append(found.record.title)
        text = next((text for text in texts if text.strip()), "")
        told = Told(record.id, record.revision)
        conversation.kept.incidents.learn(prompted.agent_ids, text, told)

    # --- the machine's side: a sink and an observer ----------------------------------------------

    async def deliver(self, item: Record | Noted, /) -> None:
        """Tell the client; the terminal record of a turn waits for the answer that carries it."""
        if not isinstance(item, Record):
            return
        conversation, prompted = self._owner(item.id)
        if conversation is None:
            return
        if prompted is not None and item.severity is Severity.ERROR:
            prompted.record = item
            return
        if self.peer.capable:
            takes = self.peer.takes_notices
            self.peer.post(record_line(conversation.client_id, item, as_notice=takes))
        elif self._wants_rows:
            self.peer.post(row_line(conversation.client_id, item.title))
        if prompted is not None:
            prompted.told = True

    def observe(self, turn: TurnMachine, _: Event, effects: tuple[Effect, ...]) -> None:
        """A turn that goes on has decided what its last answer meant."""
        if any(isinstance(effect, Wait | Recover) for effect in effects):
            conversation = self.sessions.known.get(turn.ids.session_id)
            if conversation is not None:
                conversation.goes_on()

    @property
    def _wants_rows(self) -> bool:
        return self.peer.rows and not self.peer.capable

    def _owner(self, incident_id: str) -> tuple[Conversation | None, Prompted | None]:
        turn_id = incident_id.partition(":error")[0]
        for conversation in self.sessions.known.values():
            if turn_id in conversation.prompts:
                return conversation, conversation.prompts[turn_id]
        for mark in (":notice:", ":session-error:"):
            session_id, found, _ = incident_id.rpartition(mark)
            if found:
                return self.sessions.known.get(session_id), None
        return None, None


def _facts(prompt: list[dict[str, Any]]) -> Facts:
    return Facts(interactive=True, brings_image=any(b.get("type") == "image" for b in prompt))


def _text_of(frame: Frame) -> str:
    content = frame.message["params"]["update"].get("content")
    text = content.get("text") if isinstance(content, dict) else None
    return text if isinstance(text, str) else ""
