"""The short table of exits: what the end of a process says, before any provider wording."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Cause, Phase
from orchestrator.failure.view import View
from orchestrator.failure.walk import Finding

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

_NOT_FOUND: Final = Finding(Kind.AGENT_NOT_FOUND, "exit.command_not_found")
_BY_CODE: Final = {
    126: Finding(Kind.AGENT_START_FAILED, "exit.not_executable", Cause.PERMISSION),
    127: _NOT_FOUND,
    9009: _NOT_FOUND,
}
"""Codes of shells, POSIX and Windows, that found no program to run."""
_SIGNAL_BASE, _SIGNALS = 128, 65
_CRASHES: Final = frozenset({4, 5, 6, 7, 8, 11, 31})
"""SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS: the program's own fault."""


def find_exit(view: View, walked: Finding) -> Finding:
    """A process ended: its stderr's own reason, else its exit code or signal."""
    raw = view.raw
    if walked.kind in _BEATS_AN_EXIT and not walked.rule.startswith("status."):
        return walked
    number = ended_by_signal(raw.exit_code, raw.signal)
    if number is None and raw.exit_code in _BY_CODE:
        return _BY_CODE[raw.exit_code]
    if view.context.phase in {Phase.START, Phase.HANDSHAKE}:
        return Finding(Kind.AGENT_START_FAILED, "exit.while_starting", Cause.EXIT)
    if number is None:
        return Finding(Kind.AGENT_DIED, "exit.code", Cause.EXIT)
    if number in _CRASHES:
        return Finding(Kind.AGENT_DIED, "exit.crash", Cause.CRASH)
    return Finding(Kind.AGENT_DIED, "exit.signal", Cause.SIGNAL)


def ended_by_signal(exit_code: int | None, signal: int | None) -> int | None:
    """The signal that ended a process, in a shell's spelling (128 and the number) as well."""
    if signal is not None or exit_code is None:
        return signal
    beyond = exit_code - _SIGNAL_BASE
    return beyond if 0 < beyond < _SIGNALS else None
