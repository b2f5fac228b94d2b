"""Run recorded events through the machine again.

Under the settings that a turn ran under, they must give the recorded effects, byte for byte.  For
other settings see `whatif.py`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from orchestrator.journal import codec
from orchestrator.journal.reader import RecordedTurn
from orchestrator.settings.model import Settings
from orchestrator.turn.incidents import TurnIds
from orchestrator.turn.machine import IllegalEvent, TurnMachine


@frozen
class Difference:
    """The first event of a turn that is answered otherwise than it was."""

    turn: str
    step: int
    event: Mapping[str, Any]
    recorded: str
    """Effects as they were recorded, one a line."""
    now: str

    def diff(self) -> str:
        """Both, as a unified diff."""
        lines = difflib.unified_diff(
            self.recorded.splitlines(),
            self.now.splitlines(),
            f"{self.turn} event {self.step}: recorded",
            f"{self.turn} event {self.step}: now",
            lineterm="",
        )
        return "\n".join(lines)


def again(turn: RecordedTurn, settings: Settings) -> Difference | None:
    """Replay a turn; None when every answer is the recorded one.

    Raises ValueError when an event or state cannot be read.
    """
    machine = machine_of(turn, settings)
    for place, step in enumerate(turn.steps):
        if step.took is not None:
            machine.session = codec.state_of(step.took)
        recorded = codec.line({"effects": step.effects})
        try:
            answered: list[Any] = codec.effects_json(machine.handle(codec.event_of(step.event)))
        except IllegalEvent as error:
            answered = [{"type": "IllegalEvent", "text": str(error)}]
        if codec.line({"effects": answered}) != recorded:
            shown = (_shown(step.effects), _shown(answered))
            return Difference(turn.name, place, step.event, *shown)
    return None


def _shown(effects: list[Any]) -> str:
    return "\n".join(json.dumps(effect, indent=1) for effect in effects)


def machine_of(turn: RecordedTurn, settings: Settings) -> TurnMachine:
    """Build the machine of a recorded turn, as it was before its first event."""
    ids = TurnIds(turn.id, turn.session, turn.epoch, turn.provider)
    return TurnMachine(settings, ids, codec.state_of(turn.state))
