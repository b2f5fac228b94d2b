"""An agent's process: found once, started behind a keeper, spoken to through pipes, killed whole.

Reads and writes go straight to the pipes, on asyncio and trio alike, so that a write knows how
much of a frame left us: that is what `delivery` says, and what decides whether a prompt may ever
be sent again as it was.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import anyio
from anyio import to_thread
from attrs import define, field, frozen

from orchestrator.acp import keeper
from orchestrator.acp.framing import Frame, FrameReader
from orchestrator.acp.source import Source
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Delivery

_PIPE_BYTES: Final = 1024 * 1024
_STDERR_BYTES: Final = 16 * 1024
_KILL_S: Final = 5.0
"""How long a killed tree may take to be reported gone."""
_LAST_WORD_S: Final = 1.0
"""From a pipe found broken to the report of how the agent ended."""


class WireError(Exception):
    """The pipe to the agent is of no use any more; `raw` says why, for the classifier."""

    def __init__(self, raw: RawFailure) -> None:
        super().__init__(raw.message or raw.surface)
        self.raw = raw


class CommandMissingError(Exception):
    """No such program; the text is one sentence for the user."""


@frozen
class Command:
    """What to start, resolved: the first word is an absolute path."""

    argv: tuple[str, ...]
    folder: str
    """Where the agent runs."""
    env: Mapping[str, str] | None = None
    """Its whole environment; None inherits ours."""

    @property
    def name(self) -> str:
        """The program's own name, for people: never a path."""
        return Path(self.argv[0]).name


def resolve(
    words: Sequence[str], *, folder: str | None = None, env: Mapping[str, str] | None = None
) -> Command:
    """Find the program once.  A name is looked up in PATH, never in the session's folder.

    A checkout must not be able to put its own `claude` in front of the user's; so entries of PATH
    that are relative, or lie in the folder, are passed over.  A path that the user wrote is taken
    as it is.  Raises CommandMissingError.
    """
    if not words or not words[0]:
        raise CommandMissingError("No agent command was given; put it after `--`.")
    try:
        home = Path(folder or Path.cwd()).resolve()
    except FileNotFoundError:
        raise CommandMissingError("The current folder is not there any more.") from None
    if not home.is_dir():
        raise CommandMissingError(f"The session's folder {home.name} is not there.")
    word = words[0]
    if os.sep in word:
        path = Path(os.path.expanduser(word)).absolute()  # noqa: PTH111 - leaves a stranger's `~`
        if not os.access(path, os.X_OK) or path.is_dir():
            raise CommandMissingError(
                f"{path.name} is not a program that can be run; check its path."
            )
    else:
        path = _search(word, home, (os.environ if env is None else env).get("PATH", os.defpath))
    return Command((str(path), *words[1:]), str(home), env)


def _search(name: str, folder: Path, path_variable: str) -> Path:
    entries = [Path(e) for e in path_variable.split(os.pathsep) if Path(e).is_absolute()]
    outside = [str(e) for e in entries if not e.resolve().is_relative_to(folder)]
    found = shutil.which(name, path=os.pathsep.join(outside)) if outside else None
    if found:
        return Path(found)
    if shutil.which(name, path=path_variable):
        raise CommandMissingError(
            f"{name} was found only inside the session's folder; write its full path to run it."
        )
    raise CommandMissingError(f"{name} was not found; install it, or write its full path.")


@frozen
class Exit:
    """How a process ended."""

    code: int | None
    """Its exit code, negative for a signal; None where nobody can say."""


