"""What `run` lets an agent write on a terminal."""

import io
import sys

import pytest

from orchestrator.cli.conversation import Conversation, harmless
from orchestrator.cli.terminal import Output
from orchestrator.failure.kinds import Kind
from orchestrator.runner import RetryScheduled, TextShown
from orchestrator.turn.effects import Family

HOSTILE = "\x1b[2Jwiped\x07 \u202eback \u2028 end\n"


class Stream(io.StringIO):
    def __init__(self, *, terminal):
        super().__init__()
        self._terminal = terminal

    def isatty(self):
        return self._terminal


@pytest.mark.parametrize("environ", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_foreign_text_is_escaped_on_a_terminal_with_or_without_colours(monkeypatch, environ):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", Stream(terminal=True))
    Conversation(Output(), None).show(TextShown(1, HOSTILE))
    assert sys.stdout.getvalue() == "\\x1b[2Jwiped\\x07 \\u202eback \\u2028 end\n"


def test_a_pipe_gets_the_answer_as_it_came(monkeypatch):
    monkeypatch.setattr(sys, "stdout", Stream(terminal=False))
    Conversation(Output(), None).show(TextShown(1, HOSTILE))
    assert sys.stdout.getvalue() == HOSTILE


WAIT = RetryScheduled(Family.TRANSIENT, 1, 3, 2.0, Kind.OVERLOADED)


def told_into(monkeypatch, stdout, stderr):
    with stdout.open("a") as out, stderr.open("a") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        conversation = Conversation(Output(), None)
        for progress in (TextShown(1, "half of "), WAIT, TextShown(2, "an answer")):
            conversation.show(progress)


def test_a_message_leaves_an_answer_as_it_is_that_goes_elsewhere(monkeypatch, tmp_path):
    told_into(monkeypatch, tmp_path / "answer", tmp_path / "messages")
    assert (tmp_path / "answer").read_text() == "half of an answer"
    assert (tmp_path / "messages").read_text() == "retry 1 of 3 in 2.0 s\n"


def test_a_message_has_a_line_of_its_own_where_both_go_to_one_place(monkeypatch, tmp_path):
    told_into(monkeypatch, tmp_path / "all", tmp_path / "all")
    assert (tmp_path / "all").read_text() == "half of \nretry 1 of 3 in 2.0 s\nan answer"


def test_lines_and_tabs_of_an_answer_stay_what_they_are():
    assert harmless("a:\r\n\tb\n\n") == "a:\n\tb\n\n"
    assert harmless("over\rwritten") == "over\\rwritten"
