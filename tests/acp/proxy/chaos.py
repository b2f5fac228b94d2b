"""Turns on an agent that fails at random: `python -m tests.acp.proxy.chaos [TURNS] [SEED]`.

Faults, deaths, silence, malformed frames, questions, stops and queued prompts at random points, in
virtual time and from one seed.  Held: every prompt gets exactly one answer, no id is answered
twice, nothing is left running, memory does not grow.

Memory is counted in blocks of the allocator, texts included.  Whatever keeps a bounded number of
things keeps only a few here, so that it is soon full: what still grows then, grows without end.
"""

import gc
import json
import random
import sys
from contextlib import ExitStack, contextmanager
from statistics import median
from unittest import mock

import anyio
import trio
from attrs import define, field

from orchestrator.acp import memory
from orchestrator.acp.framing import encode
from orchestrator.acp.proxy import questions, records, upstream
from orchestrator.incident import ledger
from orchestrator.runner import session
from orchestrator.settings.model import Settings, Watchdogs
from tests.acp.proxy.harness import AIR, Script, play, staged

BOUNDS = (
    (ledger, "_REMEMBERED"),
    (memory, "_MAX_ENTRIES"),
    (questions, "_REMEMBERED"),
    (records, "_KEPT"),
    (session, "_REMEMBERED"),
    (upstream, "_REMEMBERED"),
)
"""How much is kept of what has no natural end."""
FEW = 8
SAMPLES = 60
"""How often a run counts its memory."""
GROWS = 250
"""Blocks by which two thousand turns may seem to grow: the interpreter's own stocks make up to 100,
one text kept in each turn would make 500."""

SETTINGS = Settings(watchdogs=Watchdogs(first_sign_s=20, silence_s=20, handshake_s=5, session_s=5))
GARBAGE = (b"\n", b"not json\n", b"{}\n", b"[]\n", b"null\n", b'{"id":1}\n', b"\xff\xfe\n", b"7\n")
ODD_UPDATE = {
    "sessionUpdate": ["x"],
    "content": {"text": 5},
    "_meta": {"jetbrains": {"air": {"sessionFailure": {"id": 5}}}},
}
ODD = (
    b'{"jsonrpc":"2.0","id":"nobody","result":{}}\n',
    b'{"jsonrpc":"2.0","method":"session/update"}\n',
    b'{"jsonrpc":"2.0","method":"session/update","params":[]}\n',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1"}}\n',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":7}}\n',
    encode({"method": "session/update", "params": {"sessionId": "s1", "update": ODD_UPDATE}}),
    b'{"jsonrpc":"2.0","id":null,"method":"x/odd","params":{"sessionId":{}}}\n',
    b'{"jsonrpc":"2.0","method":"x/odd","params":"text"}\n',
)
ERRORS = (
    (-32603, "Internal error: 529 Overloaded", {"errorKind": "overloaded"}),
    (-32603, "Internal error: 503 Service Unavailable", None),
    (-32603, "Internal error: ECONNRESET", None),
    (-32602, "Session not found", None),
    (-32002, "Resource not found", None),
    (-32000, "Authentication required", None),
    (429, "Too many requests", {"retry_after": 1}),
    (1001, "The inner process was killed", {"restartable": True}),
    (-32603, "You've hit your limit · resets 3am", None),
    (400, "Invalid argument", None),
    (-32603, {"odd": "message"}, ["odd"]),
)


