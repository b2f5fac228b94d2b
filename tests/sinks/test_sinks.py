"""Destinations for records and notes."""

import io
import json
import logging
import threading

import anyio
import pytest

from orchestrator.incident.record import Action, Category, Record, Severity
from orchestrator.sinks import Sink
from orchestrator.sinks.jsonl import JsonLinesSink
from orchestrator.sinks.memory import MemorySink
from orchestrator.sinks.stdlog import LogSink
from orchestrator.turn.effects import Note, NoteCode

pytestmark = pytest.mark.anyio

WARNING = Record("t:error", 1, Category.SERVICE, Severity.WARNING, "Retrying, 1 of 3.")
ERROR = WARNING.revised(severity=Severity.ERROR, title="Overloaded.", actions=(Action.RETRY,))
NOTE = Note(NoteCode.STOPPED, "Stopped before the retry was sent.")


def tenth_second():
    return 1_700_000_000.1


async def test_memory_keeps_records_and_notes_in_order_and_shows_each_incident_once():
    sink = MemorySink()
    for item in (WARNING, NOTE, ERROR):
        await sink.deliver(item)
    assert sink.items == (WARNING, NOTE, ERROR)
    assert sink.records == (WARNING, ERROR)
    assert sink.notes == (NOTE,)
    assert sink.transcript().records == (ERROR,)
    assert sink.transcript(frozenset()).entries[0].actions == ()
    sink.clear()
    assert sink.items == ()


async def test_memory_forgets_the_oldest_beyond_its_limit():
    sink = MemorySink(limit=2)
    for item in (WARNING, NOTE, ERROR):
        await sink.deliver(item)
    assert sink.items == (NOTE, ERROR)


def test_memory_refuses_to_remember_nothing():
    with pytest.raises(ValueError, match=r"^limit: 0 "):
        MemorySink(limit=0)


async def test_a_record_and_a_note_are_one_json_line_each():
    stream = io.StringIO()
    sink = JsonLinesSink(stream, now=tenth_second)
    await sink.deliver(ERROR)
    await sink.deliver(NOTE)
    assert [json.loads(line) for line in stream.getvalue().splitlines()] == [
        {
            "at": "2023-11-14T22:13:20.100+00:00",
            "type": "record",
            "id": "t:error",
            "revision": 2,
            "category": "service",
            "severity": "error",
            "title": "Overloaded.",
            "actions": ["retry"],
        },
        {
            "at": "2023-11-14T22:13:20.100+00:00",
            "type": "note",
            "code": "stopped",
            "text": "Stopped before the retry was sent.",
        },
    ]


@pytest.mark.parametrize("char", ["\n", "\r", "\x0b", "\x1c", "\x85", "\u2028", "\u2029", "\ud800"])
async def test_no_text_can_forge_a_line(char):
    stream = io.StringIO()
    await JsonLinesSink(stream, now=tenth_second).deliver(ERROR.revised(title=f"a{char}b"))
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["title"] == f"a{char}b"


async def test_a_file_is_appended_to_and_closed(tmp_path):
    path = tmp_path / "incidents.jsonl"
    for item in (WARNING, ERROR):
        with JsonLinesSink(path) as sink:
            await sink.deliver(item)
    assert [json.loads(line)["revision"] for line in path.read_text().splitlines()] == [1, 2]


async def test_a_line_is_in_the_file_as_soon_as_it_is_delivered(tmp_path):
    path = tmp_path / "incidents.jsonl"
    with JsonLinesSink(str(path)) as sink:
        await sink.deliver(WARNING)
        assert path.read_text().endswith("}\n")


async def test_a_file_that_cannot_be_opened_says_so_at_once(tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        JsonLinesSink(tmp_path / "nowhere" / "x.jsonl")


async def test_a_stream_of_somebody_else_stays_open():
    stream = io.StringIO()
    with JsonLinesSink(stream):
        pass
    assert not stream.closed


async def test_a_stream_that_is_gone_raises_so_that_the_sink_is_switched_off():
    stream = io.StringIO()
    stream.close()
    with pytest.raises(ValueError, match="closed"):
        await JsonLinesSink(stream).deliver(ERROR)


class StuckPipe(io.StringIO):
    """A reader that has stopped reading, until it is let go."""

    def __init__(self):
        super().__init__()
        self.entered, self.let_go = threading.Event(), threading.Event()

    def write(self, text):
        self.entered.set()
        self.let_go.wait()
        return super().write(text)


async def test_a_stuck_pipe_holds_up_neither_the_loop_nor_a_cancel():
    pipe = StuckPipe()
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(JsonLinesSink(pipe).deliver, ERROR)
            await anyio.to_thread.run_sync(pipe.entered.wait)
            group.cancel_scope.cancel()
    finally:
        pipe.let_go.set()


async def test_deliveries_of_many_turns_at_once_stay_whole_lines():
    stream = io.StringIO()
    sink = JsonLinesSink(stream)
    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(sink.deliver, ERROR.revised(title=f"{number} " + "x" * 500))
    titles = [json.loads(line)["title"] for line in stream.getvalue().splitlines()]
    assert sorted(int(title.split()[0]) for title in titles) == list(range(50))


async def test_a_record_is_logged_at_the_level_of_its_severity_with_its_fields(caplog):
    with caplog.at_level(logging.INFO, logger="orchestrator.incidents"):
        for item in (WARNING, ERROR, NOTE):
            await LogSink().deliver(item)
    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR", "INFO"]
    assert [record.getMessage() for record in caplog.records] == [
        "incident t:error revision 1 (service): Retrying, 1 of 3.",
        "incident t:error revision 2 (service): Overloaded.",
        "note stopped: Stopped before the retry was sent.",
    ]
    error = caplog.records[1]
    assert (error.incident_id, error.revision, error.actions) == ("t:error", 2, ["retry"])
    assert caplog.records[2].note == "stopped"


@pytest.mark.parametrize("char", ["\n", "\r", "\x1b", "\u2028", "\u202e"])
async def test_a_title_cannot_forge_a_log_line(caplog, char):
    with caplog.at_level(logging.INFO, logger="mine"):
        await LogSink("mine").deliver(ERROR.revised(title=f"a{char}ERROR all lost"))
    assert caplog.records[0].getMessage().endswith("a ERROR all lost")


async def test_a_logger_of_ones_own_is_used_as_it_is(caplog):
    with caplog.at_level(logging.INFO, logger="app"):
        await LogSink(logging.getLogger("app")).deliver(NOTE)
    assert caplog.records[0].name == "app"


@pytest.mark.parametrize("sink", [MemorySink(), JsonLinesSink(io.StringIO()), LogSink()])
async def test_each_is_a_sink_with_a_name_of_its_own(sink):
    as_sink: Sink = sink
    await as_sink.deliver(WARNING)
    assert sink.name in {"memory", "jsonl", "log"}
