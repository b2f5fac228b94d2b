"""Ask a Prometheus what a panel would ask it.

Grafana fills in `$job` and `$__rate_interval` before it sends a query; `expanded` does the same
for the tests and the preview.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final
from urllib.parse import urlencode
from urllib.request import urlopen

ALL: Final = ".+"
MACROS: Final = ("__rate_interval", "__range", "__interval")
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_PATIENCE_S: Final = 20


def names_in(expr: str) -> set[str]:
    """Variables and macros that an expression uses."""
    return {braced or plain for braced, plain in _VARIABLE.findall(expr)}


def expanded(expr: str, *, rate_interval: str = "1m", span: str = "5m", **chosen: str) -> str:
    """The expression with every macro and variable filled in; a variable not chosen means all."""
    values = {"__rate_interval": rate_interval, "__range": span, "__interval": "15s", **chosen}
    return _VARIABLE.sub(lambda found: values.get(found[1] or found[2], ALL), expr)


class Prometheus:
    """One server, by its HTTP API."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def get(self, path: str, **parameters: Any) -> Any:
        """The `data` of an answer.  Raises RuntimeError with the server's words."""
        query = f"?{urlencode(parameters, doseq=True)}" if parameters else ""
        with urlopen(f"{self.url}/api/v1/{path}{query}", timeout=_PATIENCE_S) as answer:  # noqa: S310 - a server that the caller named
            body = json.load(answer)
        if body["status"] != "success":
            raise RuntimeError(f"{path}: {body.get('error')}")
        return body["data"]

    def instant(self, expr: str) -> list[dict[str, Any]]:
        data = self.get("query", query=expr)
        if data["resultType"] == "scalar":
            return [{"metric": {}, "value": data["result"]}]
        return list(data["result"])

    def ranged(self, expr: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        data = self.get("query_range", query=expr, start=start, end=end, step=step)
        return list(data["result"])
