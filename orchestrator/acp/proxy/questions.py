"""What the agent asks the client: permissions, files, terminals.

A question stops its prompt's clock.  When the agent dies its questions are void: a late answer is
dropped, and a question of the next process that has the number of a void one gets another.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import define, field, frozen

from orchestrator.acp.framing import Frame
from orchestrator.acp.proxy.frames import id_key, line_of, renumbered
from orchestrator.acp.watch import Watch

_REMEMBERED: Final = 1000
"""Void questions whose numbers are not given to another one."""


@frozen
class _Question:
    number: Any
    """The agent's own id of it."""
    watch: Watch | None
    """The clock that stands still meanwhile."""


@define(eq=False)
class Questions:
    """The open questions, by the id under which the client knows them."""

    id_prefix: str
    dropped: int = 0
    """Answers to nothing: too late, or given twice."""
    _open: dict[str, _Question] = field(factory=dict)
    _void: dict[str, None] = field(factory=dict)
    """Oldest first; a client that never answers is not waited for without end."""
    _aliases: int = 0

    def ask(self, frame: Frame, watch: Watch | None) -> Frame:
        """Note a question; the answer is the frame under the id that the client is to see."""
        number = frame.message.get("id")
        key = id_key(number)
        if key in self._void or key in self._open:
            self._aliases += 1
            alias = f"{self.id_prefix}question:{self._aliases}"
            key = id_key(alias)
            frame = Frame(renumbered(frame, alias), {**frame.message, "id": alias})
        self._open[key] = _Question(number, watch)
        if watch is not None:
            watch.question(is_open=True)
        return frame

    def answer(self, frame: Frame) -> bytes | None:
        """The client's answer as the agent is to get it; None when nobody waits for it."""
        shown = frame.message.get("id")
        key = id_key(shown)
        question = self._open.pop(key, None)
        if question is None:
            self._void.pop(key, None)
            self.dropped += 1
            return None
        if question.watch is not None:
            question.watch.question(is_open=False)
        return line_of(frame) if question.number == shown else renumbered(frame, question.number)

    def void(self) -> None:
        """The agent is gone: nobody waits for these answers any more."""
        for key, question in self._open.items():
            self._void[key] = None
            if question.watch is not None:
                question.watch.question(is_open=False)
        self._open.clear()
        while len(self._void) > _REMEMBERED:
            del self._void[next(iter(self._void))]

    @property
    def open(self) -> int:
        return len(self._open)
