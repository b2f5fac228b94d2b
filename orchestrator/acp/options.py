"""What a session can be set to: an agent's own config options, its modes, its models.

Everything that was chosen is kept, so that a new process or session can be given it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import define, field

MODEL = "model"
"""Category of the option that picks the model."""


@define(eq=False)
class Options:
    """The options of one session, as the agent last told them."""

    chosen: dict[str, Any] = field(factory=dict)
    """Option id to value: what was set here and has to survive a new process."""
    _options: list[dict[str, Any]] = field(factory=list)

    def learn(self, part: Mapping[str, Any]) -> bool:
        """Take in a result or update; False when it lists no options, and nothing changed."""
        told = part.get("configOptions")
        if not isinstance(told, list):
            return False
        self._options = [option for option in told if isinstance(option, dict)]
        return True

    def current(self, option_id: str) -> Any:
        """What an option is set to, as far as the agent said."""
        option = next((o for o in self._options if o.get("id") == option_id), {})
        return option.get("currentValue")

    @property
    def model_option(self) -> dict[str, Any] | None:
        """The option that picks the model, where there is one."""
        models = (o for o in self._options if o.get("category") == MODEL or o.get("id") == MODEL)
        return next(models, None)

    @property
    def model(self) -> str:
        """The model in use; empty when unknown."""
        value = (self.model_option or {}).get("currentValue")
        return value if isinstance(value, str) else ""

    @property
    def served(self) -> tuple[str, ...] | None:
        """The models that can be picked; None when unknown."""
        if self.model_option is None:
            return None
        return tuple(dict.fromkeys(_values(self.model_option.get("options"))))

    def to_restore(self) -> list[tuple[str, Any]]:
        """What was chosen and is not set now."""
        return [(name, value) for name, value in self.chosen.items() if self.current(name) != value]


def _values(options: Any) -> Iterator[str]:
    """Values of a select's options, which may stand in groups."""
    for option in options if isinstance(options, list) else []:
        if not isinstance(option, dict):
            continue
        if isinstance(option.get("value"), str):
            yield option["value"]
        yield from _values(option.get("options"))
