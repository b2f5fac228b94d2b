"""The other sides in the proxy's bench: an agent that only writes, and relays that only copy.

`python -m tests.bench.proxy_peers agent`, or `relay COMMAND [ARG...]`, or `asyncio COMMAND...`.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading

OVERLOADED = {"code": -32603, "message": "529", "data": {"errorKind": "overloaded"}}
BATCH_BYTES = 64 * 1024
BUFFER_BYTES = 256 * 1024
"""What a reader takes in at once."""


def write(fd, data):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def line(**message):
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"


def update(size):
    """One chunk of text of about this size."""
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m"}
    words = "lorem ipsum " * max(1, (size - 180) // 12)
    params = {"sessionId": "s1", "update": {**chunk, "content": {"type": "text", "text": words}}}
    return line(method="session/update", params=params)


def answer_prompt(message):
    text = message["params"]["prompt"][0]["text"]
    if text == "overload":
        return write(1, line(id=message["id"], error=OVERLOADED))
    size, count = map(int, text.split())
    data = update(size)
    together = max(1, BATCH_BYTES // len(data))
    for _ in range(count // together):
        write(1, data * together)
    return write(1, line(id=message["id"], result={"stopReason": "end_turn"}))


def agent():
    for raw in sys.stdin.buffer:
        message = json.loads(raw)
        match message["method"]:
            case "initialize":
                result = {"protocolVersion": 1, "agentCapabilities": {}}
                write(1, line(id=message["id"], result=result))
            case "session/new":
                write(1, line(id=message["id"], result={"sessionId": "s1"}))
            case "x/ping":
                write(1, line(method="x/pong", params=message["params"]))
            case "session/prompt":
                answer_prompt(message)


def pump(source, target):
    with os.fdopen(source, "rb", BUFFER_BYTES, closefd=False) as lines:
        for raw in iter(lines.readline, b""):
            write(target, raw)
    os.close(target)


def relay(command):
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as child:
        there = threading.Thread(target=pump, args=(0, child.stdin.fileno()), daemon=True)
        there.start()
        pump(child.stdout.fileno(), 1)


async def copy_both_ways(child):
    """What an event loop costs by itself: one callback for each read, and nothing is looked at."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def copy(source, target):
        data = os.read(source, BUFFER_BYTES)
        if data:
            write(target, data)
        else:
            loop.remove_reader(source)
            over.set()

    loop.add_reader(0, copy, 0, child.stdin.fileno())
    loop.add_reader(child.stdout.fileno(), copy, child.stdout.fileno(), 1)
    await over.wait()


def relay_on_asyncio(command):
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as child:
        asyncio.run(copy_both_ways(child))
        child.stdin.close()


if __name__ == "__main__":
    if sys.argv[1] == "agent":
        agent()
    else:
        {"relay": relay, "asyncio": relay_on_asyncio}[sys.argv[1]](sys.argv[2:])
