"""Agents retry inside before they tell anybody: lower those budgets by their own settings.

One row for each agent that documents such a setting.  Without this, one message can cost thirty
requests before our own first retry.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attrs import evolve, frozen

from orchestrator.acp.process import Command


@frozen
class Budget:
    """How one agent is told to leave retrying to us."""

    agent: str
    """What its command line mentions."""
    env: Mapping[str, str]
    says: str
    """What that means, for the user."""


BUDGETS: Final = (
    Budget(
        "claude",
        MappingProxyType({"CLAUDE_CODE_MAX_RETRIES": "0"}),
        "CLAUDE_CODE_MAX_RETRIES=0: no retries of its own",
    ),
)


def lowered(command: Command, environ: Mapping[str, str] | None = None) -> tuple[Command, str]:
    """The command with the agent's own retries lowered, and one sentence about it.

    What the user has set already stays.
    """
    environ = os.environ if environ is None else environ
    words = " ".join(command.argv).lower()
    budget = next((row for row in BUDGETS if row.agent in words), None)
    if budget is None:
        return command, f"{command.name} documents no setting for its own retries; they stay"
    kept = [name for name in budget.env if name in environ]
    if kept:
        return command, f"{', '.join(kept)} is set already and stays"
    env = {**(environ if command.env is None else command.env), **budget.env}
    return evolve(command, env=env), f"{command.name} runs with {budget.says}"
