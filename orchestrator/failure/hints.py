"""How long a provider asks to wait, and when a limit resets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen


@frozen
class Hint:
    """What a failure says about time.  A field is None when unsaid; 0 is an answer."""

    retry_after_s: float | None = None
    """Seconds the provider asks to wait."""
    resets_at: float | None = None
    """POSIX seconds at which a limit resets."""
    resets_in_s: float | None = None
    """Seconds until then."""


def read_hint(
    *,
    headers: Mapping[str, str],
    data: object,
    texts: Iterable[str],
    now: float | None,
) -> Hint:
    """Read the hint of one failure."""
    value = str(headers.get("retry-after", ""))
    return Hint(retry_after_s=float(value)) if value.isdigit() else Hint()
