"""Play the recordings of real agents back, in memory or as a process.

A recording is what one agent process sent, and the requests of the client that it answered.  What
followed a request in the recording follows it here, after the same time, with the request's own
id.  As a process: `python tests/acp/replay_agent.py AGENT RECORDING [SPEED]`.
"""

import argparse
import json
import sys
import threading
from functools import cache
from pathlib import Path

import anyio
from attrs import define, field

from orchestrator.acp.framing import Frame, FrameReader, encode
from orchestrator.acp.process import Exit
from orchestrator.failure.raw import RawFailure

FOLDER = Path(__file__).parent / "recordings"
AGENTS = ("claude", "codex", "opencode")


@cache
def recordings(agent):
    """Every recording of an agent, by name."""
    lines = (FOLDER / f"{agent}.jsonl").read_text(encoding="utf-8").splitlines()
    return {r["name"]: r["frames"] for r in map(json.loads, lines)}


@define
class Scene:
    """What the agent did after one message of the client."""

    method: str
    recorded_id: object
    frames: list = field(factory=list)
    """Seconds since the message, and the frame."""


@define
class Player:
    """The order in which a recording answers.  No I/O."""

    scenes: list
    exit: Exit | None = None
    _answered: dict = field(factory=dict)

    @classmethod
    def of(cls, frames):
        scenes, exit_ = [], None
        for t, direction, frame in frames:
            if direction == "out":
                scenes.append((t, Scene(frame["method"], frame.get("id"))))
            elif direction == "exit":
                exit_ = Exit(frame["returncode"])
            elif "_eof" in frame:
                scenes[-1][1].frames.append((t - scenes[-1][0], None))
            else:
                scenes[-1][1].frames.append((t - scenes[-1][0], frame))
        return cls([scene for _, scene in scenes], exit_)

    def take(self, message):
        """The frames that follow a message of the client, with their delays; None is the end."""
        scene = next((s for s in self.scenes if s.method == message.get("method")), None)
        if scene is None:
            if "id" in message and "method" in message:
                text = "the recording knows no such request"
                error = {"code": -32601, "message": text}
                return [(0.0, {"jsonrpc": "2.0", "id": message["id"], "error": error})]
            return []
        # A cancel that the client sent in the recording ends the wait for it; what was skipped
        # before it was never asked for here.
        self.scenes.remove(scene)
        if scene.recorded_id is not None:
            self._answered[scene.recorded_id] = message.get("id")
        return [(after, self._renumbered(frame)) for after, frame in scene.frames]

    def _renumbered(self, frame):
        if frame is not None and "method" not in frame and frame.get("id") in self._answered:
            return {**frame, "id": self._answered[frame["id"]]}
        return frame


@define(eq=False)
class ReplayWire:
    """A recording as a wire in memory.  A recorded end of the process is an end here."""

    player: Player
    reader: FrameReader = field(factory=FrameReader)
    sent: list = field(factory=list)
    _out: list = field(factory=list)
    _ready: anyio.Event = field(factory=anyio.Event)
    _heard: anyio.Event = field(factory=anyio.Event)
    _over: anyio.Event = field(factory=anyio.Event)
    _killed: bool = False
    _wake: anyio.Event = field(factory=anyio.Event)
    _due: list = field(factory=list)

    async def start(self):
        """Nothing to start."""

    async def tend(self):
        """Let recorded time pass."""
        while not self._over.is_set():
            self._due.sort(key=lambda due: due[0])
            if not self._due:
                await self._wake.wait()
                self._wake = anyio.Event()
                continue
            with anyio.CancelScope(deadline=self._due[0][0]):
                await self._wake.wait()
                self._wake = anyio.Event()
            while self._due and self._due[0][0] <= anyio.current_time():
                _, frame = self._due.pop(0)
                self._out.append(frame)
                self._ready.set()
                if frame is None:
                    self._over.set()

    async def receive(self):
        while not self._out:
            self._ready = anyio.Event()
            await self._ready.wait()
        frames, self._out = self._out, []
        if frames[0] is None:
            return None
        if None in frames:
            self._out = [None]
            frames = frames[: frames.index(None)]
        return [Frame(encode(f), f) for f in frames]

    async def send(self, line):
        for frame in self.reader.feed(line):
            self.sent.append(frame.value)
            self._heard.set()
            self._heard = anyio.Event()
            now = anyio.current_time()
            self._due += [(now + after, f) for after, f in self.player.take(frame.value)]
            self._wake.set()

    async def heard(self, method):
        """Wait until the client has sent a message of this method."""
        while method not in [message.get("method") for message in self.sent]:
            await self._heard.wait()

    async def ended(self):
        await self._over.wait()
        return self.player.exit or Exit(None)

    def failure(self, *, delivery=None):
        code = -9 if self._killed else self.player.exit and self.player.exit.code
        return RawFailure.exit(code, delivery=delivery)

    async def close(self, grace_s):
        await self.kill()

    async def kill(self):
        self._killed = not self._over.is_set()
        self._over.set()
        self._wake.set()
        self._out.append(None)
        self._ready.set()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("agent", choices=AGENTS)
    parser.add_argument("recording")
    parser.add_argument("speed", type=float, nargs="?", default=1000.0)
    options = parser.parse_args()
    player = Player.of(recordings(options.agent)[options.recording])
    reader = FrameReader()
    pause = threading.Event()
    while data := sys.stdin.buffer.readline():
        for frame in reader.feed(data):
            past = 0.0
            for after, answer in player.take(frame.value):
                pause.wait(max(0.0, after - past) / options.speed)
                past = after
                if answer is None:
                    sys.exit(abs(player.exit.code or 0))
                sys.stdout.buffer.write(encode(answer))
                sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
