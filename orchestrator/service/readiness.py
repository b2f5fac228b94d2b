"""Why a process can't take work right now: what `/readyz` answers."""

from __future__ import annotations

from orchestrator.runner.orchestrator import Orchestrator


def reasons(orchestrator: Orchestrator) -> list[str]:
    """Name what does not work, a sentence each; nothing when all is well."""
    return [
        f"{name} raised or took too long and was switched off. The log says why; mend it, restart."
        for name in orchestrator.delivery.switched_off
    ]
