"""What an agent can do for a recovery, tried out on the agent itself.

`CHECKS` is the table of what is tried, in order; `REMEDIES` is what recovery can do with that.
Each check has its budget from the watchdogs, and a check that can't work is told as not tried.
No prompt is sent unless one was given: prompts cost money.
"""

from orchestrator.acp.doctor.checks import CHECKS
from orchestrator.acp.doctor.examination import examine, failed
from orchestrator.acp.doctor.findings import Finding, Findings, Mark
from orchestrator.acp.doctor.patient import Patient, bounded
from orchestrator.acp.doctor.remedies import REMEDIES, remedies

__all__ = [
    "CHECKS",
    "REMEDIES",
    "Finding",
    "Findings",
    "Mark",
    "Patient",
    "bounded",
    "examine",
    "failed",
    "remedies",
]
