"""One scene with a real agent: a provider, the agent, the proxy or not, and what the client saw."""

import asyncio
import contextlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil
from attrs import define, field, frozen

from tests.agents.client import Client, kill, texts_in
from tests.agents.install import Installed
from tests.agents.kinds import Kind, environment
from tests.agents.provider import Answer, Provider, always

SPOKEN = "spoken to its end"
"""What every whole answer of the provider says."""
LIMIT_S = 180
"""How long a turn through the proxy may take; the machine has other things to do."""
ALONE_LIMIT_S = 30
"""Without the proxy some agents stay silent for hours; this long is enough to say so."""
_ALONE_GRACE_S = 2.0
"""An adapter's own child may leave a moment after it; the proxy has to wait for it itself."""
_LATE_S = 1.0
"""Updates that come behind the answer are waited for this long."""
HASTE = {
    "ladders.curve.first_s": 0.2,
    "ladders.curve.jitter": 0.0,
    "watchdogs.first_sign_s": 60,
    "watchdogs.handshake_s": 120,
    "watchdogs.session_s": 120,
    "watchdogs.cancel_s": 10,
}
"""Settings of the proxy in every scene: short waits, since waiting as such proves nothing, and the
time that agents which start side by side need on a busy machine."""


async def _nothing(_):
    return


@frozen(eq=False)
class Scene:
    """What goes wrong, and who does it."""

    name: str
    script: Callable
    """(kind) to the provider's script for the turn."""
    meddle: Callable = _nothing
    """Runs beside the turn: kills, cancels."""
    before: Callable = _nothing
    """Runs on the idle session before the turn."""
    settings: Mapping = field(factory=dict)
    """Further settings of the proxy, by dotted path."""
    options: tuple = ()
    """Further options of the proxy."""


@frozen
class Part:
    """A scene, who plays the agent, and what the client can read."""

    scene: Scene
    kind: Kind
    capable: bool

    def __str__(self):
        return f"{self.scene.name}-{self.kind.name}-{'capable' if self.capable else 'legacy'}"


