"""What recovery can do with an agent, by what was found out about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from orchestrator.acp.doctor.findings import Finding, Findings, Mark, mark_of


@frozen
class Remedy:
    """One thing that recovery does, and the check that says how well."""

    name: str
    check: str
    told: Mapping[Mark, tuple[Mark, str]]
    """Result of the check to what it means."""


_NEVER: Final = (Mark.NO, "A dead agent ends the turn: it does not start again.")
_KILLED: Final = "A silent turn is cut off by killing the agent."

REMEDIES: Final = (
    Remedy(
        "retry",
        "session",
        {Mark.YES: (Mark.YES, "A failed turn is waited out and sent again.")},
    ),
    Remedy(
        "reload",
        "load",
        {
            Mark.YES: (Mark.YES, "A dead agent is restarted and its session loaded again."),
            Mark.PARTLY: (Mark.PARTLY, "A dead agent is restarted; its session may be loadable."),
            Mark.NO: (Mark.PARTLY, "A dead agent is restarted, with a new session."),
            Mark.UNTRIED: _NEVER,
        },
    ),
    Remedy(
        "transcript",
        "session",
        {Mark.YES: (Mark.YES, "A lost session becomes a new one, told what was said so far.")},
    ),
    Remedy(
        "swap",
        "model",
        {
            Mark.YES: (Mark.YES, "A model that fails can be swapped for another."),
            Mark.PARTLY: (Mark.PARTLY, "A model that fails can be swapped, but not back again."),
            Mark.NO: (Mark.NO, "A model that fails can't be swapped from here."),
        },
    ),
    Remedy(
        "unstick",
        "cancel",
        {
            Mark.YES: (Mark.YES, "A silent turn is cancelled; the agent lives on."),
            Mark.PARTLY: (Mark.YES, "A silent turn is cancelled; the agent lives on."),
            Mark.NO: (Mark.PARTLY, _KILLED),
            Mark.UNTRIED: (Mark.UNTRIED, "A silent turn is cancelled, else the agent killed."),
        },
    ),
    Remedy(
        "incident",
        "records",
        {
            Mark.YES: (Mark.YES, "Its failures are read as they are, and its own retries shown."),
            Mark.NO: (Mark.PARTLY, "Its failures are told apart by their words and codes."),
        },
    ),
    Remedy(
        "clean",
        "kill",
        {
            Mark.YES: (Mark.YES, "Nothing of it runs on after it was killed."),
            Mark.PARTLY: (Mark.PARTLY, "Its processes are killed as a group."),
            Mark.NO: (Mark.NO, "Something of it may run on after it was killed."),
        },
    ),
)


def remedies(found: Findings) -> tuple[Finding, ...]:
    """What recovery can do with an agent; nothing for one that no turn can be had with."""
    if mark_of(found, "session") is not Mark.YES:
        return ()
    told = ((r.name, r.told.get(mark_of(found, r.check))) for r in REMEDIES)
    return tuple(Finding(name, *what) for name, what in told if what is not None)
