"""The three agents: how each is started, set up for a provider on loopback, and hurried.

Their own retries are lowered by their own settings, so that a failure reaches the proxy soon.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import field, frozen

from tests.agents.install import Installed

_MODEL = "test-model"
_KEY = "sk-test"


@frozen(eq=False)
class Kind:
    """One agent."""

    name: str
    command: Callable
    """(installed) to the argument vector."""
    prepare: Callable
    """(home, port) writes what it wants to find, and returns its own part of the environment."""
    attempts: Mapping = field(factory=dict)
    """Fault to the requests it makes before it tells anybody; 1 for a fault that is not here."""
    hurry: Mapping = field(factory=dict)
    """Headers of a retryable fault that keep its own waits short."""
    inner_process: str = ""
    """Name of a process inside the adapter that can be lost on its own; empty when it is one."""
    history: tuple = ()
    """Patterns below the home of what it keeps of its sessions."""


def environment(home, own):
    """What an agent gets to see: nothing of the developer's own set-up."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "NO_PROXY": "127.0.0.1,localhost",
        "XDG_CONFIG_HOME": f"{home}/.config",
        "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_STATE_HOME": f"{home}/.local/state",
        "XDG_CACHE_HOME": f"{home}/.cache",
        **own,
    }


# --- claude --------------------------------------------------------------------------------------


def _start_claude(installed: Installed):
    package = "@agentclientprotocol/claude-agent-acp"
    return [str(installed.node), str(installed.of(package, "dist", "index.js"))]


def _prepare_claude(home, port):
    return {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}",
        "ANTHROPIC_API_KEY": "sk-ant-test",
        "CLAUDE_CONFIG_DIR": f"{home}/claude",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }


def _without(name, env):
    return {key: value for key, value in env.items() if key != name}


def _prepare_claude_seat(home, port):
    """A subscription instead of an API key."""
    rest = _without("ANTHROPIC_API_KEY", _prepare_claude(home, port))
    return {**rest, "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat-test"}


def _prepare_eager_claude(home, port):
    """With its own retries as they are by default."""
    return _without("CLAUDE_CODE_MAX_RETRIES", _prepare_claude(home, port))


# --- codex ---------------------------------------------------------------------------------------


def _start_codex(installed: Installed):
    package = "@agentclientprotocol/codex-acp"
    return [str(installed.node), str(installed.of(package, "dist", "index.js"))]


_CODEX = """\
model = "{model}"
model_provider = "loopback"
approval_policy = "never"
sandbox_mode = "read-only"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.loopback]
name = "loopback"
base_url = "http://127.0.0.1:{port}/v1"
env_key = "LOOPBACK_API_KEY"
wire_api = "responses"
requires_openai_auth = false
"""
_CODEX_BUDGETS = "request_max_retries = 0\nstream_max_retries = 1\n"


def _prepare_codex(home, port, budgets=_CODEX_BUDGETS):
    folder = Path(home, "codex")
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(_CODEX.format(model=_MODEL, port=port) + budgets)
    return {"CODEX_HOME": str(folder), "LOOPBACK_API_KEY": _KEY}


def _prepare_eager_codex(home, port):
    """With its own retries as they are by default."""
    return _prepare_codex(home, port, budgets="")


# --- opencode ------------------------------------------------------------------------------------


def _start_opencode(installed: Installed):
    return [str(installed.opencode), "acp"]


def _prepare_opencode(home, port):
    model = {"name": "Test", "limit": {"context": 100_000, "output": 4096}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Loopback",
        "options": {"baseURL": f"http://127.0.0.1:{port}/v1", "apiKey": _KEY},
        "models": {_MODEL: model},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "enabled_providers": ["loopback"],
        "model": f"loopback/{_MODEL}",
        "small_model": f"loopback/{_MODEL}",
        "provider": {"loopback": provider},
    }
    path = Path(home, "opencode.json")
    path.write_text(json.dumps(settings))
    return {
        "OPENCODE_CONFIG": str(path),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    }


_RETRYABLE = ("overloaded", "throttled", "internal", "bad_gateway", "unavailable")

CLAUDE = Kind(
    "claude",
    _start_claude,
    _prepare_claude,
    dict.fromkeys((*_RETRYABLE, "cut"), 2),
    inner_process="claude",
    history=("claude/projects",),
)
CLAUDE_SEAT = Kind("claude (seat)", _start_claude, _prepare_claude_seat, CLAUDE.attempts)
EAGER_CLAUDE = Kind("claude (own retries)", _start_claude, _prepare_eager_claude)
CODEX = Kind(
    "codex",
    _start_codex,
    _prepare_codex,
    dict.fromkeys((*_RETRYABLE, "cut"), 2),
    inner_process="codex",
    history=("codex/sessions", "codex/*.sqlite*"),
)
EAGER_CODEX = Kind("codex (own retries)", _start_codex, _prepare_eager_codex)
OPENCODE = Kind(
    "opencode",
    _start_opencode,
    _prepare_opencode,
    dict.fromkeys(_RETRYABLE, 6),
    # It has no setting for its retries; it honours this header.
    {"retry-after-ms": "50"},
    history=(".local/share/opencode/opencode.db*",),
)
KINDS = (CLAUDE, CODEX, OPENCODE)
