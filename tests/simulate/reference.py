# ruff: noqa: T201 - it is a program too
"""Published simulations of retrying, rebuilt on our event loop, our waits and our token bucket.

S1  Optimistic-concurrency contention: Exponential Backoff And Jitter, AWS Architecture blog, 2015.
S2  Retries against a server that fails by chance: Brooker, Fixing retries with token buckets and
    circuit breakers, 2022.  Through the whole simulator, and through the real machine.
S3  A provider whose latency grows with its load: Brooker, simple_collapse_sim, 2022.
S4  The closed forms behind S2.

`python -m tests.simulate.reference` prints what the tests compare.
"""

import math
import random
import statistics

from attrs import define, evolve, field

from orchestrator.failure.kinds import Kind
from orchestrator.runner.budget import TokenBucket
from orchestrator.settings.model import Budget, Curve, Ladders, Settings, TurnLimits
from orchestrator.simulate.fleet import Fleet
from orchestrator.simulate.loop import Loop
from orchestrator.simulate.ours import machines
from orchestrator.simulate.policies import Policies, Policy
from orchestrator.simulate.scenario import Fault, Phase, Scenario

# S1 -----------------------------------------------------------------------------------------------

_CURVE = Policy("expo", "", first_s=10.0, cap_s=2000.0)
WAITS = {
    "none": Policy("none", ""),
    "expo": _CURVE,
    "equal": evolve(_CURVE, times=(0.5, 1.0)),
    "full": evolve(_CURVE, times=(0.0, 1.0)),
}
"""Milliseconds here; the published base of 5 ms is doubled before its first use."""


def contention(waits, clients, seed):
    """Each client must win one compare-and-set.  Gives the milliseconds and the writes it took."""
    rng, loop = random.Random(seed), Loop()
    state = {"version": 0, "writes": 0}
    tries = [0] * clients

    def hop(do, who, what=None):
        loop.at(loop.now + abs(rng.gauss(10.0, 2.0)), do, who, what)

    def read(who, _, __):
        hop(got, who, state["version"])

    def got(who, seen, _):
        hop(write, who, seen)

    def write(who, seen, _):
        state["writes"] += 1
        won = seen == state["version"]
        state["version"] += won
        hop(done, who, won)

    def done(who, won, now):
        if not won:
            tries[who] += 1
            pause = waits.wait(tries[who], rng.random())
            loop.at(now + pause, again, who)

    def again(who, _, __):
        hop(read, who)

    for who in range(clients):
        hop(read, who)
    loop.run()
    return loop.now, state["writes"]


# S2 and S4 ----------------------------------------------------------------------------------------


def failing(share, *, rate_per_s, duration_s):
    """A server that fails by chance, and answers within some milliseconds."""
    return Scenario(
        "iid",
        rate_per_s=rate_per_s,
        duration_s=duration_s,
        latency_s=0.01,
        first_text_s=0.0,
        phases=(Phase(faults=(Fault(Kind.OVERLOADED, share, delay_s=0.01),)),) if share else (),
    )


def at_once(retries, budget=None):
    """Settings that retry as often as that, practically without a wait."""
    return Settings(
        ladders=Ladders(curve=Curve(first_s=0.001, factor=1, jitter=0), transient_retries=retries),
        turn=TurnLimits(max_sends=1000),
        budget=budget or Budget(),
    )


THREE = Policy("three", "", retries=3)


def policy_of(row):
    return lambda fleet: Policies(fleet, row)


def against_chance(share, player_of, seed, calls=4_000):
    """Success rate and calls for each turn."""
    scenario = failing(share, rate_per_s=1000, duration_s=calls / 1000)
    tally = Fleet(scenario, player_of, seed=seed).play()
    return tally.landed / tally.turns, tally.whole.amplification, tally.turns


BUCKET = Budget(enabled=True, capacity=4.9, retry_cost=1, landed_refill=0.1, refill_per_s=0)
"""The published bucket: size 5, a tenth back for each success, a retry while more than 1 is left.

More than 1 of 5 in tenths is at least 1 of 4.9, which is how ours asks.
"""


def hundred_clients(share, seed, settings):
    """Success rate and load of 100 clients with a bucket each, 10 calls a second for 10 s."""
    scenario = failing(share, rate_per_s=10, duration_s=10)
    runs = [
        Fleet(scenario, machines(settings), seed=seed * 1000 + client).play()
        for client in range(100)
    ]
    turns = sum(tally.turns for tally in runs)
    landed = sum(tally.landed for tally in runs) / turns
    return landed, sum(tally.whole.calls for tally in runs) / turns, runs


def exactly(share, retries=3):
    """S4: success rate and load of so many retries."""
    tries = retries + 1
    load = float(tries) if share == 1 else (1 - share**tries) / (1 - share)
    return 1 - share**tries, load


