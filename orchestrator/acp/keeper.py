"""The process between us and an agent: when we end, however we end, the agent's whole tree ends.

Run as a script in an isolated interpreter (`python -I -S keeper.py LIFELINE STATUS ARGV...`), so
it imports nothing but the standard library and starts in a few milliseconds.  It hands stdin,
stdout and stderr to the agent as they are and keeps no copy, so no byte passes through it.

Three facts make the tree die.  Our end of LIFELINE closes when we exit, crash or are killed; its
end of file is the order to kill.  The keeper adopts what the agent's own children leave behind
(Linux: child subreaper), so a grandchild in a session of its own is still found below it.  And
the agent gets a parent-death signal, so it does not outlive a keeper that is itself killed; what it
had started is found by a mark in its environment then.

STATUS carries one JSON line each: `{"pid": n}`, `{"refused": errno, "text": s}`, `{"exit": code}`.
"""

# ruff: noqa: PTH112, PTH123, PTH208 - pathlib would double the time this script takes to start

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from typing import Final

PR_SET_PDEATHSIG: Final = 1
PR_SET_CHILD_SUBREAPER: Final = 36
MARK: Final = "TURN_ORCHESTRATOR_TREE"
"""In the environment of the agent and of all it starts: how they are found without a keeper."""
_PATIENCE_S: Final = 2.0
"""How long a killed tree may take to vanish; only a process stuck in the kernel takes longer."""


def _stat(pid: int) -> tuple[str, int] | None:
    """State and parent of a process; None when it is gone or where there is no /proc."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            # The command name may hold spaces and parentheses; what follows it is fixed.
            state, parent = file.read().rpartition(")")[2].split()[:2]
    except (OSError, ValueError):
        return None
    return state, int(parent)


def descendants(root: int) -> list[int]:
    """Every process below `root`, zombies apart; empty where there is no /proc."""
    try:
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []
    children: dict[int, list[int]] = {}
    zombies = set()
    for pid in numbers:
        stat = _stat(pid)
        if stat is not None:
            children.setdefault(stat[1], []).append(pid)
            if stat[0] == "Z":
                zombies.add(pid)
    found: list[int] = []
    todo = [root]
    while todo:
        below = children.get(todo.pop(), [])
        todo.extend(below)
        found.extend(pid for pid in below if pid not in zombies)
    return found


def kill_group(pgid: int) -> None:
    """Kill a process group; one that is gone is fine."""
    try:
        os.killpg(pgid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def kill_each(pids: Iterable[int]) -> None:
    """Kill processes by id; those that are gone are fine."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


def marked(mark: str) -> list[int]:
    """Every process that inherited this mark, zombies apart; empty where there is no /proc."""
    entry = f"{MARK}={mark}".encode()
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                if name.isdigit() and entry in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            continue  # gone, or somebody else's
    return found


def kill_orphans(agent: int, mark: str) -> None:
    """Kill what has lost its keeper, wherever it moved to, and wait until it is gone."""
    deadline = time.monotonic() + _PATIENCE_S
    kill_group(agent)
    while time.monotonic() < deadline:
        left, stat = marked(mark), _stat(agent)
        if not left and (stat is None or stat[0] == "Z"):
            return
        kill_each(left)
        time.sleep(0.005)


def _prctl(option: int, value: int) -> bool:
    """Set a process attribute; False where the system has none such."""
    try:
        return int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0)) == 0
    except (OSError, AttributeError):
        return False


def _die_with_parent() -> Callable[[], None] | None:
    """What the agent runs before its program: ask for the parent-death signal, where there is one.

    The library is loaded before the fork; the keeper has one thread, so the hook is safe.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    return ask


def _kill_tree(agent: int) -> dict[int, int]:
    """Kill the agent's group and all below the keeper until nothing is left: pids to exit codes."""
    deadline = time.monotonic() + _PATIENCE_S
    kill_group(agent)
    ended: dict[int, int] = {}
    while (left := descendants(os.getpid())) and time.monotonic() < deadline:
        kill_each(left)
        ended |= _reap()
        time.sleep(0.005)
    return ended | _reap()


def _reap() -> dict[int, int]:
    """Collect every child that ended, adopted ones included: pid to exit code."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = os.waitstatus_to_exitcode(status)


def _hear_signals() -> int:
    """Turn signals into bytes to read: our parent decides about stops, not the terminal.

    Handlers, not SIG_IGN: an ignored signal would stay ignored in the agent and all it starts.
    """
    wake_r, wake_w = os.pipe()
    os.set_blocking(wake_w, False)
    signal.set_wakeup_fd(wake_w, warn_on_full_buffer=False)
    for name in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(name, lambda *_: None)
    return wake_r


def keep(lifeline: int, status: int, argv: list[str]) -> int:
    """Start the agent, report, and see to it that nothing of it is left.  Returns our exit code."""

    def tell(**fact: object) -> None:
        try:
            os.write(status, json.dumps(fact).encode() + b"\n")
        except OSError:
            return  # nobody listens any more; the lifeline says the same

    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake = _hear_signals()
    try:
        agent = subprocess.Popen(  # noqa: S603 - the command is the user's own
            argv,
            start_new_session=True,
            preexec_fn=_die_with_parent(),  # noqa: PLW1509 - this process has one thread
        )
    except (OSError, subprocess.SubprocessError) as error:
        tell(refused=getattr(error, "errno", None) or 0, text=str(error))
        return 127
    tell(pid=agent.pid)
    with open(os.devnull, "r+b", buffering=0) as null:
        for fd in (0, 1, 2):
            os.dup2(null.fileno(), fd)
    code = _watch(lifeline, wake, agent.pid)
    ended = _kill_tree(agent.pid)
    code = ended.get(agent.pid) if code is None else code
    if code is not None:
        tell(exit=code)
    return 0


def _watch(lifeline: int, wake: int, agent: int) -> int | None:
    """Wait for the agent's end (its exit code), or for the order to end it (None)."""
    while True:
        ready, _, _ = select.select([lifeline, wake], [], [])
        if wake in ready:
            heard = os.read(wake, 4096)
            code = _reap().get(agent)
            if code is not None:
                return code
            if signal.SIGTERM in heard:
                return None
        if lifeline in ready:
            return None


if __name__ == "__main__":
    sys.exit(keep(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
