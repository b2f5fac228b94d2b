"""What the user reads: the provider's own sentence where there is one, and ours otherwise.

`TITLES` has one row per kind: our sentence, and whose words go first.  No sentence of ours names a
command, because no command exists on every surface.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen

from orchestrator.failure.compare import rejected_model
from orchestrator.failure.exits import ended_by_signal
from orchestrator.failure.kinds import KINDS, Kind
from orchestrator.failure.places import command, host, why
from orchestrator.failure.raw import Surface
from orchestrator.failure.redact import head, one_line, scrub, tail
from orchestrator.failure.sentences import (
    MAX_READ,
    readable,
    request_id,
    says_nothing,
    shortened,
    without_places,
)
from orchestrator.failure.verdict import MAX_TITLE, Cause, Refusal, Verdict

if TYPE_CHECKING:
    from orchestrator.failure.unwrap import Sentence
    from orchestrator.failure.view import View
    from orchestrator.failure.walk import Finding

_MAX_DETAILS: Final = 4000
_MAX_STDERR: Final = 4000
_MAX_LINE: Final = 160
"""Characters of stderr's own line inside a title of ours."""


class Words(StrEnum):
    """Whose words go into the title."""

    THEIRS = "theirs"
    """The provider's sentence; ours only when it said nothing."""
    OURS = "ours"
    """Ours: theirs does not exist or would mislead."""
    OURS_THEN_WHY = "ours_then_why"
    """Ours, and the line of stderr that says why."""


@frozen
class Title:
    """How one kind is worded."""

    ours: str
    """Our sentence; `{host}`, `{command}`, `{throttled_by}` and `{model}` are filled in."""
    words: Words = Words.THEIRS
    enough: int = 4
    """Words a provider's sentence needs before it explains anything."""


_OURS, _WHY = Words.OURS, Words.OURS_THEN_WHY

