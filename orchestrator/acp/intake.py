"""What an agent says during one prompt, and how its end is to be read.

No I/O and no clock.  The transport decides how an attempt ended, never a record by itself: a
warning ends nothing, an error record counts only on the answer, and `end_turn` alone is no
success.

An update may come with an item, the frame that a relay wants to pass on: `show` gets each item
once it is certain that it is no part of a failure, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from attrs import define, field, frozen

from orchestrator.acp.connection import Reply
from orchestrator.failure import refusal
from orchestrator.failure.held import HeldChunks, Sight, Terminal, sight
from orchestrator.failure.kinds import Category, Kind
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.speakers import speaker_named
from orchestrator.failure.verdict import Refusal, Verdict
from orchestrator.incident import extension
from orchestrator.incident.record import Record, Severity
from orchestrator.turn.events import StopReason

End = StopReason | RawFailure | Verdict | Refusal
_NOTHING_SAID: Final = "The agent ended its turn without an answer. Send the message again."
_SEND_AGAIN: Final = "Send the message again."
_TOO_MANY_STEPS: Final = (
    "The agent reached its limit of steps for one message. Start a new session to go on."
)
_AUTH_REQUIRED: Final = -32000
"""Answered without the words that were shown as text."""
_OPEN: Final = frozenset(("pending", "in_progress"))
"""States of a tool call that is not over."""


class Listener(Protocol):
    """What one attempt is told: the runner's `Attempt`, or whoever relays."""

    def text(self, chunk: str) -> None: ...
    def thought(self) -> None: ...
    def tool(self) -> None: ...
    def retrying(self, title: str, category: Category) -> None: ...
    def advise(self, key: str, title: str) -> None: ...


@frozen
class Voice:
    """How this agent is to be listened to."""

    speaker: str = ""
    """Its name, as the classifier knows it."""
    typed: bool = False
    """It tells failures as records, because it knows that we read them."""

    @property
    def tells_errors_as_text(self) -> bool:
        """Without records, its chunks without a message id may be its errors."""
        return not self.typed and speaker_named(self.speaker).authors_bare_chunks

    @property
    def repeats_errors_as_text(self) -> bool:
        """Without records, it writes an error as a message of its own before it answers with it."""
        return not self.typed and speaker_named(self.speaker).family == "claude"


