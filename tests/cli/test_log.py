"""A log that cannot be written costs its lines and nothing else."""

import os

import pytest

from orchestrator.cli.log import Log


@pytest.fixture
def pipe():
    reader, writer = os.pipe()
    yield reader, writer
    for fd in (reader, writer):
        os.close(fd)


def test_lines_are_written_at_once_whatever_they_hold(pipe):
    reader, writer = pipe
    log = Log(writer)
    log.write("one")
    log.write("a lone half of a pair: \ud800")
    assert os.read(reader, 100) == b"one\na lone half of a pair: ?\n"


def test_a_reader_that_does_not_read_loses_lines_and_is_told_how_many(pipe):
    reader, writer = pipe
    log = Log(writer)
    while not log.lost:
        log.write("x" * 1000)
    log.write("y")
    os.read(reader, 1 << 20)
    log.write("heard again")
    assert os.read(reader, 1000) == b"(2 lines were lost here: nobody read them)\nheard again\n"
    assert log.lost == 0


def test_a_full_disk_loses_lines():
    full = os.open("/dev/full", os.O_WRONLY)
    log = Log(full)
    log.write("one")
    os.close(full)
    log.write("two, after it was closed")
    assert log.lost == 2
