"""The anyio driver over the turn machine, and the embedding API.

`orchestrator.py` is what is shared, `session.py` one conversation, `turn.py` one turn: the only
code here that drives a machine.  `agent.py` is what a host implements, `progress.py` what it is
told, `delivery.py` where records go.  `decorator.py` and `tenacity_bridge.py` are for hosts that
have functions, not turns.
"""

from orchestrator.runner.agent import (
    CONTINUE,
    Agent,
    Attempt,
    AttemptEnd,
    CancellableAgent,
    Prompt,
    RecoveryResult,
    SteerableAgent,
)
from orchestrator.runner.clock import Clock
from orchestrator.runner.delivery import Observer
from orchestrator.runner.orchestrator import Orchestrator
from orchestrator.runner.progress import (
    Ended,
    NoteDelivered,
    Outcome,
    Progress,
    RecordRevised,
    RecoveryStarted,
    RetryScheduled,
    TextShown,
)
from orchestrator.runner.session import RetryRefusedError, Session
from orchestrator.runner.turn import Turn

__all__ = [
    "CONTINUE",
    "Agent",
    "Attempt",
    "AttemptEnd",
    "CancellableAgent",
    "Clock",
    "Ended",
    "NoteDelivered",
    "Observer",
    "Orchestrator",
    "Outcome",
    "Progress",
    "Prompt",
    "RecordRevised",
    "RecoveryResult",
    "RecoveryStarted",
    "RetryRefusedError",
    "RetryScheduled",
    "Session",
    "SteerableAgent",
    "TextShown",
    "Turn",
]
