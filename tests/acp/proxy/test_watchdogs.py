"""Agents hang in silence: the clocks that notice, and what makes them stand still."""

import anyio

from orchestrator.settings.model import Settings, Watchdogs
from tests.acp.proxy.harness import AIR, Script, play, staged
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


def test_what_an_agent_tells_at_the_start_of_a_turn_is_no_sign_of_life():
    def chats(then):
        async def act(agent, prompt):
            agent.text("s1", "Warning: Model metadata not found.\n\n", message_id=None)
            for _ in range(20):
                agent.update("s1", sessionUpdate="usage_update", used=1, size=2)
                agent.update("s1", sessionUpdate="session_info_update", title="Tests")
                await anyio.sleep(1)
            await then(agent, prompt)

        return act

    async def acknowledges(agent, prompt):
        await agent.next("session/cancel")
        agent.reply(prompt, {"stopReason": "cancelled"})

    agent = scripted(chats(acknowledges), says("hello"), name="codex-acp")
    log = []
    answer, client = one_prompt(agent, settings=QUICK, log=log)
    assert answer["result"] == {"stopReason": "end_turn"}
    assert client.texts()[-1] == "hello"
    assert any("attempt 1 failed: connection_lost (stalled)" in line for line in log)


def bustling(count, *, between=()):
    """A turn of so many messages that each say the same."""

    async def act(agent, prompt):
        for number in range(count):
            agent.text("s1", "The conversation so far, in short.", message_id=f"m{number}")
            for update in between:
                agent.update("s1", **update)
            await anyio.sleep(0.1)
        agent.reply(prompt, {"stopReason": "end_turn"})

    return act


def test_an_agent_that_writes_message_after_message_is_stopped_and_told_of():
    async def without_end(agent, prompt):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bustling(10_000), agent, prompt)
            await agent.next("session/cancel")
            tasks.cancel_scope.cancel()
        agent.reply(prompt, {"stopReason": "cancelled"})

    agent = scripted(without_end, says("hello"))

    async def main():
        async with staged(agent) as stage:
            session_id = await ready(stage, AIR)
            answer = await stage.client.answer(stage.client.prompt(session_id))
            again = await stage.client.answer(stage.client.prompt(session_id))
            assert again["result"] == {"stopReason": "end_turn"}
            return answer, stage.client

    answer, client = play(main)
    ((carrier, record),) = client.records()
    assert (carrier, record["severity"], record["category"]) == ("response", "error", "limit")
    assert record["actions"] == ["new_session"]
    assert record["title"] == (
        "The agent wrote 21 messages in a row without doing anything, so it was stopped. "
        "Start a new session to go on."
    )
    assert answer["result"]["stopReason"] == "end_turn"
    assert len(client.texts()) == 22
    assert agent.methods().count("session/prompt") == 2


def test_many_messages_with_tools_between_them_are_work():
    between = (
        {"sessionUpdate": "tool_call", "toolCallId": "t", "status": "in_progress"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"},
    )
    agent = scripted(bustling(200, between=between))
    answer, client = one_prompt(agent)
    assert answer["result"] == {"stopReason": "end_turn"}
    assert len(client.texts()) == 200
    assert "session/cancel" not in agent.methods()


def test_a_bound_of_zero_lets_an_agent_write_as_many_messages_as_it_likes():
    agent = scripted(bustling(200))
    settings = Settings(watchdogs=Watchdogs(messages_in_a_row=0))
    answer, client = one_prompt(agent, settings=settings)
    assert answer["result"] == {"stopReason": "end_turn"}
    assert len(client.texts()) == 200
