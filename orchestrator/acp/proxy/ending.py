"""How a turn's end is told to the client.

A client that reads records gets a failure as a record on a normal answer.  Any other client gets
exactly what the agent would have sent in the end.  Two kinds of answers keep the agent's carrier
for everybody: a request for a sign-in, and a refusal of the request itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final

from attrs import define, field, frozen

from orchestrator.acp.connection import Reply
from orchestrator.acp.framing import Frame, encode
from orchestrator.acp.proxy.frames import renumbered
from orchestrator.failure.held import Sight, sight
from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Verdict
from orchestrator.incident import extension
from orchestrator.incident.record import Record, Severity
from orchestrator.runner import Outcome
from orchestrator.turn.effects import How

logger = logging.getLogger("orchestrator")

AUTH_REQUIRED: Final = -32000
INTERNAL_ERROR: Final = -32603
_OWN_CARRIER: Final = (AUTH_REQUIRED, -32700, -32600, -32601, -32602)
"""Codes that say something about the request, which a client acts on."""


@define(eq=False)
class Last:
    """How the last attempt ended on the wire."""

    reply: Reply | None = None
    """The agent's answer; None when none came, or it only acknowledged our own cancel."""
    withheld: tuple[Frame, ...] = ()
    """Frames in which it told the failure as text, and what came between them."""

    @property
    def asides(self) -> tuple[Frame, ...]:
        """What came between them and is no part of the failure."""
        return tuple(
            f for f in self.withheld if sight(f.message["params"]["update"]) is Sight.ASIDE
        )


def _is_aside(frame: Frame) -> bool:
    return sight(frame.message["params"]["update"]) is Sight.ASIDE


@frozen
class Ending:
    """One prompt, and what is known at its end."""

    number: object
    """The client's id of the prompt."""
    session_id: str
    """As the client knows it."""
    capable: bool
    """The client reads records."""
    outcome: Outcome
    last: Last
    record: Record | None
    """The terminal record of the turn, not told yet."""
    told: bool
    """Earlier revisions of it were told."""
    shown: Callable[[Frame], bytes] = field(default=lambda frame: frame.raw)
    """A frame of the agent as the client is to see it."""

    def lines(self) -> Iterator[bytes]:
        """What to send, in order; the answer is the last."""
        withheld = self.last.withheld if self._tells_as_the_agent() else self.last.asides
        yield from map(self.shown, withheld)
        yield from _BY_OUTCOME[self.outcome.how](self)

    # --- by outcome ------------------------------------------------------------------------------

    def _landed(self) -> Iterator[bytes]:
        reply = self.last.reply
        if reply is None or reply.frame is None:
            yield self._answer({"stopReason": self.outcome.stop_reason})
        elif extension.find(reply.result) is None or not self.capable:
            yield renumbered(reply.frame, self.number)
        else:
            yield self._rewritten(reply.frame, extension.detach(reply.fields))

    def _stopped(self) -> Iterator[bytes]:
        if self.capable and self.record is not None:
            yield self._update(self.record)
        reply = self.last.reply
        if reply is None or reply.frame is None or reply.error is not None:
            yield self._answer({"stopReason": "cancelled"})
        elif reply.fields.get("stopReason") == "cancelled":
            yield renumbered(reply.frame, self.number)
        else:
            result = {**extension.detach(reply.fields), "stopReason": "cancelled"}
            yield self._rewritten(reply.frame, result)

    def _refused(self) -> Iterator[bytes]:
        reply = self.last.reply
        if reply is None or reply.frame is None:
            yield self._answer({"stopReason": "refusal"})
        elif not self.capable or reply.fields.get("stopReason") == "refusal":
            yield renumbered(reply.frame, self.number)
        elif reply.error is not None:
            yield self._answer({"stopReason": "refusal"})
        else:
            result = {**extension.detach(reply.fields), "stopReason": "refusal"}
            yield self._rewritten(reply.frame, result)

    def _failed(self) -> Iterator[bytes]:
        reply, record = self.last.reply, self.record
        frame = None if reply is None else reply.frame
        if self.capable and record is not None and not self._keeps_carrier():
            told = {} if reply is None else reply.fields
            result = extension.response({"stopReason": "end_turn", **told}, record)
            if frame is None or reply is None or reply.error is not None:
                yield self._answer(result)
            else:
                yield self._rewritten(frame, result)
            return
        if self.capable and record is not None and self.told:
            # A standing warning is raised to its error before the request for a sign-in.
            yield self._update(record)
        if frame is None:
            yield failure_line(self.number, self._verdict)
        else:
            yield renumbered(frame, self.number)

    # --- parts -----------------------------------------------------------------------------------

    @property
    def _verdict(self) -> Verdict:
        return self.outcome.verdict or Verdict.of(Kind.UNKNOWN, "The turn failed. Try again.")

    def _tells_as_the_agent(self) -> bool:
        failed = self.outcome.how in (How.FAILED, How.REFUSED)
        return failed and not self.capable and self.last.reply is not None

    def _keeps_carrier(self) -> bool:
        error = None if self.last.reply is None else self.last.reply.error
        return error is not None and error.get("code") in _OWN_CARRIER

    def _answer(self, result: dict[str, Any]) -> bytes:
        return encode({"jsonrpc": "2.0", "id": self.number, "result": result})

    def _rewritten(self, frame: Frame, result: dict[str, Any]) -> bytes:
        return encode({**frame.message, "id": self.number, "result": result})

    def _update(self, record: Record) -> bytes:
        return record_line(self.session_id, record)


_BY_OUTCOME: Final[dict[How, Callable[[Ending], Iterator[bytes]]]] = {
    How.LANDED: Ending._landed,  # noqa: SLF001 - the table of this class
    How.FAILED: Ending._failed,  # noqa: SLF001
    How.REFUSED: Ending._refused,  # noqa: SLF001
    How.STOPPED: Ending._stopped,  # noqa: SLF001
    How.SUPERSEDED: Ending._stopped,  # noqa: SLF001
}


def failure_line(number: object, verdict: Verdict) -> bytes:
    """A failure for which the agent sent no frame of its own, as a JSON-RPC error."""
    code = AUTH_REQUIRED if verdict.kind is Kind.AUTH_REQUIRED else INTERNAL_ERROR
    error = {"code": code, "message": verdict.title, "data": {"errorKind": str(verdict.kind)}}
    return encode({"jsonrpc": "2.0", "id": number, "error": error})


def mistake_line(number: object, error: Exception) -> bytes:
    """A mistake of ours, which must not leave a request without its answer."""
    logger.error("the proxy could not deal with a request", exc_info=error)
    text = f"This is a mistake of the proxy ({type(error).__name__}); send it again."
    return failure_line(number, Verdict.of(Kind.INTERNAL_ERROR, text))


def record_line(session_id: str, record: Record, *, as_notice: bool = False) -> bytes:
    """A record beside an answer, or an advisory for a client that wants those as notices."""
    is_advisory = as_notice and record.severity is Severity.WARNING and ":notice:" in record.id
    build = extension.notice if is_advisory else extension.update
    params = build(session_id, record)
    return encode({"jsonrpc": "2.0", "method": "session/update", "params": params})


def row_line(session_id: str, text: str) -> bytes:
    """A short row of text, for a client that can only append."""
    content = {"type": "text", "text": f"\n[{text}]\n"}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    params = {"sessionId": session_id, "update": update}
    return encode({"jsonrpc": "2.0", "method": "session/update", "params": params})