TITLES: Final[Mapping[Kind, Title]] = MappingProxyType(
    {
        Kind.OVERLOADED: Title("The model provider is overloaded. Try again in a moment."),
        Kind.SERVER_ERROR: Title("The model provider reported an internal error. Try again."),
        Kind.MODEL_UNAVAILABLE: Title(
            "The selected model is not available right now. Try again, or select another model."
        ),
        Kind.MODEL_LIST_UNAVAILABLE: Title(
            (
                "The list of models could not be loaded. Try again; if it keeps happening, sign in"
                " again."
            ),
            _OURS,
        ),
        Kind.EMPTY_RESPONSE: Title("The model gave no answer. Try again."),
        Kind.INTERNAL_ERROR: Title(
            "The agent reported an internal error. Try again, or start a new session."
        ),
        Kind.PARSE_ERROR: Title(
            "The model provider sent an answer that can't be read. Try again.", _OURS
        ),
        Kind.COMPACTION_FAILED: Title(
            "The conversation could not be shortened. Try again, or start a new session."
        ),
        Kind.RATE_LIMITED: Title(
            "{throttled_by} is throttling requests. Wait a moment, then try again."
        ),
        Kind.USAGE_LIMIT: Title(
            "The usage limit of this account is reached. It resets later.", enough=2
        ),
        Kind.BILLING: Title(
            "The account with the model provider has no credit left. Add credit, then try again.",
            enough=3,
        ),
        Kind.CONTEXT_OVERFLOW: Title(
            "The conversation is too long for the model. Start a new session."
        ),
        Kind.REQUEST_TOO_LARGE: Title(
            "The request is too large for the model provider. Start a new session or attach less.",
            enough=6,
        ),
        Kind.MESSAGE_TOO_LARGE: Title(
            "This message is too large to send. Remove or reduce what is attached."
        ),
        Kind.MAX_OUTPUT_TOKENS: Title(
            "The answer reached the model's output limit. Ask for a shorter or divided answer."
        ),
        Kind.BUDGET_EXHAUSTED: Title(
            "This turn reached its configured limit. Continue in a new session."
        ),
        Kind.AUTH_REQUIRED: Title(
            "Not signed in, or the sign-in was rejected. Sign in again.", enough=5
        ),
        Kind.ACCESS_DENIED: Title("The account is not allowed to do this.", enough=4),
        Kind.CREDENTIAL_PROPAGATION: Title(
            "The credentials were not accepted, usually because they are new and not known"
            " everywhere "
            "yet. Try again; if it keeps happening, refresh them.",
            _OURS,
        ),
        Kind.CREDENTIAL_RELOAD: Title("The agent could not load its cloud credentials again."),
        Kind.MODEL_NOT_ENTITLED: Title(
            "The model {model} is not part of this account's plan. Select another model.", _OURS
        ),
        Kind.MODEL_NOT_FOUND: Title("The model can't be used here. Select another model."),
        Kind.INVALID_REQUEST: Title("The model provider rejected the request as invalid."),
        Kind.MALFORMED_REQUEST: Title(
            "The model provider rejected this conversation as malformed. Start a new session.",
            _OURS,
        ),
        Kind.TOOL_SCHEMA_REJECTED: Title(
            "The model provider rejected the definition of a tool. Turn that tool off."
        ),
        Kind.IMAGE_REJECTED: Title(
            "The model provider rejected an image. Remove it or save it in another format."
        ),
        Kind.THINKING_BINDING: Title(
            "The stored conversation carries thinking that belongs to another conversation. "
            "Start a new session.",
            _OURS,
        ),
        Kind.THINKING_REJECTED: Title(
            "The model provider rejected the thinking stored in this conversation. "
            "Start a new session.",
            _OURS,
        ),
        Kind.CONTENT_REFUSED: Title("The model declined to answer this request."),
        Kind.PROMPT_BUSY: Title(
            "The agent is still working on an earlier prompt. This one waits until it is done.",
            _OURS,
        ),
        Kind.UNSUPPORTED: Title("The agent or the model does not support this operation."),
        Kind.CONNECTION_LOST: Title("Could not reach {host}. Try again.", _OURS),
        Kind.TLS_FAILURE: Title(
            "No secure connection to {host}: its certificate or its encryption was not accepted."
            " Check the certificate settings and any proxy in between.",
            _OURS,
        ),
        Kind.PROXY_REFUSED: Title(
            "The proxy refused the connection to {host}. Check the proxy's address and sign-in.",
            _OURS,
        ),
        Kind.AGENT_DIED: Title("The agent stopped unexpectedly. Start a new session.", _WHY),
        Kind.INNER_LOST: Title(
            "The agent lost the process that does its work. Start a new session.", _OURS
        ),
        Kind.AGENT_SHUTDOWN: Title("The agent is shutting down. Start a new session."),
        Kind.REGISTRATION_THROTTLED: Title(
            "The agent stopped because its registration was throttled. Try again in a moment.",
            _OURS,
        ),
        Kind.AGENT_NOT_FOUND: Title(
            "{command} was not found. Install it, or correct the agent's command.", _OURS
        ),
        Kind.AGENT_START_FAILED: Title("The agent did not start.", _WHY),
        Kind.AGENT_START_TIMEOUT: Title(
            "The agent took too long to start. Start a new session.", enough=6
        ),
        Kind.AGENT_OVERLOADED: Title(
            "The agent did not start because this machine is short of memory. Free memory, then "
            "start it again.",
            _OURS,
        ),
        Kind.AGENT_UNSAFE: Title(
            "The agent was not started, because its tool calls could not be checked first.", _WHY
        ),
        Kind.BINDING_MISMATCH: Title(
            "The running agent belongs to another folder or set of tools. Start a new session.",
            _OURS,
        ),
        Kind.SESSION_NOT_FOUND: Title(
            "The agent no longer knows this conversation. Start a new session.", _OURS
        ),
        Kind.SESSION_LOCKED: Title(
            "The conversation is in use by another process. Try again, or start a new session.",
            _OURS,
        ),
        Kind.REQUEST_TIMEOUT: Title(
            "The agent did not answer in the time set for it. Try again.", _OURS
        ),
        Kind.HOST_EXHAUSTED: Title("This machine has run out of a resource.", _WHY),
        Kind.UNKNOWN: Title("The agent reported an error that it did not explain.", enough=2),
        Kind.CANCELLED: Title("Cancelled.", _OURS),
        Kind.ADVISORY: Title("The agent left a notice.", enough=2),
        Kind.NOT_A_FAILURE: Title("No failure.", _OURS),
    }
)

