"""What `run` lets an agent write on a terminal."""

import io
import sys

import pytest

from orchestrator.cli.conversation import Conversation, harmless
from orchestrator.cli.terminal import Output
from orchestrator.runner import TextShown

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


def test_lines_and_tabs_of_an_answer_stay_what_they_are():
    assert harmless("a:\r\n\tb\n\n") == "a:\n\tb\n\n"
    assert harmless("over\rwritten") == "over\\rwritten"
