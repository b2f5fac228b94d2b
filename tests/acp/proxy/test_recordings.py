"""Every recording of a real agent through the proxy, for a client that reads records and for one
that does not.

What each ending means is `tests.acp.test_replay.EXPECTED`; how it is told is said here.
"""

import anyio
import pytest
from attrs import evolve

from orchestrator.acp.framing import encode
from orchestrator.failure.kinds import KINDS, Kind
from orchestrator.settings.model import Settings, Watchdogs
from orchestrator.turn.effects import How
from tests.acp.proxy.harness import AIR, play, staged
from tests.acp.replay_agent import recordings, replay_wire
from tests.acp.test_replay import BOUND_S, EXPECTED, NAMES, ONE_TRY, scenario, stop_after_s

IDS = [f"{agent}-{name}" for agent, name in NAMES]
NO_CARRIER = (Kind.CONNECTION_LOST, Kind.AGENT_DIED)
"""Endings for which an agent may have sent nothing: silence and death."""


def expected(agent, name):
    row = EXPECTED[scenario(name)]
    end = row.get(agent, row.get("*"))
    return end[0] if isinstance(end, tuple) else end


def turn_of(agent, name):
    """The frames that answered the recording's first prompt, and the end of it if there was one."""
    seen, prompt = [], None
    for _, direction, frame in recordings(agent)[name]:
        if direction == "out":
            if prompt is not None and "id" in frame:
                break
            if frame["method"] == "session/prompt":
                prompt = frame["id"]
        elif direction == "in" and prompt is not None and "_eof" not in frame:
            seen.append(frame)
            if "method" not in frame:
                return seen[:-1], frame
    return seen, None


def through_the_proxy(agent, name, *, capable, settings=ONE_TRY, prompts=1):
    """Play the recording's first prompt; what the client saw after it, and its answer."""

    async def main():
        wires = [replay_wire(agent, name)]
        wires += [replay_wire(agent, n) for n in (f"{name}.2",) if n in recordings(agent)]
        async with staged(*wires, settings=settings) as stage:
            client = stage.client
            await client.hello(AIR if capable else None)
            session_id = await client.new()
            await anyio.sleep(5)
            before = len(client.frames)
            number = client.prompt(session_id)
            stop = stop_after_s(agent, name)
            if stop is not None:
                await wires[0].heard("session/prompt")
                await anyio.sleep(stop)
                client.notify("session/cancel", {"sessionId": session_id})
            answer = await client.answer(number)
            place = client.frames.index(answer)
            return client, client.frames[before:place], answer

    return play(main)


@pytest.mark.parametrize(("agent", "name"), NAMES, ids=IDS)
def test_a_client_without_records_gets_what_the_agent_would_have_sent(agent, name):
    theirs, end = turn_of(agent, name)
    _, seen, answer = through_the_proxy(agent, name, capable=False)
    how = expected(agent, name)
    if how is How.STOPPED:
        assert answer["result"]["stopReason"] == "cancelled"
        return
    if end is None or was_cancelled(agent, name):
        # The agent died or fell silent: there is no carrier of its own.
        assert how in NO_CARRIER
        assert answer["error"]["code"] == -32603
        assert answer["error"]["data"] == {"errorKind": str(how)}
        return
    assert encode({**answer, "id": None}) == encode({**end, "id": None})
    absorbed = [f for f in theirs if is_progress(f)]
    assert seen == [f for f in theirs if f not in absorbed]


def was_cancelled(agent, name):
    """Whether the recording's client gave up waiting for its first answer."""
    sent = [f[2].get("method") for f in recordings(agent)[name] if f[1] == "out"]
    return sent[sent.index("session/prompt") :][1:2] == ["session/cancel"]


def is_progress(frame):
    """A record of the agent's own retry: it joined the prompt."""
    record = record_of(frame)
    return record is not None and record["severity"] == "warning" and ":notice:" not in record["id"]


def record_of(frame):
    part = frame.get("params", {}).get("update") or frame.get("result") or {}
    return part.get("_meta", {}).get("jetbrains", {}).get("air", {}).get("sessionFailure")


@pytest.mark.parametrize(("agent", "name"), NAMES, ids=IDS)
def test_a_client_with_records_gets_one_incident_on_the_right_carrier(agent, name):
    _, end = turn_of(agent, name)
    client, seen, answer = through_the_proxy(agent, name, capable=True)
    how = expected(agent, name)
    records = [r for _, r in client.records()]
    incidents = {r["id"] for r in records if ":notice:" not in r["id"]}
    by_id = {i: [r["revision"] for r in records if r["id"] == i] for i in incidents}
    for revisions in by_id.values():
        assert revisions == list(range(1, len(revisions) + 1))
    agents_own = {record_of(f)["id"] for f in turn_of(agent, name)[0] if is_progress(f)}
    assert not incidents & agents_own
    if how is How.STOPPED:
        assert answer["result"]["stopReason"] == "cancelled"
    elif how is How.REFUSED:
        assert answer["result"]["stopReason"] == "refusal"
    elif how is How.LANDED:
        assert "result" in answer
        assert record_of(answer) is None
    elif end is not None and end.get("error", {}).get("code") == -32000:
        assert answer["error"]["code"] == -32000
    else:
        record = record_of(answer)
        assert answer["result"]["stopReason"] == "end_turn"
        assert record["severity"] == "error"
        assert record["category"] == KINDS[how].category
        assert record["id"].endswith(":error") or ":error:" in record["id"]
        assert not [r for f in seen if (r := record_of(f)) and r["severity"] == "error"]


PATIENT = evolve(Settings(), watchdogs=Watchdogs(first_sign_s=BOUND_S, silence_s=BOUND_S))


def has_second_prompt(agent, name):
    sent = [f[2].get("method") for f in recordings(agent)[name] if f[1] == "out"]
    return sent.count("session/prompt") > 1


AGAIN = [
    (agent, name)
    for agent, name in NAMES
    if has_second_prompt(agent, name)
    and isinstance(expected(agent, name), Kind)
    and KINDS[expected(agent, name)].transient
]


@pytest.mark.parametrize(("agent", "name"), AGAIN, ids=[f"{a}-{n}" for a, n in AGAIN])
@pytest.mark.parametrize("capable", [True, False], ids=["records", "plain"])
def test_a_transient_failure_is_retried_and_nothing_of_it_leaks(agent, name, capable):
    client, _, answer = through_the_proxy(agent, name, capable=capable, settings=PATIENT)
    assert answer["result"]["stopReason"] == "end_turn"
    assert record_of(answer) is None
    assert not [r for _, r in client.records() if r["severity"] == "error"]
    answered = "".join(client.texts())
    assert answered.count("Hello from the lab provider.") == 1
    if not capable:
        assert not [r for _, r in client.records() if ":notice:" not in r["id"]]
