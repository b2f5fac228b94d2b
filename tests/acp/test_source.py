"""`Source` hands out what a pipe brings: all of it, in order, and nothing after its end."""

import os

import anyio
import anyio.lowlevel
import pytest

from orchestrator.acp.source import Source

pytestmark = pytest.mark.anyio


class Pipe:
    def __init__(self):
        reader, self.writer = os.pipe()
        os.set_blocking(reader, False)
        self.source = Source(reader)

    def write(self, data):
        os.write(self.writer, data)

    def close_writer(self):
        if self.writer >= 0:
            os.close(self.writer)
        self.writer = -1


@pytest.fixture
async def pipe():
    pipe = Pipe()
    yield pipe
    pipe.close_writer()
    pipe.source.close()


async def read_twice(pipe, data):
    """Read twice, so that the second read waits."""
    pipe.write(data)
    assert await pipe.source.read() == data
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write_later, pipe, data[::-1])
        assert await pipe.source.read() == data[::-1]


async def write_later(pipe, data):
    await anyio.wait_all_tasks_blocked()
    pipe.write(data)


async def end_later(end):
    await anyio.wait_all_tasks_blocked()
    end()


async def test_what_is_there_is_read_and_what_comes_is_waited_for(pipe):
    await read_twice(pipe, b"first")
    await read_twice(pipe, b"again")


async def test_all_that_is_written_comes_in_its_order_however_slowly_it_is_read(pipe):
    sent = b"".join(b"%07d\n" % number for number in range(40_000))

    async def write_all():
        for start in range(0, len(sent), 30_000):
            await anyio.wait_writable(pipe.writer)
            await anyio.to_thread.run_sync(pipe.write, sent[start : start + 30_000])
        pipe.close_writer()

    got = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(write_all)
        while data := await pipe.source.read():
            got.append(data)
            for _ in range(len(got) % 4):  # what comes meanwhile is held, or stays in the pipe
                await anyio.lowlevel.checkpoint()
    assert b"".join(got) == sent


async def test_a_writer_that_closes_ends_it_for_good(pipe):
    pipe.write(b"last")
    pipe.close_writer()
    assert [await pipe.source.read() for _ in range(3)] == [b"last", b"", b""]


async def test_a_wait_is_ended_by_the_writer_that_closes(pipe):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end_later, pipe.close_writer)
        assert await pipe.source.read() == b""


async def test_a_wait_is_ended_by_closing_the_source(pipe):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end_later, pipe.source.close)
        assert await pipe.source.read() == b""
    assert await pipe.source.read() == b""


async def test_once_the_writer_is_gone_what_is_there_is_all(pipe):
    """A stray child of it holds the pipe open."""
    pipe.write(b"its last words")
    pipe.source.finish()
    assert await pipe.source.read() == b"its last words"
    assert await pipe.source.read() == b""


async def test_a_stray_child_that_writes_on_is_not_read_once_the_writer_is_gone(pipe):
    await read_twice(pipe, b"before")
    pipe.write(b"its last words")
    pipe.source.finish()
    pipe.write(b"a stray's")
    assert await pipe.source.read() == b"its last words"
    assert await pipe.source.read() == b""
    pipe.write(b"more of it")
    assert pipe.source.rest() == b""


async def test_a_wait_is_ended_by_the_news_that_the_writer_is_gone(pipe):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end_later, pipe.source.finish)
        assert await pipe.source.read() == b""


async def test_the_news_is_not_lost_on_a_reader_that_was_busy(pipe):
    await read_twice(pipe, b"it waited before")
    pipe.source.finish()
    with anyio.fail_after(5):
        assert await pipe.source.read() == b""


async def test_a_cancelled_wait_loses_nothing(pipe):
    await read_twice(pipe, b"before")
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pipe.source.read)
            await anyio.wait_all_tasks_blocked()
            pipe.write(b"in the same tick")
            scope.cancel()
    assert await pipe.source.read() == b"in the same tick"


async def test_what_came_before_the_cancellation_was_seen_is_kept(pipe):
    """On asyncio the loop reads for the task that waits; the task may be cancelled meanwhile."""
    await read_twice(pipe, b"before")
    got = []

    async def read():
        got.append(await pipe.source.read())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        pipe.write(b"kept")
        await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    if not got:
        with anyio.fail_after(5):
            got.append(await pipe.source.read())
    assert got == [b"kept"]


async def test_a_writer_that_nobody_reads_has_to_wait(pipe):
    await read_twice(pipe, b"before")
    os.set_blocking(pipe.writer, False)
    written = 0
    for _ in range(2_000):
        try:
            written += os.write(pipe.writer, b"x" * 4096)
        except BlockingIOError:
            break
        await anyio.lowlevel.checkpoint()
    else:
        pytest.fail("it was read without end")
    left = written
    while left:
        left -= len(await pipe.source.read())


async def test_the_rest_is_what_was_held_and_what_is_in_the_pipe(pipe):
    await read_twice(pipe, b"before")
    pipe.write(b"one ")
    for _ in range(5):
        await anyio.lowlevel.checkpoint()
    pipe.write(b"two")
    assert pipe.source.rest() == b"one two"
    assert pipe.source.rest() == b""


async def test_a_descriptor_that_was_used_before_is_watched_like_a_new_one(pipe):
    """A number left behind in the selector would make the next pipe under it deaf."""
    await read_twice(pipe, b"before")
    number = pipe.source.fd
    pipe.source.close()
    pipe.close_writer()
    following = Pipe()
    try:
        assert following.source.fd == number
        await read_twice(following, b"heard")
    finally:
        following.close_writer()
        following.source.close()


async def test_a_file_is_read_to_its_end(tmp_path):
    path = tmp_path / "input"
    path.write_bytes(b"x" * 300_000)
    source = Source(os.open(path, os.O_RDONLY))
    sizes = []
    while data := await source.read():
        sizes.append(len(data))
    source.close()
    assert sum(sizes) == 300_000


async def test_a_flood_lets_everybody_else_have_a_turn():
    source, turns = Source(os.open("/dev/zero", os.O_RDONLY)), 0

    async def somebody_else():
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(somebody_else)
        await anyio.lowlevel.checkpoint()
        before = turns
        for _ in range(10):
            assert await source.read()
        assert turns >= before + 9
        tasks.cancel_scope.cancel()
    source.close()


async def test_a_read_of_a_flood_can_be_cancelled_and_loses_nothing():
    source = Source(os.open("/dev/zero", os.O_RDONLY))
    with anyio.CancelScope() as scope:
        scope.cancel()
        while True:
            await source.read()
    held = source._held
    assert held
    assert await source.read() is held
    source.close()
