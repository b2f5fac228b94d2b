"""What a client may see when a real agent fails behind the proxy."""

import json
import re
from collections import Counter, defaultdict

import pytest

from tests.agents.kinds import (
    CLAUDE,
    CLAUDE_SEAT,
    CODEX,
    EAGER_CLAUDE,
    EAGER_CODEX,
    KINDS,
    OPENCODE,
)
from tests.agents.provider import Answer, Fault, always, first
from tests.agents.scenes import SCENES
from tests.agents.stage import SPOKEN, Part, Scene

_LAST_COUNT = re.compile(r"(\d+)(?: of |/)(?=\d|this message)")
"""Which try this is, by the last count in a title."""

pytestmark = [pytest.mark.agents, pytest.mark.timeout(600)]

_OPENCODE_LEGACY = (
    "overload, then ok",
    "kill -9 mid-turn",
    "cancel in the wait",
    "cancel in the agent's own wait",
    "401",
    "usage limit",
    "context overflow",
)
"""opencode knows of no records, so it does the same before both clients, and it starts slowly."""

PARTS = [
    Part(scene, kind, capable)
    for scene in SCENES
    for kind in KINDS
    for capable in (True, False)
    if capable or kind is not OPENCODE or scene.name in _OPENCODE_LEGACY
]
PARTS += [
    Part(scene, CLAUDE_SEAT, capable)
    for scene in SCENES
    if scene.name == "usage limit"
    for capable in (True, False)
]


def parts(*names, kinds=(*KINDS, CLAUDE_SEAT), capable=(True, False)):
    """The parts of these scenes."""
    chosen = [
        part
        for part in PARTS
        if (part.scene.name in names or not names)
        and part.kind in kinds
        and part.capable in capable
    ]
    return pytest.mark.parametrize("part", chosen, ids=str)


def incident(record):
    """Whose revisions these are: a turn's incidents share the turn's id."""
    return record.id.partition(":error")[0]


def of_turn(run):
    """Records of the turn's own incidents."""
    return [record for record in run.records if re.match(r"[0-9a-f]{32}:error", record.id)]


MENDED = (
    "overload, then ok",
    "throttle with retry-after",
    "5xx burst",
    "reset mid-stream",
    "hang",
    "kill -9 mid-turn",
    "kill -9 during our wait",
    "lost session",
    "kill -9 when idle, history gone",
)


@parts()
def test_every_request_is_answered_exactly_once_in_json(run):
    asked = range(1, run.client.asked + 1)
    assert dict(run.client.answers) == dict.fromkeys(asked, 1), run.client.log
    assert not run.silent
    assert run.client.not_json == 0


@parts()
def test_nothing_is_shown_twice(run):
    assert all(run.text.count(text) <= 1 for text in run.provider.spoken)
    words = Counter(re.findall(r"\bw\d+\b", run.text))
    assert all(count == 1 for count in words.values())
    turns = 1 + len(run.more)  # what an agent says at the start of each turn is no repetition
    told = Counter(text for text in run.texts_since if len(text.split()) > 5)
    assert all(count <= turns for count in told.values())


@parts()
def test_no_process_outlives_the_proxy(run):
    assert run.left == []
    assert run.exit_code == 0


@parts()
def test_one_agent_runs_when_the_answer_comes(run):
    assert run.agents_left == 1


@parts()
def test_nothing_more_is_sent_after_the_answer(run):
    assert run.late_requests == 0


@parts(capable=(True,))
def test_a_turn_has_one_incident_with_rising_revisions_and_an_end(run):
    assert len({incident(record) for record in of_turn(run)}) <= 1
    by_id = defaultdict(list)
    for record in of_turn(run):
        by_id[record.id].append(record)
    for records in by_id.values():
        assert [record.revision for record in records] == [*range(1, len(records) + 1)]
        assert all(record.severity == "warning" for record in records[:-1])
        assert all(record.title for record in records)
        assert all(record.actions == () for record in records if record.severity == "warning")
    stands = [record for record in of_turn(run)[-1:] if record.severity == "warning"]
    assert not stands or run.stop_reason == "end_turn"


@parts(capable=(False,))
def test_a_client_that_reads_no_records_gets_none(run):
    assert run.records == []


@parts(*MENDED)
def test_what_can_be_mended_is_answered(run):
    assert run.stop_reason == "end_turn", (run.reply, run.client.log)
    assert run.text.count(SPOKEN) == run.talked + 1
    assert [record for record in of_turn(run) if record.severity == "error"] == []


@parts("overload, then ok", "throttle with retry-after", "5xx burst", "hang")
def test_a_retry_costs_one_more_request_than_what_failed(run):
    failed = [request for request in run.provider.counted if request.action != Answer()]
    assert run.requests == len(failed) + 1


@parts("lost session", "kill -9 when idle, history gone", "kill -9 mid-turn")
def test_the_model_is_told_what_was_said_before(run):
    asked = json.dumps(run.provider.counted[-1].body)
    assert "Why do the tests fail?" in asked
    assert (f"Answer number 1 of the model, {SPOKEN}" in asked) == bool(run.talked)


