"""The proxy's own ends: a client or an agent that reads slowly, or leaves."""

import contextlib
import os

import anyio
import pytest
from attrs import define, field

from orchestrator.acp.framing import FrameReader
from orchestrator.acp.process import WireError
from orchestrator.acp.proxy.client import ClientWire
from orchestrator.acp.proxy.lane import Lane
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Delivery
from orchestrator.settings.model import Settings, Watchdogs
from tests.acp.proxy.harness import Script, greet, play, staged
from tests.acp.proxy.test_turns import ready, says, scripted

pytestmark = pytest.mark.anyio


@pytest.fixture
def pipes():
    in_r, in_w = os.pipe()
    out_r, out_w = os.pipe()
    wire = ClientWire(in_r, out_w)
    yield wire, in_w, out_r
    for fd in (in_r, in_w, out_r, out_w):
        with contextlib.suppress(OSError):
            os.close(fd)


async def test_lines_that_a_full_pipe_leaves_are_written_later(pipes):
    wire, _, out_r = pipes
    line = b"x" * 99_999 + b"\n"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wire.tend)
        for _ in range(60):
            wire.post(line)
        assert wire.full
        got = b""
        while len(got) < 60 * len(line):
            await anyio.wait_readable(out_r)
            got += os.read(out_r, 1 << 20)
        await wire.drained()
        tasks.cancel_scope.cancel()
    assert got == line * 60


async def test_a_client_that_closed_its_end_has_left(pipes):
    wire, _, out_r = pipes
    os.close(out_r)
    wire.post(b"x\n")
    await wire.left.wait()
    wire.post(b"y\n")
    assert not wire.full


async def test_collected_lines_go_in_one_write(pipes):
    wire, _, out_r = pipes
    wire.hold()
    for number in range(3):
        wire.post(b"%d\n" % number)
    os.set_blocking(out_r, False)
    with pytest.raises(BlockingIOError):
        os.read(out_r, 10)
    wire.let_go()
    assert os.read(out_r, 10) == b"0\n1\n2\n"


def test_a_client_that_does_not_read_stops_the_clocks_and_the_agent():
    async def main():
        async def talks(agent, prompt):
            for _ in range(200):
                agent.text("s1", "x" * 100_000)
                await anyio.sleep(0.1)
            await anyio.sleep(15)
            await says("end")(agent, prompt)

        agent = scripted(talks)
        quick = Settings(watchdogs=Watchdogs(first_sign_s=20, silence_s=20, cancel_s=5))
        async with staged(agent, settings=quick) as stage:
            session_id = await ready(stage)
            stage.client.reading.clear()
            number = stage.client.prompt(session_id)
            await anyio.sleep(500)
            assert stage.proxy.peer.wire.full
            assert "session/cancel" not in agent.methods()
            stage.client.reading.append(True)
            stage.client.resume()
            answer = await stage.client.answer(number)
            assert answer["result"]["stopReason"] == "end_turn"
            assert len(stage.client.texts()) == 201

    play(main)


def test_the_proxy_ends_when_its_client_has_closed_the_end_it_writes_to():
    async def main():
        async def talks(agent):
            await greet(agent)
            await anyio.sleep(10)
            agent.say({"method": "x/told"})
            await anyio.sleep_forever()

        ended = anyio.Event()
        async with staged(Script(talks), ended=ended) as stage:
            await ready(stage)
            stage.client.stop_reading()
            await ended.wait()

    play(main)


async def nothing():
    return


@define(eq=False)
class Pipe:
    """A wire that has room for some bytes at once, and for the rest when it is opened."""

    room: int
    wrote: bytearray = field(factory=bytearray)
    opened: anyio.Event = field(factory=anyio.Event)
    frames: FrameReader = field(factory=FrameReader)

    def write_now(self, line):
        fits = line[: self.room]
        self.room -= len(fits)
        self.wrote += fits
        return line[len(fits) :]

    async def send(self, line):
        await self.opened.wait()
        self.wrote += line

    async def receive_lines(self):
        return None

    async def tend(self):
        await anyio.sleep_forever()

    def failure(self, *, delivery=None):
        return RawFailure.exit(0, delivery=delivery)


