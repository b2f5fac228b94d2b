"""Every built-in rule, in the order in which files speak within a step of equal priority."""

from __future__ import annotations

from itertools import chain
from typing import Final

from orchestrator.failure.rule import Rule
from orchestrator.failure.rules import (
    acp,
    anthropic,
    bedrock,
    codex,
    copilot,
    exceptions,
    gemini_cli,
    generic,
    generic_limits,
    generic_shape,
    google,
    kiro,
    local,
    localized,
    network,
    notices,
    openai,
    opencode,
    process,
    starts,
    status,
    vendors,
)

_FILES: Final = (
    # What is particular first, the nets last.
    notices,
    acp,
    starts,
    process,
    kiro,
    codex,
    opencode,
    gemini_cli,
    copilot,
    anthropic,
    openai,
    google,
    bedrock,
    vendors,
    local,
    network,
    exceptions,
    localized,
    status,
    generic_limits,
    generic_shape,
    generic,
)

ALL_RULES: Final[tuple[Rule, ...]] = tuple(chain.from_iterable(file.RULES for file in _FILES))
