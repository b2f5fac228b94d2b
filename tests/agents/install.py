"""The real agents, from the npm registry: pinned, and installed once into the user's cache.

`python -m tests.agents.install` installs them and prints the folder.  Node comes from the package
that `node@22` itself fetches for this platform, so that the version of the machine's own Node,
which only has to bring npm, does not matter, and no install script has to run.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from attrs import frozen

NODE = "22.23.3"
PACKAGES = {
    "@agentclientprotocol/claude-agent-acp": "0.101.0",
    "@agentclientprotocol/codex-acp": "2.6.0",
    "@agentclientprotocol/sdk": "2.4.0",
    "@anthropic-ai/claude-agent-sdk": "0.3.318",
    "@openai/codex": "0.166.0",
    "opencode-ai": "1.18.33",
}
_ARCHITECTURES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_PATIENCE_S = 900
_TRIES = 3
"""A registry may fail to serve one of some hundred downloads; those it served are cached by npm."""
_PAUSE_S = 5


class NotInstalledError(Exception):
    """The agents cannot be had here; the message says what is missing."""


@frozen
class Installed:
    """Where the agents are."""

    folder: Path

    @property
    def modules(self):
        return self.folder / "node_modules"

    @property
    def node(self):
        return self.modules / node_package() / "bin" / "node"

    def of(self, package, *parts):
        """A file of a package; raises NotInstalledError when the install lacks it."""
        path = self.modules.joinpath(package, *parts)
        if not path.exists():
            text = f"{path} is missing; remove {self.folder} and run this again"
            raise NotInstalledError(text)
        return path

    @property
    def opencode(self):
        """The binary that the package's start script would pick."""
        return self.of(f"opencode-{system()}", "bin", "opencode")


def system():
    """The platform, as npm packages are named after it."""
    machine = platform.machine().lower()
    return f"{sys.platform}-{_ARCHITECTURES.get(machine, machine)}"


def node_package():
    return f"node-{'bin-' if system() == 'darwin-arm64' else ''}{system()}"


def manifest():
    """What is installed; its digest names the folder, so a new pin is a new folder."""
    return {
        "name": "turn-orchestrator-agents",
        "private": True,
        "dependencies": {node_package(): NODE, **PACKAGES},
    }


def cache_folder(environ=os.environ):
    """The user's cache by the XDG rules."""
    home = environ.get("XDG_CACHE_HOME", "")
    root = Path(home) if Path(home).is_absolute() else Path.home() / ".cache"
    return root / "turn-orchestrator" / "agents"


def install(environ=os.environ):
    """The installed agents, installed now if they were not.  Raises NotInstalledError."""
    text = json.dumps(manifest(), indent=2, sort_keys=True)
    folder = cache_folder(environ) / hashlib.sha256(text.encode()).hexdigest()[:12]
    if not folder.exists():
        npm = shutil.which("npm", path=environ.get("PATH"))
        if npm is None or shutil.which("node", path=environ.get("PATH")) is None:
            missing = "Node.js with npm is not on PATH: install it, then run this again"
            raise NotInstalledError(missing)
        folder.parent.mkdir(parents=True, exist_ok=True)
        _install_into(folder, npm, text)
    return Installed(folder)


def _npm_install(npm, folder):
    """Let npm install what the manifest in this folder names."""
    command = [npm, "install", "--ignore-scripts", "--no-audit", "--no-fund"]
    for number in range(1, _TRIES + 1):
        try:
            ran = subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_PATIENCE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            late = f"npm install did not end within {_PATIENCE_S} s; run this again"
            raise NotInstalledError(late) from None
        if ran.returncode == 0:
            return
        if number < _TRIES:
            time.sleep(_PAUSE_S)
    tail = ran.stderr.strip()[-1500:]
    text = f"npm install ended with {ran.returncode}, {_TRIES} times; the last time:\n{tail}"
    raise NotInstalledError(text)


def _install_into(folder, npm, text):
    """Install beside the folder and move it there whole: half an install is never found."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="half-") as half:
        (Path(half) / "package.json").write_text(text)
        _npm_install(npm, half)
        Installed(Path(half)).of(node_package(), "bin", "node")
        whole = Path(half) / "whole"
        whole.mkdir()
        for part in ("package.json", "package-lock.json", "node_modules"):
            (Path(half) / part).rename(whole / part)
        try:
            whole.rename(folder)
        except OSError:
            if not folder.exists():  # somebody else was faster, which is as good
                raise


if __name__ == "__main__":
    try:
        print(install().folder)  # noqa: T201 - it is a command
    except NotInstalledError as error:
        sys.exit(str(error))
