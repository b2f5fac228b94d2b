"""What a setting may be: one small class per sort of value.

Each is an attrs validator, and says the same rule as words (for people) and as JSON Schema (for
tools), so that the three cannot disagree.  `takes` is the question behind all of them; it never
raises, whatever it is asked about.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, Final

from attrs import Attribute, frozen

FOREVER_S: Final = 30 * 86_400
"""No wait of a chat turn is longer than a month; more is a typing error."""
_LONGEST_SHOWN: Final = 60


class Allowed(ABC):
    """The rule of one setting."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What is allowed, to stand before "is allowed"."""

    @abstractmethod
    def takes(self, value: object) -> bool:
        """Whether `value` is allowed."""

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """The rule as JSON Schema 2020-12."""

    def __call__(self, _: object, attribute: Attribute[Any], value: object) -> None:
        """Raise ValueError that names the field, the value and the range."""
        if not self.takes(value):
            raise ValueError(f"{attribute.name}: {sentence(shown(value), self.words)}")


@frozen
class Number(Allowed):
    """A finite number; never a boolean."""

    low: float
    high: float

    @property
    def words(self) -> str:
        return f"a number from {plain(self.low)} to {plain(self.high)}"

    def takes(self, value: object) -> bool:
        # NaN compares false and infinity is above `high`, so the range refuses both.
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        return self.low <= value <= self.high

    def schema(self) -> dict[str, Any]:
        return {"type": "number", "minimum": self.low, "maximum": self.high}


@frozen
class Seconds(Number):
    """A duration.  In memory a number of seconds; read from outside also as `5m` or `1h30m`."""

    high: float = FOREVER_S

    @property
    def words(self) -> str:
        return f'{super().words} (seconds, or a duration such as "1h30m")'

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [super().schema(), {"type": "string", "pattern": DURATION}]}


DURATION: Final = (
    r"^(?=[0-9])(?:[0-9]+(?:\.[0-9]+)?d)?(?:[0-9]+(?:\.[0-9]+)?h)?"
    r"(?:[0-9]+(?:\.[0-9]+)?m)?(?:[0-9]+(?:\.[0-9]+)?s?)?$"
)
"""Days, hours, minutes, seconds, in this order; a bare number is seconds.  No milliseconds."""


@frozen
class Whole(Allowed):
    """A whole number; never a boolean, never a fraction that happens to be whole."""

    low: int
    high: int

    @property
    def words(self) -> str:
        return f"a whole number from {self.low} to {self.high}"

    def takes(self, value: object) -> bool:
        if isinstance(value, bool) or not isinstance(value, int):
            return False
        return self.low <= value <= self.high

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


@frozen
class YesNo(Allowed):
    """True or false, and nothing that merely looks like it."""

    @property
    def words(self) -> str:
        return "true or false"

    def takes(self, value: object) -> bool:
        return isinstance(value, bool)

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@frozen
class Text(Allowed):
    """One printable line, which may be empty."""

    longest: int = 200

    @property
    def words(self) -> str:
        return f"one printable line of at most {self.longest} characters"

    def takes(self, value: object) -> bool:
        return isinstance(value, str) and len(value) <= self.longest and value.isprintable()

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": self.longest}


@frozen
class Texts(Allowed):
    """A tuple of non-empty printable lines, each once."""

    most: int = 100

    @property
    def words(self) -> str:
        return f"a list of at most {self.most} non-empty texts without repeats"

    def takes(self, value: object) -> bool:
        if not isinstance(value, tuple) or len(value) > self.most:
            return False
        line = Text()
        return all(line.takes(v) and v.strip() for v in value) and len(set(value)) == len(value)

    def schema(self) -> dict[str, Any]:
        line = {"type": "string", "maxLength": Text().longest, "pattern": r"\S"}
        return {"type": "array", "items": line, "maxItems": self.most, "uniqueItems": True}


def sentence(value: str, words: str) -> str:
    """The one sentence for a value that is not allowed."""
    return f"{value} is not allowed; {words} is"


def plain(number: float) -> str:
    """A number as people write it: `2` and not `2.0`, `2592000` and not `2.592e+06`."""
    return str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number)  # noqa: PLR2004 - floats are exact whole numbers up to here


def shown(value: object) -> str:
    """Any value on one short ASCII line, spelled as in TOML.  Never raises."""
    try:
        text = json.dumps(list(value) if isinstance(value, tuple) else value, default=repr)
    except (ValueError, TypeError, RecursionError):  # a number of 5,000 digits, a ring, odd keys
        text = "a number this long" if isinstance(value, int) else "this value"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 4]} ..."
