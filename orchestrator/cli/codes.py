"""How a command ends: the table of exit codes, and the table of errors that lead to them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final


class Exit(IntEnum):
    """Exit codes of every command."""

    OK = 0
    FAILED = 1
    USAGE = 2
    CANNOT_BIND = 3
    NO_RULE = 4
    DIFFERS = 5
    UNREACHABLE = 6
    UNEXPECTED = 70
    INTERRUPTED = 130
    TERMINATED = 143
    CLOSED_PIPE = 141


EXITS: Final[Mapping[Exit, str]] = MappingProxyType(
    {
        Exit.OK: "it worked",
        Exit.FAILED: "the turn, or what else was asked for, ended in a failure that is reported",
        Exit.USAGE: "the command line, the settings or an input file is wrong",
        Exit.CANNOT_BIND: "the address cannot be listened on",
        Exit.NO_RULE: "a failure matched no rule",
        Exit.DIFFERS: "an expectation does not hold",
        Exit.UNREACHABLE: "the agent cannot be started, or the service cannot be reached",
        Exit.UNEXPECTED: "a mistake of this program",
        Exit.INTERRUPTED: "Ctrl-C",
        Exit.TERMINATED: "SIGTERM or a hang-up",
        Exit.CLOSED_PIPE: "the reader of our output went away",
    }
)

ERRORS: Final[Mapping[str, Exit]] = MappingProxyType(
    {
        "usage": Exit.USAGE,
        "bad_settings": Exit.USAGE,
        "bad_input": Exit.USAGE,
        "bad_rules": Exit.USAGE,
        "unreadable_file": Exit.USAGE,
        "missing_extra": Exit.USAGE,
        "cannot_bind": Exit.CANNOT_BIND,
        "no_rule_matched": Exit.NO_RULE,
        "expectation_differs": Exit.DIFFERS,
        "agent_not_found": Exit.UNREACHABLE,
        "agent_start_failed": Exit.UNREACHABLE,
        "service_unreachable": Exit.UNREACHABLE,
        "turn_failed": Exit.FAILED,
        "cannot_write": Exit.FAILED,
        "unexpected": Exit.UNEXPECTED,
        "interrupted": Exit.INTERRUPTED,
        "terminated": Exit.TERMINATED,
    }
)
"""Every `code` that an error object can carry.  Stable: programs match on it."""


ASKED_FOR: Final = frozenset({"interrupted", "terminated"})
"""Ends that somebody asked for: told, but not called errors."""


class Halt(Exception):  # noqa: N818 - it ends a command and is not always a mistake
    """Ends the command: one sentence for people, one object for programs, one exit code."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        field: str = "",
        hint: str = "",
        problems: tuple[str, ...] = (),
    ) -> None:
        """`code` is a key of ERRORS; `problems` are further lines that belong to it."""
        super().__init__(message)
        self.code = code
        self.exit = ERRORS[code]
        self.message = message
        self.field = field
        self.hint = hint
        self.problems = problems

    def as_json(self) -> dict[str, object]:
        """The one object on stderr."""
        row: dict[str, object] = {"code": self.code, "message": self.message}
        row |= {"field": self.field or None, "hint": self.hint or None}
        return row | ({"problems": list(self.problems)} if self.problems else {})