def load_error(share, turns, retries=3):
    """Standard error of the load: the number of tries is a geometric one, cut off."""
    chances = [share**n * (1 - share) for n in range(retries)] + [share**retries]
    mean = sum((n + 1) * chance for n, chance in enumerate(chances))
    square = sum((n + 1) ** 2 * chance for n, chance in enumerate(chances))
    return math.sqrt((square - mean**2) / turns)


# S3 -----------------------------------------------------------------------------------------------

HORIZON_S = 80


def spike(now):
    return 80.0 if 20 <= now <= 25 else 40.0


def ramp(now):
    return 80.0 - 1.6 * abs(now - 25)


NO_RETRY = Policy("no retry", "")
NO_BACKOFF = Policy("no backoff", "", retries=2)
BACKOFF = Policy("backoff", "", first_s=20.0, times=(0.0, 1.0), retries=2)


@define
class Client:
    left: int
    tries: int = 0


@define
class Collapse:
    """A provider of latency 1 s + 10 ms for each open call, behind a network, and its callers."""

    load: object
    waits: Policy
    seed: int
    budget: Budget | None = None
    open_calls: int = 0
    starts: list = field(factory=lambda: [0] * (HORIZON_S + 1))
    landed: list = field(factory=lambda: [0] * (HORIZON_S + 1))
    open_at: list = field(factory=lambda: [0] * (HORIZON_S + 1))
    rng: random.Random = field(init=False)
    loop: Loop = field(factory=Loop)
    bucket: TokenBucket | None = field(init=False)

    def run(self):
        self.rng = random.Random(self.seed)
        self.bucket = TokenBucket(self.budget) if self.budget else None
        self.loop.at(0.01, self._arrive, None)
        for second in range(HORIZON_S + 1):
            self.loop.at(float(second), self._sample, second)
        self.loop.run(HORIZON_S)
        return self

    def goodput(self, start, end):
        """Answers for each call that started."""
        return sum(self.landed[start:end]) / max(1, sum(self.starts[start:end]))

    def _sample(self, second, _, __):
        self.open_at[second] = self.open_calls

    def _arrive(self, _, __, now):
        self.starts[int(now)] += 1
        self._send(Client(self.waits.retries), 0, now)
        rate = self.load(now)
        if rate > 0:
            self.loop.at(now + self.rng.expovariate(rate), self._arrive, None)

    def _send(self, client, _, now):
        self.loop.at(now + 3.0, self._timeout, client, client.tries)
        self.loop.at(now + self.rng.expovariate(10.0), self._enter, client, client.tries)

    def _enter(self, client, number, now):
        self.open_calls += 1
        self.loop.at(now + 1.0 + 0.01 * self.open_calls, self._leave, client, number)

    def _leave(self, client, number, now):
        self.open_calls -= 1
        self.loop.at(now + self.rng.expovariate(10.0), self._got, client, number)

    def _got(self, client, number, now):
        if number == client.tries:
            client.tries += 1
            self.landed[int(now)] += 1
            if self.bucket:
                self.bucket.landed(now)

    def _timeout(self, client, number, now):
        if number != client.tries:
            return
        client.tries += 1
        if client.left == 0 or (self.bucket and not self.bucket.allows(now)):
            return
        client.left -= 1
        if self.bucket:
            self.bucket.spend(now)
        wait = self.waits.wait(self.waits.retries - client.left, self.rng.random())
        self.loop.at(now + wait, self._send, client)


WINDOWS = ((5, 18), (20, 30), (40, 55), (60, 75))


def goodputs(load, waits, runs, budget=None):
    """Mean goodput in the four published windows."""
    seen = [Collapse(load, waits, seed, budget).run() for seed in range(runs)]
    return [statistics.fmean(run.goodput(*window) for run in seen) for window in WINDOWS]


def main():
    print("S1 clients: ms / writes")
    for clients in (10, 50):
        for name, waits in WAITS.items():
            runs = [contention(waits, clients, seed) for seed in range(100)]
            ms, writes = (statistics.fmean(values) for values in zip(*runs, strict=True))
            print(f"  {clients:3} {name:6} {ms:9,.0f} {writes:7,.0f}")
    print("S2 share of failures: success / load, exactly and measured")
    for share in (0.05, 0.1, 0.5, 0.9, 1.0):
        success, load, _ = against_chance(share, machines(at_once(3)), 1)
        bucket = hundred_clients(share, 1, at_once(100, BUCKET))[:2]
        print(f"  {share:4} {exactly(share)} {success:.4f} {load:.3f}; bucket {bucket}")
    print("S3 goodput before, during, after, long after")
    for load in (spike, ramp):
        for waits in (NO_BACKOFF, BACKOFF, NO_RETRY):
            print(f"  {load.__name__:6} {waits.name:11}", goodputs(load, waits, 10))
        budgeted = goodputs(load, NO_BACKOFF, 10, Budget(enabled=True))
        print(f"  {load.__name__:6} budgeted   ", budgeted)


if __name__ == "__main__":
    main()
