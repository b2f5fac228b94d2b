"""The options by which a command is told its settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from attrs import field, frozen
from cyclopts import Parameter

from orchestrator.cli.codes import Halt
from orchestrator.cli.terminal import Output
from orchestrator.settings.load import Loaded, Problem, SettingsError, Source, load


@Parameter(name="*")
@frozen
class Chosen:
    """Which settings a command uses."""

    settings: Path | None = None
    """Settings file (TOML).  Default: $ORCHESTRATOR_SETTINGS, then the user's configuration."""
    set_: Annotated[tuple[str, ...], Parameter(name="--set")] = field(default=())
    """One setting, as PATH=VALUE; may be repeated.  Wins over file and environment."""
    strict: bool = False
    """Stop on bad settings instead of going on with the defaults."""

    @property
    def flags(self) -> dict[str, str]:
        """Each `--set` by its path."""
        flags: dict[str, str] = {}
        for text in self.set_:
            path, equals, value = text.partition("=")
            if not equals or not path.strip():
                raise Halt(
                    "usage",
                    f"{text!r} is not PATH=VALUE",
                    field="--set",
                    hint="for example --set ladders.curve.first_s=1s",
                )
            flags[path.strip()] = value
        return flags

    def load(self, output: Output) -> Loaded:
        """The settings to use; warns once and goes on with the defaults, unless strict.

        A wrong `--set` always stops the command: whoever typed it is right there.
        """
        try:
            loaded = load(self.settings, flags=self.flags, strict=self.strict)
        except SettingsError as error:
            raise halted(error.problems) from None
        if any(problem.origin.source is Source.FLAG for problem in loaded.problems):
            raise halted(loaded.problems)
        if not loaded.ok:
            output.warn(loaded.warning)
        return loaded


def halted(problems: tuple[Problem, ...]) -> Halt:
    """All problems as the end of a command."""
    count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
    return Halt(
        "bad_settings",
        f"the settings cannot be used: {count}",
        field=problems[0].path if len(problems) == 1 else "",
        hint="`orchestrator settings show --toml --defaults` prints every setting with its range",
        problems=tuple(lines(problems)),
    )


def lines(problems: tuple[Problem, ...]) -> list[str]:
    """Each problem on a line, with where it comes from."""
    return [f"{problem}  [{problem.origin}]" for problem in problems]
