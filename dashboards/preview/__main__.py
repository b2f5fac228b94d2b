"""Draw the dashboard over a real Prometheus: `python -m dashboards.preview FOLDER`.

Starts the demo and a Prometheus on loopback, lets them run for a while, then writes `preview.html`
and, with Chromium, a light and a dark screenshot.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from dashboards import live
from dashboards.build import dashboard
from dashboards.preview.render import Span, page
from dashboards.queries import Prometheus

WIDTH: Final = 1600
_ROW_PX: Final = 36
"""Height of one unit of the grid with its gap."""
_MARGIN_PX: Final = 70


def height(built: dict[str, Any]) -> int:
    """Pixels that the whole page needs."""
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in built["panels"])
    return int(rows) * _ROW_PX + _MARGIN_PX


def write(server: Prometheus, folder: Path, *, seconds: int) -> Path:
    """Write the page for the last `seconds`."""
    end = float(int(time.time()))
    span = Span(end - seconds, end, max(1, seconds // 150), "20s")
    path = folder / "preview.html"
    path.write_text(page(dashboard(), server, span), encoding="utf-8")
    return path


def photograph(path: Path, folder: Path) -> list[Path]:
    """Open the page in headless Chromium, light and dark."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise RuntimeError("chromium is not installed: apt-get install chromium")
    pictures = []
    with tempfile.TemporaryDirectory() as profile:
        for theme in ("light", "dark"):
            picture = folder / f"preview-{theme}.png"
            subprocess.run(  # noqa: S603 - the browser of this machine
                [
                    browser,
                    "--headless",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--hide-scrollbars",
                    f"--user-data-dir={profile}",
                    "--virtual-time-budget=8000",
                    f"--window-size={WIDTH},{height(dashboard())}",
                    f"--screenshot={picture}",
                    f"{path.resolve().as_uri()}?theme={theme}",
                ],
                check=True,
                capture_output=True,
                timeout=180,
            )
            pictures.append(picture)
    return pictures


def main(folder: Path, seconds: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as data,
        live.demo() as address,
        live.prometheus(live.configured([address]), Path(data)) as server,
    ):
        print(f"watching {address} for {seconds} s")
        time.sleep(seconds)
        path = write(server, folder, seconds=seconds)
    print(f"wrote {path}")
    for picture in photograph(path, folder):
        print(f"wrote {picture}")


if __name__ == "__main__":
    main(
        Path(sys.argv[1] if len(sys.argv) > 1 else "preview"),
        int(sys.argv[2]) if len(sys.argv) > 2 else 180,
    )
