"""What needs no decision passes byte for byte, in order, both ways."""

import json

import anyio
import pytest

from tests.acp.proxy.harness import AIR, Script, greet, play, staged

ODD_BUT_JSON = [
    b'{"jsonrpc":"2.0","method":"x/unknown","params":{"a": 1.50, "b":"\\u00e9\\u2028"}}\n',
    b'{ "method":"_vendor/thing" , "jsonrpc" : "2.0","params":[1,2,{"sessionId":7}]}\n',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":{}}}\n',
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"x":[1e3]}}}\n',
    b'[{"jsonrpc":"2.0","method":"in/a/batch"}]\n',
    b'{"neither":"request nor answer"}\n',
    '{"jsonrpc":"2.0","method":"ünï","params":{"sessionId":"s1"}}\n'.encode(),
]


async def idle(agent):
    await greet(agent)
    await anyio.sleep_forever()


async def ready(stage, capabilities=None):
    await stage.client.hello(capabilities)
    return await stage.client.new()


def test_the_agents_frames_arrive_byte_for_byte_and_in_order():
    async def main():
        async def chatty(agent):
            await greet(agent)
            agent.write(b"".join(ODD_BUT_JSON))
            await anyio.sleep_forever()

        async with staged(Script(chatty)) as stage:
            await ready(stage)
            await stage.client.until(lambda: len(stage.client.lines) >= 2 + len(ODD_BUT_JSON))
            assert stage.client.lines[2:] == ODD_BUT_JSON

    play(main)


def test_the_clients_frames_arrive_byte_for_byte_and_in_order():
    async def main():
        lines = [
            b'{"jsonrpc":"2.0","method":"x/told","params":{"n": 1.0}}\n',
            b'{"jsonrpc" : "2.0", "id":"abc","method":"x/asked","params":{"sessionId":"s1"}}\n',
            b'{"jsonrpc":"2.0","id":7.5,"method":"session/list"}\n',
            b'[{"jsonrpc":"2.0","method":"in/a/batch"}]\n',
        ]
        async with staged(Script(idle)) as stage:
            await ready(stage)
            stage.client.write(b"".join(lines))
            await anyio.sleep(1)
            assert stage.agents[0].raw[2:] == lines

    play(main)


def test_a_prompt_without_a_failure_changes_nothing_but_its_id():
    async def main():
        answer = (
            b'{"jsonrpc":"2.0","id":%b,"result":{"stopReason":"end_turn","usage":{"n":1.50},'
            b'"_meta":{"x":"\\u00e9"}}}\n'
        )

        async def once(agent):
            await greet(agent)
            prompt = await agent.next("session/prompt")
            agent.text("s1", "hi")
            agent.write(answer % json.dumps(prompt["id"]).encode())
            await anyio.sleep_forever()

        async with staged(Script(once)) as stage:
            await ready(stage)
            line = (
                b'{"jsonrpc": "2.0","id":41,"method":"session/prompt","params":{"sessionId":"s1",'
                b'"prompt":[{"type":"text","text":"id 41"}],"_meta":{"y":1.0}}}\n'
            )
            stage.client.write(line)
            await stage.client.answer(41)
            assert stage.client.lines[-1] == answer % b"41"
            sent = stage.agents[0].raw[2]
            own = json.dumps(json.loads(sent)["id"]).encode()
            assert sent == line.replace(b'"id":41', b'"id":' + own)
            assert own.startswith(b'"orchestrator:')

    play(main)


def test_a_line_that_is_not_json_is_skipped_and_counted():
    async def main():
        async def prints(agent):
            await greet(agent)
            agent.write(b"debug: hello\n{broken\nNaN\n")
            agent.write(b'{"jsonrpc":"2.0","method":"x/after"}\n')
            await anyio.sleep_forever()

        async with staged(Script(prints)) as stage:
            await ready(stage)
            await stage.client.until(lambda: len(stage.client.lines) == 3)
            assert stage.client.frames[2]["method"] == "x/after"
            assert stage.agents[0].spoken.skipped == 3
            stage.client.write(b"not json either\n")
            await anyio.sleep(0.1)
            assert stage.proxy.peer.wire.frames.skipped == 1

    play(main)