@define(eq=False)
class Run:
    """A scene played once, and everything that is known of it."""

    scene: Scene
    kind: Kind
    capable: bool
    proxied: bool
    installed: Installed
    provider: Provider = None
    client: Client = None
    session: str = ""
    reply: dict | None = None
    """The answer to the prompt; None when the agent went away or stayed silent."""
    silent: bool = False
    """The turn was cancelled by us at the limit."""
    took_s: float = 0.0
    since: int = 0
    """Index of the first frame seen after the prompt went out."""
    requests: int = 0
    """The turn's own requests to the provider until the answer came."""
    cancelled_s: float | None = None
    """From our cancel to the answer."""
    cancelled_at: float | None = None
    agents_left: int = 0
    """Agent processes that ran when the answer had come."""
    late_requests: int = 0
    """More of them, within a second after the answer."""
    talked: int = 0
    """Healthy turns before the one that matters."""
    more: list = field(factory=list)
    """Answers to come, to prompts that a scene sent beside the one that matters."""
    more_stops: list = field(factory=list)
    """How those ended."""
    killed: list = field(factory=list)
    """Ids of the processes we killed."""
    left: list = field(factory=list)
    """Processes that outlived the connection."""
    exit_code: int | None = None

    # --- for scenes ------------------------------------------------------------------------------

    def agents(self):
        """The agent processes that run now: one, unless something is wrong."""
        command = self.kind.command(self.installed)
        with contextlib.suppress(psutil.NoSuchProcess):
            root = psutil.Process(self.client.process.pid)
            everybody = [root, *root.children(recursive=True)]
            return [process for process in everybody if _arguments(process) == command]
        return []

    def kill_agent(self):
        for process in self.agents():
            self.killed.append(process.pid)
            kill(process)

    def kill_inner(self):
        """Kill the adapter's own child and leave the adapter alive."""
        for agent in self.agents():
            for process in agent.children(recursive=True):
                if process.name() == self.kind.inner_process:
                    self.killed.append(process.pid)
                    kill(process)

    def forget(self):
        """Take away what the agent keeps of its sessions."""
        home = Path(self.client.env["HOME"])
        for path in (path for pattern in self.kind.history for path in home.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def prompt_too(self, text):
        self.more.append(self.client.prompt(self.session, text))

    def cancel(self):
        self.cancelled_at = time.monotonic()
        self.client.tell("session/cancel", {"sessionId": self.session})

    # --- for tests -------------------------------------------------------------------------------

    @property
    def stop_reason(self):
        return ((self.reply or {}).get("result") or {}).get("stopReason", "")

    @property
    def error(self):
        return (self.reply or {}).get("error") or {}

    @property
    def records(self):
        return self.client.records

    @property
    def errors(self):
        return [record for record in self.records if record.severity == "error"]

    @property
    def text(self):
        return self.client.text

    @property
    def texts_since(self):
        """Chunks of the agent's message that came in the turn."""
        frames = [seen.frame for seen in self.client.seen[self.since :]]
        return texts_in(frames)

    @property
    def answered(self):
        """Whether the turn brought a whole answer of the model."""
        return self.client.text.count(SPOKEN) > self.talked


def _arguments(process):
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


async def play(scene, kind, *, capable, proxied, installed):
    """Play a scene once; the run tells what the client saw."""
    run = Run(scene, kind, capable, proxied, installed)
    with tempfile.TemporaryDirectory(prefix="agents-", ignore_cleanup_errors=True) as folder:
        run.provider = Provider(always(Answer()))
        await run.provider.start()
        try:
            await _play_in(run, Path(folder))
        finally:
            await run.provider.stop()
    return run


async def _play_in(run, folder):
    home, work = folders(folder)
    env = environment(home, run.kind.prepare(home, run.provider.port))
    command = run.kind.command(run.installed)
    if run.proxied:
        settings = settings_file(folder, run.scene.settings)
        command = proxied(command, settings, *run.scene.options)
    run.client = Client(command, env, str(work), run.capable)
    try:
        async with run.client:
            await _turn(run)
    finally:
        run.exit_code = run.client.process.returncode
        if not run.proxied:
            await asyncio.sleep(_ALONE_GRACE_S)
        run.left = await run.client.clear()


def folders(top):
    """A home for the agent and a place to work in."""
    home, work = Path(top, "home"), Path(top, "work")
    home.mkdir()
    work.mkdir()
    return home, work


def proxied(command, settings, *options):
    """The command line of the proxy in front of an agent."""
    proxy = [sys.executable, "-m", "orchestrator.cli", "proxy", "--settings", str(settings)]
    return [*proxy, *options, "--", *command]


def settings_file(folder, settings):
    """The settings as a file; JSON's plain values are TOML's."""
    path = folder / "settings.toml"
    pairs = {**HASTE, **settings}.items()
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in pairs))
    return path


async def _turn(run):
    client, provider = run.client, run.provider
    reply = await client.initialize()
    assert "result" in (reply or {}), (reply, client.log[-20:])
    run.session = await client.new_session()
    await run.scene.before(run)
    provider.begin(run.scene.script(run.kind))
    run.since = len(client.seen)
    started = time.monotonic()
    answer = client.prompt(run.session, "Why do the tests fail?")
    meddling = asyncio.create_task(run.scene.meddle(run))
    limit = LIMIT_S if run.proxied else ALONE_LIMIT_S
    try:
        run.reply = await asyncio.wait_for(asyncio.shield(answer), limit)
    except TimeoutError:
        run.silent = True
    finally:
        meddling.cancel()
        outcome = await asyncio.gather(meddling, return_exceptions=True)
    ended = time.monotonic()
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    run.took_s = ended - started
    run.requests = len(provider.counted)
    run.agents_left = len(run.agents())
    if run.cancelled_at is not None:
        run.cancelled_s = ended - run.cancelled_at
    if run.more:
        await asyncio.wait(run.more, timeout=limit)
        run.more_stops = [_how(future) for future in run.more]
        run.requests = len(provider.counted)
    await asyncio.sleep(_LATE_S)
    run.late_requests = len(provider.counted) - run.requests


def _how(future):
    """How another prompt ended."""
    reply = (future.result() or {}) if future.done() else {}
    if "error" in reply:
        return f"error {reply['error']['code']}"
    return (reply.get("result") or {}).get("stopReason", "no answer")
