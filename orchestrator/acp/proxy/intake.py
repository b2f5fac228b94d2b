"""One attempt's ear on the relay: what passes, what waits, what is told again under our own id."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field

from orchestrator.acp.intake import Intake, inner_retry, is_progress
from orchestrator.failure.kinds import Category
from orchestrator.failure.redact import scrub
from orchestrator.failure.sentences import shortened, without_places
from orchestrator.failure.verdict import MAX_TITLE
from orchestrator.incident import extension
from orchestrator.incident.record import Record, Severity


@define(eq=False)
class RelayIntake(Intake):
    """An `Intake` whose items are the agent's frames.

    The agent's own progress joins the prompt in flight, whatever id it carries: one outage has
    several ids in one agent, and one id several notices in another.
    """

    capable: bool = field(default=False, kw_only=True)
    """The client reads records."""
    again: bool = field(default=False, kw_only=True)
    """The prompt was sent before: the agent echoes it, and tells its advisories, once more."""
    shown: set[str] = field(factory=set, kw_only=True)
    """Advisories of this turn that were shown as text."""
    on_absorbed: Callable[[str], None] = field(default=lambda _: None, kw_only=True)
    """Told the agent's own id of each record that joined the prompt."""

    def _record(self, wire: object, item: Any) -> None:
        decoded = extension.decode(wire)
        if isinstance(decoded, extension.Malformed):
            self.show(item)
            return
        record = decoded.record
        if is_progress(record):
            self.on_absorbed(record.id)
            self._retrying(worded(record.title), record.category)
        elif self.capable and _is_notice(record):
            self.listener.advise(f"{record.title}\0{record.details}", worded(record.title))
        else:
            # An error beside the answer belongs to another turn, or to the session as a whole.
            self.show(item)

    def _aside(self, update: Mapping[str, Any], item: Any) -> None:
        title = inner_retry(update)
        if title:
            self._retrying(worded(title), Category.CONNECTION)
        if title and self.capable:
            return
        # Behind text that waits, bookkeeping waits too: it keeps its place.
        if self._opening:
            self._opening.append(("", item))
        elif self.held:
            self.held.steer(("", item))
        else:
            self.show(item)

    def _advise(self, text: str, item: Any) -> None:
        if text not in self.shown:
            self.shown.add(text)
            self.show(item)

    def _content(self, update: Mapping[str, Any], item: Any) -> None:
        if self.again and update.get("sessionUpdate") == "user_message_chunk":
            return
        super()._content(update, item)


def worded(title: str) -> str:
    """An agent's own title as it may be shown: its words, redacted."""
    return shortened(scrub(without_places(title)), MAX_TITLE)


def _is_notice(record: Record) -> bool:
    return record.severity is Severity.WARNING and ":notice:" in record.id
