"""The small parts of the client: options, memory, permissions, remembered starts, the watch."""

import os

import anyio
import pytest
import trio
import trio.testing

from orchestrator.acp.memory import Memory, blocks, text_of
from orchestrator.acp.options import Options
from orchestrator.acp.permission import answer_permission
from orchestrator.acp.process import Command
from orchestrator.acp.starts import StartRefusals
from orchestrator.acp.watch import Watch
from orchestrator.failure.kinds import Kind
from orchestrator.failure.verdict import Cause, Verdict
from orchestrator.settings.model import Watchdogs

LIMITS = Watchdogs(first_sign_s=10, silence_s=100, tool_silence_s=1000, cancel_s=5)

MODEL = {
    "id": "model",
    "category": "model",
    "currentValue": "opus",
    "options": [{"value": "opus"}, {"name": "Small", "options": [{"value": "haiku"}]}],
}

# -- options


def test_the_served_models_are_read_through_groups():
    options = Options()
    assert options.served is None
    assert options.learn({"configOptions": [{"id": "mode", "currentValue": "auto"}, MODEL]})
    assert options.served == ("opus", "haiku")
    assert options.model == "opus"


def test_a_result_without_options_changes_nothing():
    options = Options()
    options.learn({"configOptions": [MODEL]})
    assert not options.learn({"stopReason": "end_turn"})
    assert options.model == "opus"


def test_what_was_chosen_is_restored_where_it_is_not_set():
    options = Options(chosen={"model": "haiku", "mode": "plan"})
    options.learn({"configOptions": [MODEL, {"id": "mode", "currentValue": "plan"}]})
    assert options.to_restore() == [("model", "haiku")]


# -- memory


def test_the_memory_is_told_oldest_first_and_without_what_is_sent_again():
    memory = Memory()
    memory.user("one")
    memory.agent("an")
    memory.agent("swer")
    memory.user([{"type": "text", "text": "two"}, {"type": "image", "data": "AAAA"}])
    text = memory.preface(upto=2)
    assert text.index("User: one") < text.index("Agent: answer")
    assert "two" not in text
    assert "two" in memory.preface()
    assert "AAAA" not in memory.preface()


def test_a_memory_stays_small_however_much_is_said():
    memory = Memory()
    for number in range(2000):
        memory.user(f"question {number}")
        for _ in range(20):
            memory.agent(f"answer {number} " * 100)
    assert len(memory) == 4000
    assert sum(entry.size for entry in memory._entries) < 100_000
    assert "question 1999" in memory.preface()
    assert "question 1999" not in memory.preface(upto=len(memory) - 2)
    long = Memory()
    long.agent("begin " + "x" * 50_000)
    for _ in range(2000):
        long.agent("y" * 1000)
    long.agent(" end")
    assert "begin" in long.partial()
    assert long.partial().endswith(" end")
    assert len(long.partial()) < 7_000


def test_an_empty_memory_has_no_preface():
    memory = Memory()
    assert memory.preface() == ""
    memory.user("one")
    assert memory.preface(upto=0) == ""
    assert memory.partial() == ""


def test_a_long_conversation_stays_bounded_and_keeps_its_end():
    memory = Memory()
    for n in range(100):
        memory.user(f"question {n} " + "x" * 10_000)
        memory.agent(f"answer {n}")
    text = memory.preface()
    assert len(text) < 26_000
    assert "answer 99" in text
    assert "question 0 " not in text


def test_a_cut_off_answer_is_told_as_such():
    memory = Memory()
    memory.user("one")
    memory.agent("half an ")
    assert memory.partial().endswith("half an")


def test_prompts_are_text_or_blocks():
    assert blocks("hi") == [{"type": "text", "text": "hi"}]
    assert text_of(blocks("hi")) == "hi"


# -- permissions

ASKED = {
    "options": [
        {"optionId": "a", "kind": "allow_always"},
        {"optionId": "b", "kind": "allow_once"},
        {"optionId": "c", "kind": "reject_always"},
        {"optionId": "d", "kind": "reject_once"},
    ]
}


@pytest.mark.parametrize(("allow", "chosen"), [(True, "b"), (False, "d")])
def test_the_mildest_option_of_the_wanted_kind_is_chosen(allow, chosen):
    outcome = answer_permission(ASKED, allow=allow)["outcome"]
    assert outcome == {"outcome": "selected", "optionId": chosen}


