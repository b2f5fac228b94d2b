"""Which of the agent's incidents is which of ours, so that a reload tells the same ones again.

An agent that replays a stored conversation knows its own ids only.  What was told live under our
id is found here, by the agent's id or by the text it stored instead of a record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field, frozen

_KEPT: Final = 500
"""Incidents remembered for one session."""


@frozen
class Told:
    """One incident as the client knows it."""

    id: str
    revision: int
    """The last one that was delivered."""


@define(eq=False)
class IncidentMap:
    """The agent's incidents of one session, by its ids and by its texts."""

    changed: bool = False
    _by_id: dict[str, Told] = field(factory=dict)
    _by_text: dict[str, list[Told]] = field(factory=dict)
    """Ids are told once, texts repeat: each occurrence in order."""

    def learn(self, ids: set[str], text: str, told: Told) -> None:
        """Remember that these ids, and this text, were told as one incident of ours."""
        for agent_id in ids:
            self._by_id[agent_id] = told
        if text.strip():
            self._by_text.setdefault(_digest(text), []).append(told)
        while len(self._by_id) > _KEPT:
            del self._by_id[next(iter(self._by_id))]
        while sum(map(len, self._by_text.values())) > _KEPT:
            del self._by_text[next(iter(self._by_text))]
        self.changed = True

    def of_id(self, agent_id: str) -> Told | None:
        return self._by_id.get(agent_id)

    def of_text(self, text: str, occurrence: int) -> Told | None:
        """The incident that was told with this text for the nth time, from 0."""
        known = self._by_text.get(_digest(text), [])
        return known[occurrence] if occurrence < len(known) else None

    def as_json(self) -> dict[str, Any]:
        return {
            "ids": {key: _pair(told) for key, told in self._by_id.items()},
            "texts": {key: [_pair(told) for told in all_] for key, all_ in self._by_text.items()},
        }

    @classmethod
    def from_json(cls, stored: object) -> IncidentMap:
        """What was stored; anything that does not look like it is left out."""
        ids, texts = _part(stored, "ids"), _part(stored, "texts")
        by_id = {key: told for key, pair in ids.items() for told in _read([pair])}
        by_text = {key: _read(pairs) for key, pairs in texts.items()}
        return cls(by_id=by_id, by_text={key: told for key, told in by_text.items() if told})


def _part(stored: object, name: str) -> Mapping[str, Any]:
    part = stored.get(name) if isinstance(stored, Mapping) else None
    return part if isinstance(part, Mapping) else {}


def _pair(told: Told) -> list[object]:
    return [told.id, told.revision]


def _read(pairs: object) -> list[Told]:
    read = []
    for pair in pairs if isinstance(pairs, list) else ():
        match pair:
            case [str(id_), int(revision)] if id_ and revision > 0:
                read.append(Told(id_, revision))
    return read


def _digest(text: str) -> str:
    """Texts are told apart without being kept."""
    return hashlib.sha256(text.strip().encode("utf-8", "replace")).hexdigest()[:32]
