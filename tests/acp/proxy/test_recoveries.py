"""A dead, lost or silent agent is replaced or asked again, and its client notices nothing odd."""

import anyio
import pytest

from orchestrator.settings.model import Recoveries, Settings, Watchdogs
from tests.acp.proxy.harness import AIR, Script, greet, play, staged
from tests.acp.proxy.test_turns import fails, one_prompt, ready, says, scripted

QUICK = Settings(watchdogs=Watchdogs(first_sign_s=20, silence_s=60, handshake_s=5, session_s=5))


def resumed(*acts, answers=None, replays=(), loaded=None, known=True):
    """The next process: it loads the session, then meets prompts with acts."""

    async def script(agent):
        hello = await agent.next("initialize")
        capabilities = {"loadSession": True}
        agent.reply(hello, {"protocolVersion": 1, "agentCapabilities": capabilities})
        load = await agent.next("session/load")
        for text in replays:
            agent.text(load["params"]["sessionId"], text, message_id="old")
        if known:
            agent.reply(load, loaded or {})
        else:
            agent.fail(load, -32602, "Session not found")
            new = await agent.next("session/new")
            agent.update("s2", sessionUpdate="available_commands_update", availableCommands=[])
            agent.reply(new, {"sessionId": "s2"})
        for act in acts:
            await act(agent, await agent.next("session/prompt"))
        await anyio.sleep_forever()

    return Script(script)


def dies(*texts, code=-9):
    async def act(agent, prompt):
        for text in texts:
            agent.text("s1", text)
        await anyio.sleep(1)
        agent.die(code)
        await anyio.sleep_forever()

    return act


def two(first, second, capabilities=None, settings=None):
    """One prompt over two processes."""

    async def main():
        async with staged(first, second, settings=settings) as stage:
            session_id = await ready(stage, capabilities)
            answer = await stage.client.answer(stage.client.prompt(session_id))
            await anyio.sleep(1)
            return answer, stage.client

    return play(main)


def test_a_dead_agent_is_replaced_and_its_session_loaded_again():
    first = scripted(dies())
    second = resumed(says("hello"), replays=["what was said", "long ago"])
    answer, client = two(first, second)
    assert answer["result"] == {"stopReason": "end_turn"}
    assert client.texts() == ["hello"]
    assert second.methods() == ["initialize", "session/load", "session/prompt"]
    load = second.sent[1]["params"]
    assert load == {"sessionId": "s1", "cwd": "/project", "mcpServers": []}
    assert second.sent[0]["params"] == first.sent[0]["params"]


def test_what_a_killed_agent_had_shown_stays_and_the_rest_is_asked_for():
    second = resumed(says("answer"), replays=["hello"])
    _, client = two(scripted(dies("half of the ")), second, AIR)
    assert client.texts() == ["half of the ", "answer"]
    prompt = str(second.sent[-1]["params"]["prompt"])
    assert "half of the" in prompt
    assert [r["severity"] for _, r in client.records()] == ["warning"]


def test_a_session_that_cannot_be_loaded_is_told_to_a_new_one_under_the_same_id():
    async def main():
        first = scripted(says("Paris."), dies())
        second = resumed(says("Berlin."), says("Rome."), known=False)
        async with staged(first, second) as stage:
            session_id = await ready(stage)
            image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
            text = {"type": "text", "text": "Capital of France?"}
            prompt = {"sessionId": session_id, "prompt": [text, image]}
            await stage.client.request("session/prompt", prompt)
            for question in ("Of Germany?", "Of Italy?"):
                answer = await stage.client.answer(stage.client.prompt(session_id, question))
                assert answer["result"] == {"stopReason": "end_turn"}
            stage.client.notify("x/thing", {"sessionId": session_id})
            await anyio.sleep(1)
            return second.sent, stage.client

    sent, client = play(main)
    assert client.texts() == ["Paris.", "Berlin.", "Rome."]
    assert "s2" not in str(client.frames)
    first, second = [m["params"] for m in sent if m.get("method") == "session/prompt"]
    assert first["sessionId"] == second["sessionId"] == "s2"
    transcript = first["prompt"][0]["text"]
    assert "Capital of France?" in transcript
    assert "Paris." in transcript
    assert "AAAA" not in str(sent)
    assert first["prompt"][1]["text"] == "Of Germany?"
    assert len(second["prompt"]) == 1
    assert sent[-1] == {"jsonrpc": "2.0", "method": "x/thing", "params": {"sessionId": "s2"}}


