"""`orchestrator plan`: what is printed is what the machine does."""

import json
import os
from random import Random

import pytest
import trio
from trio.testing import MockClock

from orchestrator.cli.app import run
from orchestrator.cli.codes import Exit
from orchestrator.cli.walk import STORIES, walk
from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Verdict
from orchestrator.runner import Orchestrator, RecoveryResult
from orchestrator.settings.load import load
from orchestrator.settings.model import Settings
from orchestrator.turn.curve import delay
from orchestrator.turn.effects import Family, How
from orchestrator.turn.events import Step
from orchestrator.turn.table import ROWS


@pytest.fixture(autouse=True)
def _quiet_world(monkeypatch):
    for name in [name for name in os.environ if name.startswith("ORCHESTRATOR_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")


def told(capsys, *tokens):
    assert run(["plan", *tokens, "--json"]) == Exit.OK
    return json.loads(capsys.readouterr().out)


def with_flags(**flags):
    return load(environ={}, flags={k.replace("__", "."): v for k, v in flags.items()}).settings


def test_the_same_seed_gives_the_same_plan_and_another_seed_another(capsys):
    first = told(capsys, "connection", "--seed", "1")
    assert told(capsys, "connection", "--seed", "1") == first
    assert told(capsys, "connection", "--seed", "2")["sends"] != first["sends"]
    assert first["window_end_s"] == 300.0
    assert first["outcome"] == "failed"


def test_the_waits_are_those_of_the_curve_with_the_luck_of_the_seed(capsys):
    sends = told(capsys, "connection", "--seed", "7")["sends"]
    chance, settings, at = Random(7), Settings(), 0.0
    for number, sent in enumerate(sends[1:], 1):
        family = Family.TRANSIENT if number <= 3 else Family.CONNECTION
        assert sent["family"] == family
        wait = delay(settings, ROWS[family].pause, number, chance.random())
        at += wait
        assert sent["wait_s"] == pytest.approx(wait, abs=1e-9)
        assert sent["at_s"] == pytest.approx(at, abs=1e-9)
    assert sends[-2]["at_s"] < 300.0 <= sends[-1]["at_s"]


class _Unreachable:
    """An agent that nothing answers; it notes when it was asked."""

    def __init__(self):
        self.asked_at = []

    async def attempt(self, attempt):
        self.asked_at.append(trio.current_time())
        return Verdict.of(Kind.CONNECTION_LOST, "nothing answers")

    async def recover(self, recover):
        return RecoveryResult(ok=True)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_plan_is_what_the_runner_does_in_virtual_time(capsys, seed):
    agent = _Unreachable()

    async def one_turn():
        async with Orchestrator(seed=seed) as orchestrator:
            return await orchestrator.session("chat", agent).turn("hello")

    outcome = trio.run(one_turn, clock=MockClock(autojump_threshold=0))
    plan = told(capsys, "connection", "--seed", str(seed))
    begin = agent.asked_at[0]
    assert [at - begin for at in agent.asked_at] == pytest.approx(
        [sent["at_s"] for sent in plan["sends"]], abs=1e-6
    )
    assert outcome.how == plan["outcome"]


def test_without_a_seed_the_waits_are_the_bare_curve(capsys):
    assert [s["wait_s"] for s in told(capsys, "transient")["sends"]] == [0, 2, 4, 8]
    assert [s["wait_s"] for s in told(capsys, "busy")["sends"]] == [0, 1.5, 3, 6]


def test_every_family_has_a_story_that_leads_to_it():
    assert set(STORIES) == set(Family)
    settings = with_flags(recoveries__fallback_models="a,b")
    for family, story in STORIES.items():
        whole = walk(settings, story, hint_s=3600.0 if story.resets else None)
        assert whole.uses(family), family
        assert whole.outcome in {How.FAILED, How.REFUSED}


def test_a_family_that_needs_a_setting_is_not_used_without_it():
    for family, story in STORIES.items():
        if story.setting == "recoveries.fallback_models":
            assert not walk(Settings(), story).uses(family)


def test_the_steps_of_a_recovery_are_told():
    whole = walk(Settings(), STORIES[Family.POISONED])
    (sent,) = [s for s in whole.sends if s.family is Family.POISONED]
    assert sent.steps == (Step.CANARY, Step.DISCARD)


def test_attempts_take_their_time_and_a_servers_hint_stretches_the_waits(capsys):
    sends = told(capsys, "transient", "--attempt", "5s", "--hint", "20s")["sends"]
    assert [s["at_s"] for s in sends] == [0, 25, 50, 75]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (
            ["transient", "--set", "ladders.transient_retries=20"],
            "The cap turn.max_sends (12) ends",
        ),
        (["transient", "--hint", "200s"], "turn.max_server_wait_s (2m) is below the hint"),
        (["resume_at_reset", "--hint", "2d"], "turn.resume_within_s (1d) is below the hint"),
        (["busy", "--set", "ladders.busy_retries=0"], "never sends: its budget is 0"),
        (["model_fallback"], "never sends: it needs recoveries.fallback_models"),
        (["ride_out"], "Off unless choices.ride_out is set or the host opts in."),
        (["connection"], "The window closes at 5m 00s; the last wait may end later."),
        (["transient"], "Waits are shown without chance, which adds up to 25 %; --seed N draws it"),
        (["resume_at_reset"], "which adds up to 1m; --seed N draws it"),
        (["content_filter_hop"], "After 2 sends the turn ends as refused at 0.00s."),
        (["busy", "--set", "ladders.busy_retries=0"], "After 1 send the turn fails at 0.00s."),
        (["busy", "--seed", "3"], "busy: the agent says that another prompt is running"),
        (
            [
                "busy",
                "--set",
                "ladders.busy_first_s=0",
                "--set",
                "ladders.busy_retries=100",
                "--set",
                "turn.max_sends=1000",
            ],
            "After 101 sends the turn fails at 0.00s.",
        ),
        (
            [
                "connection",
                "--set",
                "ladders.curve.first_s=0.001",
                "--set",
                "ladders.curve.factor=1",
            ],
            "Cut here after 1000 sends",
        ),
    ],
)
def test_the_notes_say_what_the_table_cannot_show(capsys, tokens, expected):
    assert run(["plan", *tokens]) == Exit.OK
    out, err = capsys.readouterr()
    assert expected in err
    assert out.startswith("send")


