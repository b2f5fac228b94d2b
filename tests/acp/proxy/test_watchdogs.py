"""Agents hang in silence: the clocks that notice, and what makes them stand still."""

import anyio

from tests.acp.proxy.harness import Script, play, staged
from tests.acp.proxy.test_recoveries import QUICK, resumed, two
from tests.acp.proxy.test_turns import one_prompt, ready, says, scripted


def test_a_silent_agent_is_cancelled_and_asked_again():
    async def silent(agent, prompt):
        await agent.next("session/cancel")
        agent.reply(prompt, {"stopReason": "cancelled"})

    agent = scripted(silent, says("hello"))
    answer, client = one_prompt(agent, settings=QUICK)
    assert answer["result"] == {"stopReason": "end_turn"}
    assert agent.methods()[2:] == ["session/prompt", "session/cancel", "session/prompt"]
    assert client.texts() == ["hello"]


def test_a_silent_agent_that_acknowledges_no_cancel_is_killed_and_replaced():
    async def deaf(agent, prompt):
        await anyio.sleep_forever()

    first = scripted(deaf)
    answer, _ = two(first, resumed(says("hello")), settings=QUICK)
    assert answer["result"] == {"stopReason": "end_turn"}
    assert first.killed


def test_a_question_of_a_dead_agent_is_void_and_its_late_answer_dropped():
    async def main():
        async def asks(agent, prompt):
            agent.say(
                {"id": 0, "method": "session/request_permission", "params": {"sessionId": "s1"}}
            )
            await anyio.sleep(1)
            agent.die()
            await anyio.sleep_forever()

        async def asks_again(agent, prompt):
            agent.say(
                {"id": 0, "method": "session/request_permission", "params": {"sessionId": "s1"}}
            )
            answer = await agent.next()
            agent.text("s1", answer["result"]["is"])
            agent.reply(prompt, {"stopReason": "end_turn"})

        async with staged(scripted(asks), resumed(asks_again)) as stage:
            session_id = await ready(stage)
            number = stage.client.prompt(session_id)

            def questions():
                return [
                    m for m in stage.client.frames if m.get("method", "").endswith("permission")
                ]

            await stage.client.until(lambda: len(questions()) == 2)
            first, second = (m["id"] for m in questions())
            assert first == 0
            assert second != first
            stage.client.send({"id": first, "result": {"is": "late"}})
            stage.client.send({"id": second, "result": {"is": "right"}})
            await stage.client.answer(number)
            assert stage.client.texts() == ["right"]
            assert stage.proxy.questions.dropped == 1

    play(main)


def test_a_question_to_the_user_stops_the_clock():
    async def main():
        async def asks(agent, prompt):
            agent.say(
                {"id": 5, "method": "session/request_permission", "params": {"sessionId": "s1"}}
            )
            await agent.next()
            await says("hello")(agent, prompt)

        agent = scripted(asks)
        async with staged(agent, settings=QUICK) as stage:
            session_id = await ready(stage)
            number = stage.client.prompt(session_id)
            await anyio.sleep(10_000)
            assert "session/cancel" not in agent.methods()
            stage.client.send({"id": 5, "result": {}})
            assert (await stage.client.answer(number))["result"]["stopReason"] == "end_turn"

    play(main)


def test_progress_of_a_long_tool_is_life():
    async def main():
        async def builds(agent, prompt):
            agent.update("s1", sessionUpdate="tool_call", toolCallId="t", status="in_progress")
            for _ in range(10):
                await anyio.sleep(50)
                agent.update("s1", sessionUpdate="tool_call_update", toolCallId="t")
            agent.update("s1", sessionUpdate="tool_call_update", toolCallId="t", status="completed")
            await says("built")(agent, prompt)

        agent = scripted(builds)
        async with staged(agent, settings=QUICK) as stage:
            session_id = await ready(stage)
            answer = await stage.client.answer(stage.client.prompt(session_id))
            assert answer["result"]["stopReason"] == "end_turn"
            assert "session/cancel" not in agent.methods()

    play(main)


def test_a_session_that_opens_too_late_is_closed_and_never_used():
    async def main():
        async def slow(agent):
            hello = await agent.next("initialize")
            capabilities = {"sessionCapabilities": {"close": {}}}
            agent.reply(hello, {"protocolVersion": 1, "agentCapabilities": capabilities})
            new = await agent.next("session/new")
            await anyio.sleep(30)
            agent.reply(new, {"sessionId": "late"})
            close = await agent.next("session/close")
            assert close["params"] == {"sessionId": "late"}
            agent.reply(close, {})
            await anyio.sleep_forever()

        agent = Script(slow)
        async with staged(agent, settings=QUICK) as stage:
            await stage.client.hello()
            answer = await stage.client.request("session/new", {"cwd": "/x", "mcpServers": []})
            assert answer["error"]["data"] == {"errorKind": "agent_start_timeout"}
            await anyio.sleep(60)
            assert agent.methods()[-1] == "session/close"
            assert stage.proxy.upstream.late_answers == 1
            assert stage.proxy.sessions.known == {}
            assert "late" not in str(stage.client.frames)

    play(main)


def test_an_agent_that_does_not_greet_in_time_is_told_of_and_killed():
    async def main():
        async def mute(agent):
            await anyio.sleep_forever()

        agent = Script(mute)
        async with staged(agent, settings=QUICK) as stage:
            answer = await stage.client.hello()
            assert answer["error"]["data"] == {"errorKind": "agent_start_timeout"}
            assert agent.killed

    play(main)
