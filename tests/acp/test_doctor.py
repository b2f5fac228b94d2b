"""What the examination of an agent finds: agents in memory, in virtual time."""

import anyio
import looptime
import pytest
import trio
import trio.testing

from orchestrator.acp.doctor import (
    CHECKS,
    REMEDIES,
    Mark,
    Patient,
    bounded,
    examine,
    failed,
    remedies,
)
from orchestrator.acp.process import Command
from orchestrator.acp.runtime import Runtime
from orchestrator.settings.model import Watchdogs
from tests.acp.doubles import Double, answer, fail, text
from tests.acp.wires import END

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    """Both event loops, in virtual time."""
    if request.param == "asyncio":
        return "asyncio", {"loop_factory": looptime.new_event_loop}
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


async def examined(double, *, prompt="", left=frozenset(), processes=None):
    census = iter(processes or [set(), {1, 2}, set(left)])
    runtime = Runtime(Command(("/bin/agent",), "/home"), spawn=double.spawn)
    async with runtime:
        patient = Patient(
            runtime, prompt, processes=lambda: next(census), living=lambda pids: pids & left
        )
        await examine(patient)
    return patient


def marks(patient):
    return {name: str(found.mark) for name, found in patient.found.items()}


def hopes(patient):
    return {hope.name: str(hope.mark) for hope in remedies(patient.found)}


async def test_a_good_agent_is_good_for_everything_and_is_sent_no_prompt():
    double = Double()
    patient = await examined(double)
    assert marks(patient) == {
        "start": "yes",
        "records": "no",
        "session": "yes",
        "model": "yes",
        "answer": "untried",
        "cancel": "untried",
        "kill": "yes",
        "respawn": "yes",
        "load": "yes",
        "goodbye": "yes",
    }
    assert hopes(patient) == {
        "retry": "yes",
        "reload": "yes",
        "transcript": "yes",
        "swap": "yes",
        "unstick": "untried",
        "incident": "partly",
        "clean": "yes",
    }
    assert not failed(patient.found)
    assert not any("session/prompt" in methods for methods in double.methods)


async def test_the_model_is_set_back_to_what_it_was():
    double = Double()
    await examined(double)
    assert double.model == "big"


async def test_a_model_that_can_not_be_set_can_not_be_swapped():
    double = Double()
    double.answers["session/set_config_option"] = double.options
    patient = await examined(double)
    assert patient.found["model"].text == "It lists 2 models, but kept big when small was set."
    assert hopes(patient)["swap"] == "no"


async def test_a_model_that_can_not_be_set_again_is_told_and_the_prompts_went_to_it():
    double = Double()

    def refuse_big(message):
        if message["params"]["value"] == "big":
            return fail(-32602, "Invalid params")(message)
        double.model = message["params"]["value"]
        return answer(message["id"], double.options)

    double.answers |= {"session/set_config_option": refuse_big, **prompts(double, "cancelled")}
    patient = await examined(double, prompt="hello")
    assert patient.found["model"].text == "It lists 2 models; small can be set, but not big."
    assert (marks(patient)["model"], hopes(patient)["swap"]) == ("partly", "partly")
    methods = double.methods[0]
    assert methods.index("session/set_config_option") > methods.index("session/cancel")


@pytest.mark.parametrize(
    ("options", "told"),
    [({}, "no choice"), ({"configOptions": [{"id": "model", "currentValue": "a"}]}, "but a")],
)
async def test_one_model_is_no_choice(options, told):
    double = Double(answers={"session/new": {"sessionId": "s1", **options}})
    patient = await examined(double)
    assert patient.found["model"].mark is Mark.NO
    assert told in patient.found["model"].text


async def test_the_prompt_is_sent_twice_and_the_second_one_is_cut_off():
    double = Double()
    double.answers |= prompts(double, "cancelled")
    patient = await examined(double, prompt="hello")
    assert marks(patient)["answer"] == marks(patient)["cancel"] == "yes"
    assert double.methods[0].count("session/prompt") == 2
    assert hopes(patient)["unstick"] == "yes"


@pytest.mark.parametrize(
    ("end", "mark", "hope"), [("end_turn", "partly", "yes"), (None, "no", "partly")]
)
async def test_a_cancel_that_is_answered_otherwise_or_not_is_told(end, mark, hope):
    double = Double()
    double.answers |= prompts(double, end)
    patient = await examined(double, prompt="hello")
    assert (marks(patient)["cancel"], hopes(patient)["unstick"]) == (mark, hope)


def prompts(double, end):
    """The first prompt is answered, the second one only after a cancel, with this stop reason."""
    open_ids = []

    def prompt(message):
        open_ids.append(message["id"])
        if len(open_ids) == 1:
            return double.say("done")(message)
        return [(0.0, text(message["params"]["sessionId"], "slow"))]

    def cancel(_):
        return answer(open_ids[-1], {"stopReason": end}) if end else []

    return {"session/prompt": prompt, "session/cancel": cancel}


