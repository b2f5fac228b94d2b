"""What the checks need beside Python: Debian's prometheus and chromium, and two npm packages."""

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

NPM = {"@grafana/schema": "13.2.3", "typescript": "7.0.2"}
_PATIENCE_S = 900


def run(command, **options):
    """Run a command; gives its result, with all that it said."""
    return subprocess.run(
        [str(part) for part in command],
        check=False,
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        **options,
    )


def debian(package, command):
    """Path of a command; installs its Debian package where it is missing."""
    if shutil.which(command) is None:
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for step in (("update",), ("install", "-y", "--no-install-recommends", package)):
            said = run(["apt-get", "-qq", *step], env=quiet)
            assert said.returncode == 0, f"apt-get {step[0]}: {said.stderr}"
    found = shutil.which(command)
    assert found, f"{package} brings no {command}"
    return found


def npm_folder():
    """A folder outside the tree with the pinned packages; kept from run to run."""
    pins = json.dumps(NPM, sort_keys=True)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "turn-orchestrator" / hashlib.sha256(pins.encode()).hexdigest()[:12]
    if not (folder / "node_modules" / "typescript").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        manifest = {"private": True, "type": "module", "dependencies": NPM}
        (folder / "package.json").write_text(json.dumps(manifest), encoding="utf-8")
        said = run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=folder)
        assert said.returncode == 0, said.stderr
    return folder
