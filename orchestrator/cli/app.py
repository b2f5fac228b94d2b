"""The frame: finds the command, runs it, and is the one place where anything that goes wrong ends.

No command shows a traceback.  What a user can mend is a `Halt`, raised where it is noticed; the
rest is one sentence that asks for a report.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import sys
import textwrap
from collections.abc import Sequence
from typing import Final, TextIO

from cyclopts import App, CycloptsError, Group, Parameter, UnusedCliTokensError
from rich.console import Console
from rich.text import Text

from orchestrator.cli.codes import EXITS, Exit, Halt
from orchestrator.cli.commands import COMMANDS, EXAMPLES, GROUPS
from orchestrator.cli.terminal import STDIN, console, prose, show_error
from orchestrator.failure.redact import scrub
from orchestrator.version import __version__

_NAME: Final = "orchestrator"
_UNWRITABLE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_HELP: Final = ("--help", "-h")
_ALONE: Final = (*_HELP, "--version")
"""Options that stand without a command."""


def build(*, listing: bool = False) -> App:
    """The parser, with every command of the table registered by name.

    With `listing`, it prints the help of the whole program without importing any command; else a
    command's own help is its docstring.
    """
    app = App(
        name=_NAME,
        help="Retry and recovery for chat turns over coding agents.",
        help_epilogue=_exit_codes() if listing else None,
        help_format="markdown",
        version=__version__,
        default_parameter=Parameter(negative="", show_default=False),
        group_commands=Group("Options", sort_key=len(GROUPS)),
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    groups = {name: Group(name, sort_key=order) for order, name in enumerate(GROUPS)}
    for row in COMMANDS:
        help_ = {"help": row.help} if listing else {}
        app.command(row.target, name=row.name, group=groups[row.group], **help_)
    return app


def run(tokens: Sequence[str]) -> int:
    """Run one command line and answer its exit code.  Never raises."""
    own = list(tokens[: tokens.index("--")] if "--" in tokens else tokens)
    as_json, plain = "--json" in own, "--no-color" in own
    own = [str(STDIN) if word == "-" else word for word in own]
    try:
        try:
            code = _dispatch([*own, *tokens[len(own) :]], plain=plain)
            sys.stdout.flush()
        except BrokenPipeError:
            raise
        except (KeyboardInterrupt, Exception) as error:  # noqa: BLE001 - nothing gets through
            halt = _as_halt(error)
            if halt.code == "cannot_write":
                _discard(sys.stdout)
            sys.stdout.flush()
            show_error(halt, as_json=as_json, plain=plain)
            return halt.exit
    except BrokenPipeError:
        return _close_quietly()
    return code


def _dispatch(tokens: list[str], *, plain: bool) -> int:
    if not tokens:
        _greet()
        return Exit.OK
    _known(tokens[0])
    result = build(listing=tokens[0] in _HELP)(
        tokens,
        console=prose(sys.stdout, plain=plain),
        error_console=console(sys.stderr, plain=plain),
        exit_on_error=False,
        print_error=False,
        verbose=False,
    )
    return result if isinstance(result, int) else Exit.OK


def _known(name: str) -> None:
    """Refuse an unknown command here: the parser would import every command to suggest one."""
    names = [row.name for row in COMMANDS]
    if name in names or name in _ALONE:
        return
    if name.startswith("-"):
        behind = f"for example `{_NAME} {names[0]} {name[:40]}`"
        raise Halt("usage", f"{name[:40]} goes behind a command", field="command", hint=behind)
    close = difflib.get_close_matches(name[:40], names, n=1)
    hint = f"did you mean `{_NAME} {close[0]}`?" if close else f"commands: {', '.join(names)}"
    raise Halt("usage", f"there is no command {name[:40]!r}", field="command", hint=hint)


def _close_quietly() -> int:
    """The reader went away: nothing more is said."""
    _discard(sys.stdout)
    _discard(sys.stderr)
    return Exit.CLOSED_PIPE


def _discard(stream: TextIO) -> None:
    """Let what the interpreter flushes at its end go nowhere."""
    with contextlib.suppress(OSError, ValueError):  # not a real stream: nothing to flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _as_halt(error: BaseException) -> Halt:
    if isinstance(error, Halt):
        return error
    if isinstance(error, CycloptsError):
        return _usage(error)
    if isinstance(error, KeyboardInterrupt):
        return Halt("interrupted", "stopped by Ctrl-C")
    if isinstance(error, OSError) and error.errno in _UNWRITABLE:
        return Halt("cannot_write", f"the output cannot be written: {error.strerror}")
    return _missing_extra(error) or _unexpected(error)


def _missing_extra(error: BaseException | None) -> Halt | None:
    """A package that only an extra brings; the parser wraps the import error it meets."""
    while error is not None and not isinstance(error, ModuleNotFoundError):
        error = error.__cause__
    extra = _EXTRAS.get((error.name or "").partition(".")[0]) if error is not None else None
    if error is None or extra is None:
        return None
    return Halt(
        "missing_extra",
        f"this needs the package {error.name}, which is not installed",
        hint=f"pip install 'turn-orchestrator[{extra}]'",
    )


_EXTRAS: Final = {"litestar": "service", "hypercorn": "service", "optuna": "tune"}


def _usage(error: CycloptsError) -> Halt:
    chain = " ".join((_NAME, *(error.command_chain or ())))
    field = ""
    if error.argument is not None:
        field = error.argument.name
    message = " ".join(str(error).split())
    if isinstance(error, UnusedCliTokensError):
        message = f"nothing takes {' '.join(error.unused_tokens or ())[:60]!r} here"
    return Halt("usage", message, field=field, hint=f"see `{chain} --help`")


def _unexpected(error: BaseException) -> Halt:
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    place = f"{where.tb_frame.f_globals.get('__name__', '?')}:{where.tb_lineno}" if where else "?"
    what = f"{type(error).__name__} at {place}: {scrub(str(error))}"
    return Halt(
        "unexpected",
        f"this is a mistake of {_NAME} {__version__}: {what}",
        hint="please report this line with the command you ran",
    )


def _greet() -> None:
    """What a bare `orchestrator` prints: enough to take the next step."""
    out = prose(sys.stdout)
    out.print("Retry and recovery for chat turns over coding agents.\n")
    _glossary(out, [(row.name, row.help) for row in COMMANDS], "bold")
    out.print("\nExamples:")
    _glossary(out, list(EXAMPLES), "cyan")
    out.print(f"\nMore: {_NAME} --help, {_NAME} COMMAND --help")


def _glossary(out: Console, rows: list[tuple[str, str]], style: str) -> None:
    """Terms and what they mean; a long meaning goes on below its own beginning."""
    widest = max(len(term) for term, _ in rows)
    for term, meaning in rows:
        first, *rest = textwrap.wrap(meaning, max(out.width - widest - 4, 20))
        out.print(Text.assemble("  ", (term, style), " " * (widest - len(term) + 2), first))
        for line in rest:
            out.print(" " * (widest + 4) + line)


def _exit_codes() -> str:
    return "Exit codes: " + "; ".join(f"{code.value} {words}" for code, words in EXITS.items())
