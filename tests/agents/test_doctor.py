"""What `orchestrator doctor` finds out about the real agents."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from tests.agents.kinds import CLAUDE, CODEX, KINDS, OPENCODE, environment
from tests.agents.provider import Answer, Provider
from tests.agents.stage import folders

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]

_LIMIT_S = 250
_WELL = "start", "session", "answer", "cancel", "kill", "respawn", "load", "goodbye"
_MENDED = "retry", "reload", "transcript", "unstick", "clean"
FOUND = {
    CLAUDE: {"records": "yes", "model": "yes"},
    CODEX: {"records": "yes", "model": "partly"},  # a model of the user's own is not set again
    OPENCODE: {"records": "no", "model": "no"},  # it is set up with one model
}
HOPES = {
    CLAUDE: {"incident": "yes", "swap": "yes"},
    CODEX: {"incident": "yes", "swap": "partly"},
    OPENCODE: {"incident": "partly", "swap": "no"},
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_doctor_finds_out_what_recovery_can_do_with_a_real_agent(kind, installed):
    told, asked = looked_at(kind, installed, "--prompt", "Why do the tests fail?")
    checks = {check["name"]: check["mark"] for check in told["checks"]}
    hopes = {hope["name"]: hope["mark"] for hope in told["recovery"]}
    assert checks == {**dict.fromkeys(_WELL, "yes"), **FOUND[kind]}
    assert hopes == {**dict.fromkeys(_MENDED, "yes"), **HOPES[kind]}
    assert asked == 2


def looked_at(kind, installed, *options):
    """What the doctor says, as JSON, and how often the model was prompted."""
    words = " ".join(f"w{n}" for n in range(100))
    answers = iter([Answer()])
    provider = Provider(lambda _: next(answers, Answer(words, pause_s=0.1)))
    with (
        tempfile.TemporaryDirectory(prefix="agents-", ignore_cleanup_errors=True) as folder,
        start_blocking_portal() as portal,
    ):
        portal.call(provider.start)
        try:
            home, work = folders(Path(folder))
            env = environment(home, kind.prepare(home, provider.port))
            doctor = [sys.executable, "-m", "orchestrator.cli", "doctor", "--json"]
            command = [*doctor, "--folder", str(work), *options, "--", *kind.command(installed)]
            ran = subprocess.run(
                command, env=env, capture_output=True, text=True, timeout=_LIMIT_S, check=False
            )
        finally:
            portal.call(provider.stop)
    assert ran.returncode == 0, (ran.stdout, ran.stderr)
    return json.loads(ran.stdout), len(provider.counted)
