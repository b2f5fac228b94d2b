"""Chaos; more of it: `python -m tests.acp.proxy.chaos TURNS SEED`."""

import pytest

from tests.acp.proxy import chaos


@pytest.mark.parametrize("seed", [1, 2])
def test_every_prompt_gets_one_answer_and_nothing_is_left(seed):
    told = chaos.run(250, seed)
    assert sum(told.answers.values()) == told.prompts >= 250
    assert told.answers["end_turn"] > 100
    assert told.starts > 10


def test_two_thousand_turns_leave_nothing_behind():
    told = chaos.run(2000, 3)
    assert sum(told.answers.values()) == told.prompts >= 2000
    assert told.grown < chaos.GROWS
