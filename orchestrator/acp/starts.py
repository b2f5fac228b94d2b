"""Starts that cannot work, remembered: the next session is told at once, without another spawn."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from attrs import define, field

from orchestrator.acp.process import Command
from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Cause, Verdict

_FACTS: Final = frozenset((Kind.AGENT_NOT_FOUND, Kind.AGENT_UNSAFE, Kind.UNSUPPORTED))
_CONFIGURATION: Final = frozenset(
    (
        Cause.NODE_VERSION,
        Cause.INSTALL,
        Cause.PERMISSION,
        Cause.SANDBOX,
        Cause.DELEGATE,
        Cause.ENGINE,
        Cause.CONFIG,
    )
)
"""Causes that a second start meets again.  A bare exit while starting is none of them."""
_REMEMBERED_S: Final = 300.0
"""An agent's own configuration may be mended where we cannot see it."""

_Key = tuple[object, ...]


@define(eq=False)
class StartRefusals:
    """Refused starts by command, environment and program file.  Share one between sessions."""

    _known: dict[_Key, tuple[float, Verdict]] = field(factory=dict)

    def remember(self, command: Command, verdict: Verdict, now: float) -> None:
        """Keep a start failure that is a fact of the configuration; others are forgotten."""
        is_fact = verdict.kind in _FACTS or (
            verdict.kind is Kind.AGENT_START_FAILED and verdict.cause in _CONFIGURATION
        )
        if is_fact:
            self._known[_key(command)] = (now, verdict)

    def recall(self, command: Command, now: float) -> Verdict | None:
        """The refusal this very command met, unless something changed since."""
        known = self._known.get(_key(command))
        if known is None or not 0 <= now - known[0] < _REMEMBERED_S:
            return None
        return known[1]


def _key(command: Command) -> _Key:
    """Everything that a start depends on, as far as it can be seen from here."""
    env = None if command.env is None else frozenset(command.env.items())
    try:
        stat = Path(command.argv[0]).stat()
        program: object = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    except OSError:
        program = None
    return (command.argv, command.folder, env, program)
