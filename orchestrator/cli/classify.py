"""`orchestrator classify`: raw failures in, one verdict a line out."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

from rich.text import Text

from orchestrator.cli.codes import Exit, Halt
from orchestrator.cli.explained import walk_as_json, walk_for_people
from orchestrator.cli.rows import BadRow, Row, read_row
from orchestrator.cli.terminal import STDIN, Output, sentence
from orchestrator.failure.classify import classify as understand
from orchestrator.failure.explain import Explanation
from orchestrator.failure.explain import explain as explained
from orchestrator.failure.kinds import Kind
from orchestrator.failure.redact import terminal_line
from orchestrator.failure.rule import RuleSet
from orchestrator.failure.rules.user import BadRulesError, compile_rules
from orchestrator.failure.verdict import Verdict
from orchestrator.settings.toml_file import UnusableFileError, file_name, read_table

_PLAIN: Final = Output()


def classify(
    file: Path | None = None,
    /,
    *,
    speaker: str | None = None,
    now: str | None = None,
    explain: bool = False,
    rules: tuple[Path, ...] = (),
    output: Output = _PLAIN,
) -> int:
    """Say what raw failures are: JSON lines in, one verdict a line out.

    A line is {"surface": NAME, "input": {...}}, or a JSON-RPC answer with an "error".  Verdicts are
    JSON lines too, unless stdout is a terminal.  A line that is not understood is reported with its
    number and field, and the others still come out.  Exit code 2 if there was one, else 4 if a
    failure matched no rule.

    Surfaces and their input: acp_error {code, message, data, advertised_models}; http {status,
    headers, body}; exception {text, type}; exit {exit_code, signal, stderr, delivery}; stderr
    {stderr, delivery}; text_chunk {text, messageId}; record and envelope, as they came.

    Parameters
    ----------
    file
        JSON lines; - or nothing reads stdin.
    speaker
        Who reported the failures (claude, codex, kiro, ...), where a line does not say.
    now
        The moment of the failures, for reset times such as "resets 5:50pm": POSIX seconds or
        RFC 3339.  Default: the clock.
    explain
        Also each step of the walk: the rules that had an opinion, what they matched, and what
        became of them.
    rules
        Your own rules (TOML); may be repeated.  They speak before the built-in ones.
    """
    wall_now, table = _moment(now), _rules(rules, output)
    count = bad = unmatched = 0
    with _lines(file) as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            count += 1
            try:
                row = read_row(line, speaker=speaker, now=wall_now)
            except BadRow as error:
                bad += 1
                _complain(output, number, error)
                continue
            verdict, walk = _understand(row, table, explain=explain)
            unmatched += verdict.kind is Kind.UNKNOWN
            _print(output, row, verdict, walk)
            sys.stdout.flush()
    return _end(count, bad, unmatched)


def _understand(
    row: Row, rules: RuleSet | None, *, explain: bool
) -> tuple[Verdict, Explanation | None]:
    if explain:
        walk = explained(row.raw, speaker=row.speaker, context=row.context, rules=rules)
        return walk.verdict, walk
    return understand(row.raw, speaker=row.speaker, context=row.context, rules=rules), None


def _rules(files: tuple[Path, ...], output: Output) -> RuleSet | None:
    """The built-in rules and those of the files, or None for the built-in ones alone.

    One unreadable file of several drops out with a warning; alone it is what the user asked for.
    """
    if not files:
        return None
    documents: list[tuple[str, Mapping[str, Any] | None]] = []
    for file in files:
        try:
            documents.append((file_name(file), read_table(file)))
        except UnusableFileError as error:
            if len(files) == 1:
                raise Halt("unreadable_file", str(error), field="--rules") from None
            output.warn(f"{error}; its rules are left out")
    try:
        return compile_rules(documents).rules
    except BadRulesError as error:
        raise Halt(
            "bad_rules",
            "the rules cannot be used, so none of them is",
            field="--rules",
            problems=error.problems,
        ) from None


def _moment(text: str | None) -> float:
    if text is None:
        return time.time()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    try:
        seconds = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() if moment else float(text)
    except ValueError:
        seconds = float("nan")
    if not 0 <= seconds < 2**33:  # the year 2242, so that no date overflows
        raise Halt(
            "usage",
            f"{text!r} is not a moment",
            field="--now",
            hint="for example --now 2026-11-30T20:00:00Z, or POSIX seconds",
        )
    return seconds


@contextmanager
def _lines(file: Path | None) -> Iterator[BinaryIO]:
    if file is None and sys.stdin.isatty():
        hint = "for example: orchestrator classify failures.jsonl"
        raise Halt("usage", "nothing to read: name a FILE or pipe JSON lines in", hint=hint)
    if file is None or file == STDIN:
        yield sys.stdin.buffer
        return
    try:
        stream = file.open("rb")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Halt("unreadable_file", f"{file}: {reason}", field="FILE") from None
    with stream:
        yield stream


def _complain(output: Output, number: int, error: BadRow) -> None:
    if output.json:
        output.message(
            {
                "code": "bad_input",
                "message": error.message,
                "line": number,
                "field": error.field or None,
                "hint": error.hint or None,
            }
        )
        return
    hint = f"; {error.hint}" if error.hint else ""
    output.error(f"line {number}: {error}{hint}")


def _print(output: Output, row: Row, verdict: Verdict, walk: Explanation | None) -> None:
    if output.json or not sys.stdout.isatty():
        explanation = {"explanation": walk_as_json(walk)} if walk else {}
        output.data(as_json(row, verdict) | explanation)
        return
    out = output.stdout
    sentence(out, _for_people(verdict))
    for line in walk_for_people(walk) if walk else ():
        sentence(out, line)


def as_json(row: Row, verdict: Verdict) -> dict[str, object]:
    """A verdict for programs; `id` only where the line had one."""
    return ({} if row.id is None else {"id": row.id}) | {
        "kind": verdict.kind,
        "cause": verdict.cause,
        "category": verdict.category,
        "transient": verdict.transient,
        "network_path": verdict.network_path,
        "recovery": verdict.recovery,
        "actions": list(verdict.actions),
        "structural": verdict.structural,
        "retry_after_s": verdict.retry_after_s,
        "resets_at": verdict.resets_at,
        "title": verdict.title,
        "rule": verdict.rule,
    }


def _for_people(verdict: Verdict) -> Text:
    """Kind, what follows, and what the user reads, on one line."""
    kind = f"{verdict.kind}/{verdict.cause}" if verdict.cause else str(verdict.kind)
    follows, style = _what_follows(verdict)
    line = Text.assemble((kind.ljust(_KIND_WIDTH), "bold"), "  ", (follows.ljust(20), style), "  ")
    return line.append(terminal_line(verdict.title))


_KIND_WIDTH: Final = max(map(len, Kind))


def _what_follows(verdict: Verdict) -> tuple[str, str]:
    if verdict.recovery:
        return str(verdict.recovery), "cyan"
    if verdict.resets_at is not None and not verdict.transient:
        return datetime.fromtimestamp(verdict.resets_at, UTC).strftime(
            "until %m-%d %H:%MZ"
        ), "yellow"
    if not verdict.transient:
        return "ends", "red"
    hint = verdict.retry_after_s
    return ("again" if hint is None else f"again after {hint:g} s"), "green"


def _end(count: int, bad: int, unmatched: int) -> int:
    if bad:
        raise Halt("bad_input", f"{bad} of {count} lines could not be read as a failure")
    if unmatched:
        raise Halt(
            "no_rule_matched",
            f"{unmatched} of {count} failures matched no rule",
            hint="--explain shows what was read, --rules FILE adds a wording",
        )
    return Exit.OK
