"""Which version this is, as it was installed."""

from importlib.metadata import PackageNotFoundError, version


def _installed() -> str:
    try:
        return version("turn-orchestrator")
    except PackageNotFoundError:  # run from a source tree that was never installed
        return "unknown"


__version__ = _installed()
