"""How an attempt's end becomes an event.

What an agent returned or raised is made a value before anything is decided about it.  Whether an
answer with nothing in it is an `empty_response` is the agent's to say: only the transport knows
whether it would have seen text.
"""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.failure.verdict import Refusal, Verdict
from orchestrator.runner.agent import AttemptEnd
from orchestrator.turn.events import Event, Failed, Finished, Live, Refused, StopReason


def event_of(
    end: AttemptEnd, number: int, now: float, live: Live, luck: Callable[[], float]
) -> Event:
    """Say in the machine's words how attempt `number` ended.

    Raises TypeError for something no attempt may return.
    """
    if end is None:
        return Finished(now, live, number)
    if isinstance(end, StopReason):
        return Finished(now, live, number, end)
    if isinstance(end, Verdict):
        return Failed(now, live, number, end, luck())
    if isinstance(end, Refusal):
        return Refused(now, live, number, end)
    raise TypeError(
        f"attempt: {end!r} is not allowed; a StopReason, RawFailure, Verdict, Refusal or None is"
    )
