"""One line of `classify`'s input, as a raw failure; or the reason why it is none.

The names are those of the surfaces' constructors, and of the case files: `{"surface": "http",
"input": {"status": 429}}`.  What is not understood is an error that names the field, because a
misspelt field would quietly change the verdict.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from signal import Signals
from types import MappingProxyType
from typing import Any, Final, NoReturn

from attrs import frozen

from orchestrator.failure.raw import RawFailure, Surface
from orchestrator.failure.verdict import Context, Delivery, Phase
from orchestrator.settings.allowed import sentence, shown


class BadRow(Exception):  # noqa: N818 - a row is bad, the program is not
    """A line that is not a failure; names the field, the value and what is allowed."""

    def __init__(self, message: str, field: str = "", hint: str = "") -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.message, self.field, self.hint = message, field, hint


@frozen
class Row:
    """One failure to classify, and what the line says around it."""

    raw: RawFailure
    speaker: str | None
    context: Context
    id: object = None
    """The line's own id, handed back with the verdict."""


@frozen
class _Sort:
    """What a field may hold."""

    words: str
    takes: Callable[[Any], bool]


def _is_number(value: object) -> bool:
    """A finite number of a size that survives a float; `1e999` in JSON is infinite."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -_EXACT <= value <= _EXACT


def _is_whole(value: object) -> bool:
    return _is_number(value) and value == int(value)  # type: ignore[call-overload]


_EXACT: Final = 2**53


def _is_signal(value: object) -> bool:
    return value in Signals.__members__ if isinstance(value, str) else _is_whole(value)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _is_headers(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(v, str) or _is_whole(v) for v in value.values()
    )


_WHOLE: Final = _Sort("a whole number", _is_whole)
_SIGNAL: Final = _Sort('a number or a name such as "SIGKILL"', _is_signal)
_NUMBER: Final = _Sort("a number", _is_number)
_TEXT: Final = _Sort("text", lambda v: isinstance(v, str))
_YES_NO: Final = _Sort("true or false", lambda v: isinstance(v, bool))
_TEXTS: Final = _Sort("a list of texts", _is_texts)
_HEADERS: Final = _Sort("an object of texts", _is_headers)
_ANY: Final = _Sort("any JSON value", lambda _: True)
_DELIVERY: Final = _Sort(f"one of {', '.join(Delivery)}", lambda v: v in list(Delivery))
_PHASE: Final = _Sort(f"one of {', '.join(Phase)}", lambda v: v in list(Phase))


@frozen
class _Shape:
    """What the input of one surface looks like, and how it becomes a raw failure."""

    fields: Mapping[str, _Sort]
    make: Callable[[dict[str, Any]], RawFailure]


def _acp_error(given: dict[str, Any]) -> RawFailure:
    return RawFailure.acp_error(given.get("code"), given.get("message"), given.get("data"))


def _http(given: dict[str, Any]) -> RawFailure:
    headers = {name: str(value) for name, value in (given.get("headers") or {}).items()}
    return RawFailure.http(given.get("status"), headers, given.get("body"))


def _exit(given: dict[str, Any]) -> RawFailure:
    signal = given.get("signal")
    return RawFailure.exit(
        given.get("exit_code"),
        signal=Signals[signal] if isinstance(signal, str) else signal,
        stderr=given.get("stderr"),
        delivery=_delivery(given),
    )


def _delivery(given: dict[str, Any]) -> Delivery | None:
    return Delivery(given["delivery"]) if given.get("delivery") else None


_SHAPES: Final[Mapping[Surface, _Shape]] = MappingProxyType(
    {
        Surface.ACP_ERROR: _Shape(
            {"code": _WHOLE, "message": _TEXT, "data": _ANY, "advertised_models": _TEXTS},
            _acp_error,
        ),
        Surface.HTTP: _Shape({"status": _WHOLE, "headers": _HEADERS, "body": _ANY}, _http),
        Surface.EXCEPTION: _Shape(
            {"text": _TEXT, "type": _TEXT},
            lambda given: RawFailure.exception_text(
                given.get("text"), type_name=given.get("type") or ""
            ),
        ),
        Surface.EXIT: _Shape(
            {"exit_code": _WHOLE, "signal": _SIGNAL, "stderr": _TEXT, "delivery": _DELIVERY}, _exit
        ),
        Surface.STDERR: _Shape(
            {"stderr": _TEXT, "delivery": _DELIVERY},
            lambda given: RawFailure.from_stderr(given.get("stderr"), delivery=_delivery(given)),
        ),
        Surface.TEXT_CHUNK: _Shape(
            {"text": _TEXT, "messageId": _TEXT},
            lambda given: RawFailure.text_chunk(
                given.get("text"), message_id=given.get("messageId")
            ),
        ),
        Surface.RECORD: _Shape({}, RawFailure.from_record),
        Surface.ENVELOPE: _Shape({}, RawFailure.from_envelope),
    }
)
"""A record and an envelope are taken as they came: what they may hold is the classifier's."""

