"""One agent under examination: its process, its session, and what the checks share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
from attrs import define, evolve, field, fields

from orchestrator.acp import keeper
from orchestrator.acp.agent import Running
from orchestrator.acp.connection import Call, Connection, Reply
from orchestrator.acp.doctor.findings import Finding
from orchestrator.acp.intake import Intake
from orchestrator.acp.memory import blocks
from orchestrator.acp.options import Options
from orchestrator.acp.runtime import Runtime
from orchestrator.acp.watch import Watch
from orchestrator.failure.kinds import Category
from orchestrator.failure.verdict import Verdict
from orchestrator.settings.model import Watchdogs


class NoSessionError(Exception):
    """A request for a session was refused; `verdict` says why."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.title)
        self.verdict = verdict


@define(eq=False)
class Patient:
    """One agent under examination.  Keep its runtime open meanwhile."""

    runtime: Runtime
    prompt: str = ""
    """Sent twice where given: once to be answered, once to be cut off."""
    tell: Callable[[Finding], None] = field(default=lambda _: None)
    """Told of each finding as it is made."""
    processes: Callable[[], set[int]] = field(default=lambda: set(keeper.descendants(os.getpid())))
    """Every process that this one started, and what those started."""
    living: Callable[[set[int]], set[int]] = field(
        default=lambda pids: {pid for pid in pids if _is_alive(pid)}
    )
    """Those that still run, whoever their parent is now."""
    found: dict[str, Finding] = field(factory=dict)
    """Findings so far, by check."""
    refusal: Verdict | None = None
    """Why the agent, or its session, could not be started."""
    session_id: str = ""
    options: Options = field(factory=Options)
    _others: set[int] = field(init=False)
    """Processes that were there before the agent."""

    def __attrs_post_init__(self) -> None:
        self.runtime.watchdogs = bounded(self.runtime.watchdogs)
        self._others = self.processes()

    @property
    def place(self) -> dict[str, Any]:
        """Where the session is."""
        return {"cwd": self.runtime.command.folder, "mcpServers": []}

    async def ask(self, connection: Connection, method: str, params: dict[str, Any]) -> Reply:
        """One request about the session, in the session's budget."""
        budget_s = self.runtime.watchdogs.session_s
        return await connection.request(method, params, timeout_s=budget_s)

    async def send_prompt(self) -> tuple[Call, Ear]:
        """Send the prompt, and listen to what comes of it."""
        connection = await self.runtime.ready()
        ear = Ear(self.runtime)
        self.runtime.attach(self.session_id, ear)
        params = {"sessionId": self.session_id, "prompt": blocks(self.prompt)}
        return await connection.call("session/prompt", params), ear

    def tree(self) -> set[int]:
        """The agent and everything it started."""
        return self.processes() - self._others


@define(eq=False)
class Ear:
    """Listens to one prompt; shows nobody anything."""

    runtime: Runtime
    heard: anyio.Event = field(factory=anyio.Event)
    """Set at the first sign of life."""
    running: Running = field(init=False)

    def __attrs_post_init__(self) -> None:
        intake = Intake(self, self.runtime.voice)
        self.running = Running(intake, Watch(self.runtime.watchdogs))

    def on_update(self, update: dict[str, Any]) -> None:
        self.running.take(update)
        if self.running.intake.lives:
            self.heard.set()

    def on_notification(self, method: str, params: dict[str, Any]) -> None:
        self.running.intake.notification(method, params)

    def on_question(self, *, is_open: bool) -> None:
        self.running.watch.question(is_open=is_open)

    def text(self, chunk: str) -> None: ...
    def thought(self) -> None: ...
    def tool(self) -> None: ...
    def retrying(self, title: str, category: Category) -> None: ...
    def advise(self, key: str, title: str) -> None: ...


def _is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[:1] not in (["Z"], ["X"])


def bounded(watchdogs: Watchdogs) -> Watchdogs:
    """The same limits; one that is switched off has its default, for a look has to end."""
    defaults = {limit.name: limit.default for limit in fields(Watchdogs)}
    off: dict[str, Any] = {k: v for k, v in defaults.items() if not getattr(watchdogs, k)}
    return evolve(watchdogs, **off)
