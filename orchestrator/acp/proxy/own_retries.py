"""Agents retry inside before they tell anybody: lower those budgets by their own settings.

One row for each agent.  Without this, one message can cost thirty requests before our own first
retry.  What the user has set already stays, and what an agent documents no setting for is said.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import evolve, field, frozen

from orchestrator.acp.process import Command

_CLAUDE: Final = "CLAUDE_CODE_MAX_RETRIES"
_CODEX: Final = "CODEX_CONFIG"
_CODEX_BUDGETS: Final = ("request_max_retries", "stream_max_retries")
_MAX_BYTES: Final = 1_000_000


@frozen
class Lowered:
    """What an agent is started with, so that it leaves retrying to us."""

    says: str
    """What that means, for the user."""
    env: Mapping[str, str] = field(factory=dict)
    """Nothing where its retries stay as they are."""


@frozen
class Row:
    """One agent's own setting."""

    agent: str
    """What its command line mentions."""
    lower: Callable[[Mapping[str, str]], Lowered]
    """Takes the environment it would be started with."""


def _claude(environ: Mapping[str, str]) -> Lowered:
    if _CLAUDE in environ:
        return Lowered(f"{_CLAUDE} is set already and stays")
    return Lowered(f"claude runs with {_CLAUDE}=0: no retries of its own", {_CLAUDE: "0"})


def _codex(environ: Mapping[str, str]) -> Lowered:
    """Its budgets belong to a provider, and it lets nobody change those of its built-in ones."""
    config = _json_object(environ.get(_CODEX, "{}"))
    if config is None:
        return Lowered(f"{_CODEX} is no JSON object and stays")
    set_here, in_file = _providers(config), _providers(_codex_file(environ))
    lowered: dict[str, Any] = {}
    for name in sorted({*set_here, *in_file}):
        mine = set_here.get(name, {})
        known = {**in_file.get(name, {}), **mine}
        missing = {budget: 0 for budget in _CODEX_BUDGETS if budget not in known}
        if missing:
            lowered[name] = {**mine, **missing}
    if not lowered:
        return Lowered("codex has no setting for its built-in providers' retries; they stay")
    providers = {**set_here, **lowered}
    names = ", ".join(lowered)
    return Lowered(
        f"codex runs with {_CODEX}: no retries of its own at {names}; its built-in providers keep"
        " theirs",
        {_CODEX: json.dumps({**config, "model_providers": providers})},
    )


def _providers(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The providers that a user described, by name."""
    named = config.get("model_providers")
    named = named if isinstance(named, dict) else {}
    return {name: provider for name, provider in named.items() if isinstance(provider, dict)}


def _codex_file(environ: Mapping[str, str]) -> dict[str, Any]:
    """Codex's own configuration; nothing where it can't be read."""
    folder = environ.get("CODEX_HOME") or str(Path(environ.get("HOME") or "~", ".codex"))
    path = Path(folder).expanduser() / "config.toml"
    try:
        return tomllib.loads(path.read_text("utf-8")) if path.stat().st_size < _MAX_BYTES else {}
    except (OSError, ValueError, RuntimeError):
        return {}


def _json_object(text: str) -> dict[str, Any] | None:
    try:
        read = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


ROWS: Final = (
    Row("claude", _claude),
    Row("codex", _codex),
    Row("opencode", lambda _: Lowered("opencode documents no setting for its retries; they stay")),
)


def lowered(command: Command, environ: Mapping[str, str] | None = None) -> tuple[Command, str]:
    """The command with the agent's own retries lowered, and one sentence about it."""
    environ = os.environ if environ is None else environ
    environ = environ if command.env is None else command.env
    row = next(filter(None, map(_row_of, command.argv)), None)
    if row is None:
        return command, f"no setting for {command.name}'s own retries is known; they stay"
    result = row.lower(environ)
    if not result.env:
        return command, result.says
    return evolve(command, env={**environ, **result.env}), result.says


def _row_of(word: str) -> Row | None:
    """The agent that a word of a command line names; the end of a path says more than its start."""
    places = {row: word.lower().rfind(row.agent) for row in ROWS}
    last = max(ROWS, key=lambda row: places[row])
    return last if places[last] >= 0 else None
