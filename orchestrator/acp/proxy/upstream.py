"""The agent behind the proxy: started and restarted with what the client said and did."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

from attrs import define, field

from orchestrator.acp.connection import Connection, Reply, Wire
from orchestrator.acp.framing import Frame
from orchestrator.acp.process import WireError
from orchestrator.acp.proxy.frames import renumbered, session_of
from orchestrator.acp.proxy.lane import Lane
from orchestrator.acp.runtime import PROTOCOL_VERSION, Runtime, SessionEar, StartFailedError
from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Phase, Verdict
from orchestrator.incident import extension

_REMEMBERED: Final = 256


async def _nothing() -> None:
    return


@define(eq=False, repr=False)
class Upstream(Runtime):
    """A `Runtime` that speaks with the client's voice and leaves the client's frames alone."""

    id_prefix: str = field(factory=lambda: f"orchestrator:{uuid4().hex[:8]}:")
    """Of our own requests; no client numbers its requests like that."""
    relay: Callable[[Frame], bool] = field(default=lambda _: False)
    """Takes each frame of the agent that is no answer to a request of ours."""
    on_lost: Callable[[], None] = field(default=lambda: None)
    """Told when a process is gone and nothing more can come from it."""
    before_read: Callable[[], Awaitable[None]] = _nothing
    """Awaited before each read of the agent's output."""
    after_read: Callable[[], None] = field(default=lambda: None)
    """Told after each read, before its frames are dealt with."""
    hello: Frame | None = None
    """The client's `initialize`; None until it came."""
    on_hello: Callable[[Reply], None] | None = None
    """Told of the answer to the client's own `initialize`; replays of it are nobody's business."""
    parting: bool = False
    """The process that runs, or ran last, ends by our will."""
    credentials: dict[str, Any] | None = None
    """Params of the client's last `authenticate` that worked."""
    _opening: int = 0
    """Sessions that are being opened by us."""
    _parked: list[Frame] = field(factory=list)
    """Updates of sessions nobody knows yet, meanwhile."""
    _disowned: deque[str] = field(factory=lambda: deque(maxlen=_REMEMBERED))
    """Sessions that were ours and are no more: what they still say is for nobody."""

    @property
    def drives(self) -> bool:
        """Prompts are turns.  Another version of the protocol only passes through."""
        spoken = extension.whole(self.about.get("protocolVersion"))
        return spoken is None or spoken == PROTOCOL_VERSION

    @property
    def lane(self) -> Lane | None:
        """The way to the running agent; None when there is none."""
        connection = self.connection
        if connection is None or connection.lost or not isinstance(connection.wire, Lane):
            return None
        return connection.wire

    # --- whose frame is it -----------------------------------------------------------------------

    def ear(self, session_id: str) -> SessionEar | None:
        return self._ears.get(session_id)

    def attach(self, session_id: str, ear: SessionEar) -> None:
        if session_id in self._disowned:
            self._disowned.remove(session_id)
        super().attach(session_id, ear)

    def detach(self, session_id: str) -> None:
        super().detach(session_id)
        if session_id and session_id not in self._disowned:
            self._disowned.append(session_id)

    def is_disowned(self, session_id: str) -> bool:
        return session_id in self._disowned

    def park(self, frame: Frame) -> bool:
        """Keep an update until it is known whose session it is; False when none is being opened."""
        if self._opening:
            self._parked.append(frame)
        return self._opening > 0

    @contextmanager
    def opening(self) -> Iterator[None]:
        """A session of our own is being opened; two may overlap, and either end first."""
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1
            parked, self._parked = self._parked, []
            for frame in parked:
                if not self.is_disowned(session_of(frame.message)):
                    self.relay(frame)

    # --- life ------------------------------------------------------------------------------------

    async def kill(self) -> None:
        self.parting = True
        await super().kill()

    async def close(self) -> None:
        self.parting = True
        await super().close()

    def _connect(self, wire: Wire) -> Connection:
        self.parting = False
        return Connection(
            Lane(wire, self.before_read, self.after_read),
            self._on_notification,
            self._answer,
            self._on_question,
            relay=self.relay,
            id_prefix=f"{self.id_prefix}{self.generation}:",
            on_lost=self.on_lost,
        )

    async def _initialize(self, connection: Connection) -> dict[str, Any]:
        hello = self.hello
        if hello is None:
            return {}
        reply = await self._greet(connection, hello)
        if self.credentials is not None:
            await self._sign_in(connection, self.credentials)
        return reply.fields

    async def _greet(self, connection: Connection, hello: Frame) -> Reply:
        on_hello, self.on_hello = self.on_hello, None
        budget_s = self.watchdogs.handshake_s
        try:
            reply = await connection.request(
                "initialize",
                {},
                timeout_s=budget_s,
                line=lambda number: renumbered(hello, number),
                on_reply=on_hello,
            )
        except WireError as error:
            raise self._refused(error.raw, Phase.START) from error
        except TimeoutError:
            text = f"{self.command.name} did not answer within {budget_s:g} s."
            raise StartFailedError(Verdict.of(Kind.AGENT_START_TIMEOUT, text)) from None
        if reply.error is not None:
            # The agent's word to this client: another `initialize` may be answered otherwise.
            raise StartFailedError(self.understand(reply.raw(), Phase.HANDSHAKE))
        return reply

    async def _sign_in(self, connection: Connection, params: dict[str, Any]) -> None:
        """Sign in as the client did.  When it fails, the prompt will say so."""
        try:
            await connection.request("authenticate", params, timeout_s=self.watchdogs.handshake_s)
        except TimeoutError:
            return
        except WireError as error:
            raise self._refused(error.raw, Phase.START) from error
