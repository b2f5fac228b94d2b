"""An agent dies between prompts, or under several sessions: nobody is left without an answer."""

import anyio
import pytest

from orchestrator.acp.proxy.conversation import Conversation
from orchestrator.settings.model import Settings, TurnLimits, Watchdogs
from tests.acp.proxy.harness import AIR, Script, play, staged
from tests.acp.proxy.test_recoveries import QUICK
from tests.acp.proxy.test_turns import ready, says

ABOUT = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}
OPTION = {"id": "depth", "currentValue": "low", "options": [{"value": "low"}, {"value": "high"}]}
OPENED = {"configOptions": [OPTION]}
ANSWERS = {
    "initialize": ABOUT,
    "session/new": {"sessionId": "s1", **OPENED},
    "session/load": OPENED,
}
IN_SESSION = {"sessionId": "s1"}
PLACE = {"cwd": "/project", "mcpServers": []}
REQUESTS = (
    ("session/set_mode", {**IN_SESSION, "modeId": "ask"}),
    ("session/set_config_option", {**IN_SESSION, "configId": "depth", "value": "high"}),
    ("session/list", {}),
    ("session/load", {**IN_SESSION, **PLACE}),
    ("session/resume", {**IN_SESSION, **PLACE}),
    ("session/new", PLACE),
    ("session/close", IN_SESSION),
    ("authenticate", {"methodId": "key"}),
    ("vendor/of_a_session", IN_SESSION),
    ("vendor/of_none", {}),
)
each_request = pytest.mark.parametrize(
    ("method", "params"), REQUESTS, ids=[method for method, _ in REQUESTS]
)


def answering(*, dies_at=None):
    """An agent that answers everything; it dies of a request of one method."""

    async def script(agent):
        while True:
            message = await agent.next()
            method = message.get("method")
            if method == dies_at:
                agent.die()
                await anyio.sleep_forever()
            if "id" in message and method is not None:
                agent.reply(message, ANSWERS.get(method, {"was": method}))

    return Script(script)


def unstartable():
    async def script(agent):
        await agent.next("initialize")
        agent.die(1)
        await anyio.sleep_forever()

    return Script(script)


async def idle_death(stage, first):
    """A session is open, and its agent dies while nothing runs."""
    await ready(stage)
    first.die()
    await anyio.sleep(1)


@each_request
def test_a_request_after_an_idle_death_brings_the_agent_back(method, params):
    async def main():
        first, second, log = answering(), answering(), []
        async with staged(first, second, log=log) as stage:
            await idle_death(stage, first)
            assert second.sent == []
            answer = await stage.client.request(method, params)
            assert answer["result"] == ANSWERS.get(method, {"was": method})
            assert second.methods()[0] == "initialize"
            assert second.methods().count(method) == 1
            assert any("the agent has ended by itself" in line for line in log)

    play(main)


@each_request
def test_a_request_after_an_idle_death_gets_an_error_where_the_agent_does_not_come_back(
    method, params
):
    async def main():
        first = answering()
        async with staged(first, unstartable(), answering()) as stage:
            await idle_death(stage, first)
            answer = await stage.client.request(method, params)
            assert answer["error"]["data"] == {"errorKind": "agent_start_failed"}
            # The next one tries again.
            assert "result" in await stage.client.request("vendor/of_none")

    play(main)


@each_request
def test_a_request_of_which_the_agent_dies_gets_an_error(method, params):
    async def main():
        first, second = answering(), answering(dies_at=method)
        async with staged(first, second, answering()) as stage:
            await idle_death(stage, first)
            answer = await stage.client.request(method, params)
            assert answer["error"]["data"] == {"errorKind": "agent_died"}
            assert "result" in await stage.client.request("vendor/of_none")

    play(main)


