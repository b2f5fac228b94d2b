"""`orchestrator completion`: a static script, so that pressing Tab starts no Python."""

from __future__ import annotations

from typing import Literal

from orchestrator.cli.codes import Exit


def completion(shell: Literal["bash", "zsh", "fish"], /) -> int:
    """Print a completion script for your shell.

    Save it where your shell looks:

    - bash: ~/.local/share/bash-completion/completions/orchestrator
    - zsh: _orchestrator, in a folder of $fpath
    - fish: ~/.config/fish/completions/orchestrator.fish

    Parameters
    ----------
    shell
        Which shell it is for.
    """
    from orchestrator.cli.app import build  # noqa: PLC0415 - the frame imports the table, not us

    print(build().generate_completion(shell=shell), end="")
    return Exit.OK
