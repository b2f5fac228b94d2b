"""A real Prometheus that scrapes a real `orchestrator metrics demo`, both on loopback.

For the tests and the preview.  Each is a process of its own that ends with its `with` block.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.request import urlopen

import yaml

from dashboards.queries import Prometheus

HERE: Final = Path(__file__).parent
_PATIENCE_S: Final = 30.0
_SERVING: Final = re.compile(r"http://(\S+)/metrics")


@contextmanager
def process(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a command; end it, and wait for it, on the way out."""
    with subprocess.Popen(command, text=True, **options) as running:  # noqa: S603 - ours
        try:
            yield running
        finally:
            running.terminate()
            try:
                running.wait(timeout=10)
            except subprocess.TimeoutExpired:
                running.kill()


@contextmanager
def demo(*options: str) -> Iterator[str]:
    """Run `orchestrator metrics demo`; gives its HOST:PORT."""
    command = [
        sys.executable,
        "-m",
        "orchestrator.cli",
        "metrics",
        "demo",
        "--listen=127.0.0.1:0",
        *options,
    ]
    with process(command, stderr=subprocess.PIPE) as running:
        line = running.stderr.readline() if running.stderr else ""
        found = _SERVING.search(line)
        if found is None:
            raise RuntimeError(f"the demo did not start: {line or 'it said nothing'}")
        yield found[1]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def configured(
    targets: Sequence[str], *, interval: str = "1s", **jobs: Sequence[str]
) -> dict[str, Any]:
    """The shipped `prometheus.yml` at a faster pace, with these targets and further `jobs`."""
    config = yaml.safe_load((HERE / "prometheus.yml").read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": interval, "evaluation_interval": interval}
    config["rule_files"] = [str(HERE / "alerts.yml")]
    config["scrape_configs"][0]["static_configs"] = [{"targets": list(targets)}]
    config["scrape_configs"] += [
        {"job_name": name, "static_configs": [{"targets": list(of_job)}]}
        for name, of_job in jobs.items()
    ]
    return dict(config)


@contextmanager
def prometheus(config: dict[str, Any], folder: Path) -> Iterator[Prometheus]:
    """Run a Prometheus with this configuration on a free port; its data goes with the folder."""
    server = shutil.which("prometheus")
    if server is None:
        raise RuntimeError("prometheus is not installed: apt-get install prometheus")
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    command = [
        server,
        f"--config.file={path}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
        "--enable-feature=exemplar-storage",
        "--log.level=error",
    ]
    with process(command, cwd=folder) as running:
        _await_ready(f"http://{address}/-/ready", running)
        yield Prometheus(f"http://{address}")


def _await_ready(url: str, running: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline and running.poll() is None:
        try:
            with urlopen(url, timeout=1):  # noqa: S310 - loopback
                return
        except (URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"no answer from {url}")
