"""The rule: what the world, compared with the turn's baseline, says about sending.

A function of two values and nothing else, so it can be asked as often as anyone likes: at the
decision, at the drain, at the send, and at whatever else shows the world.
"""

from __future__ import annotations

from orchestrator.turn.effects import NoteCode
from orchestrator.turn.events import DropReason, Live

WORLD = frozenset({DropReason.STOPPED, DropReason.SUPERSEDED, DropReason.REBOUND})
"""Reasons that the rule itself finds; the others come from the host or from a failed step."""


def stopped(baseline: Live, live: Live) -> bool:
    """A Stop is in flight, or one was pressed since, here or on another surface."""
    return (
        live.stopping
        or live.surface_stops != baseline.surface_stops
        or live.session_stops != baseline.session_stops
    )


def rebound(baseline: Live, live: Live) -> bool:
    """The slot serves another conversation now."""
    return bool(baseline.binding) and baseline.binding != live.binding


def revokes(baseline: Live, live: Live, *, yields: bool) -> DropReason | None:
    """Why a re-send must not go out, or None.

    A user's newer message revokes only what yields: where nothing ran yet, the newer message simply
    follows.
    """
    if stopped(baseline, live):
        return DropReason.STOPPED
    if yields and live.user_input:
        return DropReason.SUPERSEDED
    return DropReason.REBOUND if rebound(baseline, live) else None


def note_for(reason: DropReason, live: Live) -> NoteCode:
    """Say which of several reasons the user is told: superseded beats stopped beats moved."""
    if reason in WORLD and live.user_input:
        return NoteCode.SUPERSEDED
    return _NOTES[reason]


_NOTES = {
    DropReason.STOPPED: NoteCode.STOPPED,
    DropReason.SUPERSEDED: NoteCode.SUPERSEDED,
    DropReason.REBOUND: NoteCode.MOVED,
    DropReason.LOST: NoteCode.LOST,
    DropReason.DENIED: NoteCode.DENIED,
}
