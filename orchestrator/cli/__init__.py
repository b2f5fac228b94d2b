"""The commands: argument parsing and printing, nothing else."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the `orchestrator` command."""
    from orchestrator.cli.app import run  # noqa: PLC0415 - the parser is loaded by the command only

    sys.exit(run(sys.argv[1:]))
