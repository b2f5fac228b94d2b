"""The short way for streamed text takes exactly what the long way would pass."""

import json

import anyio
import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.acp.framing import FrameReader
from orchestrator.acp.proxy.stream import stream_of
from tests.acp.proxy.harness import Script, greet, play, staged


@define(eq=False)
class LineScript(Script):
    """A script whose output is cut into lines and read by whoever takes them."""

    frames: FrameReader = field(factory=FrameReader)

    async def receive_lines(self):
        while not self._outbox and not self._over.is_set():
            self._spoke = anyio.Event()
            await self._spoke.wait()
        if not self._outbox:
            return None
        data, self._outbox = bytes(self._outbox), bytearray()
        return self.frames.cut(data)

    def write_now(self, line):
        return line


def line(text, **more):
    chunk = {"sessionUpdate": "agent_message_chunk", "messageId": "m1", **more}
    update = {**chunk, "content": {"type": "text", "text": text}}
    params = {"sessionId": "s1", "update": update}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def taken(first, *lines):
    """The lines and texts that pass the short way, once the first one has passed."""
    passed = []
    text = json.loads(first)["params"]["update"]["content"]["text"]

    def keep(lines, texts):
        passed.extend(zip(lines, texts, strict=True))

    stream = stream_of(first, text, lambda: True, keep)
    if stream is not None:
        stream.run(list(lines), 0)
    return passed


@given(st.text(min_size=1), st.lists(st.text(), min_size=1, max_size=4))
def test_what_passes_is_what_reading_it_would_have_shown(first, texts):
    lines = [line(text) for text in texts]
    for raw, text in taken(line(first), *lines):
        assert json.loads(raw)["params"]["update"]["content"]["text"] == text


@given(st.binary(max_size=40))
def test_no_line_passes_that_is_not_json(inside):
    model = line("TEXT")
    candidate = model.replace(b"TEXT", inside)
    for raw, text in taken(model, candidate):
        decoded = json.loads(raw.decode("utf-8"))
        assert decoded["params"]["update"] == {
            **json.loads(model)["params"]["update"],
            "content": {"type": "text", "text": text},
        }


@pytest.mark.parametrize(
    "other",
    [
        line("x", messageId="m2"),
        line("x", _meta={"claudeCode": {"kind": "informational"}}),
        line("x").replace(b'"s1"', b'"s2"'),
        line("x").replace(b"agent_message_chunk", b"agent_thought_chunk"),
        line('quo"ted'),
        line("back\\slash"),
        line("").replace(b'"text":""', b'"text":"raw\ttab"'),
        line("").replace(b'"text":""', b'"text":"\xff"'),
        line(""),
        b'{"jsonrpc":"2.0","id":1,"result":{}}\n',
    ],
)
def test_anything_else_is_read(other):
    assert taken(line("first"), line("second"))
    assert taken(line("first"), other, line("after")) == []


def test_a_text_that_stands_twice_or_is_escaped_starts_no_stream():
    assert stream_of(line("x", other={"text": "x"}), "x", lambda: True, print) is None
    assert stream_of(line('a"b'), 'a"b', lambda: True, print) is None
    assert stream_of(line(""), "", lambda: True, print) is None


def test_a_stream_nobody_listens_to_passes_nothing():
    stream = stream_of(line("a"), "a", lambda: False, lambda *_: pytest.fail("passed"))
    assert stream.run([line("b")], 0) == 0


def test_a_long_answer_arrives_whole_and_in_order_with_what_stands_between():
    async def main():
        words = [f"word {number} " for number in range(500)]

        async def talks(agent):
            await greet(agent)
            prompt = await agent.next("session/prompt")
            for number, word in enumerate(words):
                agent.write(line(word))
                if number % 100 == 50:
                    agent.write(b"not json\n")
                    agent.update("s1", sessionUpdate="usage_update", used=number)
                if number % 50 == 0:
                    await anyio.sleep(1)
            agent.reply(prompt, {"stopReason": "end_turn"})
            await anyio.sleep_forever()

        agent = LineScript(talks)
        async with staged(agent) as stage:
            await stage.client.hello()
            session_id = await stage.client.new()
            await stage.client.answer(stage.client.prompt(session_id))
            assert stage.client.texts() == words
            used = [u["used"] for m in stage.client.frames if "used" in (u := update_of(m))]
            assert used == [50, 150, 250, 350, 450]
            assert agent.frames.skipped == 5
            conversation = stage.proxy.sessions.known["s1"]
            assert "word 499" in conversation.memory.partial()

    play(main)


def update_of(message):
    return message.get("params", {}).get("update", {})
