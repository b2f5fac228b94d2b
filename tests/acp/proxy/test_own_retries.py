"""Lowering an agent's own retries: by its own setting, said plainly, and never over the user's."""

import json

import pytest

from orchestrator.acp.process import Command
from orchestrator.acp.proxy.own_retries import lowered

CLAUDE = Command(("/bin/claude-agent-acp",), "/")
CODEX = Command(("/usr/bin/node", "/home/claude/codex-acp/dist/index.js"), "/")
FILE = """
model_provider = "mine"

[model_providers.mine]
base_url = "http://127.0.0.1/v1"

[model_providers.other]
request_max_retries = 7
"""
ZERO = {"request_max_retries": 0, "stream_max_retries": 0}


@pytest.fixture
def home(tmp_path):
    (tmp_path / "config.toml").write_text(FILE)
    return {"CODEX_HOME": str(tmp_path)}


def test_claude_is_given_its_variable():
    command, sentence = lowered(CLAUDE, {"A": "b"})
    assert command.env == {"A": "b", "CLAUDE_CODE_MAX_RETRIES": "0"}
    assert sentence == "claude runs with CLAUDE_CODE_MAX_RETRIES=0: no retries of its own"


def test_what_the_user_has_set_for_claude_stays():
    command, sentence = lowered(CLAUDE, {"CLAUDE_CODE_MAX_RETRIES": "7"})
    assert command is CLAUDE
    assert sentence == "CLAUDE_CODE_MAX_RETRIES is set already and stays"


def test_the_commands_own_environment_is_what_counts():
    command, _ = lowered(Command(CLAUDE.argv, "/", {"A": "b"}), {"CLAUDE_CODE_MAX_RETRIES": "7"})
    assert command.env == {"A": "b", "CLAUDE_CODE_MAX_RETRIES": "0"}


def test_codex_is_given_budgets_for_the_users_own_providers(home):
    command, sentence = lowered(CODEX, home)
    assert json.loads(command.env["CODEX_CONFIG"]) == {
        "model_providers": {"mine": ZERO, "other": {"stream_max_retries": 0}}
    }
    assert sentence == (
        "codex runs with CODEX_CONFIG: no retries of its own at mine, other;"
        " its built-in providers keep theirs"
    )


def test_what_the_user_has_put_into_codexs_variable_stays(home):
    given = {
        "model": "big",
        "model_providers": {"mine": {"stream_max_retries": 3}, "third": {"name": "Third"}},
    }
    command, _ = lowered(CODEX, {**home, "CODEX_CONFIG": json.dumps(given)})
    assert json.loads(command.env["CODEX_CONFIG"]) == {
        "model": "big",
        "model_providers": {
            "mine": {"stream_max_retries": 3, "request_max_retries": 0},
            "other": {"stream_max_retries": 0},
            "third": {"name": "Third", **ZERO},
        },
    }


@pytest.mark.parametrize("text", ["", "model = 'x'", "model_providers = 3", "= broken", "\0"])
def test_codex_without_a_provider_of_the_users_own_keeps_its_retries(tmp_path, text):
    (tmp_path / "config.toml").write_text(text)
    command, sentence = lowered(CODEX, {"CODEX_HOME": str(tmp_path)})
    assert command is CODEX
    assert sentence == "codex has no setting for its built-in providers' retries; they stay"


def test_codex_without_a_file_keeps_its_retries(tmp_path):
    assert lowered(CODEX, {"HOME": str(tmp_path)})[0] is CODEX


@pytest.mark.parametrize("text", ["{", "3", "[]", "[" * 100_000])
def test_a_variable_of_codex_that_nobody_can_read_stays(home, text):
    command, sentence = lowered(CODEX, {**home, "CODEX_CONFIG": text})
    assert command is CODEX
    assert sentence == "CODEX_CONFIG is no JSON object and stays"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("/bin/opencode", "acp", "--model", "claude"),
            "opencode documents no setting for its retries; they stay",
        ),
        (("/bin/other", "acp"), "no setting for other's own retries is known; they stay"),
    ],
)
def test_an_agent_without_such_a_setting_is_said_to_have_none(words, sentence):
    command = Command(words, "/")
    assert lowered(command, {}) == (command, sentence)
