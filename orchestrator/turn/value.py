"""What is built anew for each failure: values that never leave the room.

A frozen attrs class writes each field through `object.__setattr__`, at ten times the price of an
assignment.  What crosses the room's border (events, effects, records, settings) pays that, because
foreign code holds it.  The rest is frozen where the type checker looks, and plain slots at run
time: no code of ours gets past the check.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attrs import frozen as value
else:
    from attrs import define

    value = partial(define, unsafe_hash=True)

__all__ = ["value"]
