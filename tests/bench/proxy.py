"""What the proxy costs: `python -m tests.bench.proxy`.

One run, the same frames: no relay, a bare Python relay, the proxy.  Added latency of one frame
there and back, throughput of a turn's updates at 1 kB and at 100 kB, and the time from
`session/cancel` in a wait to the answer.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from statistics import median

import psutil

PEERS = [sys.executable, "-m", "tests.bench.proxy_peers"]
AGENT = [*PEERS, "agent"]
SIZES = ((1_000, 40_000), (100_000, 1_500))
"""Bytes of a frame, and how many of them."""


class Peer:
    """A client with blocking pipes, and whatever answers it."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self.lines = self.process.stdout
        self.ask(0, "initialize", {"protocolVersion": 1})
        self.ask(1, "session/new", {"cwd": "/", "mcpServers": []})

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, number, method, params):
        self.send(id=number, method=method, params=params)
        return self.answer(number)

    def answer(self, number):
        end = b'"id":%d,' % number
        for line in iter(self.lines.readline, b""):
            if end in line[:64]:
                return line
        raise SystemExit("the other side has ended")

    def prompt(self, number, text):
        block = {"type": "text", "text": text}
        params = {"sessionId": "s1", "prompt": [block]}
        self.send(id=number, method="session/prompt", params=params)

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.lines.close()


def latencies(peer, count):
    """Microseconds of single frames there and back."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        peer.send(method="x/ping", params={"text": "x" * 200})
        peer.lines.readline()
        times.append((time.perf_counter() - start) * 1e6)
    return sorted(times[count // 10 :])


def throughput(peer, number, size, count):
    """Frames a second of one turn's updates, and the relay's own microseconds for each."""
    worker = psutil.Process(peer.process.pid)
    before, start = sum(worker.cpu_times()[:2]), time.perf_counter()
    peer.prompt(number, f"{size} {count}")
    peer.answer(number)
    spent = sum(worker.cpu_times()[:2]) - before
    return count / (time.perf_counter() - start), spent / count * 1e6


def stops(peer, count):
    """Milliseconds from a cancel in a wait to the answer."""
    times = []
    for number in range(5000, 5000 + count):
        peer.prompt(number, "overload")
        time.sleep(0.05)
        start = time.perf_counter()
        peer.send(method="session/cancel", params={"sessionId": "s1"})
        peer.answer(number)
        times.append((time.perf_counter() - start) * 1e3)
    return times


def latency_rows(peers, frames):
    seen = {name: latencies(peer, frames) for name, peer in peers.items()}
    alone = median(seen["no relay"])
    for name, times in seen.items():
        added = (median(times) - alone) / 2
        yield (
            f"one frame there and back, {name}",
            f"{median(times):.0f} us, p99 {times[int(len(times) * 0.99)]:.0f} us",
            f"{added:.0f} us added a frame",
        )


def throughput_rows(peers, size, count, rounds):
    """Rounds take turns, so that what else the machine does meets all alike."""
    seen = {name: [] for name in peers}
    for turn in range(rounds):
        for name, peer in peers.items():
            seen[name].append(throughput(peer, 100 + size + turn, size, count))
    best = {name: max(rate for rate, _ in pairs) for name, pairs in seen.items()}
    for name, pairs in seen.items():
        spent = min(spent for _, spent in pairs)
        yield (
            f"{size // 1000} kB frames, {name}",
            f"{best[name]:.0f} a second, {spent:.1f} us of its processor each",
            f"{best[name] / best['bare relay']:.0%} of the bare relay",
        )


def rows(*, quick=False):
    """What, figure, beside what."""
    rounds, share = (1, 10) if quick else (5, 1)
    with tempfile.TemporaryDirectory() as folder:
        proxy = [sys.executable, "-m", "orchestrator.cli", "proxy", "--state-dir", folder, "--"]
        ways = {"no relay": AGENT, "bare relay": [*PEERS, "relay", *AGENT], "proxy": proxy + AGENT}
        peers = {name: Peer(command) for name, command in ways.items()}
        try:
            found = list(latency_rows(peers, 3000 // share))
            for size, count in SIZES:
                found += throughput_rows(peers, size, count // share, rounds)
            times = stops(peers["proxy"], 50 // share)
            found.append(
                (
                    "from a stop in a wait to its answer",
                    f"{median(times):.2f} ms, at most {max(times):.2f} ms",
                    "nothing counted, nothing sent",
                )
            )
        finally:
            for peer in peers.values():
                peer.close()
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer frames")
    for row in rows(quick=parser.parse_args().quick):
        print("  ".join(f"{cell:<44}" for cell in row).rstrip())  # noqa: T201 - its work
