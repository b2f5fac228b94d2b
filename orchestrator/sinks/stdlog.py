"""A sink that logs through the standard library: a readable line, and the same as fields."""

from __future__ import annotations

import logging
from types import MappingProxyType
from typing import Final

from orchestrator.incident.record import Record, Severity
from orchestrator.incident.view import one_line
from orchestrator.sinks import Item

LOGGER: Final = "orchestrator.incidents"

_LEVELS: Final = MappingProxyType(
    {Severity.WARNING: logging.WARNING, Severity.ERROR: logging.ERROR}
)


class LogSink:
    """Logs each record at the level of its severity and each note as information.

    The log record has the fields `incident_id`, `revision`, `category`, `severity`, `title`,
    `details` and `actions`, or `note` and `text`, for a formatter that writes structured logs.
    """

    name = "log"

    def __init__(self, logger: logging.Logger | str = LOGGER) -> None:
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger

    async def deliver(self, item: Item, /) -> None:
        if isinstance(item, Record):
            self._record(item)
        else:
            fields = {"note": str(item.code), "text": item.text}
            self._logger.info("note %s: %s", item.code, one_line(item.text), extra=fields)

    def _record(self, record: Record) -> None:
        fields = {
            "incident_id": record.id,
            "revision": record.revision,
            "category": str(record.category),
            "severity": str(record.severity),
            "title": record.title,
            "details": record.details,
            "actions": [str(action) for action in record.actions],
        }
        self._logger.log(
            _LEVELS[record.severity],
            "incident %s revision %d (%s): %s",
            one_line(record.id),
            record.revision,
            record.category,
            one_line(record.title),
            extra=fields,
        )
