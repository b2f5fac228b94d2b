import json

import pytest

from tests.agents.install import (
    PACKAGES,
    Installed,
    NotInstalledError,
    cache_folder,
    install,
    manifest,
)


def test_where_npm_is_missing_the_install_says_so(tmp_path):
    with pytest.raises(NotInstalledError, match="npm is not on PATH"):
        install({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)})


def test_an_install_that_fails_says_why_and_leaves_nothing(tmp_path):
    for name in ("node", "npm"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho no space left >&2\nexit 3\n")
        program.chmod(0o755)
    cache = tmp_path / "cache"
    with pytest.raises(NotInstalledError, match="ended with 3:\nno space left"):
        install({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(cache)})
    assert list((cache / "turn-orchestrator" / "agents").iterdir()) == []


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
