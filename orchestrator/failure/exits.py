"""The short table of exits: what the end of a process says, before any provider wording."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.classify import Finding
from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Cause, Phase
from orchestrator.failure.view import View

_BEATS_AN_EXIT: Final = frozenset(
    {
        Kind.AGENT_NOT_FOUND,
        Kind.AGENT_START_FAILED,
        Kind.AGENT_START_TIMEOUT,
        Kind.AGENT_OVERLOADED,
        Kind.AGENT_UNSAFE,
        Kind.AGENT_DIED,
        Kind.BINDING_MISMATCH,
        Kind.REGISTRATION_THROTTLED,
        Kind.AUTH_REQUIRED,
        Kind.ACCESS_DENIED,
        Kind.USAGE_LIMIT,
        Kind.BILLING,
        Kind.SESSION_NOT_FOUND,
        Kind.SESSION_LOCKED,
        Kind.HOST_EXHAUSTED,
        Kind.NOT_A_FAILURE,
    }
)
"""Kinds that stderr may name over a bare exit: terminal facts.  A transient wording may not: the
process is dead all the same, and its ladder is the one of deaths."""

_NOT_FOUND_CODES: Final = frozenset({127, 9009})
_NOT_EXECUTABLE: Final = 126
_SIGNAL_BASE, _SIGNALS = 128, 65
_SIGKILL, _CRASHES = 9, frozenset({4, 5, 6, 7, 8, 11, 31})


def find_exit(view: View, walked: Finding) -> Finding:
    """A process ended: its stderr's own reason, else its exit code or signal."""
    raw = view.raw
    if walked.kind in _BEATS_AN_EXIT and not walked.rule.startswith("status."):
        return walked
    starting = view.context.phase in (Phase.START, Phase.HANDSHAKE)
    signum = raw.signal
    if signum is None and raw.exit_code is not None:
        beyond = raw.exit_code - _SIGNAL_BASE
        signum = beyond if 0 < beyond < _SIGNALS else None
    if raw.exit_code in _NOT_FOUND_CODES and signum is None:
        return Finding(Kind.AGENT_NOT_FOUND, "exit.command_not_found")
    if raw.exit_code == _NOT_EXECUTABLE:
        return Finding(Kind.AGENT_START_FAILED, "exit.not_executable", Cause.PERMISSION)
    if starting:
        return Finding(Kind.AGENT_START_FAILED, "exit.while_starting", Cause.EXIT)
    if signum is None:
        return Finding(Kind.AGENT_DIED, "exit.code", Cause.EXIT)
    if signum == _SIGKILL:
        return Finding(Kind.AGENT_DIED, "exit.killed", Cause.SIGNAL)
    if signum in _CRASHES:
        return Finding(Kind.AGENT_DIED, "exit.crash", Cause.CRASH)
    return Finding(Kind.AGENT_DIED, "exit.signal", Cause.SIGNAL)
