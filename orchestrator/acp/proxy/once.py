"""Something that may be done once, however many ways lead to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVarTuple

from attrs import define

Ts = TypeVarTuple("Ts")


@define
class Once(Generic[*Ts]):
    """Calls something at the first call only."""

    _call: Callable[[*Ts], object]
    done: bool = False

    def __call__(self, *arguments: *Ts) -> None:
        if not self.done:
            self.done = True
            self._call(*arguments)
