"""What an operator scrapes.  Importing this room loads prometheus-client; nothing below does."""

from orchestrator.metrics.observer import MetricsObserver, exemplar
from orchestrator.metrics.series import PREFIX, SERIES, Series

__all__ = ["PREFIX", "SERIES", "MetricsObserver", "Series", "exemplar"]
