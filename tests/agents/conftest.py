"""Real agents behind the proxy: `make test-agents`.

`install` puts claude-agent-acp, codex-acp, opencode and a Node 22, pinned, into the user's cache;
`provider` is a model provider on loopback that fails as `scenes` tell it to (its words are in
`shapes`); `kinds` says how each agent is started and set up for it; `client` is the client that
writes down what it sees; `stage` plays one scene, with the proxy or without.  `test_scenes` holds
what a client may see of each scene, `test_reload` loads conversations again, `test_clients` lets
the official Python and TypeScript clients talk through the proxy, and
`python -m tests.agents.table` prints scene x agent, without and with the proxy.
"""

import asyncio

import pytest
from anyio.from_thread import start_blocking_portal

from tests.agents.install import NotInstalledError, install
from tests.agents.stage import play

AT_ONCE = 4
"""Scenes mostly wait; more of them would only make the agents start later."""
_HARD_LIMIT_S = 500
"""The budgets of a start, a turn and an exit together; below the timeout of the tests."""


@pytest.fixture(scope="session")
def installed():
    """The real agents; without them the target fails."""
    try:
        return install()
    except NotInstalledError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def runs(request, installed):
    """Every part that a collected test asks for, played through the proxy in their order."""
    asked = (getattr(item, "callspec", None) for item in request.session.items)
    parts = dict.fromkeys(c.params["part"] for c in asked if c and "part" in c.params)
    with start_blocking_portal() as portal:
        limit = portal.call(_limit)
        yield {part: portal.start_task_soon(_play, limit, part, installed) for part in parts}


@pytest.fixture
def run(part, runs):
    """One part, played to its end."""
    return runs[part].result()


async def _limit():
    return asyncio.Semaphore(AT_ONCE)


async def _play(limit, part, installed):
    async with limit, asyncio.timeout(_HARD_LIMIT_S):
        return await play(
            part.scene, part.kind, capable=part.capable, proxied=True, installed=installed
        )
