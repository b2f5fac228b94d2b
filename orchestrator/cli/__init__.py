"""The commands: argument parsing and printing, nothing else."""


def main() -> None:
    """Entry point of the `orchestrator` command."""