_CAUSED: Final[Mapping[tuple[Kind, Cause], str]] = MappingProxyType(
    {
        (
            Kind.CONNECTION_LOST,
            Cause.REFUSED,
        ): (
            "Connection refused by {host}. Try again; if it keeps happening, check that it is"
            " running."
        ),
        (Kind.CONNECTION_LOST, Cause.RESET): "The connection to {host} was reset. Try again.",
        (Kind.CONNECTION_LOST, Cause.CLOSED): "The connection to {host} was lost. Try again.",
        (
            Kind.CONNECTION_LOST,
            Cause.DNS,
        ): "{host_name} could not be resolved. Check the network, then try again.",
        (Kind.CONNECTION_LOST, Cause.TIMEOUT): "Timed out waiting for {host}. Try again.",
        (
            Kind.CONNECTION_LOST,
            Cause.UNREACHABLE,
        ): "{host} can't be reached. Check the network, then try again.",
        (Kind.CONNECTION_LOST, Cause.STREAM_CUT): "The answer from {host} was cut off. Try again.",
        (
            Kind.CONNECTION_LOST,
            Cause.STALLED,
        ): "{host} stopped sending in the middle of an answer. Try again.",
        (
            Kind.AGENT_DIED,
            Cause.OOM,
        ): "The agent ran out of memory and stopped. Start a new session.",
        (Kind.AGENT_DIED, Cause.CRASH): "The agent crashed. Start a new session.",
        (
            Kind.AGENT_DIED,
            Cause.PIPE,
        ): "The agent no longer reads what is sent to it. Start a new session.",
        (
            Kind.AGENT_START_FAILED,
            Cause.NODE_VERSION,
        ): "The agent did not start: its Node.js is too old or does not fit. Install a newer one.",
        (Kind.AGENT_START_FAILED, Cause.PERMISSION): "The agent did not start: permission denied.",
        (
            Kind.AGENT_START_FAILED,
            Cause.INSTALL,
        ): "The agent did not start: a part of it, or something it needs, is missing.",
        (
            Kind.AGENT_START_FAILED,
            Cause.SANDBOX,
        ): "The agent did not start: its sandbox could not be set up.",
        (
            Kind.AGENT_START_FAILED,
            Cause.DELEGATE,
        ): "The agent did not start: a part of it is missing or outdated. Install it again.",
        (
            Kind.AGENT_START_FAILED,
            Cause.ENGINE,
        ): "The agent did not start: its engine does not run on this machine.",
        (
            Kind.AGENT_START_FAILED,
            Cause.CONFIG,
        ): "The agent did not start: its configuration is not valid.",
        (
            Kind.HOST_EXHAUSTED,
            Cause.DISK,
        ): "This machine's disk is full. Free some space, then try again.",
        (
            Kind.HOST_EXHAUSTED,
            Cause.DESCRIPTORS,
        ): "This machine has too many files open. Close some programs, then try again.",
        (
            Kind.HOST_EXHAUSTED,
            Cause.MEMORY,
        ): "This machine has no memory left. Close some programs, then try again.",
    }
)
"""Where the cause says more than the kind."""

_SIGNAL_NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {
        1: "SIGHUP",
        2: "SIGINT",
        6: "SIGABRT",
        9: "SIGKILL",
        11: "SIGSEGV",
        13: "SIGPIPE",
        15: "SIGTERM",
    }
)

_CHECK_IT: Final = "Check its command and how it is set up."
_SENT_BY_OTHERS: Final = frozenset({1, 2, 9, 15})
"""Signals that meet a process from outside: whatever it wrote before says nothing about them."""


def worded(view: View, finding: Finding) -> Verdict:
    """Fill a verdict: the finding decides, this only words it."""
    kind = finding.kind
    model = rejected_model(view) if kind in _NAMES_A_MODEL else ""
    wanted = TITLES[kind].words is not Words.OURS or _speaks_for_itself(view, finding)
    theirs, whole = _theirs(view, finding) if wanted else ("", "")
    title, details = _title(view, finding, theirs, whole, model)
    hint = view.hint
    return Verdict.of(
        kind,
        title,
        transient=True if kind is Kind.COMPACTION_FAILED and finding.transient else None,
        cause=finding.cause,
        details=details,
        next_step=_next_step(kind, title),
        raw_detail=_log_line(view, finding, said=bool(theirs) and title == theirs),
        retry_after_s=view.wait_s,
        resets_at=hint.resets_at,
        resets_in_s=hint.resets_in_s,
        delivery=view.raw.delivery,
        provider_said=_provider_said(view, finding),
        rejected_model=scrub(model) if model else "",
        refusal=Refusal(explanation=theirs) if kind is Kind.CONTENT_REFUSED else None,
        rule=finding.rule,
    )


