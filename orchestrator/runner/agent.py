"""What a host implements, and what each attempt is handed.

An agent has two methods: `attempt` sends one prompt and says how that ended, `recover` does one
step of a recovery.  It may have two more, and is never asked whether it wants them: `cancel` (it
can be told to stop, see `CancellableAgent`) and `steer` (it reads messages while it works).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from attrs import define, frozen

from orchestrator.failure.kinds import Category
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Refusal, Verdict
from orchestrator.runner import allowed
from orchestrator.turn.effects import Family, Payload, Recover
from orchestrator.turn.events import Evidence, StopReason

if TYPE_CHECKING:
    from orchestrator.runner.drive import Drive

Prompt: TypeAlias = str | Sequence[Mapping[str, object]]
"""Text, or content blocks as the Agent Client Protocol has them."""

AttemptEnd: TypeAlias = StopReason | RawFailure | Verdict | Refusal | None
"""How an attempt ended.  None is `end_turn`; a failure may be raw or already understood."""

CONTINUE: Final = "Please continue from where you stopped."
"""What a continue sends, unless the session has words of its own."""


@frozen
class RecoveryResult:
    """How one step of a recovery went."""

    ok: bool
    detail: str = ""
    """The new native session id, the model read back, or why it failed."""


@define(eq=False, repr=False)
class Attempt:
    """One send of the prompt.  The agent reports here what it shows; late reports are ignored."""

    _turn: Drive
    number: int
    """Counts the sends of the turn, from 1."""
    payload: Payload
    """Verbatim, or a request to go on from what was shown."""
    family: Family | None
    """The retry or recovery that sends; None for the turn's first send."""

    def __repr__(self) -> str:
        return f"<Attempt {self.number} of {self._turn.id}, {self.payload}>"

    @property
    def turn_id(self) -> str:
        return self._turn.id

    @property
    def prompt(self) -> Prompt:
        """What to send: the user's message, or the session's words for a continue."""
        turn = self._turn
        return turn.prompt if self.payload is Payload.VERBATIM else turn.session.continue_prompt

    @property
    def unread(self) -> tuple[str, ...]:
        """Steers and follow-ups that no attempt is known to have read, in order."""
        return self._turn.unread

    def text(self, chunk: str) -> None:
        """Report text that the user now sees.  An empty chunk shows nothing."""
        if allowed.of(str, "text", chunk):
            self._turn.saw(self, Evidence.TEXT, chunk)

    def thought(self) -> None:
        """Report that the model thinks aloud."""
        self._turn.saw(self, Evidence.THOUGHT)

    def tool(self) -> None:
        """Report that a tool was started: at the start, not at its result."""
        self._turn.saw(self, Evidence.TOOL)

    def retrying(self, title: str, category: Category = Category.SERVICE) -> None:
        """Report that the agent is trying again by itself."""
        allowed.of(Category, "category", category)
        self._turn.agent_retries(self, allowed.of(str, "title", title), category)

    def advise(self, key: str, title: str, category: Category = Category.UNKNOWN) -> None:
        """Report an advisory; equal keys in a row are one notice."""
        allowed.of(Category, "category", category)
        allowed.of(str, "key", key)
        self._turn.advised(self, key, allowed.of(str, "title", title), category)

    def consumed(self, text: str) -> None:
        """Report that the agent has read this steer or follow-up."""
        self._turn.consumed(text)


class Agent(Protocol):
    """The smallest agent: it sends a prompt, and does what a recovery needs."""

    async def attempt(self, attempt: Attempt, /) -> AttemptEnd:
        """Send `attempt.prompt` and wait for the end.  An exception raised here is classified."""
        ...

    async def recover(self, recover: Recover, /) -> RecoveryResult:
        """Do one step.  An exception raised here is a step that failed."""
        ...


class CancellableAgent(Agent, Protocol):
    """An agent that ends an attempt by itself when it is told to.

    Without `cancel`, a Stop cancels the task that is inside `attempt`.  With it, a soft Stop asks
    and then waits for the attempt to end; `hard=True` says to end it whatever it takes, such as
    killing the process.  An attempt that does not end by `watchdogs.cancel_s` is cancelled too; a
    turn that runs beside its host does not wait for that.
    """

    async def cancel(self, attempt: Attempt, /, *, hard: bool) -> None: ...


class SteerableAgent(Agent, Protocol):
    """An agent that can be spoken to while it works.

    It calls `attempt.consumed(text)` once the text is known to have been read.
    """

    async def steer(self, attempt: Attempt, text: str, /) -> None: ...
