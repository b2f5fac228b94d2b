"""The recognisers, one file per speaker.  Adding a wording is one row here and one case in tests.

Patterns are RE2, read in text that is lower case with single spaces and straight quotes.  Files
list what is particular first; `generic` is the net that catches what no speaker claims.
"""

from __future__ import annotations

from orchestrator.failure.rule import Rule


def all_rules() -> tuple[Rule, ...]:
    """Every built-in rule, in the order in which files speak within a step."""
    from orchestrator.failure.rules import (  # noqa: PLC0415 - loaded at the first failure
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

    modules = (
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
    return tuple(rule for module in modules for rule in module.RULES)
