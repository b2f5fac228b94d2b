"""A retry budget across turns: a token bucket per provider.

When a provider is down for everybody, retries are what keeps it down.  Each re-send of a plain
ladder costs tokens, each landed turn gives some back, and a slow trickle lets a quiet process
retry at all.  Pure: time comes in as `now`.
"""

from __future__ import annotations

from attrs import define, field

from orchestrator.settings.model import Budget


@define(eq=False)
class TokenBucket:
    """What the turns of one provider share.  Full at first."""

    rule: Budget
    tokens: float = field(init=False)
    """What is left, as of the last call."""
    _as_of: float | None = None

    def __attrs_post_init__(self) -> None:
        self.tokens = self.rule.capacity

    def allows(self, now: float) -> bool:
        """Say whether one more retry may be sent."""
        self._trickle(now)
        return self.tokens >= self.rule.retry_cost

    def spend(self, now: float) -> None:
        """Pay for a retry that is being sent; never below nothing."""
        self._trickle(now)
        self.tokens = max(0.0, self.tokens - self.rule.retry_cost)

    def landed(self, now: float) -> None:
        """Take in what a landed turn gives back."""
        self._trickle(now)
        self.tokens = min(self.rule.capacity, self.tokens + self.rule.landed_refill)

    def change(self, rule: Budget) -> None:
        """Go on under another rule, as full in proportion as before."""
        self.tokens *= rule.capacity / self.rule.capacity
        self.rule = rule

    def _trickle(self, now: float) -> None:
        past = 0.0 if self._as_of is None else max(0.0, now - self._as_of)
        self._as_of = now
        self.tokens = min(self.rule.capacity, self.tokens + past * self.rule.refill_per_s)
