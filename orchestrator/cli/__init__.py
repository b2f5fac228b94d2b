"""The commands: argument parsing and printing, nothing else."""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Entry point of the `orchestrator` command."""
    from orchestrator.cli.app import run  # noqa: PLC0415 - the parser is loaded by the command only

    open_streams()
    sys.exit(run(sys.argv[1:]))


def open_streams() -> None:
    """Make every stream usable: one that the caller closed leads nowhere, none chokes on a name."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115, PTH123 - lives as long as we
            setattr(sys, name, stream)
        if mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
