"""What arrived, before anyone decided what it means.

One normalised view of a failure, with one constructor per surface.  Any field may be missing; no
constructor raises on what a provider sent.
"""

from __future__ import annotations

import errno as errno_table
from collections.abc import Mapping
from enum import StrEnum
from itertools import islice
from types import MappingProxyType
from typing import Final

from attrs import field, frozen

from orchestrator.failure.verdict import Delivery

_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_MAX_CHAIN = 8
"""Causes followed behind an exception; a longer chain says nothing new."""


class Surface(StrEnum):
    """Where the failure was seen."""

    ACP_ERROR = "acp_error"
    HTTP = "http"
    EXCEPTION = "exception"
    EXIT = "exit"
    STDERR = "stderr"
    TEXT_CHUNK = "text_chunk"
    RECORD = "record"
    ENVELOPE = "envelope"


@frozen
class RawFailure:
    """One failure as it arrived.  Build it with the constructor named after the surface."""

    surface: Surface
    code: int | None = None
    """JSON-RPC error code."""
    message: str = ""
    """The surface's own sentence: JSON-RPC message, exception text or chunk text."""
    data: object = None
    """JSON-RPC data, or the typed record or envelope: any JSON value."""
    status: int | None = None
    """HTTP status."""
    headers: Mapping[str, str] = field(default=_NO_HEADERS, eq=False)
    """HTTP headers, names in lower case."""
    body: object = None
    """HTTP body: a JSON value, or text."""
    exception_types: tuple[str, ...] = ()
    """Qualified type names of a live exception and its causes, outermost first."""
    causes: tuple[str, ...] = ()
    """Texts of the causes behind the outermost exception."""
    errno: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    stderr: str = ""
    message_id: str | None = None
    """Id of a text chunk; adapters write failures without one, models never do."""
    delivery: Delivery | None = None
    host: str = ""
    """Peer that did not answer, where the host program knows it."""
    over_socket: bool = False
    """A socket's stream raised it: the other end is no process of ours."""

    @classmethod
    def acp_error(
        cls, code: int | None = None, message: str | None = None, data: object = None
    ) -> RawFailure:
        """A JSON-RPC error of an ACP agent; `data` is an object, text, or text that holds JSON."""
        return cls(Surface.ACP_ERROR, code=_integer(code), message=_text(message), data=data)

    @classmethod
    def http(
        cls,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        body: object = None,
    ) -> RawFailure:
        """An HTTP answer; `body` is a JSON value, text, or bytes (read as UTF-8)."""
        if isinstance(body, bytes | bytearray):
            body = bytes(body).decode("utf-8", "replace")
        return cls(
            Surface.HTTP,
            status=_integer(status),
            headers=_headers(headers),
            body=body,
        )

    @classmethod
    def exception(
        cls, error: BaseException, *, delivery: Delivery | None = None, host: str = ""
    ) -> RawFailure:
        """A live exception, with the chain of its causes and the HTTP answer it carries."""
        chain = _chain(error)
        status, headers, body = _answer(chain)
        return cls(
            Surface.EXCEPTION,
            message=_safe_str(chain[0]),
            status=status,
            headers=headers,
            body=body,
            exception_types=tuple(f"{type(e).__module__}.{type(e).__qualname__}" for e in chain),
            causes=tuple(_safe_str(e) for e in chain[1:]),
            errno=next((n for e in chain if (n := _errno(e)) is not None), None),
            delivery=delivery,
            host=host,
            over_socket=any(map(_raised_by_a_socket, chain)),
        )

    @classmethod
    def exception_text(cls, text: str | None, *, type_name: str = "") -> RawFailure:
        """An exception of which only the printed text is left."""
        types = (type_name,) if type_name else ()
        return cls(Surface.EXCEPTION, message=_text(text), exception_types=types)

    @classmethod
    def exit(
        cls,
        exit_code: int | None = None,
        *,
        signal: int | None = None,
        stderr: str | None = None,
        delivery: Delivery | None = None,
    ) -> RawFailure:
        """The end of a process; a negative exit code is a signal, as `subprocess` reports it."""
        code = _integer(exit_code)
        signum = _integer(signal)
        if signum is None and code is not None and code < 0 and -code < 65:  # noqa: PLR2004 - NSIG
            signum = -code
        return cls(
            Surface.EXIT, exit_code=code, signal=signum, stderr=_text(stderr), delivery=delivery
        )

    @classmethod
    def from_stderr(cls, text: str | None, *, delivery: Delivery | None = None) -> RawFailure:
        """What a live or ended process wrote to stderr, with no exit code."""
        return cls(Surface.STDERR, stderr=_text(text), delivery=delivery)

    @classmethod
    def text_chunk(cls, text: str | None, *, message_id: str | None = None) -> RawFailure:
        """Text that an adapter wrote into the transcript in place of an error."""
        return cls(Surface.TEXT_CHUNK, message=_text(text), message_id=message_id)

    @classmethod
    def from_record(cls, record: object) -> RawFailure:
        """An agent's own sessionFailure record, as decoded JSON."""
        return cls(Surface.RECORD, data=record)

    @classmethod
    def from_envelope(cls, envelope: object) -> RawFailure:
        """An open `{type, message}` error, as decoded JSON."""
        return cls(Surface.ENVELOPE, data=envelope)


