"""What demo shows of a turn, row by row."""

import io

import anyio
import pytest
import trio
import trio.testing
from rich.console import Console

from orchestrator import Orchestrator
from orchestrator.cli.drawing import as_json, bar, drawn, is_ascii, line
from orchestrator.cli.show import LineShow, LiveShow, ended, show_for
from orchestrator.cli.summary import Summary, as_table, summarise
from orchestrator.cli.terminal import Output
from orchestrator.cli.timeline import Mark, Row, Timeline
from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Refusal
from orchestrator.metrics import MetricsObserver
from orchestrator.testing import ScriptedAgent
from orchestrator.turn.events import Evidence


def told(*scripts, stop_after_s=None, metrics=None):
    """The timeline of one turn of a scripted agent, in virtual time."""

    async def main():
        timeline = Timeline(anyio.current_time)
        observers = [timeline, *([metrics] if metrics else [])]
        async with Orchestrator(sinks=[timeline], observers=observers, seed=1) as orchestrator:
            session = orchestrator.session("chat", ScriptedAgent(*scripts))
            timeline.begin()
            timeline.turn("fix the tests")
            async with session.turn("fix the tests") as turn:
                if stop_after_s is not None:
                    await trio.sleep(stop_after_s)
                    turn.stop()
                return timeline, await turn

    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def seen(timeline):
    return [(str(row.mark), row.label, row.text) for row in timeline.rows]


def test_a_turn_that_lands_at_once_is_two_rows():
    timeline, _ = told(["Hello"])
    assert seen(timeline) == [
        ("turn", "turn", "fix the tests"),
        ("landed", "attempt 1", "landed"),
    ]


def test_a_record_stands_where_it_first_appeared_and_is_revised_there():
    timeline, _ = told(Kind.OVERLOADED, Kind.CONNECTION_LOST, ["Hello"])
    assert [row.mark for row in timeline.rows] == [
        Mark.TURN,
        Mark.FAILED,
        Mark.WARNING,
        Mark.WAITED,
        Mark.FAILED,
        Mark.WAITED,
        Mark.LANDED,
    ]
    warning = timeline.rows[2]
    assert warning.revision == 2
    assert "(2 of 3)" in warning.text
    assert [row.text for row in timeline.rows[3:6:2]] == ["retry 1 of 3", "retry 2 of 3"]
    assert timeline.rows[3].length_s == pytest.approx(2.0, abs=0.6)


def test_a_stop_in_a_wait_hands_back_what_was_planned():
    timeline, outcome = told(Kind.OVERLOADED, stop_after_s=1.0)
    assert [row.mark for row in timeline.rows] == [
        Mark.TURN,
        Mark.FAILED,
        Mark.ERROR,
        Mark.WAITED,
        Mark.STOPPED,
        Mark.DROPPED,
        Mark.NOTE,
    ]
    (refund,) = [row for row in timeline.rows if row.mark is Mark.DROPPED]
    assert "nothing was counted" in refund.text
    (waited,) = [row for row in timeline.rows if row.mark is Mark.WAITED]
    assert waited.length_s == pytest.approx(1.0)
    assert ended(outcome) == "stopped after 1 attempt, 1.0 s of it waiting"


def test_a_recovery_says_what_it_did():
    timeline, _ = told([Evidence.TOOL, Kind.AGENT_DIED], ["Hello"])
    (row,) = [row for row in timeline.rows if row.mark is Mark.RECOVERED]
    assert (row.label, row.text) == ("respawn", "new process, session loaded")
    (_, again) = [row for row in timeline.rows if row.label.startswith("attempt")]
    assert again.mark is Mark.LANDED


def test_a_refusal_is_shown_as_the_end_of_its_attempt():
    timeline, _ = told(Refusal(explanation="against the rules"))
    assert timeline.rows[1].mark is Mark.FAILED
    assert timeline.rows[1].text == "against the rules"


def test_the_agents_own_retries_are_shown_on_its_attempt():
    lines = []

    def retry(attempt):
        attempt.retrying("Reconnecting... 1/2")

    timeline = Timeline(lambda: 0.0, on_change=lambda row: lines.append(line(row)))

    async def main():
        async with Orchestrator(sinks=[timeline], observers=[timeline], seed=1) as orchestrator:
            agent = ScriptedAgent([retry, "Hello"])
            await orchestrator.session("chat", agent).turn("hi")

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert "attempt 1: the agent retries by itself: Reconnecting... 1/2" in lines


# -- drawing


def drawing(rows, answer="", *, ascii_only=False, width=80):
    file = io.StringIO()
    console = Console(file=file, width=width, force_terminal=False)
    console.print(drawn(rows, 1.0, answer, ascii_only=ascii_only))
    return [row.rstrip() for row in file.getvalue().splitlines()]


