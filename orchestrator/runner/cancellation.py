"""Telling a cancellation of ours from one that merely came out of foreign code.

On asyncio an agent that awaits a task which its own library has cancelled raises `CancelledError`,
although nobody cancelled the turn.  Passed on, it would end the host's task without a word.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

CANCELLED: Final = asyncio.CancelledError
"""Trio's own can't be raised by accident."""


def this_task() -> asyncio.Task[Any] | None:
    """Return the task that runs, where the loop is asyncio's."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def is_ours() -> bool:
    """Whether somebody has asked this very task to end; never on another loop than asyncio's."""
    task = this_task()
    return task is not None and task.cancelling() > 0


def without_failures(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What is left of a cancellation that met failures on its way out of an agent's own tasks.

    Whoever cancels a turn is not told of what its attempt failed with at that moment.
    """
    return group.split(Exception)[1] or group