async def test_an_answer_that_outruns_the_cancel_leaves_it_untried():
    patient = await examined(Double(), prompt="hello")
    assert marks(patient)["cancel"] == "untried"


async def test_a_prompt_that_fails_is_a_failure_and_the_rest_is_still_tried():
    double = Double(answers={"session/prompt": fail(-32000, "Log in first")})
    patient = await examined(double, prompt="hello")
    assert failed(patient.found)
    assert (marks(patient)["answer"], marks(patient)["cancel"]) == ("no", "untried")
    assert marks(patient)["load"] == "yes"


async def test_a_prompt_that_is_never_answered_has_an_end():
    double = Double(answers={"session/prompt": lambda _: []})
    patient = await examined(double, prompt="hello")
    assert patient.found["answer"].text == "Answer: no answer in time."


async def test_an_agent_that_dies_of_the_prompt_is_told_and_started_again():
    double = Double(answers={"session/prompt": lambda _: [(0.0, END)]})
    patient = await examined(double, prompt="hello", processes=[set()])
    found = marks(patient)
    assert (found["answer"], found["kill"], found["respawn"]) == ("no", "no", "yes")
    assert patient.found["kill"].text == "It ended by itself before it was killed."


async def test_processes_that_outlive_the_kill_are_named():
    patient = await examined(Double(), left=frozenset({2}))
    assert patient.found["kill"].text == "Killed, it leaves processes behind: 2."
    assert failed(patient.found)
    assert hopes(patient)["clean"] == "no"


async def test_where_processes_can_not_be_counted_nothing_is_promised():
    patient = await examined(Double(), processes=[set(), set(), set()])
    assert marks(patient)["kill"] == "partly"


@pytest.mark.parametrize(
    ("capabilities", "method"),
    [
        ({"loadSession": True}, "session/load"),
        ({"sessionCapabilities": {"resume": {}}}, "session/resume"),
    ],
)
async def test_the_method_that_the_agent_offers_opens_the_old_session(capabilities, method):
    double = Double(capabilities, answers={"session/resume": {}})
    await examined(double)
    assert method in double.methods[1]


async def test_without_a_way_to_load_a_dead_agent_gets_a_new_session():
    patient = await examined(Double(capabilities={}))
    assert (marks(patient)["load"], hopes(patient)["reload"]) == ("no", "partly")


@pytest.mark.parametrize(("prompt", "mark"), [("", "partly"), ("hello", "no")])
async def test_only_an_empty_session_may_be_unknown_to_a_new_process(prompt, mark):
    double = Double(answers={"session/load": fail(-32002, "not found")})
    patient = await examined(double, prompt=prompt)
    assert marks(patient)["load"] == mark


async def test_a_session_that_can_be_closed_is_closed():
    double = Double({"sessionCapabilities": {"close": {}}}, answers={"session/close": {}})
    await examined(double)
    assert double.methods[1][-1] == "session/close"


@pytest.mark.parametrize("opened", [fail(-32000, "Log in first"), {}])
async def test_without_a_session_there_is_no_recovery_to_speak_of(opened):
    patient = await examined(Double(answers={"session/new": opened}))
    assert failed(patient.found)
    assert marks(patient)["session"] == "no"
    assert marks(patient)["load"] == "untried"
    assert remedies(patient.found) == ()


@pytest.mark.parametrize(
    "silent",
    [{"initialize": lambda _: []}, {"session/new": lambda _: []}],
    ids=["start", "session"],
)
async def test_an_agent_that_never_answers_is_given_up(silent):
    double = Double(answers=silent)
    started = anyio.current_time()
    patient = await examined(double)
    assert anyio.current_time() - started <= 4 * 60
    assert failed(patient.found)
    assert all(wire.killed or "session/new" in silent for wire in double.wires)


async def test_an_agent_that_can_not_start_is_examined_no_further():
    double = Double(answers={"initialize": lambda _: [(0.0, END)]})
    patient = await examined(double)
    assert marks(patient) == {"start": "no"}
    assert patient.refusal is not None
    assert remedies(patient.found) == ()


async def test_an_agent_that_does_not_start_twice_ends_a_turn_with_its_death():
    double = Double()
    start = {"protocolVersion": 1, "agentCapabilities": {}}

    def initialize(message):
        return answer(message["id"], start) if len(double.wires) == 1 else [(0.0, END)]

    double.answers["initialize"] = initialize
    patient = await examined(double)
    assert (marks(patient)["respawn"], hopes(patient)["reload"]) == ("no", "no")


def test_a_limit_that_is_off_has_its_default_so_that_the_look_ends():
    off = Watchdogs(handshake_s=0, silence_s=0, session_s=7)
    assert bounded(off) == Watchdogs(session_s=7)


def test_each_check_needs_earlier_ones_and_each_remedy_a_check():
    names = [check.name for check in CHECKS]
    for place, check in enumerate(CHECKS):
        assert set(check.needs) <= set(names[:place])
    assert {remedy.check for remedy in REMEDIES} <= set(names)