async def test_a_line_that_finds_nobody_before_it_leaves_at_once_and_what_is_left_keeps_its_place():
    pipe = Pipe(room=9)
    lane = Lane(pipe, None)
    lane.post(b"first\n")
    lane.post(b"second\n")
    lane.post(b"third\n")
    assert pipe.wrote == b"first\nsec"
    pipe.room = 100
    lane.post(b"fourth\n")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lane.tend)
        pipe.opened.set()
        await lane.send(b"fifth\n")
        lane.post(b"sixth\n")
        tasks.cancel_scope.cancel()
    assert pipe.wrote == b"first\nsecond\nthird\nfourth\nfifth\nsixth\n"


def test_a_line_that_waits_for_a_dead_agent_was_not_sent():
    class Stuck(Script):
        async def send(self, line):
            await anyio.sleep(5)
            raise WireError(RawFailure.exception(BrokenPipeError(), delivery=Delivery.AMBIGUOUS))

    async def main():
        async def sleeps(agent):
            await anyio.sleep_forever()

        lane = Lane(Stuck(sleeps), nothing)
        errors = []

        async def send():
            try:
                await lane.send(b"x\n")
            except WireError as error:
                errors.append(error.raw.delivery)

        await lane.start()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lane.tend)
            for _ in range(2):
                tasks.start_soon(send)
            await anyio.sleep(10)
            # trio wakes the two in any order.
            assert sorted(errors) == [Delivery.AMBIGUOUS, Delivery.NOT_SENT]
            lane.post(b"y\n")
            await send()
            tasks.cancel_scope.cancel()

    play(main)


def test_an_agent_that_cannot_be_written_to_is_ended():
    """Else it would count as alive, and nothing that it is asked were ever answered."""

    class Deaf(Script):
        async def send(self, line):
            if b"x/large" not in line:
                await super().send(line)
                return
            await anyio.sleep(5)
            raise WireError(RawFailure.exception(BrokenPipeError(), delivery=Delivery.AMBIGUOUS))

    async def main():
        async def script(agent):
            await greet(agent)
            await anyio.sleep_forever()

        async def next_one(agent):
            agent.reply(await agent.next("initialize"), {"protocolVersion": 1})
            agent.reply(await agent.next("x/after"), {"is": "answered"})
            await anyio.sleep_forever()

        async with staged(Deaf(script), Script(next_one)) as stage:
            await ready(stage)
            assert "error" in await stage.client.request("x/large", {})
            answer = await stage.client.request("x/after", {})
            assert answer["result"] == {"is": "answered"}
            assert stage.agents[0].killed

    play(main)


async def test_a_cancelled_writer_does_not_wait_for_an_agent_that_reads_nothing():
    class Deaf(Pipe):
        async def send(self, line):
            with anyio.CancelScope(shield=True):
                await self.opened.wait()

    pipe = Deaf(room=0)
    lane = Lane(pipe, None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lane.tend)
        async with anyio.create_task_group() as writers:
            writers.start_soon(lane.send, b"half of it has left\n")
            writers.start_soon(lane.send, b"nothing of it has\n")
            await anyio.wait_all_tasks_blocked()
            writers.cancel_scope.cancel()
        pipe.opened.set()
        assert len(lane._waiting) == 0
        tasks.cancel_scope.cancel()


def test_nobody_waits_for_a_lane_that_was_cancelled():
    async def main():
        async def sleeps(agent):
            await anyio.sleep_forever()

        class Deaf(Script):
            async def send(self, line):
                await anyio.sleep_forever()

        lane = Lane(Deaf(sleeps), nothing)
        await lane.start()
        told = []

        async def send():
            try:
                await lane.send(b"x\n")
            except WireError:
                told.append(True)

        async with anyio.create_task_group() as outer:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lane.tend)
                await anyio.sleep(1)
                outer.start_soon(send)
                outer.start_soon(send)
                await anyio.sleep(1)
                tasks.cancel_scope.cancel()
            await anyio.sleep(1)
            assert told == [True, True]
            outer.cancel_scope.cancel()

    play(main)
