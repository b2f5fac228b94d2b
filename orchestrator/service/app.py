"""The ASGI app: scrape endpoint, health, and the incidents, with OpenAPI 3.1 at `/openapi.json`.

An embedder mounts `create_app(...)`; `run` and `demo` serve it with `service/serve.py`.  It only
reads, answers for the host names it is told, and never shows a provider's payload: what it has are
records and counts.
"""

from __future__ import annotations

import gzip
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Any, Final

from attrs import frozen
from litestar import Litestar, MediaType, Request, Response, get
from litestar.datastructures import ResponseHeader, State
from litestar.openapi import OpenAPIConfig, ResponseSpec
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.params import PathParameter, QueryParameter
from prometheus_client.exposition import choose_encoder

from orchestrator.incident.record import Record
from orchestrator.metrics import MetricsObserver
from orchestrator.service.incidents import Incidents, Kept
from orchestrator.service.problems import MEDIA_TYPE, Code, Problem, ProblemError, handlers
from orchestrator.version import __version__

LOOPBACK_HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")
"""Names a service on loopback answers to, so that no page elsewhere reaches it by a DNS trick."""
_MOST_DIGITS: Final = 18
MOST: Final = 500
"""Incidents in one page, at most."""


@frozen
class Health:
    status: str
    """`ok` while the process answers at all."""


@frozen
class Readiness:
    status: str
    """`ready`."""


@frozen
class Incident:
    """One revision of one incident."""

    id: str
    revision: int
    category: str
    severity: str
    title: str
    """What happened and a short next step."""
    details: str
    actions: list[str]
    """What a user can do, in the order of display."""
    active: bool
    """Nothing has cleared it yet."""


@frozen
class IncidentPage:
    incidents: list[Incident]
    """In the order in which they first appeared."""
    next_cursor: str | None
    """Pass it as `cursor` for the next page; null on the last one."""


@frozen
class IncidentHistory:
    id: str
    active: bool
    revisions: list[Incident]
    """In ascending order."""


def _incident(record: Record, *, active: bool) -> Incident:
    return Incident(
        record.id,
        record.revision,
        str(record.category),
        str(record.severity),
        record.title,
        record.details,
        [str(action) for action in record.actions],
        active,
    )


def _cursor(kept: Kept) -> str:
    return urlsafe_b64encode(f"after:{kept.position}".encode()).decode().rstrip("=")


def _position(cursor: str | None) -> int:
    """Read a cursor of ours back.  Raises ProblemError for anything else."""
    if cursor is None:
        return 0
    try:
        text = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
    except ValueError:
        text = ""
    name, _, number = text.partition(":")
    if name != "after" or not number.isdecimal() or len(number) > _MOST_DIGITS:
        raise ProblemError(Code.BAD_CURSOR, field="cursor")
    return int(number)


_ACTIVE: Final = "Only those that are active, or only those that are not."
_CURSOR: Final = "`next_cursor` of the page before."
_LIMIT: Final = "Incidents in this page, at most."
_ALLOWED: Final = {"limit": f"a whole number from 1 to {MOST}", "active": "true or false"}


def _takes_gzip(accept_encoding: str) -> bool:
    """Whether a client lists gzip and does not refuse it by a weight of zero."""
    listed = (part.replace(" ", "").lower().partition(";") for part in accept_encoding.split(","))
    return any(name == "gzip" and not _NO_WEIGHT.fullmatch(weight) for name, _, weight in listed)


_NO_WEIGHT: Final = re.compile(r"q=0(?:\.0*)?")


def _problems(*statuses: int) -> dict[int, ResponseSpec]:
    """Describe the problems of one operation; any can be asked for under a wrong name."""
    spec = ResponseSpec(Problem, description="What is wrong.", media_type=MEDIA_TYPE)
    return dict.fromkeys((*statuses, HTTPStatus.MISDIRECTED_REQUEST.value), spec)


@get(
    "/healthz",
    summary="Is the process alive?",
    responses=_problems(),
    sync_to_thread=False,
)
def healthz() -> Health:
    """Answer without touching anything else."""
    return Health("ok")


@get(
    "/readyz",
    summary="Can it take work?",
    responses=_problems(503),
    sync_to_thread=False,
)
def readyz(state: State) -> Readiness:
    """Answer 503 with the reasons when it can't."""
    reasons = tuple(state.not_ready())
    if reasons:
        raise ProblemError(Code.NOT_READY, reasons=reasons)
    return Readiness("ready")