@pytest.mark.parametrize("fatal", ["session/load", "session/set_config_option"])
def test_an_agent_that_dies_while_its_session_is_opened_again_costs_one_error(fatal):
    async def main():
        first, second, third = answering(), answering(dies_at=fatal), answering()
        async with staged(first, second, third) as stage:
            await ready(stage)
            await stage.client.request(*REQUESTS[1])
            first.die()
            await anyio.sleep(1)
            answer = await stage.client.request("vendor/of_a_session", IN_SESSION)
            assert answer["error"]["data"] == {"errorKind": "agent_died"}
            answer = await stage.client.request("vendor/of_a_session", IN_SESSION)
            assert answer["result"] == {"was": "vendor/of_a_session"}
            assert third.methods()[:3] == [
                "initialize",
                "session/load",
                "session/set_config_option",
            ]

    play(main)


def test_an_agent_that_sets_no_option_in_time_costs_one_error_and_no_hang():
    async def main():
        async def mute(agent):
            for method in ("initialize", "session/load"):
                agent.reply(await agent.next(method), ANSWERS[method])
            await anyio.sleep_forever()

        first = answering()
        async with staged(first, Script(mute), settings=QUICK) as stage:
            await ready(stage)
            await stage.client.request(*REQUESTS[1])
            first.die()
            await anyio.sleep(1)
            answer = await stage.client.request("vendor/of_a_session", IN_SESSION)
            assert answer["error"]["message"] == "agent did not set an option within 5 s."

    play(main)


def test_requests_that_wait_for_the_agent_are_handed_on_in_order():
    async def main():
        first, second = answering(), answering()
        async with staged(first, second) as stage:
            await idle_death(stage, first)
            numbers = [stage.client.ask(method, params) for method, params in REQUESTS[:3]]
            for number, (method, _) in zip(numbers, REQUESTS, strict=False):
                assert (await stage.client.answer(number))["result"] == {"was": method}
            assert second.methods() == [
                "initialize",
                "session/load",
                *[method for method, _ in REQUESTS[:3]],
            ]

    play(main)


def test_an_agent_that_tells_its_mode_while_it_is_set_again_gets_what_was_chosen():
    async def telling(agent):
        agent.reply(await agent.next("initialize"), ABOUT)
        agent.reply(await agent.next("session/load"), {})
        setting = await agent.next("session/set_model")
        agent.update("s1", sessionUpdate="current_mode_update", currentModeId="default")
        await anyio.sleep(1)
        agent.reply(setting, {})
        agent.reply(await agent.next("session/set_mode"), {})
        await answering().play(agent)

    async def main():
        first, second = answering(), Script(telling)
        async with staged(first, second) as stage:
            await ready(stage)
            for dial in ("model", "mode"):
                await stage.client.request(f"session/set_{dial}", {**IN_SESSION, f"{dial}Id": "my"})
            first.die()
            await anyio.sleep(1)
            answer = await stage.client.request("vendor/of_a_session", IN_SESSION)
            assert answer["result"] == {"was": "vendor/of_a_session"}
            assert {**IN_SESSION, "modeId": "my"} in [m.get("params") for m in second.sent]

    play(main)


@pytest.mark.parametrize("session_id", ["", " "])
def test_a_session_that_is_loaded_under_no_id_ends_no_proxy(session_id):
    nameless = {"sessionId": session_id}

    async def main():
        agent = answering()
        async with staged(agent) as stage:
            await ready(stage)
            assert "result" in await stage.client.request("session/load", {**nameless, **PLACE})
            prompt = {**nameless, "prompt": [{"type": "text", "text": "hi"}]}
            answer = await stage.client.request("session/prompt", prompt)
            assert answer["result"] == {"was": "session/prompt"}

    play(main)


def test_an_error_whose_code_is_none_is_a_failure_as_any():
    async def script(agent):
        agent.reply(await agent.next("initialize"), ABOUT)
        agent.reply(await agent.next("session/new"), {"sessionId": "s1"})
        agent.fail(await agent.next("session/prompt"), ["s1"], "invalid request")
        await anyio.sleep_forever()

    async def main():
        async with staged(Script(script)) as stage:
            await ready(stage, AIR)
            answer = await stage.client.answer(stage.client.prompt("s1"))
            assert answer["result"]["stopReason"] == "end_turn"
            assert stage.client.records()[-1][1]["severity"] == "error"

    play(main)


