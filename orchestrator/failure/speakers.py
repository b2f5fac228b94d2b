"""Who speaks: where each speaker puts provider errors, and which of its words only it can say."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from attrs import frozen


@frozen
class Speaker:
    """One harness or agent, as far as its way to report failures is its own."""

    family: str
    """Name that the rules use."""
    provider_fields: frozenset[str] = frozenset({"message", "data"})
    """JSON-RPC error fields in which it reports what the provider said."""
    authors_bare_chunks: bool = False
    """A text chunk without a message id is always its own words, never the model's."""
    throttled_by: str = "the model provider"


_OTHER: Final = Speaker("other")

_SPEAKERS: Final[Mapping[str, Speaker]] = MappingProxyType(
    {
        "kiro": Speaker("kiro", frozenset({"data"}), throttled_by="Bedrock"),
        "claude": Speaker("claude"),
        "codex": Speaker("codex", authors_bare_chunks=True),
        "gemini": Speaker("gemini"),
        "opencode": Speaker("opencode"),
        "copilot": Speaker("copilot"),
    }
)

_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "kas": "kiro",
        "kiro-cli": "kiro",
        "kiro-agent": "kiro",
        "claude-code": "claude",
        "claude-agent-acp": "claude",
        "claude-code-acp": "claude",
        "codex-acp": "codex",
        "codex-cli": "codex",
        "gemini-cli": "gemini",
        "copilot-cli": "copilot",
        "github-copilot": "copilot",
    }
)


def speaker_named(name: str | None) -> Speaker:
    """The speaker of this name; an unknown or missing one has no ways of its own."""
    if not isinstance(name, str) or not name:
        return _OTHER
    folded = name.strip().lower()
    return _SPEAKERS.get(_ALIASES.get(folded, folded), _OTHER)