def test_a_wait_is_drawn_with_what_is_left_of_it():
    row = Row(Mark.WAIT, 0.5, "wait", "retry 1 of 3", until_s=2.0, length_s=2.0)
    assert drawing([row]) == [" 0.5 s ◷ wait       retry 1 of 3  ━━━━━━━━━━╌╌╌╌╌╌╌╌╌╌ 1.0 s left"]
    assert drawing([row], ascii_only=True)[0].count("#") == 10


def test_a_revision_is_part_of_the_label():
    row = Row(Mark.WARNING, 0.2, "warning", "Overloaded.", revision=3)
    assert drawing([row]) == [" 0.2 s ▲ warning r3 Overloaded."]


def test_foreign_text_cannot_leave_its_row():
    row = Row(Mark.ERROR, 0.0, "error", "a\x1b[2Jb\nc\u202e")
    (only,) = drawing([row], "x\x1b]0;title\x07")[:1]
    assert "\x1b" not in "".join(drawing([row], "x\x1b]0;title\x07"))
    assert r"a\x1b[2Jb\nc\u202e" in only


def test_a_line_of_a_log_says_the_same():
    row = Row(Mark.WAIT, 0.5, "wait", "retry 1 of 3", until_s=2.0, length_s=1.5)
    assert line(row) == "wait: retry 1 of 3 in 1.5 s"
    row.mark = Mark.WAITED
    assert line(row) == "wait: retry 1 of 3 waited 1.5 s"
    assert line(Row(Mark.ERROR, 0, "error", "Down.", revision=2)) == "error r2: Down."


def test_an_object_says_the_same():
    row = Row(Mark.WAIT, 0.5, "wait", "retry 1", revision=0, length_s=1.5)
    assert as_json(row, Timeline(lambda: 2.0)) == {
        "at_s": 2.0,
        "what": "wait",
        "label": "wait",
        "text": "retry 1",
        "wait_s": 1.5,
    }


def test_a_wait_of_nothing_is_over():
    assert bar(0.0, 0.0, ascii_only=True).plain.startswith("#" * 20)


def test_symbols_are_used_only_where_the_encoding_has_them():
    assert not is_ascii(Console(file=io.TextIOWrapper(io.BytesIO(), encoding="utf-8")))
    assert is_ascii(Console(file=io.TextIOWrapper(io.BytesIO(), encoding="ascii")))


# -- the summary


def test_the_summary_adds_up():
    metrics = MetricsObserver()
    told(Kind.OVERLOADED, Kind.OVERLOADED, ["Hello"], metrics=metrics)
    summary = summarise(metrics)
    assert summary.turns == {"landed_after_retry": 1}
    assert summary.retries == {"transient": {"scheduled": 2, "sent": 2, "dropped": 0, "pending": 0}}
    assert summary.adds_up


def test_a_summary_that_does_not_add_up_says_so():
    row = {"scheduled": 2, "sent": 1, "dropped": 0, "pending": 0}
    summary = Summary(retries={"transient": row})
    file = io.StringIO()
    Console(file=file, width=80).print(as_table(summary))
    assert not summary.adds_up
    assert "please report this" in file.getvalue()


# -- the shows


def shown(show_class, capsys, *scripts, output=None):
    async def main():
        timeline = Timeline(anyio.current_time)
        show = show_class(timeline, output or Output())
        async with Orchestrator(sinks=[timeline], observers=[timeline], seed=1) as orchestrator:
            turn = orchestrator.session("chat", ScriptedAgent(*scripts)).turn("hi")
            timeline.begin()
            await show.watch(turn, "hi", lambda _: None)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    return capsys.readouterr().out


def test_lines_are_printed_once_for_each_change(capsys):
    out = shown(LineShow, capsys, Kind.OVERLOADED, ["Hello\x07"])
    lines = [row.partition(" s  ")[2] for row in out.splitlines()]
    assert lines[0] == "turn: hi"
    assert lines[1] == "attempt 1: sent"
    assert lines[-3:] == [
        "attempt 2: landed",
        r"answer: Hello\x07",
        lines[-1],
    ]
    assert lines[-1].startswith("landed after 2 attempts, 2.")
    assert len(lines) == len(set(lines))


def test_a_live_drawing_ends_with_the_whole_turn(capsys):
    out = shown(LiveShow, capsys, Kind.OVERLOADED, ["Hello"])
    assert "overloaded" in out
    assert "Hello" in out
    assert "landed after 2 attempts" in out


def test_a_pipe_gets_lines():
    assert isinstance(show_for(Timeline(lambda: 0.0), Output()), LineShow)
