"""The public surface: what it holds, and what importing it costs."""

import subprocess
import sys

import pytest

import orchestrator

HEAVY = ("litestar", "hypercorn", "prometheus_client", "cattrs", "cyclopts", "rich", "optuna")


def loaded_by(statement):
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


@pytest.mark.parametrize("name", orchestrator.__all__)
def test_each_public_name_is_there(name):
    assert getattr(orchestrator, name) is not None
    assert name in dir(orchestrator)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = orchestrator.Nonsense


def test_the_package_and_its_runner_load_no_web_metrics_or_agent_parts():
    for statement in ("import orchestrator", "from orchestrator import Orchestrator, Settings"):
        names = loaded_by(statement)
        assert not [name for name in HEAVY if name in names], statement
        rooms = ("acp", "service", "metrics", "cli", "simulate", "journal")
        assert not [room for room in rooms if f"orchestrator.{room}" in names], statement


def test_the_package_itself_loads_nothing_at_all():
    assert [n for n in loaded_by("import orchestrator") if n.startswith("orchestrator.")] == []


def test_the_names_listed_for_checkers_are_the_names_that_load():
    assert set(orchestrator.__all__) == set(orchestrator._HOME_OF)
