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
    gemini_cli,
    generic,
    google,
    kiro,
    local,
    localized,
    network,
    notices,
    openai,
    opencode,
    process,
    status,
    vendors,
)

_FILES: Final = (
    # What is particular first, the nets last.
    notices,
    acp,
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
    localized,
    status,
    generic,
)

ALL_RULES: Final[tuple[Rule, ...]] = tuple(chain.from_iterable(file.RULES for file in _FILES))
