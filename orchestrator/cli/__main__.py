"""`python -m orchestrator.cli`, where the command itself is not on the path."""

from orchestrator.cli import main

main()