@define(eq=False)
class Wild:
    """The world in which each process of the agent lives."""

    luck: random.Random
    started: int = 0
    sessions: int = 0
    """Opened so far: their ids count them."""
    open_now: int = 0
    """Processes that run."""

    def agent(self):
        self.started += 1
        script = Script(self.play, keeps=False)
        script.exit = script.exit.__class__(self.luck.choice((0, 1, 137, -9, -11)))
        return script

    async def play(self, agent):
        self.open_now += 1
        try:
            async with anyio.create_task_group() as tasks:
                running = {}
                while True:
                    message = await agent.next()
                    if not isinstance(message, dict) or "method" not in message:
                        continue
                    tasks.start_soon(self._take, agent, message, running, tasks)
        finally:
            self.open_now -= 1

    async def _take(self, agent, message, running, tasks):
        method, params = message["method"], message.get("params") or {}
        await anyio.sleep(self.luck.choice((0, 0, 0.1, 1)))
        session_id = params.get("sessionId")
        if method == "initialize":
            agent.reply(message, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
        elif method == "session/new":
            self.sessions += 1
            agent.reply(message, {"sessionId": f"s{self.sessions}"})
        elif method == "session/load":
            if self.luck.random() < 0.8:
                agent.text(session_id, "history", message_id="h")
                agent.reply(message, {})
            else:
                agent.fail(message, -32602, "Session not found")
        elif method == "session/cancel":
            scope = running.get(session_id)
            if scope is not None and self.luck.random() < 0.9:
                scope.cancel()
        elif method == "session/prompt":
            with anyio.CancelScope() as running[session_id]:
                await self._prompt(agent, message, session_id, tasks)
            if running[session_id].cancel_called:
                stop = self.luck.choice(("cancelled", "end_turn"))
                agent.reply(message, {"stopReason": stop})
        elif "id" in message:
            agent.fail(message, -32601, f"{method} is unknown")

    async def _prompt(self, agent, prompt, session_id, tasks):
        luck = self.luck
        for _ in range(luck.randrange(4)):
            await self._something(agent, session_id)
        act = luck.random()
        if act < 0.35:
            agent.text(session_id, "an answer", message_id="m9")
            agent.reply(prompt, {"stopReason": "end_turn"})
        elif act < 0.75:
            agent.fail(prompt, *luck.choice(ERRORS))
        elif act < 0.80:
            agent.reply(prompt, luck.choice(({}, {"stopReason": "end_turn"}, {"stopReason": []})))
        elif act < 0.84:
            agent.say({"id": prompt["id"], "result": luck.choice((None, 7, [], "x"))})
        elif act < 0.90:
            await anyio.sleep(luck.choice((5, 100)))
            agent.reply(prompt, {"stopReason": "refusal"})
        elif act < 0.93:
            agent.reply(prompt, {"stopReason": "end_turn"})
            agent.reply(prompt, {"stopReason": "end_turn"})
        else:
            agent.die(luck.choice((1, 137, -9, -11)))
            await anyio.sleep_forever()

    async def _something(self, agent, session_id):
        luck = self.luck
        await anyio.sleep(luck.choice((0, 0.05, 2)))
        act = luck.random()
        if act < 0.4:
            agent.text(session_id, "some text", message_id=luck.choice(("m1", None)))
        elif act < 0.55:
            agent.update(session_id, sessionUpdate="tool_call", toolCallId="t", status="completed")
        elif act < 0.65:
            params = {"sessionId": session_id}
            agent.say({"id": luck.randrange(5), "method": "fs/read_text_file", "params": params})
        elif act < 0.75:
            record = {"id": f"r{luck.randrange(3)}", "revision": 1, "severity": "warning"}
            record |= {"category": "service", "title": "Retrying.", "actions": []}
            meta = {"jetbrains": {"air": {"version": 1, "sessionFailure": record}}}
            agent.update(session_id, sessionUpdate="session_info_update", _meta=meta)
        elif act < 0.9:
            agent.write(luck.choice(GARBAGE))
        else:
            agent.write(luck.choice(ODD))


@define
class Told:
    """What a run came to."""

    prompts: int = 0
    answers: dict = field(factory=dict)
    """Answers by what they said."""
    starts: int = 0
    blocks: list = field(factory=list)
    """Blocks of memory in use, as often as they were counted."""

    @property
    def grown(self):
        """Blocks that came to stay from the third quarter to the last.

        What is in flight comes and goes, so the middle of each quarter counts.  By then the
        interpreter's own stocks are nearly full too.
        """
        quarter = len(self.blocks) // 4
        return median(self.blocks[-quarter:]) - median(self.blocks[-2 * quarter : -quarter])


async def _client(stage, luck, turns, told):
    """Prompts on three sessions, some stopped, some queued; every question is answered or not."""
    client = stage.client
    await client.hello(luck.choice((AIR, None)))
    sessions = []
    while len(sessions) < 3:
        answer = await client.request("session/new", {"cwd": "/x", "mcpServers": []})
        if "result" in answer:
            sessions.append(answer["result"]["sessionId"])
    while told.prompts < turns:
        numbers = []
        for session_id in luck.sample(sessions, luck.randrange(1, 4)):
            numbers += await _one_session(client, luck, session_id)
        told.prompts += len(numbers)
        for number in numbers:
            answer = await client.answer(number)
            said = _said(answer)
            told.answers[said] = told.answers.get(said, 0) + 1
        _answer_questions(client, luck)
        if told.prompts * SAMPLES >= turns * len(told.blocks):
            client.answers.clear()
            gc.collect()
            told.blocks.append(sys.getallocatedblocks())


@contextmanager
def _small_memories():
    with ExitStack() as stack:
        for module, name in BOUNDS:
            stack.enter_context(mock.patch.object(module, name, FEW))
        yield


def _said(answer):
    result = answer.get("result")
    if "error" in answer:
        return "error"
    return str(result.get("stopReason")) if isinstance(result, dict) else "odd"


async def _one_session(client, luck, session_id):
    numbers = [client.prompt(session_id, "hello") for _ in range(luck.choice((1, 1, 2)))]
    if luck.random() < 0.1:
        client.write(luck.choice(GARBAGE))
    if luck.random() < 0.1:
        client.ask("x/unknown", {"sessionId": session_id})
    if luck.random() < 0.25:
        await anyio.sleep(luck.choice((0, 0.1, 1, 8)))
        client.notify("session/cancel", {"sessionId": session_id})
    return numbers


def _answer_questions(client, luck):
    for frame in client.frames:
        asked = isinstance(frame, dict) and "method" in frame and "id" in frame
        if asked and luck.random() < 0.7:
            client.send({"id": frame["id"], "result": {}})
    client.frames.clear()
    client.lines.clear()


@contextmanager
def _same_order(seed):
    """Let trio wake tasks in the same order at every run, as its own tests do."""
    trio._core._run._r.seed(seed)
    with mock.patch.object(trio._core._run, "_ALLOW_DETERMINISTIC_SCHEDULING", new=True):
        yield


def run(turns, seed):
    """One run.  Raises when a prompt is not answered, or answered twice."""
    told = Told()
    luck = random.Random(seed)
    wild = Wild(luck)

    class Endless(list):
        def pop(self, _):
            return wild.agent()

    async def main():
        async with staged(settings=SETTINGS, agents=Endless()) as stage:
            await _client(stage, luck, turns, told)
            assert not stage.orchestrator.running
            assert all(not c.prompts for c in stage.proxy.sessions.known.values())
        assert wild.open_now == 0

    with _small_memories(), _same_order(seed):
        play(main)
    told.starts = wild.started
    return told


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:]]
    result = run(*(words + [2000, 3][len(words) :]))
    print(json.dumps({"prompts": result.prompts, "answers": result.answers}))  # noqa: T201
    print(f"{result.starts} starts of the agent, {result.grown} blocks of memory grown")  # noqa: T201
