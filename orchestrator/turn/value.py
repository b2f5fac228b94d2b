"""Values that are built for each step of a turn, and read once.

A frozen attrs class writes each field through `object.__setattr__`, at ten times the price of an
assignment.  What the machine hands out (effects, records, the state of a session) pays that, since
foreign code reads it before it is performed, or keeps it.  What it is handed, and what stays inside
the room, is frozen where the type checker looks and plain slots at run time: nobody who changes an
event that was handled changes a turn.
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
