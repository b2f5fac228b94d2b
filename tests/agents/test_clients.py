"""The official clients talk to a real agent through the proxy, and see nothing odd."""

import asyncio
import json
import logging
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import acp
import pytest
from acp.schema import AllowedOutcome, RequestPermissionResponse
from attrs import define, field

from tests.agents.kinds import CLAUDE, environment
from tests.agents.provider import Answer, Call, Fault, Provider
from tests.agents.shapes import ToolCall
from tests.agents.stage import folders, proxied, settings_file

pytestmark = [pytest.mark.agents, pytest.mark.anyio, pytest.mark.timeout(600)]

PROMPTS = ("Why do the tests fail?", "Write it down.", "Tell me all about it.")
"""The first finds the model overloaded, the second needs a permission, the last is cancelled."""
_LONG = Answer(" ".join(f"w{n}" for n in range(400)), pause_s=0.1)
_SPOKEN = "Answer number {n} of the model, spoken to its end."


@pytest.fixture
def anyio_backend():
    """The Python client runs on asyncio alone."""
    return "asyncio"


def script(folder):
    """What happens to each of the model requests of the conversation."""
    write = ToolCall("Write", {"file_path": f"{folder}/cause.txt", "content": "the clock\n"})
    overload = [Fault("overloaded", 529)] * CLAUDE.attempts["overloaded"]
    actions = [*overload, Answer(), Call(write), Answer()]
    return lambda n: actions[n - 1] if n <= len(actions) else _LONG


@asynccontextmanager
async def stage(installed):
    """A provider, and the command line, environment and folder of the proxy before claude."""
    with tempfile.TemporaryDirectory(prefix="agents-", ignore_cleanup_errors=True) as top:
        home, work = folders(top)
        provider = Provider(script(work))
        await provider.start()
        try:
            env = environment(home, CLAUDE.prepare(home, provider.port))
            command = proxied(CLAUDE.command(installed), settings_file(Path(top), {}))
            yield provider, command, env, work
        finally:
            await provider.stop()


def check(stops, permissions, text, provider, work):
    """Three prompts, one permission, and each word once."""
    assert stops == ["end_turn", "end_turn", "cancelled"]
    assert permissions == 1
    assert (work / "cause.txt").read_text() == "the clock\n"
    answers = [r.number for r in provider.own if isinstance(r.action, Answer)][:2]
    assert [text.count(_SPOKEN.format(n=number)) for number in answers] == [1, 1]
    assert "Overloaded" not in text


@define
class Official(acp.Client):
    """The client's side of the official Python client."""

    permissions: int = 0
    text: str = ""
    others: list = field(factory=list)
    spoke: asyncio.Event = field(factory=asyncio.Event)

    async def request_permission(self, session_id, tool_call, options, **_):
        self.permissions += 1
        allow = next(option for option in options if option.kind == "allow_once")
        outcome = AllowedOutcome(outcome="selected", option_id=allow.option_id)
        return RequestPermissionResponse(outcome=outcome)

    async def session_update(self, session_id, update, **_):
        if update.session_update == "agent_message_chunk":
            self.text += update.content.text
            self.spoke.set()

    async def ext_notification(self, method, params):
        self.others.append(method)


async def test_the_official_python_client_sees_nothing_odd(installed, caplog):
    caplog.set_level(logging.WARNING)
    client = Official()
    async with stage(installed) as (provider, command, env, work):
        program, *args = command
        options = {"transport_kwargs": {"stderr": asyncio.subprocess.DEVNULL}}
        async with acp.spawn_agent_process(
            client, program, *args, env=env, cwd=work, **options
        ) as (agent, process):
            hello = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
            opened = await agent.new_session(cwd=str(work), mcp_servers=[])
            session = opened.session_id
            await agent.set_session_mode(session_id=session, mode_id="default")
            stops = []
            for text in PROMPTS:
                client.spoke.clear()
                blocks = [acp.text_block(text)]
                turn = asyncio.create_task(agent.prompt(session_id=session, prompt=blocks))
                if text == PROMPTS[-1]:
                    await client.spoke.wait()
                    await agent.cancel(session_id=session)
                stops.append((await turn).stop_reason)
        assert await process.wait() == 0
        check(stops, client.permissions, client.text, provider, work)
    assert hello.protocol_version == acp.PROTOCOL_VERSION
    assert [record.getMessage() for record in caplog.records] == []


async def test_the_official_typescript_client_sees_nothing_odd(installed):
    async with stage(installed) as (provider, command, env, work):
        asked = {
            "sdk": str(installed.of("@agentclientprotocol/sdk", "dist", "v1", "stable", "acp.js")),
            "command": command,
            "env": env,
            "folder": str(work),
            "prompts": PROMPTS,
        }
        node = await asyncio.create_subprocess_exec(
            str(installed.node),
            str(Path(__file__).with_name("official.mjs")),
            json.dumps(asked),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(node.communicate(), 500)
        assert (node.returncode, err.decode()) == (0, "")
        seen = json.loads(out)
        check(seen["stops"], seen["permissions"], seen["text"], provider, work)
    assert seen["protocol"] == 1
    assert seen["exit"] == 0