def test_a_mistake_of_ours_costs_one_answer_and_never_the_proxy(monkeypatch):
    async def main():
        first, second = answering(), answering()
        async with staged(first, second) as stage:
            await idle_death(stage, first)
            with monkeypatch.context() as broken:
                broken.setattr(Conversation, "open", lambda _: 1 / 0)
                answer = await stage.client.request("vendor/of_a_session", IN_SESSION)
                assert answer["error"]["message"] == (
                    "This is a mistake of the proxy (ZeroDivisionError); send it again."
                )
            answer = await stage.client.request("vendor/of_a_session", IN_SESSION)
            assert answer["result"] == {"was": "vendor/of_a_session"}

    play(main)


def test_a_greeting_while_the_agent_starts_with_an_earlier_one_is_answered_once():
    async def slowly(agent):
        hello = await agent.next("initialize")
        await anyio.sleep(1)
        agent.reply(hello, ABOUT)
        agent.reply(await agent.next("session/list"), {})
        agent.reply(await agent.next("initialize"), {"its": "own"})
        await anyio.sleep(1)
        agent.die()
        await anyio.sleep_forever()

    async def main():
        first, third = answering(), answering()
        async with staged(first, Script(slowly), third) as stage:
            await idle_death(stage, first)
            listed = stage.client.ask("session/list", {})
            await anyio.sleep(0.5)
            again = stage.client.ask("initialize", {"protocolVersion": 1})
            assert (await stage.client.answer(listed))["result"] == {}
            assert (await stage.client.answer(again))["result"] == {"its": "own"}
            await anyio.sleep(2)
            # The third process is greeted with it too; the client of this test takes no id twice.
            assert "result" in await stage.client.request("vendor/of_none", {})
            assert third.sent[0]["params"] == {"protocolVersion": 1}

    play(main)


def test_a_hard_stop_of_one_session_is_a_death_that_the_other_recovers_from():
    async def main():
        async def shared(agent):
            agent.reply(await agent.next("initialize"), ABOUT)
            for session_id in ("s1", "s2"):
                agent.reply(await agent.next("session/new"), {"sessionId": session_id})
            for _ in range(2):
                prompt = await agent.next("session/prompt")
                agent.text(prompt["params"]["sessionId"], "half of ")
            await anyio.sleep_forever()

        async def again(agent):
            agent.reply(await agent.next("initialize"), ABOUT)
            for _ in range(2):
                agent.reply(await agent.next("session/load"), {})
                await says("the rest")(agent, await agent.next("session/prompt"))
            await anyio.sleep_forever()

        first, second = Script(shared), Script(again)
        settings = Settings(watchdogs=Watchdogs(cancel_s=2), turn=TurnLimits(stop_budget_s=5))
        async with staged(first, second, settings=settings) as stage:
            client = stage.client
            await client.hello(AIR)
            one, two = await client.new(), await client.new()
            stopped, other = client.prompt(one, "one"), client.prompt(two, "two")
            await anyio.sleep(1)
            client.notify("session/cancel", {"sessionId": one})
            assert (await client.answer(stopped))["result"] == {"stopReason": "cancelled"}
            assert (await client.answer(other))["result"] == {"stopReason": "end_turn"}
            assert first.killed
            (_, record), *more = client.records()
            assert more == []
            assert record["severity"] == "warning"
            assert record["title"].endswith("Restarting the agent (1 of 3).")
            loads = [m["params"]["sessionId"] for m in second.sent if m["method"] == "session/load"]
            assert loads == ["s2"]
            # The session that was stopped goes on as well, in the new process.
            assert (await client.answer(client.prompt(one)))["result"]["stopReason"] == "end_turn"
            assert client.texts() == ["half of ", "half of ", "the rest", "the rest"]

    play(main)