@get(
    "/metrics",
    summary="The series, for Prometheus",
    responses=_problems(),
    media_type=MediaType.TEXT,
    sync_to_thread=False,
)
def metrics(request: Request[Any, Any, Any], state: State) -> Response[bytes]:
    """Answer in OpenMetrics when the Accept header asks for it, else in the text format."""
    try:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
    except (TypeError, ValueError):  # what the library makes of a version that is no version
        encode, content_type = choose_encoder("")
    body = encode(state.metrics.scraped())
    headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"}
    if _takes_gzip(request.headers.get("accept-encoding", "")):
        body = gzip.compress(body, compresslevel=1)
        headers["Content-Encoding"] = "gzip"
    return Response(body, headers=headers)


@get(
    "/v1/incidents",
    summary="Incidents, oldest first",
    responses=_problems(400),
    sync_to_thread=False,
)
def list_incidents(
    state: State,
    active: Annotated[bool | None, QueryParameter(description=_ACTIVE)] = None,
    cursor: Annotated[str | None, QueryParameter(description=_CURSOR)] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=MOST, description=_LIMIT)] = 100,
) -> IncidentPage:
    """List each at its newest revision; an incident keeps its place whatever happens to it."""
    incidents: Incidents = state.incidents
    now_active = incidents.active_ids()
    matching = (
        kept
        for kept in incidents.after(_position(cursor))
        if active is None or (kept.record.id in now_active) is active
    )
    page = list(islice(matching, limit + 1))
    more, page = page[limit:], page[:limit]
    return IncidentPage(
        [_incident(kept.record, active=kept.record.id in now_active) for kept in page],
        _cursor(page[-1]) if more else None,
    )


@get(
    "/v1/incidents/{incident_id:path}",
    summary="All revisions of one incident",
    responses=_problems(404),
    sync_to_thread=False,
)
def show_incident(incident_id: Annotated[str, PathParameter()], state: State) -> IncidentHistory:
    """Show how one incident was told, from its first revision on."""
    incident_id = incident_id.removeprefix("/")  # a host's own ids may hold slashes
    incidents: Incidents = state.incidents
    is_active = incident_id in incidents.active_ids()
    kept = incidents.get(incident_id)
    if kept is None:
        raise ProblemError(Code.INCIDENT_NOT_FOUND)
    newest = kept.record.revision
    return IncidentHistory(
        incident_id,
        is_active,
        [_incident(r, active=is_active and r.revision == newest) for r in kept.revisions],
    )


class _Application(Litestar):
    """Answers HEAD as it would answer GET, without the body, as HTTP asks of every resource."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] == "GET":
            await super().__call__(scope, receive, send)
            return
        bodiless = scope["method"] == "HEAD"

        async def send_on(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = [(name, _with_head(name, value)) for name, value in message["headers"]]
                message = {**message, "headers": headers}
            elif bodiless:
                message = {**message, "body": b""}
            await send(message)

        asked: Any = {**scope, "method": "GET"} if bodiless else scope
        await super().__call__(asked, receive, send_on)


def _with_head(name: bytes, value: bytes) -> bytes:
    return value.replace(b"GET,", b"GET, HEAD,") if name.lower() == b"allow" else value


def create_app(
    metrics_observer: MetricsObserver,
    *,
    incidents: Incidents | None = None,
    not_ready: Callable[[], Iterable[str]] = tuple,
    hosts: tuple[str, ...] | None = None,
) -> Litestar:
    """Build the app.

    `incidents` is the sink to read from; which of them are active it asks the observer, unless it
    was told whom to ask.  `not_ready` gives the reasons why no work can be taken, one sentence
    each, none when all is well: `readiness.reasons` for an orchestrator.  `hosts` are the names it
    answers to; None is any, which is right when the app is mounted in one that checks for itself.
    """
    kept = Incidents() if incidents is None else incidents

    def active_now() -> Iterable[Record]:
        return metrics_observer.active()  # an orchestrator sets it, maybe later than now

    if kept.active is tuple:
        kept.active = active_now

    def check_host(request: Request[Any, Any, Any]) -> None:
        name = request.headers.get("host", "")
        bare = name if name.endswith("]") else name.rsplit(":", 1)[0]
        if hosts is not None and bare.lower() not in hosts:
            raise ProblemError(Code.HOST_NOT_ALLOWED)

    return _Application(
        [healthz, readyz, metrics, list_incidents, show_incident],
        before_request=check_host,
        exception_handlers=handlers(_ALLOWED),
        # An app that is mounted must not touch its host's logging.
        logging_config=None,
        openapi_config=OpenAPIConfig(
            title="Turn orchestrator",
            version=__version__,
            path="/openapi.json",
            use_handler_docstrings=True,
            # The default plugins render pages that load scripts from elsewhere.
            render_plugins=[JsonRenderPlugin(path="/")],
        ),
        response_headers=[
            ResponseHeader(name="Cache-Control", value="no-store"),
            ResponseHeader(name="X-Content-Type-Options", value="nosniff"),
        ],
        state=State(
            {
                "metrics": metrics_observer,
                "incidents": kept,
                "not_ready": not_ready,
            }
        ),
    )