def test_everything_the_new_process_needs_is_replayed():
    async def main():
        def options(current):
            choices = [{"value": "a"}, {"value": "b"}]
            return [{"id": "m", "category": "model", "currentValue": current, "options": choices}]

        modes = {"currentModeId": "ask", "availableModes": [{"id": "ask"}, {"id": "code"}]}

        async def script(agent):
            hello = await agent.next("initialize")
            agent.reply(hello, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
            agent.reply(await agent.next("authenticate"), {})
            new = await agent.next("session/new")
            agent.reply(new, {"sessionId": "s1", "configOptions": options("a"), "modes": modes})
            agent.reply(await agent.next("session/set_mode"), {})
            agent.reply(
                await agent.next("session/set_config_option"), {"configOptions": options("b")}
            )
            await dies()(agent, await agent.next("session/prompt"))

        async def next_process(agent):
            hello = await agent.next("initialize")
            agent.reply(hello, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
            agent.reply(await agent.next("authenticate"), {})
            load = await agent.next("session/load")
            agent.reply(load, {"configOptions": options("a"), "modes": modes})
            agent.reply(
                await agent.next("session/set_config_option"), {"configOptions": options("b")}
            )
            agent.reply(await agent.next("session/set_mode"), {})
            await says("hello")(agent, await agent.next("session/prompt"))
            await anyio.sleep_forever()

        first, second = Script(script), Script(next_process)
        async with staged(first, second) as stage:
            client = stage.client
            await client.hello(AIR)
            await client.request("authenticate", {"methodId": "key", "_meta": {"k": 1}})
            place = {"cwd": "/else", "mcpServers": [{"name": "db"}], "_meta": {"x": 1}}
            await client.request("session/new", place)
            await client.request("session/set_mode", {"sessionId": "s1", "modeId": "code"})
            chosen = {"sessionId": "s1", "configId": "m", "value": "b"}
            await client.request("session/set_config_option", chosen)
            await client.answer(client.prompt("s1"))
            by_method = {m["method"]: m["params"] for m in second.sent}
            assert by_method["initialize"] == first.sent[0]["params"]
            assert by_method["authenticate"] == {"methodId": "key", "_meta": {"k": 1}}
            assert by_method["session/load"] == {"sessionId": "s1", **place}
            assert by_method["session/set_config_option"] == chosen
            assert by_method["session/set_mode"] == {"sessionId": "s1", "modeId": "code"}
            assert list(by_method)[-1] == "session/prompt"

    play(main)


def test_a_mode_that_the_agent_changed_by_itself_is_replayed_too():
    async def plan_done(agent, prompt):
        agent.update("s1", sessionUpdate="current_mode_update", currentModeId="code")
        await dies()(agent, prompt)

    async def next_process(agent):
        hello = await agent.next("initialize")
        agent.reply(hello, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
        agent.reply(await agent.next("session/load"), {"modes": {"currentModeId": "plan"}})
        asked = await agent.next("session/set_mode")
        assert asked["params"]["modeId"] == "code"
        agent.reply(asked, {})
        await says("hello")(agent, await agent.next("session/prompt"))
        await anyio.sleep_forever()

    answer, _ = two(scripted(plan_done), Script(next_process))
    assert answer["result"] == {"stopReason": "end_turn"}


def test_an_agent_that_only_resumes_is_resumed():
    async def next_process(agent):
        hello = await agent.next("initialize")
        capabilities = {"sessionCapabilities": {"resume": {}}}
        agent.reply(hello, {"protocolVersion": 1, "agentCapabilities": capabilities})
        agent.reply(await agent.next("session/resume"), {})
        await says("hello")(agent, await agent.next("session/prompt"))
        await anyio.sleep_forever()

    first = scripted(dies(), capabilities={"loadSession": False})
    answer, _ = two(first, Script(next_process))
    assert answer["result"] == {"stopReason": "end_turn"}


def test_a_session_lost_in_a_living_agent_is_loaded_again_there():
    async def script(agent):
        await greet(agent)
        agent.fail(await agent.next("session/prompt"), -32002, "Resource not found: s1")
        agent.reply(await agent.next("session/load"), {})
        await says("hello")(agent, await agent.next("session/prompt"))
        await anyio.sleep_forever()

    answer, client = one_prompt(Script(script))
    assert answer["result"] == {"stopReason": "end_turn"}
    assert client.texts() == ["hello"]


def test_an_agent_that_always_dies_is_given_up_with_one_error():
    async def main(capabilities):
        agents = [scripted(dies())] + [resumed(dies()) for _ in range(3)]
        async with staged(*agents) as stage:
            session_id = await ready(stage, capabilities)
            answer = await stage.client.answer(stage.client.prompt(session_id))
            return answer, [r for _, r in stage.client.records()]

    answer, _ = play(main, None)
    assert answer["error"]["code"] == -32603
    assert answer["error"]["data"] == {"errorKind": "agent_died"}
    answer, records = play(main, AIR)
    assert answer["result"]["stopReason"] == "end_turn"
    assert len({r["id"] for r in records}) == 1
    assert records[-1]["actions"] == ["new_session"]


def test_after_a_death_while_idle_the_next_request_finds_its_session_open():
    async def main():
        async def script(agent):
            await greet(agent)
            await anyio.sleep(5)

        async def next_process(agent):
            hello = await agent.next("initialize")
            agent.reply(hello, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
            agent.reply(await agent.next("session/load"), {})
            for _ in range(2):
                agent.reply(await agent.next("x/asked"), {"ok": True})
            await says("hello")(agent, await agent.next("session/prompt"))
            await anyio.sleep_forever()

        second = Script(next_process)
        async with staged(Script(script), second) as stage:
            session_id = await ready(stage)
            await anyio.sleep(10)
            numbers = [stage.client.ask("x/asked", {"sessionId": session_id}) for _ in range(2)]
            for number in numbers:
                assert (await stage.client.answer(number))["result"] == {"ok": True}
            await stage.client.answer(stage.client.prompt(session_id))
            assert second.methods()[:3] == ["initialize", "session/load", "x/asked"]

    play(main)


def test_a_request_whose_agent_died_is_answered_honestly():
    async def main():
        async def script(agent):
            await greet(agent)
            await agent.next("x/asked")
            agent.exit = agent.exit.__class__(137)

        async with staged(Script(script)) as stage:
            await ready(stage)
            answer = await stage.client.request("x/asked")
            assert answer["error"]["code"] == -32603
            assert answer["error"]["data"] == {"errorKind": "agent_died"}

    play(main)


def test_sessions_share_one_process_and_each_recovers_for_itself():
    async def main():
        async def first(agent):
            await greet(agent)
            agent.reply(await agent.next("session/new"), {"sessionId": "s2"})
            one, other = await agent.next("session/prompt"), await agent.next("session/prompt")
            assert {one["params"]["sessionId"], other["params"]["sessionId"]} == {"s1", "s2"}
            agent.text("s2", "half ")
            await anyio.sleep(1)
            agent.die()
            await anyio.sleep_forever()

        async def second(agent):
            hello = await agent.next("initialize")
            agent.reply(hello, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
            for _ in range(4):
                message = await agent.next()
                if message["method"] == "session/load":
                    agent.reply(message, {})
                else:
                    session_id = message["params"]["sessionId"]
                    agent.text(session_id, f"hello from {session_id}")
                    agent.reply(message, {"stopReason": "end_turn"})
            await anyio.sleep_forever()

        agents = Script(first), Script(second)
        async with staged(*agents) as stage:
            await stage.client.hello(AIR)
            ids = [await stage.client.new() for _ in range(2)]
            numbers = [stage.client.prompt(session_id) for session_id in ids]
            for number in numbers:
                assert (await stage.client.answer(number))["result"]["stopReason"] == "end_turn"
            incidents = {r["id"] for _, r in stage.client.records()}
            assert len(incidents) == 2
            assert sorted(stage.client.texts()) == ["half ", "hello from s1", "hello from s2"]
            assert agents[1].methods().count("session/load") == 2

    play(main)


def test_a_stop_while_the_agent_is_being_started_is_heard_at_once():
    async def main():
        async def mute(agent):
            await anyio.sleep_forever()

        slow = Settings(watchdogs=Watchdogs(handshake_s=1000))
        agents = scripted(dies()), Script(mute), resumed(says("hello"))
        async with staged(*agents, settings=slow) as stage:
            session_id = await ready(stage)
            number = stage.client.prompt(session_id)
            await anyio.sleep(5)
            before = anyio.current_time()
            stage.client.notify("session/cancel", {"sessionId": session_id})
            answer = await stage.client.answer(number)
            assert answer["result"] == {"stopReason": "cancelled"}
            assert anyio.current_time() - before < 1
            await anyio.sleep(1)
            assert agents[1].killed
            await stage.client.answer(stage.client.prompt(session_id))
            assert stage.client.texts() == ["hello"]

    play(main)


@pytest.mark.parametrize("own", [True, False])
def test_a_context_overflow_offers_a_new_session_or_takes_one_when_asked_to(own):
    from orchestrator.settings.model import Choices

    overflow = fails(-32603, "Internal error: prompt is too long: 210000 tokens > 200000 maximum")

    async def script(agent):
        await greet(agent)
        await overflow(agent, await agent.next("session/prompt"))
        new = await agent.next("session/new")
        agent.reply(new, {"sessionId": "s2"})
        prompt = await agent.next("session/prompt")
        agent.text("s2", "hello")
        agent.reply(prompt, {"stopReason": "end_turn"})
        await anyio.sleep_forever()

    settings = Settings(choices=Choices(fresh_session=own), recoveries=Recoveries())
    answer, client = one_prompt(Script(script), AIR, settings)
    if own:
        assert client.texts() == ["hello"]
    else:
        assert [r["actions"] for _, r in client.records()] == [["new_session"]]
        assert answer["result"]["stopReason"] == "end_turn"


def test_the_answer_to_initialize_is_the_clients_whoever_starts_the_agent():
    async def main():
        agent = scripted(says("hello"))
        async with staged(agent) as stage:
            first = stage.client.ask("initialize", {"protocolVersion": 1})
            new = stage.client.ask("session/new", {"cwd": "/x", "mcpServers": []})
            assert (await stage.client.answer(first))["result"]["protocolVersion"] == 1
            assert (await stage.client.answer(new))["result"] == {"sessionId": "s1"}
            assert agent.methods() == ["initialize", "session/new"]

    for _ in range(10):
        play(main)


def test_a_greeting_that_failed_is_not_answered_again_later():
    async def main():
        async def dies_at_once(agent):
            agent.die(1)
            await anyio.sleep_forever()

        second = scripted(says("hello"))
        async with staged(Script(dies_at_once), second) as stage:
            assert "error" in await stage.client.hello()
            await stage.client.new()
            assert sorted(stage.client.answers) == ["1", "2"]

    play(main)


def test_a_session_that_its_client_loaded_and_that_is_lost_at_once_is_told_to_a_new_one():
    async def main():
        async def script(agent):
            hello = await agent.next("initialize")
            agent.reply(hello, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
            load = await agent.next("session/load")
            content = {"type": "text", "text": "Capital of France?"}
            agent.update("old", sessionUpdate="user_message_chunk", content=content)
            agent.text("old", "Paris.", message_id="m0")
            agent.reply(load, {})
            agent.fail(await agent.next("session/prompt"), -32002, "Resource not found: old")
            agent.reply(await agent.next("session/new"), {"sessionId": "s2"})
            await says("Berlin.")(agent, await agent.next("session/prompt"))
            await anyio.sleep_forever()

        agent = Script(script)
        async with staged(agent) as stage:
            await stage.client.hello()
            place = {"sessionId": "old", "cwd": "/project", "mcpServers": []}
            await stage.client.request("session/load", place)
            answer = await stage.client.answer(stage.client.prompt("old", "Of Germany?"))
            return agent, stage.client, answer

    agent, client, answer = play(main)
    assert answer["result"] == {"stopReason": "end_turn"}
    assert client.texts() == ["Paris.", "Berlin."]
    assert agent.methods().count("session/load") == 1
    transcript, question = (block["text"] for block in agent.sent[-1]["params"]["prompt"])
    assert "User: Capital of France?" in transcript
    assert "Agent: Paris." in transcript
    assert question == "Of Germany?"
