"""The examination: every check that makes sense, one after the other."""

from __future__ import annotations

from orchestrator.acp.doctor.checks import CHECKS, WITH_PROMPT, Check, Told
from orchestrator.acp.doctor.findings import Finding, Findings, Mark, mark_of
from orchestrator.acp.doctor.patient import NoSessionError, Patient
from orchestrator.acp.process import WireError
from orchestrator.acp.runtime import StartFailedError
from orchestrator.failure.verdict import Phase


async def examine(patient: Patient) -> Findings:
    """Run the checks; only the first one of an agent that can't start."""
    for check in CHECKS:
        finding = Finding(check.name, *await _outcome(patient, check))
        patient.found[check.name] = finding
        patient.tell(finding)
        if check.name == "start" and finding.mark is Mark.NO:
            break
    return patient.found


def failed(found: Findings) -> bool:
    """Whether something that every turn needs did not work."""
    return any(mark_of(found, check.name) is Mark.NO for check in CHECKS if check.vital)


async def _outcome(patient: Patient, check: Check) -> Told:
    if check.costs and not patient.prompt:
        return Mark.UNTRIED, f"{check.title}: not tried; {WITH_PROMPT}."
    for need in check.needs:
        if mark_of(patient.found, need) in (Mark.NO, Mark.UNTRIED):
            return Mark.UNTRIED, f"{check.title}: not tried, since {need} did not work."
    try:
        return await check.run(patient)
    except (StartFailedError, NoSessionError) as error:
        patient.refusal = patient.refusal or error.verdict
        return Mark.NO, f"{check.title}: {error.verdict.title}"
    except WireError as error:
        verdict = patient.runtime.understand(error.raw, Phase.PROMPT)
        return Mark.NO, f"{check.title}: {verdict.title}"
    except TimeoutError:
        return Mark.NO, f"{check.title}: no answer in time."
