"""A usage limit told live is one entry in every reload of the conversation, by any client."""

import asyncio
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from attrs import define

from tests.agents.client import Client, texts_in
from tests.agents.kinds import CLAUDE_SEAT, environment
from tests.agents.provider import Fault, Provider, always
from tests.agents.stage import folders, proxied, settings_file

pytestmark = [pytest.mark.agents, pytest.mark.anyio, pytest.mark.timeout(600)]

_LIMIT = "hit your limit"


@pytest.fixture
def anyio_backend():
    """The recording client runs on asyncio alone."""
    return "asyncio"


@define
class Desk:
    """A home that outlives the proxies started in it."""

    command: list
    env: dict
    work: str

    @asynccontextmanager
    async def client(self, *, capable):
        client = Client(self.command, self.env, self.work, capable)
        async with client:
            await client.initialize()
            yield client
        assert await client.clear() == []


@asynccontextmanager
async def desk(installed):
    """A subscription whose allowance is spent."""
    with tempfile.TemporaryDirectory(prefix="agents-", ignore_cleanup_errors=True) as top:
        provider = Provider(always(Fault("usage_limit", 429)))
        await provider.start()
        home, work = folders(top)
        env = environment(home, CLAUDE_SEAT.prepare(home, provider.port))
        command = proxied(CLAUDE_SEAT.command(installed), settings_file(Path(top), {}))
        try:
            yield Desk(command, env, str(work))
        finally:
            await provider.stop()


async def reloaded(client, session):
    """What one load of the session told: its records, and its texts about the limit."""
    records, frames = len(client.records), len(client.seen)
    params = {"sessionId": session, "cwd": client.folder, "mcpServers": []}
    reply = await client.ask("session/load", params)
    assert "result" in (reply or {}), (reply, client.log[-20:])
    await asyncio.sleep(1.0)  # an agent may replay behind its answer
    texts = texts_in(seen.frame for seen in client.seen[frames:])
    return client.records[records:], [text for text in texts if _LIMIT in text]


async def limited(client):
    """A session whose only turn ended at the limit."""
    session = await client.new_session()
    await client.prompt(session, "Why do the tests fail?")
    return session


async def test_a_client_that_reads_records_finds_the_same_incident_once_in_each_reload(installed):
    async with desk(installed) as place:
        async with place.client(capable=True) as client:
            session = await limited(client)
            (live,) = client.records
            loads = [await reloaded(client, session)]
        async with place.client(capable=True) as client:
            loads += [await reloaded(client, session), await reloaded(client, session)]
    assert live.on_answer
    for records, texts in loads:
        assert [(record.id, record.revision) for record in records] == [(live.id, live.revision)]
        assert [record.title for record in records] == [live.title]
        assert texts == []


async def test_a_client_that_reads_none_finds_the_agents_sentence_once_in_each_reload(installed):
    async with desk(installed) as place:
        async with place.client(capable=False) as client:
            session = await limited(client)
            live = [text for text in client.texts if _LIMIT in text]
        async with place.client(capable=False) as client:
            loads = [await reloaded(client, session), await reloaded(client, session)]
    assert len(live) == 1
    assert loads == [([], live), ([], live)]


async def test_what_was_told_as_text_is_a_record_for_a_client_that_reads_them(installed):
    async with desk(installed) as place:
        async with place.client(capable=False) as client:
            session = await limited(client)
        async with place.client(capable=True) as client:
            loads = [await reloaded(client, session), await reloaded(client, session)]
    for records, texts in loads:
        assert [(record.severity, record.category) for record in records] == [("error", "limit")]
        assert texts == []
    # The agent's own record, which was never told under an id of ours: it counts its revisions.
    assert len({record.id for records, _ in loads for record in records}) == 1