def _integer(value: object) -> int | None:
    """A whole number or None: `True` is not a code and infinity is not a status."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value == value and abs(value) < 2**53 and value == int(value) else None  # noqa: PLR0124 - NaN


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _safe_str(error: BaseException) -> str:
    """An exception's text; one whose `__str__` raises must not take the classifier down."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - foreign code
        return ""


def _chain(error: BaseException) -> list[BaseException]:
    """The exception and what stands behind it, each once, at most `_MAX_CHAIN`."""
    chain: list[BaseException] = []
    todo: list[BaseException | None] = [error]
    while todo and len(chain) < _MAX_CHAIN:
        current = todo.pop(0)
        if current is None or any(current is seen for seen in chain):
            continue
        chain.append(current)
        if isinstance(current, BaseExceptionGroup):
            todo.extend(current.exceptions)
        todo.append(_behind(current))
        # urllib and aiohttp keep the socket's error in a field instead.
        inner = (_field(current, name) for name in ("reason", "os_error"))
        todo.extend(x for x in inner if isinstance(x, BaseException))
    return chain


def _raised_by_a_socket(error: BaseException) -> bool:
    """Whether it comes out of a socket of anyio, trio or asyncio.

    Their streams raise the same exceptions over a socket and over a pipe; only where they come
    from tells which it was.
    """
    trace = error.__traceback__
    for _ in range(_MAX_FRAMES):
        if trace is None:
            return False
        frame = trace.tb_frame
        if "Socket" in frame.f_code.co_qualname and str(
            frame.f_globals.get("__name__", "")
        ).startswith(_STREAM_LIBRARIES):
            return True
        trace = trace.tb_next
    return False


_MAX_FRAMES = 200
_STREAM_LIBRARIES: Final = ("anyio.", "trio.", "asyncio.")


def _behind(error: BaseException) -> BaseException | None:
    """What an exception stands in front of, cancellations apart; nothing where `from None` says so.

    A timeout cancels what it waits for and is raised from that: only a cancellation that came out
    by itself, or in a group, says that something was cancelled.
    """
    behind = error
    for _ in range(_MAX_CHAIN):
        found = behind.__cause__ or (None if behind.__suppress_context__ else behind.__context__)
        if found is None or type(found).__name__ not in _CANCELLATIONS:
            return found
        behind = found
    return None


_CANCELLATIONS: Final = frozenset({"CancelledError", "Cancelled"})
"""Of asyncio, concurrent.futures, anyio's backends and trio, by name: none of them is imported."""


def _field(value: object, name: str) -> object:
    """A field of foreign code; one that raises is not there."""
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001 - a property of foreign code
        return None


def _errno(error: BaseException) -> int | None:
    number = _field(error, "errno")
    if isinstance(number, bool) or not isinstance(number, int):
        return None
    return number if number in errno_table.errorcode else None


_STATUS_FIELDS: Final = ("status_code", "status", "code", "http_status")
"""Where httpx, aiohttp, urllib and the providers' own clients keep the status of an answer."""
_NO_HTTP: Final = "aiohttp.http_exceptions"
"""Errors of a parser that was sent no HTTP: their 400 is the parser's own."""
_FIRST_STATUS, _LAST_STATUS = 100, 599
_MAX_HEADERS = 100


def _answer(chain: list[BaseException]) -> tuple[int | None, Mapping[str, str], object]:
    """Status, headers and body of the HTTP answer that an exception reports, if it does."""
    if any(type(error).__module__ == _NO_HTTP for error in chain):
        return None, _NO_HEADERS, None
    for error in chain:
        response = _field(error, "response")
        for holder in (error, response):
            numbers = (_integer(_field(holder, name)) for name in _STATUS_FIELDS)
            status = next((n for n in numbers if n and _FIRST_STATUS <= n <= _LAST_STATUS), None)
            if holder is None or status is None:
                continue
            body = _field(error, "body")
            return (
                status,
                _headers(_field(holder, "headers") or _field(response, "headers")),
                body if isinstance(body, Mapping | str | list) else None,
            )
    return None, _NO_HEADERS, None


def _headers(value: object) -> Mapping[str, str]:
    """Headers of any client as lower-case names; a mapping that raises has none."""
    if not isinstance(value, Mapping):
        return _NO_HEADERS
    try:
        pairs = list(islice(value.items(), _MAX_HEADERS))
        return MappingProxyType({str(k).lower(): str(v) for k, v in pairs})
    except Exception:  # noqa: BLE001 - foreign code
        return _NO_HEADERS
