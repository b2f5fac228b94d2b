"""A host that mounts the app beside its own orchestrator."""

from functools import partial

import httpx
import pytest

from orchestrator import Orchestrator
from orchestrator.failure.kinds import Kind
from orchestrator.metrics import MetricsObserver
from orchestrator.service.app import create_app
from orchestrator.service.incidents import Incidents
from orchestrator.service.readiness import reasons
from orchestrator.testing import ManualClock, ScriptedAgent

pytestmark = pytest.mark.anyio


class Broken:
    """A sink that is not there any more."""

    async def deliver(self, item):
        raise OSError(28, "No space left on device", "/private/place")


class Host:
    """One orchestrator with its metrics, its incidents and the app over both."""

    def __init__(self, *sinks):
        self.metrics, self.incidents = MetricsObserver(), Incidents()
        self.orchestrator = Orchestrator(
            sinks=[self.incidents, *sinks],
            observers=[self.metrics],
            clock=ManualClock(),
            seed=1,
        )
        app = create_app(
            self.metrics, incidents=self.incidents, not_ready=partial(reasons, self.orchestrator)
        )
        self.client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://127.0.0.1"
        )

    async def turn(self, *script):
        session = self.orchestrator.session("chat", ScriptedAgent(*script))
        return await session.turn("hi")

    async def get(self, path):
        return await self.client.get(path)


async def test_a_turn_that_lands_is_visible_in_the_next_scrape():
    host = Host()
    async with host.orchestrator, host.client:
        outcome = await host.turn(["Hello"])
        assert outcome.landed
        text = (await host.get("/metrics")).text
    assert 'orchestrator_turns_total{outcome="landed_clean"} 1.0' in text


async def test_an_incident_that_is_active_is_listed_and_counted_until_it_is_cleared():
    host = Host()
    async with host.orchestrator, host.client:
        await host.turn(Kind.AUTH_REQUIRED)
        listed = (await host.get("/v1/incidents?active=true")).json()["incidents"]
        assert [(row["category"], row["actions"]) for row in listed] == [("access", ["login"])]
        counted = 'orchestrator_incidents_active{category="access",severity="error"} '
        assert f"{counted}1.0" in (await host.get("/metrics")).text
        await host.turn(["Hello"])
        assert (await host.get("/v1/incidents?active=true")).json()["incidents"] == []
        (kept,) = (await host.get("/v1/incidents")).json()["incidents"]
        assert kept["active"] is False
        assert f"{counted}0.0" in (await host.get("/metrics")).text


async def test_a_sink_that_is_switched_off_makes_the_process_not_ready_and_names_no_path():
    host = Host(Broken())
    async with host.orchestrator, host.client:
        assert (await host.get("/readyz")).status_code == 200
        await host.turn(Kind.AUTH_REQUIRED)
        answer = await host.get("/readyz")
        text = (await host.get("/metrics")).text
    assert answer.status_code == 503
    (reason,) = answer.json()["reasons"]
    assert reason.startswith("Broken raised or took too long and was switched off.")
    assert "/private/place" not in answer.text
    assert 'orchestrator_sink_disabled{sink="Broken"} 1.0' in text
    assert 'orchestrator_sink_disabled{sink="Incidents"} 0.0' in text