@define(eq=False)
class AgentProcess:
    """One run of an agent.  `start` it, keep `tend` running beside it, `kill` it at the end."""

    command: Command
    stall_s: float
    """A write without progress for this long has stalled."""
    pid: int | None = None
    exit: Exit | None = None
    frames: FrameReader = field(factory=FrameReader)
    _keeper: subprocess.Popen[bytes] = field(init=False)
    _stdin: int = -1
    _stdout: Source = field(factory=Source)
    _stderr: Source = field(factory=Source)
    _status: Source = field(factory=Source)
    _lifeline: int = -1
    _tail: bytearray = field(factory=bytearray)
    _writing: anyio.Lock = field(factory=partial(anyio.Lock, fast_acquire=True))
    """Nobody else writes as a rule, so nobody has to be let by."""
    _gone: anyio.Event = field(factory=anyio.Event)
    _mark: str = field(factory=lambda: uuid4().hex)
    """Every process of its tree has it in its environment."""
    _refused: str = ""
    _stalled: BrokenPipeError | None = None
    """It stopped reading."""

    async def start(self) -> None:
        """Start the keeper, and through it the agent."""
        theirs: list[int] = []
        try:
            self._make_pipes(theirs)
            self._keeper = await to_thread.run_sync(self._spawn, theirs)
        except BaseException as error:
            self._close_ours()
            if not isinstance(error, OSError):
                raise
            raise WireError(RawFailure.exception(error, delivery=Delivery.NOT_SENT)) from error
        finally:
            for fd in theirs:
                os.close(fd)
        os.set_blocking(self._stdin, False)
        widen(self._stdout.fd)

    def _make_pipes(self, theirs: list[int]) -> None:
        """Keep our ends, and give away theirs as they come: any may be one too many."""
        reader, self._stdin = os.pipe()
        theirs.append(reader)
        for source in (self._stdout, self._stderr, self._status):
            source.fd, writer = os.pipe()
            os.set_blocking(source.fd, False)
            theirs.append(writer)
        reader, self._lifeline = os.pipe()
        theirs.append(reader)

    def _spawn(self, theirs: Sequence[int]) -> subprocess.Popen[bytes]:
        stdin, stdout, stderr, status, lifeline = theirs
        script = [sys.executable, "-I", "-S", keeper.__file__, str(lifeline), str(status)]
        env = os.environ if self.command.env is None else self.command.env
        return subprocess.Popen(  # noqa: S603 - the command is the user's own
            [*script, *self.command.argv],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=self.command.folder,
            env={**env, keeper.MARK: self._mark},
            pass_fds=(lifeline, status),
            start_new_session=True,
        )

    async def tend(self) -> None:
        """Read stderr and the keeper's reports until the whole tree is gone."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read_stderr)
            await self._read_status()
            tasks.cancel_scope.cancel()

    async def _read_stderr(self) -> None:
        while data := await self._stderr.read():
            self._keep(data)

    def _keep(self, data: bytes) -> None:
        self._tail += data
        del self._tail[:-_STDERR_BYTES]

    async def _read_status(self) -> None:
        held = b""
        while data := await self._status.read():
            *lines, held = (held + data).split(b"\n")
            for line in lines:
                self._report(json.loads(line))
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._keeper.wait)
            if self.pid is not None and self._keeper.returncode != 0:
                # Somebody killed the keeper.  The kernel kills the agent; the rest is ours to do.
                await to_thread.run_sync(keeper.kill_orphans, self.pid, self._mark)
                self.exit = self.exit or Exit(-signal.SIGKILL)
        if self.exit is None:
            self.exit = Exit(None)
        self._keep(self._stderr.rest())  # what it wrote last is in the pipe when its end is told
        self._gone.set()
        self._stdout.finish()

    def _report(self, fact: dict[str, Any]) -> None:
        if "pid" in fact:
            self.pid = fact["pid"]
        elif "refused" in fact:
            self._refused = fact["text"]
            self.exit = Exit(127)
        elif "exit" in fact:
            self.exit = Exit(fact["exit"])

    @property
    def stderr_tail(self) -> str:
        """The end of what the agent wrote to stderr."""
        return self._tail.decode("utf-8", "replace")

    async def receive(self) -> list[Frame] | None:
        """The next frames; None at the end of the stream."""
        lines = await self.receive_lines()
        return None if lines is None else self.frames.read(lines)

    async def receive_lines(self) -> list[bytes] | None:
        """The next lines, not read yet; None at the end of the stream."""
        data = await self._stdout.read()
        if data:
            return self.frames.cut(data)
        return [frame.raw for frame in self.frames.end()] or None

    async def send(self, line: bytes) -> None:
        """Write one whole line.  Raises WireError, whose `delivery` says how much of it left.

        A frame is never torn by a cancellation: the write ends, or the wire is unusable.
        """
        with anyio.CancelScope(shield=True):
            async with self._writing:
                await self._write(line)

    def write_now(self, line: bytes) -> bytes | memoryview:
        """Write as much of a line as the pipe takes at once; what is left is for `send`."""
        if self._writing.locked():
            return line
        try:
            return memoryview(line)[os.write(self._stdin, line) :]
        except OSError:  # full, or broken: `send` will find out
            return line

    async def _write(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            try:
                left = left[os.write(self._stdin, left) :]
                continue
            except BlockingIOError:
                pass  # the pipe is full
            except OSError:
                raise await self._broken() from None
            try:
                with anyio.fail_after(self.stall_s):
                    await anyio.wait_writable(self._stdin)
            except TimeoutError:
                partly = len(left) < len(line)
                self._stdin = _close(self._stdin)
                self._stalled = BrokenPipeError("the agent stopped reading its input")
                delivery = Delivery.AMBIGUOUS if partly else Delivery.NOT_SENT
                raise WireError(self.failure(delivery=delivery)) from None
            except (OSError, anyio.ClosedResourceError):
                raise await self._broken() from None

    async def _broken(self) -> WireError:
        """A pipe broke under a write: the frame's end never arrived, so nothing was delivered.

        An agent that has died, or that we are ending, is about to say how: that tells more.
        """
        with anyio.move_on_after(_LAST_WORD_S):
            await self._gone.wait()
            return WireError(self.failure(delivery=Delivery.NOT_SENT))
        error = BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        return WireError(RawFailure.exception(error, delivery=Delivery.NOT_SENT))

    async def ended(self) -> Exit:
        """Wait until the whole tree is gone."""
        await self._gone.wait()
        return self.exit or Exit(None)

    def failure(self, *, delivery: Delivery | None = None) -> RawFailure:
        """This process's end as a failure.  Ask once it has ended."""
        if self._refused:
            return RawFailure.exit(127, stderr=self._refused, delivery=Delivery.NOT_SENT)
        if self._stalled is not None:  # how it ended then is our doing
            return RawFailure.exception(self._stalled, delivery=delivery)
        code = self.exit.code if self.exit else None
        return RawFailure.exit(code, stderr=self.stderr_tail, delivery=delivery)

    async def close(self, grace_s: float) -> None:
        """Say goodbye: close stdin, give the agent a moment, then kill what is left."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(grace_s):
            async with self._writing:  # an agent that does not read may keep a writer waiting
                self._stdin = _close(self._stdin)
            await self._gone.wait()
        await self.kill()

    async def kill(self) -> None:
        """Kill the whole tree and wait until it is gone.  Needs `tend` to be running."""
        self._lifeline = _close(self._lifeline)
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(_KILL_S) as patience:
                await self._gone.wait()
            if patience.cancelled_caught:
                self._keeper.kill()
                if self.pid is not None:
                    keeper.kill_group(self.pid)
                with anyio.move_on_after(_KILL_S):
                    await self._gone.wait()
        self._close_ours()

    def _close_ours(self) -> None:
        self._stdin = _close(self._stdin)
        for source in (self._stdout, self._stderr, self._status):
            source.close()
        self._lifeline = _close(self._lifeline)


def widen(fd: int) -> None:
    """Let a pipe hold more, where the system lets us: fewer, larger reads and writes."""
    with suppress(OSError, AttributeError):
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _close(fd: int) -> int:
    """Close once; the returned -1 takes the descriptor's place."""
    if fd >= 0:
        anyio.notify_closing(fd)
        os.close(fd)
    return -1
