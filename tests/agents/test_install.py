import json
import os

import pytest

from tests.agents.install import (
    PACKAGES,
    Installed,
    NotInstalledError,
    cache_folder,
    install,
    manifest,
    node_package,
)


def test_where_npm_is_missing_the_install_says_so(tmp_path):
    with pytest.raises(NotInstalledError, match="npm is not on PATH"):
        install({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)})


@pytest.fixture
def with_npm(tmp_path, monkeypatch):
    """Install with a shell script in npm's place; gives the cache."""
    monkeypatch.setattr("tests.agents.install._PAUSE_S", 0)

    def run(script):
        for name in ("node", "npm"):
            program = tmp_path / name
            program.write_text(f"#!/bin/sh\n{script}\n")
            program.chmod(0o755)
        path = f"{tmp_path}:{os.defpath}"
        return install({"PATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")})

    return run


def test_an_install_that_fails_says_why_and_leaves_nothing(with_npm, tmp_path):
    with pytest.raises(NotInstalledError, match=r"ended with 3, 3 times.*:\nno space left"):
        with_npm(f"echo x >> {tmp_path}/tries; echo no space left >&2; exit 3")
    assert (tmp_path / "tries").read_text() == "x\n" * 3
    assert list((tmp_path / "cache" / "turn-orchestrator" / "agents").iterdir()) == []


def test_a_download_that_fails_once_is_tried_again(with_npm, tmp_path):
    node = f"node_modules/{node_package()}/bin"
    installed = with_npm(
        f"test -e {tmp_path}/failed || {{ touch {tmp_path}/failed; exit 1; }}\n"
        f"mkdir -p {node}; touch {node}/node package-lock.json"
    )
    assert installed.node.exists()


def test_every_version_is_pinned_exactly():
    pinned = manifest()["dependencies"]
    assert set(PACKAGES) < set(pinned)
    assert all(version.replace(".", "").isdigit() for version in pinned.values())
    assert json.loads(json.dumps(manifest())) == manifest()


def test_a_relative_cache_folder_is_ignored():
    assert cache_folder({"XDG_CACHE_HOME": "cache"}).is_absolute()


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(NotInstalledError, match=r"index\.js is missing; remove"):
        Installed(tmp_path).of("package", "index.js")
