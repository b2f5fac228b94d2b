"""What the proxy costs: `python -m tests.bench.proxy`.

One run, the same frames: no relay, a bare Python relay (two threads), one on an asyncio loop, and
the proxy.  Added latency of one frame
there and back, throughput of a turn's updates at 1 kB and at 100 kB, and the time from
`session/cancel` in a wait to the answer.

The contenders take turns in short rounds and each round is a comparison of its own, so that what
else the machine does meets all alike; what is told is the middle of the rounds, and in brackets
where half of them lie.  The processor time beside it is a relay's own and swings least.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from statistics import median, quantiles

import psutil
from attrs import frozen

from orchestrator.incident import extension
from tests.bench.proxy_peers import BUFFER_BYTES

PEERS = [sys.executable, "-m", "tests.bench.proxy_peers"]
AGENT = [*PEERS, "agent"]
ALONE, BARE, LOOP, PROXY = "no relay", "bare relay", "bare relay on asyncio", "proxy"
SIZES = ((1_000, 10_000), (100_000, 400))
"""Bytes of a frame, and how many of them make one round."""
ROUNDS = 15
PINGS = 200
"""Frames there and back in one round."""
STOPS = 50


class Peer:
    """A client with blocking pipes, and whatever answers it."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=BUFFER_BYTES,
        )
        self.lines = self.process.stdout
        self.number = 0
        params = {"protocolVersion": 1, "clientCapabilities": extension.declare({})}
        self.answer(self.ask("initialize", params))
        self.answer(self.ask("session/new", {"cwd": "/", "mcpServers": []}))

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        """Send a request; gives its id."""
        self.number += 1
        self.send(id=self.number, method=method, params=params)
        return self.number

    def answer(self, number):
        """Read until the answer to this request."""
        return self.until(b'"id":%d,' % number)

    def until(self, mark):
        """Read until a line that has this mark near its beginning."""
        for line in iter(self.lines.readline, b""):
            if mark in line[:400]:
                return line
        raise SystemExit("the other side has ended")

    def prompt(self, text):
        block = {"type": "text", "text": text}
        return self.ask("session/prompt", {"sessionId": "s1", "prompt": [block]})

    @property
    def spent_s(self):
        """Processor time of the process so far."""
        if sys.platform == "linux":  # the clock of another process, to the nanosecond
            return time.clock_gettime(~self.process.pid << 3 | 2)
        return sum(psutil.Process(self.process.pid).cpu_times()[:2])

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.lines.close()


@frozen
class Flow:
    """One round of a turn's updates."""

    rate: float
    """Frames a second."""
    spent_us: float
    """Processor time of the other side for each frame."""


def latencies(peer, count):
    """Microseconds of single frames there and back."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        peer.send(method="x/ping", params={"text": "x" * 200})
        peer.lines.readline()
        times.append((time.perf_counter() - start) * 1e6)
    return times[count // 10 :]  # the first ones wake everybody up


def throughput(peer, size, count):
    before, start = peer.spent_s, time.perf_counter()
    peer.answer(peer.prompt(f"{size} {count}"))
    took = time.perf_counter() - start
    return Flow(count / took, (peer.spent_s - before) / count * 1e6)


def stops(peer, count):
    """Milliseconds from a cancel in a wait to the answer."""
    times = []
    for _ in range(count):
        number = peer.prompt("overload")
        peer.until(b'"sessionFailure"')  # told as the wait begins
        start = time.perf_counter()
        peer.send(method="session/cancel", params={"sessionId": "s1"})
        peer.answer(number)
        times.append((time.perf_counter() - start) * 1e3)
    return times


def by_turns(peers, rounds, measure):
    """What each peer did in each round."""
    seen = {name: [] for name in peers}
    for _ in range(rounds):
        for name, peer in peers.items():
            seen[name].append(measure(peer))
    return seen


def middle(values, form):
    """The median, and where half of the values lie."""
    low, _, high = quantiles(values, n=4) if len(values) > 1 else values * 3
    return f"{form.format(median(values))} ({form.format(low)} to {form.format(high)})"


def latency_rows(peers, rounds):
    seen = by_turns(peers, rounds, lambda peer: latencies(peer, PINGS))
    alone = [median(times) for times in seen[ALONE]]
    for name, rounds_ in seen.items():
        times = sorted(time for times in rounds_ for time in times)
        p99 = times[int(len(times) * 0.99)]
        added = [(median(t) - a) / 2 for t, a in zip(rounds_, alone, strict=True)]
        yield (
            f"one frame there and back, {name}",
            f"{median(times):.0f} us, p99 {p99:.0f} us",
            f"{middle(added, '{:.0f}')} us added a frame",
        )


def throughput_rows(peers, size, count, rounds):
    throughput(peers[PROXY], size, count)  # what is learned once is learned before
    seen = by_turns(peers, rounds, lambda peer: throughput(peer, size, count))
    bare = [flow.rate for flow in seen[BARE]]
    for name, flows in seen.items():
        rate, spent = median(f.rate for f in flows), median(f.spent_us for f in flows)
        shares = [100 * f.rate / beside for f, beside in zip(flows, bare, strict=True)]
        yield (
            f"{size // 1000} kB frames, {name}",
            f"{rate:.0f} a second, {spent:.1f} us of its processor each",
            f"{middle(shares, '{:.0f}')} % of the bare relay",
        )


def stop_row(peer, count):
    first, *times = stops(peer, count + 1)
    times.sort()
    p95 = times[int(len(times) * 0.95)]
    return (
        "from a stop in a wait to its answer",
        f"{median(times):.2f} ms, p95 {p95:.2f} ms, at most {times[-1]:.2f} ms",
        f"the very first {first:.2f} ms; nothing counted, nothing sent",
    )


def rows(*, quick=False):
    """What, figure, beside what."""
    rounds, share = (2, 5) if quick else (ROUNDS, 1)
    with tempfile.TemporaryDirectory() as folder:
        proxy = [sys.executable, "-m", "orchestrator.cli", "proxy", "--state-dir", folder, "--"]
        ways = {ALONE: AGENT, BARE: [*PEERS, "relay", *AGENT]}
        ways |= {LOOP: [*PEERS, "asyncio", *AGENT], PROXY: proxy + AGENT}
        peers = {name: Peer(command) for name, command in ways.items()}
        try:
            found = list(latency_rows(peers, rounds))
            for size, count in SIZES:
                found += throughput_rows(peers, size, count // share, rounds)
            found.append(stop_row(peers[PROXY], STOPS // share))
        finally:
            for peer in peers.values():
                peer.close()
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer frames")
    for row in rows(quick=parser.parse_args().quick):
        print("  ".join(f"{cell:<52}" for cell in row).rstrip())  # noqa: T201 - its work