def test_frames_of_ten_megabytes_pass_both_ways():
    async def main():
        big = "x" * 10_000_000

        async def mirror(agent):
            await greet(agent)
            asked = await agent.next("x/big")
            agent.reply(asked, {"back": asked["params"]["there"]})
            await anyio.sleep_forever()

        async with staged(Script(mirror)) as stage:
            await ready(stage)
            async with anyio.create_task_group() as tasks:
                message = {"jsonrpc": "2.0", "id": 9, "method": "x/big", "params": {"there": big}}
                data = json.dumps(message).encode() + b"\n"
                tasks.start_soon(anyio.to_thread.run_sync, stage.client.write, data)
            answer = await stage.client.answer(9)
            assert answer["result"]["back"] == big

    anyio.run(main)


def test_questions_of_the_agent_reach_the_client_and_answers_go_back():
    async def main():
        question = (
            b'{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":'
            b'"s1","toolCall":{"toolCallId":"t"},"options":[]}}\n'
        )
        got = []

        async def asks(agent):
            await greet(agent)
            prompt = await agent.next("session/prompt")
            for line in (question, question.replace(b'"id":0', b'"id":"f"')):
                agent.write(line)
                got.append(await agent.next())
            agent.text("s1", "done")
            agent.reply(prompt, {"stopReason": "end_turn"})
            await anyio.sleep_forever()

        async with staged(Script(asks)) as stage:
            session_id = await ready(stage)
            number = stage.client.prompt(session_id)
            await stage.client.until(lambda: question in stage.client.lines)
            stage.client.write(b'{"jsonrpc":"2.0","id":0,"result":{"outcome": {}}}\n')
            await stage.client.until(lambda: len(stage.client.lines) == 4)
            stage.client.write(b'{"jsonrpc":"2.0","id":"f","error":{"code":-1,"message":"no"}}\n')
            answer = await stage.client.answer(number)
            assert answer["result"]["stopReason"] == "end_turn"
            assert got[0]["result"] == {"outcome": {}}
            assert got[1]["error"]["code"] == -1
            # Answers to nothing go nowhere.
            stage.client.write(b'{"jsonrpc":"2.0","id":0,"result":{}}\n')
            await anyio.sleep(0.1)
            assert stage.proxy.questions.dropped == 1
            assert len(stage.agents[0].sent) == 5

    play(main)


def test_another_version_of_the_protocol_passes_through_whole():
    async def main():
        async def second(agent):
            hello = await agent.next("initialize")
            agent.reply(hello, {"protocolVersion": 2, "info": {}})
            new = await agent.next("session/new")
            agent.reply(new, {"sessionId": "s1"})
            prompt = await agent.next("session/prompt")
            agent.reply(prompt, {})
            agent.update("s1", sessionUpdate="state_update", state="idle", stopReason="error")
            await anyio.sleep_forever()

        async with staged(Script(second)) as stage:
            answer = await stage.client.hello(AIR, version=2)
            assert answer["result"] == {"protocolVersion": 2, "info": {}}
            session_id = await stage.client.new()
            number = stage.client.prompt(session_id)
            assert (await stage.client.answer(number))["result"] == {}
            assert stage.agents[0].sent[2]["id"] == number
            await stage.client.until(lambda: len(stage.client.lines) == 4)

    play(main)