def _next_step(kind: Kind, title: str) -> str:
    """What a title of ours says to do; nothing is known of a provider's own sentence."""
    return next((step for step in _steps(kind) if f". {step}" in title), "")


@cache
def _steps(kind: Kind) -> tuple[str, ...]:
    """Everything that titles of this kind say to do."""
    ours = (TITLES[kind].ours, *(said for (of, _), said in _CAUSED.items() if of is kind))
    steps = (said.partition(". ")[2] for said in ours)
    return tuple(dict.fromkeys(step for step in steps if step))


_NAMES_A_MODEL: Final = frozenset(
    {Kind.MODEL_NOT_ENTITLED, Kind.MODEL_UNAVAILABLE, Kind.MODEL_NOT_FOUND}
)


def _theirs(view: View, finding: Finding) -> tuple[str, str]:
    """The provider's sentence for the title and the whole of what it said; both may be empty."""
    said = _speaking_sentence(view, finding)
    if said is None:
        return "", ""
    if _speaks_for_itself(view, finding):
        text = said.original if len(said.original) <= MAX_READ else head(said.original, MAX_READ)
        whole = without_places(scrub(" ".join(text.split())))
        return shortened(whole, MAX_TITLE), whole
    whole = readable(said.original)
    if says_nothing(whole) or not _is_said(whole, view):
        return "", ""
    identity = request_id(said.original) if b"id" in said.plain else ""
    if identity and len(whole) + len(identity) + 16 <= MAX_TITLE:
        whole = f"{whole} (request id: {scrub(identity)})"
    return shortened(whole, MAX_TITLE), whole


def _is_said(text: str, view: View) -> bool:
    """More than one word; somebody's own exception may hold no more than one."""
    word = text.rstrip(".!")
    one = view.raw.surface is Surface.EXCEPTION and word.isalpha() and len(word) >= _A_WORD
    return " " in text or one or _dense(text)


_A_WORD: Final = 3
"""Letters."""


def _speaks_for_itself(view: View, finding: Finding) -> bool:
    """An envelope's message and a notice are finished text: only redacted, never rewritten."""
    return view.raw.surface is Surface.ENVELOPE or finding.kind is Kind.ADVISORY


def _speaking_sentence(view: View, finding: Finding) -> Sentence | None:
    """The text that explains the failure best: a message field, the deepest, where there is one."""
    texts = [s for s in view.sentences if not s.code]
    keyed = [s for s in texts if s.keyed and b" " in s.plain]
    matched = finding.sentence
    if matched is not None and not matched.code and (matched.keyed or not keyed):
        return matched
    if keyed:
        return max(keyed, key=lambda s: (s.provider, s.level, len(s.plain) > _A_SENTENCE))
    provider = [s for s in texts if s.provider]
    return max(provider or texts, key=lambda s: min(len(s.plain), 400), default=None)


_A_SENTENCE: Final = 12


def _dense(text: str) -> bool:
    """Written without spaces between words, as Chinese and Japanese are."""
    return len(text) > 3 and any("\u3040" <= c <= "\u9fff" for c in text[:40])  # noqa: PLR2004


def _title(view: View, finding: Finding, theirs: str, whole: str, model: str) -> tuple[str, str]:
    row = TITLES[finding.kind]
    explains = len(theirs.split()) >= row.enough or _dense(theirs)
    finished = _speaks_for_itself(view, finding) and bool(theirs)
    if finished or (row.words is Words.THEIRS and explains and not _is_html(view)):
        return theirs, _details(whole) if len(whole) > MAX_TITLE else ""
    ours = row.ours
    if finding.cause is not None:
        ours = _CAUSED.get((finding.kind, finding.cause), ours)
    ours = _filled(ours, view, model)
    if row.words is Words.OURS_THEN_WHY:
        return _with_reason(ours, view, finding, theirs)
    if row.words is Words.THEIRS and theirs and not _is_html(view):
        return f"{ours} ({theirs.rstrip('.')})" if _adds(theirs, ours) else ours, ""
    return ours, ""


