"""A stored conversation on its way to the client: past incidents come back under our ids.

Everything else passes unchanged, at its place.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from attrs import define, evolve, field

from orchestrator.acp.framing import Frame, encode
from orchestrator.acp.memory import Memory
from orchestrator.acp.proxy.records import IncidentMap, Told
from orchestrator.failure.kinds import KINDS, Kind
from orchestrator.failure.speakers import speaker_named
from orchestrator.incident import extension
from orchestrator.incident.history import is_usage_limit
from orchestrator.incident.ledger import turn_error_id
from orchestrator.incident.record import Record, Severity


@define(eq=False)
class Reload:
    """One `session/load` of the client's."""

    session_id: str
    """As the client knows it."""
    capable: bool
    speaker: str
    incidents: IncidentMap
    memory: Memory
    """Takes the text, in case the session has to be told to a new one some day."""
    _user_message: str = ""
    _occurrences: Counter[str] = field(factory=Counter)

    def passed(self, frame: Frame) -> Frame:
        """The frame as the client is to see it."""
        update = frame.message["params"]["update"]
        found = extension.find(update)
        if found is not None:
            return self._record(frame, update, found)
        kind, text = update.get("sessionUpdate"), _text(update)
        if kind == "user_message_chunk":
            self._user_message = str(update.get("messageId") or "")
            self.memory.user(text)
        elif kind == "agent_message_chunk":
            if self.capable and self._is_limit(text):
                return self._prose(frame, update, text)
            self.memory.agent(text)
        return frame

    def _record(self, frame: Frame, update: dict[str, Any], found: object) -> Frame:
        decoded = extension.decode(found)
        if isinstance(decoded, extension.Malformed) or not self.capable:
            return frame
        told = self.incidents.of_id(decoded.record.id)
        if told is None:
            return frame
        record = evolve(decoded.record, id=told.id, revision=told.revision)
        return _with(frame, extension.attach(update, record))

    def _is_limit(self, text: str) -> bool:
        """Whether the agent's own words about a spent allowance stand where a record was.

        Only one agent stores such words, and always as a whole message of their own.
        """
        return speaker_named(self.speaker).family == "claude" and is_usage_limit(text)

    def _prose(self, frame: Frame, update: dict[str, Any], text: str) -> Frame:
        message_id = str(update.get("messageId") or "")
        history = f"{self.session_id}:history-error:{message_id}"
        mine = turn_error_id(self._user_message) if self._user_message else history
        by_text = self.incidents.of_text(text, self._occurrences[text])
        self._occurrences[text] += 1
        told = self.incidents.of_id(mine) or by_text or Told(mine, 1)
        row = KINDS[Kind.USAGE_LIMIT]
        record = Record(
            told.id, told.revision, row.category, Severity.ERROR, text.strip(), row.actions
        )
        return _with(frame, extension.attach({"sessionUpdate": "session_info_update"}, record))


def _text(update: dict[str, Any]) -> str:
    content = update.get("content")
    text = content.get("text") if isinstance(content, dict) else None
    return text if isinstance(text, str) else ""


def _with(frame: Frame, update: dict[str, Any]) -> Frame:
    params = {**frame.message["params"], "update": update}
    message = {**frame.message, "params": params}
    return Frame(encode(message), message)
