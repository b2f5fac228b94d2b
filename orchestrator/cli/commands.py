"""THE table of commands.  A new command is one row here and one function in its own file.

The function's module is imported when the command is used, or its own help is asked for.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen


@frozen
class Row:
    """One command."""

    name: str
    target: str
    """`module:function`, or `module:app` for a group of commands."""
    help: str
    group: str
    """One of GROUPS."""


GROUPS: Final = ("Run", "Tune", "Scrape", "Other")
"""Headings of the help, in order."""


COMMANDS: Final = (
    Row(
        "demo",
        "orchestrator.cli.demo:demo",
        "Watch turns fail, wait, recover and answer.",
        "Run",
    ),
    Row(
        "run",
        "orchestrator.cli.run:run",
        "Talk to any ACP agent; its failures are waited out.",
        "Run",
    ),
    Row(
        "proxy",
        "orchestrator.cli.proxy:proxy",
        "Stand between an editor and its agent: failures are waited out.",
        "Run",
    ),
    Row(
        "doctor",
        "orchestrator.cli.doctor:doctor",
        "Try out an agent and say what recovery can do with it.",
        "Run",
    ),
    Row(
        "classify",
        "orchestrator.cli.classify:classify",
        "Say what raw failures are, one verdict a line.",
        "Tune",
    ),
    Row(
        "plan",
        "orchestrator.cli.plan:plan",
        "Print the exact waits that a family of retries makes.",
        "Tune",
    ),
    Row(
        "simulate",
        "orchestrator.cli.simulate:simulate",
        "Play settings in a bad hour: who lands, who waits, what the provider feels.",
        "Tune",
    ),
    Row(
        "compare",
        "orchestrator.cli.compare:compare",
        "Put settings and known policies side by side in the same bad hour.",
        "Tune",
    ),
    Row(
        "tune",
        "orchestrator.cli.tune:tune",
        "Search for settings that do best in a bad hour.",
        "Tune",
    ),
    Row(
        "replay",
        "orchestrator.cli.replay:replay",
        "Run recorded turns again, under their own settings or under others.",
        "Tune",
    ),
    Row(
        "settings",
        "orchestrator.cli.settings:app",
        "Show, check and document the settings.",
        "Tune",
    ),
    Row(
        "metrics",
        "orchestrator.cli.metrics:app",
        "List what can be scraped, and try it out.",
        "Scrape",
    ),
    Row(
        "completion",
        "orchestrator.cli.completion:completion",
        "Print a completion script for your shell.",
        "Other",
    ),
)

EXAMPLES: Final = (
    ("orchestrator demo", "what all this is about, in ten seconds"),
    ("orchestrator run -- opencode acp", "talk to an agent through it"),
    ("orchestrator classify failures.jsonl", "what each raw failure is"),
    ("orchestrator plan connection --seed 1", "the exact waits of a window"),
    ("orchestrator settings show --origin", "where every setting comes from"),
)
"""What stands under the help of a bare `orchestrator`."""
