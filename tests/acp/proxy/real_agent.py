"""An agent as a process, with a tree of children that would all outlive it.

It answers by what the prompt says: `die`, `hang`, `flood`, `deaf`, `overload`, `say TEXT`, `pids`.
"""

import json
import os
import signal
import subprocess
import sys

SLEEP = [sys.executable, "-c", "import time; time.sleep(300)"]
KIDS = [subprocess.Popen(SLEEP), subprocess.Popen(SLEEP, start_new_session=True)]


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def say(session_id, text):
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m"}
    chunk["content"] = {"type": "text", "text": text}
    send({"method": "session/update", "params": {"sessionId": session_id, "update": chunk}})


def prompt(number, params):
    session_id = params["sessionId"]
    word, _, rest = params["prompt"][-1]["text"].partition(" ")
    if word == "die":
        say(session_id, "half ")
        os.kill(os.getpid(), signal.SIGKILL)
    while word == "flood":
        say(session_id, "x" * 1_000_000)
    if word == "deaf":
        say(session_id, "deaf")
        signal.pause()
    elif word == "overload":
        error = {"code": -32603, "message": "529", "data": {"errorKind": "overloaded"}}
        send({"id": number, "error": error})
    elif word != "hang":
        pids = [os.getpid(), *[kid.pid for kid in KIDS]]
        say(session_id, json.dumps(pids) if word == "pids" else rest or "done")
        send({"id": number, "result": {"stopReason": "end_turn"}})


def main():
    for line in sys.stdin:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if method == "initialize":
            result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
            send({"id": number, "result": result})
        elif method == "session/new":
            send({"id": number, "result": {"sessionId": "s1"}})
        elif method == "session/load":
            send({"id": number, "result": {}})
        elif method == "session/prompt":
            prompt(number, message["params"])
        elif number is not None and method:
            send({"id": number, "error": {"code": -32601, "message": "unknown"}})


main()
