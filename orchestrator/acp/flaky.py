"""A small agent that fails on purpose: `python -m orchestrator.acp.flaky --state FILE`.

It speaks the Agent Client Protocol on stdin and stdout and plays one act of its script for each
prompt, across its own deaths: the place in the script is kept in the state file.  The demo runs
it, and so can anyone who wants to see what a client does when an agent misbehaves.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from orchestrator.acp.framing import FrameReader, encode
from orchestrator.failure.kinds import Action, Category
from orchestrator.incident import extension
from orchestrator.incident.record import Record, Severity

DEFAULT_SCRIPT: Final = "overloaded,dropped,death,answer"
_ANSWER: Final = (
    "The tests failed because the clock was read twice. "
    "I read it once at the start and passed it on; all of them pass now."
)
_PARTIAL_WORDS: Final = 8
"""Words of the answer that a death lets through."""

Steps = Iterator[None]
"""One act: it sends what it sends, and yields where time passes."""


@define(eq=False)
class FlakyAgent:
    """One run of the agent."""

    state: Path
    script: tuple[str, ...]
    send: Callable[[dict[str, Any]], None]
    typed: bool = False
    """The client reads failures as records."""
    act: Steps | None = None
    prompt_id: Any = None
    session_id: str = ""
    _known: dict[str, Any] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        text = self.state.read_text() if self.state.exists() else ""
        self._known = json.loads(text) if text else {"next": 0, "sessions": [], "said": 0}

    # --- the protocol ----------------------------------------------------------------------------

    def take(self, message: dict[str, Any]) -> None:
        """One message of the client."""
        method, number = message.get("method"), message.get("id")
        params = message.get("params") or {}
        if method == "session/cancel":
            self._cancel()
        elif number is None:
            return
        elif method == "session/prompt":
            self._prompt(number, params)
        else:
            self._answer(number, str(method), params)

    def _answer(self, number: Any, method: str, params: dict[str, Any]) -> None:
        known = {
            "initialize": self._initialize,
            "session/new": self._new_session,
            "session/load": self._load_session,
        }.get(method)
        result = known(params) if known else None
        if result is None:
            text = f"{method} is not known here" if known is None else "Session not found"
            self._fail(number, -32601 if known is None else -32002, text)
        else:
            self.send({"jsonrpc": "2.0", "id": number, "result": result})

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        capabilities = params.get("clientCapabilities")
        self.typed = extension.negotiated(capabilities)
        result = {
            "protocolVersion": 1,
            "agentInfo": {"name": "flaky", "title": "Flaky agent", "version": "1"},
            "agentCapabilities": {"loadSession": True},
        }
        return extension.advertise(capabilities, result)

    def _new_session(self, _: dict[str, Any]) -> dict[str, Any]:
        session_id = str(uuid.uuid4())
        self._known["sessions"].append(session_id)
        self._save()
        return {"sessionId": session_id}

    def _load_session(self, params: dict[str, Any]) -> dict[str, Any] | None:
        return {} if params.get("sessionId") in self._known["sessions"] else None

    def _prompt(self, number: Any, params: dict[str, Any]) -> None:
        if params.get("sessionId") not in self._known["sessions"]:
            self._fail(number, -32002, "Session not found")
            return
        self.prompt_id, self.session_id = number, str(params.get("sessionId"))
        place = self._known["next"]
        self._known["next"] = place + 1
        self._save()
        name = self.script[place] if place < len(self.script) else "answer"
        self.act = ACTS[name](self)

    def _cancel(self) -> None:
        if self.act is not None:
            self.act = None
            self._end("cancelled")

    def step(self) -> None:
        """Let time pass in the act that is playing."""
        if self.act is not None and next(self.act, "over") == "over":
            self.act = None

    # --- what an act may do ---------------------------------------------------------------------

    def say(self, words: list[str]) -> Steps:
        """Stream words, one chunk each."""
        message_id = str(uuid.uuid4())
        for word in words:
            self._update(
                {
                    "sessionUpdate": "agent_message_chunk",
                    "messageId": message_id,
                    "content": {"type": "text", "text": word + " "},
                }
            )
            self._known["said"] += 1
            yield

    def overloaded(self) -> Steps:
        """Try once more by itself, then give up with a JSON-RPC error."""
        yield
        if self.typed:
            title = "Retrying the model, attempt 1 of 1."
            self._warn(title, Category.SERVICE)
        yield
        data = {"errorKind": "overloaded"}
        self._fail(self.prompt_id, -32603, "Internal error: 529 Overloaded", data)

    def dropped(self) -> Steps:
        """Lose the connection to the model: told as a record, or as an error."""
        yield
        title = "The connection to the model was reset (ECONNRESET)."
        if self.typed:
            record = self._record("error", title, Category.CONNECTION, Severity.ERROR)
            result = extension.response({"stopReason": "end_turn"}, record)
            self.send({"jsonrpc": "2.0", "id": self.prompt_id, "result": result})
        else:
            self._fail(self.prompt_id, -32603, f"Internal error: {title}")

    def death(self) -> Steps:
        """Die in the middle of the answer."""
        yield from self.say(_ANSWER.split()[:_PARTIAL_WORDS])
        self._save()
        os.kill(os.getpid(), signal.SIGKILL)

    def answer(self) -> Steps:
        """Answer, from where a death cut the answer off."""
        words = _ANSWER.split()
        yield from self.say(words[self._known["said"] % len(words) :])
        self._known["said"] = 0
        self._save()
        self._end("end_turn")

    def silent(self) -> Steps:
        """End the turn without a word."""
        yield
        self._end("end_turn")

    def hang(self) -> Steps:
        """Say nothing until somebody cancels."""
        while True:
            yield

    def limit(self) -> Steps:
        """Report a spent allowance."""
        yield
        self._fail(self.prompt_id, -32603, "Internal error: You've hit your limit · resets 3am")

    def sign_in(self) -> Steps:
        """Ask for a sign-in."""
        yield
        self._fail(self.prompt_id, -32000, "Authentication required")

    # --- frames --------------------------------------------------------------------------------

    def _record(self, scope: str, title: str, category: Category, severity: Severity) -> Record:
        identity = f"{self.session_id}:{scope}:{self._known['next']}"
        actions = (Action.RETRY,) if severity is Severity.ERROR else ()
        return Record(identity, 1, category, severity, title, actions)

    def _warn(self, title: str, category: Category) -> None:
        record = self._record("session-error", title, category, Severity.WARNING)
        params = extension.update(self.session_id, record)
        self.send({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def _update(self, update: dict[str, Any]) -> None:
        params = {"sessionId": self.session_id, "update": update}
        self.send({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def _end(self, reason: str) -> None:
        self.send({"jsonrpc": "2.0", "id": self.prompt_id, "result": {"stopReason": reason}})

    def _fail(self, number: Any, code: int, message: str, data: object = None) -> None:
        error = {"code": code, "message": message} | ({"data": data} if data else {})
        self.send({"jsonrpc": "2.0", "id": number, "error": error})

    def _save(self) -> None:
        self.state.write_text(json.dumps(self._known))


ACTS: Final[dict[str, Callable[[FlakyAgent], Steps]]] = {
    "overloaded": FlakyAgent.overloaded,
    "dropped": FlakyAgent.dropped,
    "death": FlakyAgent.death,
    "answer": FlakyAgent.answer,
    "silent": FlakyAgent.silent,
    "hang": FlakyAgent.hang,
    "limit": FlakyAgent.limit,
    "sign_in": FlakyAgent.sign_in,
}


def _script(text: str) -> tuple[str, ...]:
    acts = tuple(text.split(","))
    unknown = [act for act in acts if act not in ACTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]} is no act; there are {', '.join(ACTS)}")
    return acts


def serve(agent: FlakyAgent, pace_s: float) -> None:
    """Read messages and play acts until stdin ends."""
    reader = FrameReader()
    due = time.monotonic()
    while True:
        patience = max(0.0, due - time.monotonic()) if agent.act is not None else None
        ready, _, _ = select.select([sys.stdin.fileno()], [], [], patience)
        if ready:
            data = os.read(sys.stdin.fileno(), 65_536)
            if not data:
                return
            for frame in reader.feed(data):
                agent.take(frame.message)
        elif agent.act is not None:
            agent.step()
            due = time.monotonic() + pace_s


def main(argv: list[str] | None = None) -> None:
    """Start the agent on this process's stdin and stdout."""
    parser = argparse.ArgumentParser(prog="orchestrator.acp.flaky", description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="file that outlives its deaths")
    parser.add_argument("--script", type=_script, default=_script(DEFAULT_SCRIPT))
    parser.add_argument("--pace", type=float, default=0.05, help="seconds between two chunks")
    options = parser.parse_args(argv)

    def send(message: dict[str, Any]) -> None:
        os.write(sys.stdout.fileno(), encode(message))

    serve(FlakyAgent(options.state, options.script, send), options.pace)


if __name__ == "__main__":
    main()
