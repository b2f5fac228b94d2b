"""Errors of the service: RFC 9457 problems, each with a code that stays the same.

`code` is what a client decides by; the sentences are for people and may be reworded.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from attrs import asdict, frozen
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException

MEDIA_TYPE: Final = "application/problem+json"

_log = logging.getLogger(__name__)


class Code(StrEnum):
    BAD_PARAMETER = "bad_parameter"
    BAD_CURSOR = "bad_cursor"
    NOT_FOUND = "not_found"
    INCIDENT_NOT_FOUND = "incident_not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    HOST_NOT_ALLOWED = "host_not_allowed"
    NOT_READY = "not_ready"
    REQUEST_REFUSED = "request_refused"
    INTERNAL = "internal"


_TITLES: Final[Mapping[Code, tuple[HTTPStatus, str]]] = {
    Code.BAD_PARAMETER: (HTTPStatus.BAD_REQUEST, "A parameter has a value that is not allowed."),
    Code.BAD_CURSOR: (
        HTTPStatus.BAD_REQUEST,
        "This cursor was not given out here. Start again without one.",
    ),
    Code.NOT_FOUND: (HTTPStatus.NOT_FOUND, "There is nothing at this path."),
    Code.INCIDENT_NOT_FOUND: (
        HTTPStatus.NOT_FOUND,
        "No incident has this id, or it is no longer kept.",
    ),
    Code.METHOD_NOT_ALLOWED: (
        HTTPStatus.METHOD_NOT_ALLOWED,
        "This path does not take this method.",
    ),
    Code.HOST_NOT_ALLOWED: (
        HTTPStatus.MISDIRECTED_REQUEST,
        "This name is not served here. Use the address the service listens on.",
    ),
    Code.NOT_READY: (HTTPStatus.SERVICE_UNAVAILABLE, "The service can't take work right now."),
    Code.REQUEST_REFUSED: (HTTPStatus.BAD_REQUEST, "The request can't be used as it is."),
    Code.INTERNAL: (
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "Something went wrong here. The service's log says what.",
    ),
}


@frozen
class Problem:
    """What every error answer holds."""

    code: str
    """Stable, lower_snake."""
    title: str
    status: int
    detail: str = ""
    field: str = ""
    """Name of the parameter at fault."""
    reasons: tuple[str, ...] = ()
    """Why the service is not ready."""


class ProblemError(Exception):
    """Raised by a handler to answer with a problem."""

    def __init__(
        self, code: Code, detail: str = "", *, field: str = "", reasons: tuple[str, ...] = ()
    ) -> None:
        super().__init__(code)
        status, title = _TITLES[code]
        self.problem = Problem(code, title, status, detail, field, reasons)


def _answer(problem: Problem, headers: Mapping[str, str] | None = None) -> Response[Any]:
    body = {"type": "about:blank", **{k: v for k, v in asdict(problem).items() if v}}
    return Response(
        body,
        status_code=problem.status,
        media_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store", **(headers or {})},
    )


_BY_STATUS: Final = {
    HTTPStatus.NOT_FOUND: Code.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED: Code.METHOD_NOT_ALLOWED,
}


def _on_problem(_: Request[Any, Any, Any], error: ProblemError) -> Response[Any]:
    return _answer(error.problem)


def _on_validation(
    allowed: Mapping[str, str], _: Request[Any, Any, Any], error: ValidationException
) -> Response[Any]:
    """Name the first parameter at fault, what is wrong with it and what is allowed."""
    found = error.extra[0] if isinstance(error.extra, list) and error.extra else {}
    field, detail = str(found.get("key", "")), str(found.get("message", ""))
    if field in allowed:
        detail = f"{detail}; {allowed[field]} is allowed"
    return _answer(ProblemError(Code.BAD_PARAMETER, detail, field=field).problem)


def _on_http(_: Request[Any, Any, Any], error: HTTPException) -> Response[Any]:
    status = HTTPStatus(error.status_code)
    code = _BY_STATUS.get(status, Code.REQUEST_REFUSED)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        code = Code.INTERNAL
        _log.error("request failed", exc_info=error)
    return _answer(ProblemError(code).problem, error.headers)


def _on_anything(request: Request[Any, Any, Any], error: Exception) -> Response[Any]:
    """Log it where the operator looks; tell the client nothing of it."""
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _answer(ProblemError(Code.INTERNAL).problem)


def handlers(allowed: Mapping[str, str]) -> dict[int | type[Exception], Any]:
    """What answers each exception; `allowed` says of a parameter what may stand there."""
    return {
        ProblemError: _on_problem,
        ValidationException: partial(_on_validation, allowed),
        HTTPException: _on_http,
        Exception: _on_anything,
    }