@define(eq=False)
class Intake:
    """One prompt's ear.  Feed every update of its session, then `end` it with the answer."""

    listener: Listener
    voice: Voice
    is_command: bool = False
    """The adapter answers this prompt itself, a slash command: its text is no error."""
    show: Callable[[Any], None] = field(default=lambda _: None)
    """Takes the items that the user may see."""
    withheld: tuple[Any, ...] = field(default=(), init=False)
    """Items that were the failure's own words, once it has ended."""
    held: HeldChunks[tuple[str, Any]] = field(init=False)
    said: bool = False
    """Text of the model was shown."""
    said_now: bool = False
    """The last update was text of a message that is being streamed: more of it is said likewise."""
    lives: bool = False
    """The last update showed that the model is at work: its words, its tools, a new try at it."""
    messages: int = 0
    """Messages with an id of their own since the last tool, or plan, which a tool writes."""
    done: bool = False
    """A tool was started."""
    open_tools: set[str] = field(factory=set)
    refused: Refusal | None = None
    """What a metadata frame said about a refusal, before the end of the turn."""
    _message_id: str = ""
    _progress: str = ""
    """What the agent last told of trying again by itself."""
    _opening: list[tuple[str, Any]] = field(factory=list)
    """First chunk of a message that may turn out to be the error's own words, and what a relay
    keeps in its place behind it."""

    def __attrs_post_init__(self) -> None:
        self.held = HeldChunks(command=self.is_command)

    def update(self, update: Mapping[str, Any], item: Any = None) -> None:
        """Take one session update in."""
        self.said_now = self.lives = False
        found = extension.find(update)
        if found is not None:
            self._record(found, item)
            return
        seen = sight(update)
        if seen is not Sight.ASIDE:
            self._let_go()
        if seen is Sight.CHUNK:
            self._chunk(update, item)
        elif seen is Sight.CONTENT:
            for shown in self.held.content(("", None))[:-1]:
                self._say(*shown)
            self._content(update, item)
        else:
            self._aside(update, item)

    def notification(self, method: str, params: Mapping[str, Any]) -> None:
        """Take in what came outside `session/update`."""
        told = refusal.from_metadata({"method": method, "params": params})
        if told is not None:
            self.refused = told

    # --- what an update is ---------------------------------------------------------------------

    def _record(self, wire: object, _: Any) -> None:
        decoded = extension.decode(wire)
        if isinstance(decoded, extension.Malformed):
            return
        record = decoded.record
        if is_progress(record):
            self._retrying(record.title, record.category)
        else:
            self.listener.advise(f"{record.title}\0{record.details}", record.title)

    def _chunk(self, update: Mapping[str, Any], item: Any) -> None:
        text = update["content"]["text"]
        message_id = update.get("messageId")
        message_id = message_id if isinstance(message_id, str) else ""
        if _is_informational(update):
            self._advise(text, item)
            return
        goes_on = message_id == self._message_id
        self.lives = bool(message_id) or not self.voice.tells_errors_as_text
        self.messages += bool(message_id) and not goes_on and not self.open_tools
        # Without an id the next chunk may be the adapter's own.
        self.said_now, self._message_id = goes_on and bool(message_id), message_id
        if self.voice.tells_errors_as_text:
            for shown in self.held.chunk((text, item), text, message_id):
                # What passes without an id is one of the adapter's fixed notices.
                (self._say if message_id or self.is_command else self._advise)(*shown)
        elif self.voice.repeats_errors_as_text and not goes_on:
            self._opening = [(text, item)]
        else:
            self._say(text, item)

    def _content(self, update: Mapping[str, Any], item: Any) -> None:
        kind = _word(update.get("sessionUpdate"))
        self.lives = kind != "user_message_chunk"
        if kind == "agent_message_chunk":
            content = update.get("content")
            shown = content.get("type") if isinstance(content, Mapping) else None
            self._say(f"[{shown if isinstance(shown, str) else 'content'}]", item)
            return
        self.show(item)
        if kind in {"tool_call", "tool_call_update"}:
            self._tool(update)
        elif kind in {"agent_thought_chunk", "plan"}:
            self.messages = 0 if kind == "plan" else self.messages
            self.listener.thought()

    def _tool(self, update: Mapping[str, Any]) -> None:
        self.done, self.messages = True, 0
        number = str(update.get("toolCallId"))
        told = "status" in update or number in self.open_tools
        status = _word(update.get("status")) if told else "pending"
        if status in _OPEN:
            self.open_tools.add(number)
        elif status:
            self.open_tools.discard(number)
        self.listener.tool()

    def _aside(self, update: Mapping[str, Any], item: Any) -> None:
        self.show(item)
        if update.get("sessionUpdate") == "notice":
            title = update.get("title")
            if isinstance(title, str) and title.strip():
                self.listener.advise(f"{title}\0{update.get('description') or ''}", title)
            return
        title = inner_retry(update)
        if title:
            self._retrying(title, Category.CONNECTION)

    def _retrying(self, title: str, category: Category) -> None:
        """The agent tries again by itself.  The same told again shows nothing new."""
        self.lives = title != self._progress
        self._progress = title
        self.listener.retrying(title, category)

    def _say(self, text: str, item: Any) -> None:
        self.said = self.said or bool(text)
        self.show(item)
        self.listener.text(text)

    def _advise(self, text: str, item: Any) -> None:
        self.show(item)
        title = text.strip().replace("**", "").removeprefix("Warning: ")
        if title:
            self.listener.advise(title, title)

    def _let_go(self) -> None:
        opening, self._opening = self._opening, []
        for held in opening:
            self._say(*held)

    # --- the end -------------------------------------------------------------------------------

    def end(self, reply: Reply) -> End:
        """Read the answer to the prompt."""
        if reply.error is not None:
            return self._failed(reply)
        record = extension.find(reply.result)
        if record is not None:
            read = extension.decode(record)
            if isinstance(read, extension.Decoded) and read.record.severity is Severity.ERROR:
                self._withhold(self.held.end(Terminal.ERROR).withheld)
                return RawFailure.from_record(record)
        return self._stopped(_word(reply.fields.get("stopReason")))

    def lose(self) -> None:
        """The agent is gone: nothing that waited was an ending."""
        self._let_go()
        for shown in self.held.end(Terminal.OTHER).deliver:
            self._say(*shown)

    def _failed(self, reply: Reply) -> End:
        raw = reply.raw()
        if self._opening and _is_echo(self._opening[0][0], raw):
            self._withhold(tuple(self._opening))
            self._opening = []
        self._let_go()
        self._withhold(self.held.end(Terminal.ERROR).withheld)
        return self.refused or raw

    def _withhold(self, held: tuple[tuple[str, Any], ...]) -> None:
        self.withheld += tuple(item for _, item in held)

    def _stopped(self, reason: str) -> End:
        self._let_go()
        is_end = reason not in set(StopReason) - {StopReason.END_TURN}
        ended = self.held.end(Terminal.END_TURN if is_end else Terminal.OTHER)
        for shown in ended.deliver:
            self._say(*shown)
        if ended.failure is not None:
            self._withhold(ended.withheld)
            return ended.failure
        refused = refusal.ended(reason, self.refused)
        if refused is not None:
            return refused
        if reason == StopReason.MAX_TURN_REQUESTS:
            return Verdict.of(Kind.BUDGET_EXHAUSTED, _TOO_MANY_STEPS, rule="acp.max_turn_requests")
        if not is_end:
            return StopReason(reason)
        if not self.said and not self.done and not self.is_command:
            return Verdict.of(
                Kind.EMPTY_RESPONSE,
                _NOTHING_SAID,
                next_step=_SEND_AGAIN,
                rule="acp.silent_end_turn",
            )
        return StopReason.END_TURN


def inner_retry(update: Mapping[str, Any]) -> str:
    """What an agent without records says about trying again by itself; empty when nothing."""
    error = _dig(update, "_meta", "codex", "error")
    if not isinstance(error, Mapping) or error.get("willRetry") is not True:
        return ""
    message = error.get("message")
    return message if isinstance(message, str) and message else "The agent is trying again."


def is_progress(record: Record) -> bool:
    """The agent's own retry.  Anything else it tells beside the answer is only to be read."""
    return record.severity is Severity.WARNING and ":notice:" not in record.id


def _is_echo(text: str, raw: RawFailure) -> bool:
    """Whether a message that was shown is the error that came after it."""
    return raw.message.endswith(text.strip()) or raw.code == _AUTH_REQUIRED


def _is_informational(update: Mapping[str, Any]) -> bool:
    return bool(_dig(update, "_meta", "claudeCode", "kind") == "informational")


def _word(value: object) -> str:
    """A word of the protocol; empty where an agent sent something else in its place."""
    return value if isinstance(value, str) else ""


def _dig(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