def test_the_agents_answers_are_those_of_the_agent():
    async def main():
        async def honest(agent):
            hello = await agent.next("initialize")
            agent.fail(hello, -32602, "no such version", {"supported": [1]})
            await anyio.sleep_forever()

        async def late(agent):
            hello = await agent.next("initialize")
            agent.reply(hello, {"protocolVersion": 1})
            new = await agent.next("session/new")
            agent.fail(new, -32000, "Authentication required")
            prompt = await agent.next("session/prompt")
            agent.fail(prompt, -32602, "no such session")
            await anyio.sleep_forever()

        async with staged(Script(honest), Script(late)) as stage:
            refused = await stage.client.hello()
            assert refused["error"] == {
                "code": -32602,
                "message": "no such version",
                "data": {"supported": [1]},
            }
            assert (await stage.client.hello())["result"]["protocolVersion"] == 1
            answer = await stage.client.request("session/new", {"cwd": "/x", "mcpServers": []})
            assert answer["error"] == {"code": -32000, "message": "Authentication required"}
            unknown = await stage.client.answer(stage.client.prompt("nobody's"))
            assert unknown["error"]["message"] == "no such session"

    play(main)


@pytest.mark.parametrize("prompt", [None, "text", [1], {"type": "text"}])
def test_a_prompt_that_is_none_is_the_agents_to_refuse(prompt):
    async def main():
        async def strict(agent):
            await greet(agent)
            asked = await agent.next("session/prompt")
            agent.fail(asked, -32602, "Invalid params")
            await anyio.sleep_forever()

        async with staged(Script(strict)) as stage:
            session_id = await ready(stage)
            params = {"sessionId": session_id, "prompt": prompt}
            answer = await stage.client.request("session/prompt", params)
            assert answer["error"] == {"code": -32602, "message": "Invalid params"}

    play(main)


def test_a_capable_client_is_told_what_the_proxy_adds_and_another_one_is_not():
    async def main(capabilities, typed):
        async def script(agent):
            await greet(agent, typed=typed)
            await anyio.sleep_forever()

        async with staged(Script(script)) as stage:
            answer = await stage.client.hello(capabilities)
            sent = stage.agents[0].sent[0]["params"]["clientCapabilities"]
            assert sent == (capabilities or {})
            return answer["result"].get("_meta")

    assert play(main, AIR, False) == AIR["_meta"]
    assert play(main, AIR, True) == AIR["_meta"]
    assert play(main, None, False) is None


def test_updates_behind_an_answer_stay_behind_it():
    async def main():
        async def titles(agent):
            await greet(agent)
            prompt = await agent.next("session/prompt")
            agent.text("s1", "hi")
            agent.reply(prompt, {"stopReason": "end_turn"})
            agent.update("s1", sessionUpdate="session_info_update", title="a title")
            await anyio.sleep_forever()

        async with staged(Script(titles)) as stage:
            session_id = await ready(stage)
            await stage.client.answer(stage.client.prompt(session_id))
            await stage.client.until(lambda: len(stage.client.frames) == 5)
            assert stage.client.frames[3]["id"] == 3
            assert stage.client.frames[4]["params"]["update"]["title"] == "a title"

    play(main)


def test_an_answer_finds_its_request_however_the_number_is_spelled():
    async def main():
        async def in_javascript(agent):
            await greet(agent)
            asked = await agent.next("session/list")
            agent.say({"id": int(asked["id"]), "result": {}})
            agent.say({"id": 3.0, "method": "fs/read_text_file", "params": {"sessionId": "s1"}})
            await anyio.sleep_forever()

        async with staged(Script(in_javascript)) as stage:
            await ready(stage)
            stage.client.ask("session/list", number=7.0)
            assert (await stage.client.answer(7))["result"] == {}
            await stage.client.until(lambda: stage.client.frames[-1].get("id") == 3)
            stage.client.send({"id": 3, "result": {"content": "x"}})
            await anyio.sleep(1)
            assert stage.agents[0].sent[-1] == {
                "jsonrpc": "2.0",
                "id": 3,
                "result": {"content": "x"},
            }
            assert stage.proxy.questions.open == 0

    play(main)