def _details(whole: str) -> str:
    return whole if len(whole) <= _MAX_DETAILS else f"{whole[:_MAX_DETAILS]}…"


def _adds(theirs: str, ours: str) -> bool:
    """A short text of theirs says something that our sentence does not."""
    return theirs.lower().rstrip(".") not in ours.lower()


def _is_html(view: View) -> bool:
    return any(
        b"<html" in s.plain or b"<!doctype" in s.plain or b"</" in s.plain for s in view.sentences
    )


def _filled(text: str, view: View, model: str) -> str:
    """Our sentence with its places filled in."""
    if "{" not in text:
        return text
    peer = host(view) if "{host" in text else ""
    name = command(view) if "{command}" in text else ""
    filled = text.format(
        host=peer or "the model provider",
        command=f"The command {name}" if name else "The agent's command",
        host_name=f"The host name {peer}" if peer else "The model provider's host name",
        throttled_by=view.speaker.throttled_by,
        model=scrub(model) or "that was asked for",
    )
    return filled[0].upper() + filled[1:]


def _with_reason(ours: str, view: View, finding: Finding, theirs: str) -> tuple[str, str]:
    """Our sentence, the signal or exit code, and the line that says why."""
    raw = view.raw
    line = without_places(why(tail(raw.stderr, MAX_READ))) if raw.stderr else theirs
    if (
        raw.surface is Surface.EXIT
        and finding.kind is Kind.AGENT_DIED
        and finding.cause in {Cause.EXIT, Cause.SIGNAL, None}
    ):
        number, code = ended_by_signal(raw.exit_code, raw.signal), raw.exit_code
        if number is not None:
            name = _SIGNAL_NAMES.get(number, f"signal {number}")
            memory = ", often because the machine is short of memory" if number == 9 else ""  # noqa: PLR2004
            ours = f"The agent was stopped by {name}{memory}. Start a new session."
            if number in _SENT_BY_OTHERS:
                return ours, ""
        elif code is not None:
            ours = f"The agent stopped with exit code {code}. Start a new session."
    line = _reason(line)
    if not line and finding.rule == "exit.while_starting" and raw.exit_code is not None:
        ours = f"The agent ended with exit code {raw.exit_code} before it answered. {_CHECK_IT}"
    if not line or line.lower() in ours.lower():
        return ours, ""
    return f"{ours} ({line})", ""


def _reason(line: str) -> str:
    """A line of stderr as a reason in brackets."""
    return shortened(" ".join(line.split()), _MAX_LINE).removeprefix("Error: ").rstrip(".")


def _provider_said(view: View, finding: Finding) -> bool:
    """A provider or an adapter speaks, so what is unknown is a service's failure."""
    surface = view.raw.surface
    if surface is Surface.ENVELOPE:
        return finding.rule == "envelope.provider.unknown"
    if surface in {Surface.ACP_ERROR, Surface.HTTP, Surface.RECORD}:
        return True
    if surface is Surface.EXCEPTION:
        return view.raw.status is not None
    return surface is Surface.TEXT_CHUNK and finding.kind is not Kind.NOT_A_FAILURE


def _log_line(view: View, finding: Finding, *, said: bool) -> str:
    """The failure as it arrived, redacted on one line; empty when the title already says it."""
    if said or not KINDS[finding.kind].is_failure:
        return ""
    frame = _frame(view)
    only = next(iter(frame.values())) if len(frame) == 1 else None
    return one_line(only if isinstance(only, str) else frame)


def _frame(view: View) -> dict[str, Any]:
    """The failure as it arrived, for the log; headers stay out, and of stderr its end is shown."""
    raw, stderr = view.raw, view.raw.stderr
    if len(stderr) > _MAX_STDERR:
        left_out = len(stderr) - _MAX_STDERR
        stderr = f"({left_out} characters before) ...{tail(stderr, _MAX_STDERR)}"
    frame: dict[str, Any] = {
        "code": raw.code,
        "status": raw.status,
        "message": raw.message,
        "data": raw.data,
        "body": raw.body,
        "exception": list(raw.exception_types),
        "causes": list(raw.causes),
        "errno": raw.errno,
        "exit_code": raw.exit_code,
        "signal": raw.signal,
        "stderr": stderr,
    }
    return {name: value for name, value in frame.items() if value not in (None, "", [])}