def test_the_table_fits_eighty_columns(capsys):
    for family in Family:
        assert run(["plan", family, "--seed", "1"]) == Exit.OK
        out = capsys.readouterr().out
        assert max(map(len, out.splitlines())) <= 80
        assert all(line == line.rstrip() for line in out.splitlines())


@pytest.mark.parametrize(
    ("tokens", "field"),
    [
        (["transient", "--attempt", "x"], "--attempt"),
        (["transient", "--hint", "5ms"], "--hint"),
        (["transient", "--seed", "x"], "--seed"),
        (["nothing"], "FAMILY"),
        (["transient", "--set", "turn.max_sends=0"], "turn.max_sends"),
    ],
)
def test_a_wrong_option_is_named(capsys, tokens, field):
    assert run(["plan", *tokens, "--json"]) == Exit.USAGE
    assert json.loads(capsys.readouterr().err)["field"] == field


def test_bad_settings_lead_to_the_defaults_unless_strict(capsys, tmp_path):
    file = tmp_path / "bad.toml"
    file.write_text("[ladders]\ntransient_retries = 1\nzz = 1")
    assert run(["plan", "transient", "--settings", str(file), "--json"]) == Exit.OK
    out, err = capsys.readouterr()
    assert len(json.loads(out)["sends"]) == 4
    assert "going on with the default settings" in json.loads(err)["warning"]
    assert run(["plan", "transient", "--settings", str(file), "--strict"]) == Exit.USAGE