_CONTEXT: Final[Mapping[str, _Sort]] = MappingProxyType(
    {
        "advertised_models": _TEXTS,
        "attachments": _YES_NO,
        "phase": _PHASE,
        "text_shown": _YES_NO,
        "tool_run": _YES_NO,
        "wall_now": _NUMBER,
    }
)


def read_row(line: bytes, *, speaker: str | None, now: float | None) -> Row:
    """Read one line.  `speaker` and `now` are for lines that do not say.  Raises BadRow."""
    value = _from_json(line)
    if not isinstance(value, dict):
        raise BadRow(sentence(shown(value), "a JSON object"), hint=_EXAMPLE)
    if "surface" not in value and isinstance(value.get("error"), dict):
        value = {**value, "surface": "acp_error", "input": value["error"]}  # a JSON-RPC answer
    surface = _surface(value)
    given = value.get("input")
    if not isinstance(given, dict):
        raise BadRow(sentence(shown(given), "an object"), "input", _EXAMPLE)
    shape = _SHAPES[surface]
    if shape.fields:
        _check(given, shape.fields, "input")
    named = value.get("speaker", speaker)
    if named is not None and not isinstance(named, str):
        raise BadRow(sentence(shown(named), "text"), "speaker")
    return Row(shape.make(given), named, _context(value, given, now), value.get("id"))


_EXAMPLE: Final = """for example {"surface": "http", "input": {"status": 529}}"""


def _from_json(line: bytes) -> object:
    try:
        text = line.removeprefix(b"\xef\xbb\xbf").decode()
        return json.loads(text, parse_constant=_not_json)
    except UnicodeDecodeError as error:
        raise BadRow(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise BadRow(f"not JSON: {error.msg} at column {error.colno}", hint=_EXAMPLE) from None
    except RecursionError:
        raise BadRow("not JSON that anybody sends: nested too deeply") from None
    except ValueError as error:  # a number of 5,000 digits
        raise BadRow(f"not JSON: {str(error).partition(';')[0]}") from None


def _not_json(name: str) -> NoReturn:
    raise BadRow(f"{name} is not JSON")


def _surface(value: dict[str, Any]) -> Surface:
    name = value.get("surface")
    names = [s.value for s in Surface]
    if isinstance(name, str) and name in names:
        return Surface(name)
    raise BadRow(
        sentence(shown(name), f"one of {', '.join(names)}"), "surface", _meant(name, names)
    )


def _check(given: dict[str, Any], fields: Mapping[str, _Sort], at: str) -> None:
    for name, value in given.items():
        sort = fields.get(name)
        if sort is None:
            known = f"known in {at}: {', '.join(fields)}"
            raise BadRow(
                "no such field", f"{at}.{shown(name)[1:-1]}", _meant(name, fields) or known
            )
        if value is not None and not sort.takes(value):
            raise BadRow(sentence(shown(value), sort.words), f"{at}.{name}")


def _meant(name: object, names: Any) -> str:
    close = difflib.get_close_matches(str(name)[:40], list(names), n=1)
    return f"did you mean {close[0]}?" if close else ""


def _context(value: dict[str, Any], given: dict[str, Any], now: float | None) -> Context:
    said = value.get("context", {})
    if not isinstance(said, dict):
        raise BadRow(sentence(shown(said), "an object"), "context")
    _check(said, _CONTEXT, "context")
    known = {name: v for name, v in said.items() if v is not None}
    models = given.get("advertised_models", known.get("advertised_models"))
    return Context(
        advertised_models=None if models is None else tuple(models),
        attachments=known.get("attachments", False),
        phase=Phase(known.get("phase", Phase.PROMPT)),
        text_shown=known.get("text_shown", False),
        tool_run=known.get("tool_run", False),
        wall_now=known.get("wall_now", now),
    )
