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

from attrs import define, field

from orchestrator.acp.framing import FrameReader, encode
from orchestrator.acp.process import Exit

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.acp.wires import MemoryWire

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


def replay_wire(agent, name):
    """A recording as a wire in memory.  A recorded end of the process is an end here."""
    player = Player.of(recordings(agent)[name])
    return MemoryWire(player.take, player.exit or Exit(None))


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