@parts(
    "overload, then ok",
    "throttle with retry-after",
    "5xx burst",
    "kill -9 mid-turn",
    "kill -9 during our wait",
    "hang",
    capable=(True,),
)
def test_no_wait_and_no_recovery_is_silent(run):
    assert of_turn(run)[0].severity == "warning"


@parts("5xx burst", kinds=(CLAUDE, CODEX), capable=(True,))
def test_our_retries_go_on_counting_where_the_agents_own_stopped(run):
    numbers = [_LAST_COUNT.findall(record.title)[-1] for record in of_turn(run)]
    assert [int(number) for number in numbers] == [1, 2, 3, 4]
    assert of_turn(run)[-1].title.endswith("Trying again (4 of 5).")


@parts("kill -9 mid-turn", "kill -9 during our wait", "kill -9 when idle, history gone")
def test_a_killed_agent_is_replaced_by_another_process(run):
    assert len(run.killed) == 1
    assert run.agents_left == 1


@parts("cancel in the wait")
def test_a_cancel_in_the_wait_ends_the_turn_and_sends_nothing(run):
    assert run.stop_reason == "cancelled", (run.reply, run.client.log)
    assert run.requests == run.kind.attempts["overloaded"]


@parts("cancel mid-turn", "cancel in the agent's own wait")
def test_a_cancel_of_what_the_agent_does_reads_as_cancelled(run):
    assert run.stop_reason == "cancelled", (run.reply, run.client.log)
    assert run.requests == 1
    assert all(record.actions[:1] == ("retry",) for record in run.errors)


@parts("another prompt mid-turn")
def test_a_prompt_during_a_turn_waits_for_its_own_turn(run):
    assert (run.stop_reason, run.more_stops) == ("end_turn", ["end_turn"])
    first_text, second_text = run.provider.spoken
    assert run.text.index(first_text) < run.text.index(second_text)
    assert run.requests == 2


@parts("cancel in the wait", capable=(True,))
def test_a_cancel_in_the_wait_settles_its_warning(run):
    assert of_turn(run)[-1].severity == "error"
    assert of_turn(run)[-1].actions[:1] == ("retry",)


@parts("401", kinds=(CLAUDE, CODEX))
def test_a_request_for_a_sign_in_stays_one(run):
    assert run.error.get("code") == -32000
    assert all(record.severity == "error" for record in of_turn(run))


@parts("401", kinds=(OPENCODE,), capable=(True,))
def test_a_rejected_key_that_an_agent_reports_as_an_internal_error_asks_for_a_sign_in(run):
    (record,) = of_turn(run)
    assert (record.category, record.actions, record.on_answer) == ("access", ("login",), True)


@parts("401", kinds=(OPENCODE,), capable=(False,))
def test_a_rejected_key_keeps_the_agents_own_carrier_for_a_legacy_client(run):
    assert run.error.get("code") == -32603
    assert "API key" in run.error.get("message", "")


@parts("usage limit", capable=(True,))
def test_a_usage_limit_is_one_error_on_the_answer(run):
    record = of_turn(run)[-1]
    assert (record.severity, record.category, record.on_answer) == ("error", "limit", True)


@parts("usage limit", kinds=(CLAUDE_SEAT, CODEX))
def test_a_named_usage_limit_is_not_tried_again(run):
    assert run.requests == 1


@parts("context overflow", capable=(True,))
def test_a_context_overflow_offers_a_new_session_and_is_not_tried_again(run):
    (record,) = of_turn(run)
    assert (record.severity, record.category) == ("error", "limit")
    assert record.actions == ("new_session",)
    assert run.requests == 1


@parts("usage limit", "context overflow", capable=(False,))
def test_a_failure_reaches_a_legacy_client_as_the_agent_would_have_told_it(run):
    told = run.error.get("message", "") + run.text
    assert re.search("limit|quota|too long|context window", told), (run.reply, run.text)


_LOWERED = Scene(
    "own retries lowered",
    lambda _: first(1, Fault("overloaded", 529)),
    options=("--own-retries",),
)


_LOWERABLE = [Part(_LOWERED, kind, capable=True) for kind in (EAGER_CLAUDE, EAGER_CODEX)]


@pytest.mark.parametrize("part", _LOWERABLE, ids=str)
def test_own_retries_can_be_lowered_so_that_the_proxy_alone_retries(run):
    assert any("no retries of its own" in line for line in run.client.log)
    (record,) = of_turn(run)
    assert record.title.endswith("Trying again (1 of 3).")
    assert (run.stop_reason, run.requests) == ("end_turn", 2)


_CIRCLES = Scene("summary after summary", lambda _: always(Fault("context_overflow", 400)))


@pytest.mark.parametrize("part", [Part(_CIRCLES, OPENCODE, capable=True)], ids=str)
def test_an_agent_that_shortens_its_conversation_without_end_is_stopped(run):
    (record,) = of_turn(run)
    assert (record.severity, record.category) == ("error", "limit")
    assert record.actions == ("new_session",)
    told = re.match(r"The agent wrote (\d+) messages in a row", record.title)
    assert 21 <= int(told[1]) < 30  # what it wrote before it was stopped counts too
    assert run.requests < 30
    assert run.late_requests == 0