@pytest.mark.parametrize("params", [{}, {"options": None}, {"options": [1, {"kind": "other"}]}])
def test_a_question_without_a_fitting_option_is_cancelled(params):
    assert answer_permission(params, allow=False) == {"outcome": {"outcome": "cancelled"}}


# -- remembered starts


def verdict(kind=Kind.AGENT_START_FAILED, cause=Cause.NODE_VERSION):
    return Verdict.of(kind, "Node is too old.", cause=cause)


def command(path, *more, env=None):
    return Command((str(path), *more), "/", env)


def test_a_start_that_cannot_work_is_remembered_for_that_very_command(tmp_path):
    program = tmp_path / "agent"
    program.write_text("1")
    refusals = StartRefusals()
    refusals.remember(command(program), verdict(), 0.0)
    assert refusals.recall(command(program), 1.0) == verdict()
    assert refusals.recall(command(program, "--acp"), 1.0) is None
    assert refusals.recall(command(program, env={"A": "1"}), 1.0) is None


def test_a_start_is_tried_again_after_the_program_changed(tmp_path):
    program = tmp_path / "agent"
    program.write_text("1")
    refusals = StartRefusals()
    refusals.remember(command(program), verdict(), 0.0)
    os.utime(program, ns=(1, 1))
    assert refusals.recall(command(program), 1.0) is None


def test_a_start_is_tried_again_after_a_while():
    refusals = StartRefusals()
    refusals.remember(command("/no"), verdict(), 0.0)
    assert refusals.recall(command("/no"), 301.0) is None


@pytest.mark.parametrize(
    "other",
    [verdict(cause=Cause.EXIT), verdict(Kind.AGENT_START_TIMEOUT, None), verdict(Kind.AGENT_DIED)],
)
def test_a_start_that_may_work_next_time_is_not_remembered(other):
    refusals = StartRefusals()
    refusals.remember(command("/no"), other, 0.0)
    assert refusals.recall(command("/no"), 1.0) is None


# -- the watch


def silent_for(prepare):
    """Seconds until the watch gives up, after `prepare(watch)` ran for as long as it likes."""

    async def main():
        watch = Watch(LIMITS)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(prepare, watch)
            await watch.expired()
            tasks.cancel_scope.cancel()
        return trio.current_time() - started

    clock = trio.testing.MockClock(autojump_threshold=0)
    started = clock.current_time()
    return trio.run(main, clock=clock)


def after(seconds, act):
    async def prepare(watch):
        await anyio.sleep(seconds)
        act(watch)

    return prepare


def test_an_agent_that_gives_no_sign_of_life_is_given_up():
    assert silent_for(after(0, lambda _: None)) == pytest.approx(10)


def test_a_sign_of_life_buys_the_longer_silence():
    assert silent_for(after(9, Watch.life)) == pytest.approx(109)


def test_a_running_tool_may_be_silent_for_longer():
    def run_tool(watch):
        watch.life()
        watch.tools_running(1)

    assert silent_for(after(9, run_tool)) == pytest.approx(1009)


def test_after_the_last_tool_the_shorter_silence_holds_again():
    async def run_tool(watch):
        watch.life()
        watch.tools_running(1)
        await anyio.sleep(500)
        watch.life()
        watch.tools_running(0)

    assert silent_for(run_tool) == pytest.approx(600)


def test_a_question_to_the_user_stops_the_clock():
    async def ask(watch):
        watch.question(is_open=True)
        await anyio.sleep(5000)
        watch.question(is_open=False)

    assert silent_for(ask) == pytest.approx(5100)


def test_a_cancel_has_to_be_acknowledged_whatever_else_happens():
    async def cancel(watch):
        await anyio.sleep(2)
        watch.cancelled()
        for _ in range(4):
            await anyio.sleep(1)
            watch.life()

    assert silent_for(cancel) == pytest.approx(7)


def test_a_limit_of_zero_is_switched_off():
    async def main():
        watch = Watch(Watchdogs(first_sign_s=0))
        with anyio.move_on_after(1e6) as scope:
            await watch.expired()
        return scope.cancelled_caught

    assert trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
