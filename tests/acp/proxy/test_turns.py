"""Prompts are turns: failures are waited out, told once, and answered exactly once."""

import anyio
import pytest

from orchestrator.settings.model import Ladders, Recoveries, Settings
from tests.acp.proxy.harness import AIR, Script, greet, play, staged

OVERLOADED = (-32603, "Internal error: 529 Overloaded", {"errorKind": "overloaded"})
LIMIT = (-32603, "Internal error: You've hit your limit · resets 3am")
ONE_RETRY = Settings(ladders=Ladders(transient_retries=1))
TWO_SENDS = Settings(recoveries=Recoveries(continue_after_output=0))


def scripted(*acts, **greeting):
    """An agent that meets each prompt with the next act."""

    async def script(agent):
        await greet(agent, **greeting)
        for act in acts:
            prompt = await agent.next("session/prompt")
            await act(agent, prompt)
        await anyio.sleep_forever()

    return Script(script)


def fails(code, message, data=None):
    async def act(agent, prompt):
        agent.fail(prompt, code, message, data)

    return act


def says(*texts, stop="end_turn"):
    async def act(agent, prompt):
        for text in texts:
            agent.text(prompt["params"]["sessionId"], text)
        agent.reply(prompt, {"stopReason": stop})

    return act


def told(record, stop="end_turn"):
    async def act(agent, prompt):
        meta = {"quota": 1, "jetbrains": {"air": {"version": 1, "sessionFailure": record}}}
        agent.reply(prompt, {"stopReason": stop, "usage": {"n": 1}, "_meta": meta})

    return act


def warned(record, then):
    async def act(agent, prompt):
        meta = {"jetbrains": {"air": {"version": 1, "sessionFailure": record}}}
        agent.update("s1", sessionUpdate="session_info_update", _meta=meta)
        await then(agent, prompt)

    return act


def record(number=1, revision=1, severity="warning", category="service", **more):
    fields = {"id": f"agents:{number}", "revision": revision, "category": category}
    return {**fields, "severity": severity, "title": "Retrying, attempt 1.", "actions": [], **more}


def failed(title):
    return record(3, 1, "error", title=title, actions=["retry"])


async def ready(stage, capabilities=None):
    await stage.client.hello(capabilities)
    return await stage.client.new()


def one_prompt(agent, capabilities=None, settings=None, **more):
    """The answer to one prompt, and the client that got it."""

    async def main():
        async with staged(agent, settings=settings, **more) as stage:
            session_id = await ready(stage, capabilities)
            answer = await stage.client.answer(stage.client.prompt(session_id))
            return answer, stage.client

    return play(main)


def test_an_overload_is_waited_out_and_a_plain_client_sees_nothing_of_it():
    agent = scripted(fails(*OVERLOADED), fails(*OVERLOADED), says("hello"))
    answer, client = one_prompt(agent)
    assert answer["result"] == {"stopReason": "end_turn"}
    assert client.texts() == ["hello"]
    assert client.records() == []
    prompts = [m for m in agent.sent if m["method"] == "session/prompt"]
    assert [p["params"] for p in prompts] == [prompts[0]["params"]] * 3


def test_rows_are_shown_to_a_plain_client_that_asked_for_them():
    agent = scripted(fails(*OVERLOADED), says("hello"))
    _, client = one_prompt(agent, notices=True)
    row, text = client.texts()
    assert row.startswith("\n[The model provider is overloaded.")
    assert text == "hello"


def test_rows_end_with_the_reason_for_giving_up():
    agent = scripted(fails(*OVERLOADED), fails(*OVERLOADED))
    answer, client = one_prompt(agent, settings=ONE_RETRY, notices=True)
    assert len(client.texts()) == 2
    assert answer["error"]["message"] == OVERLOADED[1]


def test_a_capable_client_is_told_one_incident_in_revisions():
    agent = scripted(*[fails(*OVERLOADED)] * 4)
    answer, client = one_prompt(agent, AIR)
    carriers, records = zip(*client.records(), strict=True)
    assert carriers == ("update", "update", "update", "response")
    assert len({r["id"] for r in records}) == 1
    assert [r["revision"] for r in records] == [1, 2, 3, 4]
    assert [r["severity"] for r in records] == ["warning"] * 3 + ["error"]
    assert records[-1]["actions"] == ["retry"]
    assert answer["result"]["stopReason"] == "end_turn"


def test_a_plain_client_gets_the_agents_own_last_error():
    agent = scripted(
        *[fails(*OVERLOADED)] * 3, fails(-32603, "Internal error: 529 at last", {"x": 1})
    )
    answer, _ = one_prompt(agent)
    assert answer["error"] == {
        "code": -32603,
        "message": "Internal error: 529 at last",
        "data": {"x": 1},
    }


def test_the_agents_records_join_the_prompt_and_come_out_under_our_id():
    first = warned(record(1), warned(record(2), told(failed("API Error: 529 Overloaded."))))
    agent = scripted(first, told(failed("API Error: 529 Overloaded at last.")), typed=True)
    answer, client = one_prompt(agent, AIR, settings=ONE_RETRY)
    records = [r for _, r in client.records()]
    assert len({r["id"] for r in records}) == 1
    assert not records[0]["id"].startswith("agents:")
    assert [r["revision"] for r in records] == list(range(1, len(records) + 1))
    final = answer["result"]["_meta"]["jetbrains"]["air"]["sessionFailure"]
    assert "Overloaded at last" in final["title"]
    # Neighbours of the record stay.
    assert answer["result"]["_meta"]["quota"] == 1
    assert answer["result"]["usage"] == {"n": 1}


def test_our_retries_go_on_counting_where_the_agents_own_stopped():
    def inner(then):
        first = record(1, title="Retrying Claude, attempt 1 of 2.")
        second = record(2, title="Retrying Claude, attempt 2 of 2.")
        return warned(first, warned(second, warned(second, then)))

    fails_typed = told(failed("API Error: 529 Overloaded."))
    log = []
    agent = scripted(inner(fails_typed), inner(fails_typed), inner(says("hello")), typed=True)
    answer, client = one_prompt(agent, AIR, log=log)
    assert answer["result"] == {"stopReason": "end_turn"}
    assert [r["title"] for _, r in client.records()] == [
        "Retrying Claude, attempt 1 of 2.",
        "Retrying Claude, attempt 2 of 2.",
        "The model provider is overloaded. Trying again (3 of 5).",
        "Retrying Claude, attempt 1 of 2. Retry 4 of this message.",
        "Retrying Claude, attempt 2 of 2. Retry 5 of this message.",
        "The model provider is overloaded. Trying again (6 of 7).",
        "Retrying Claude, attempt 1 of 2. Retry 7 of this message.",
        "Retrying Claude, attempt 2 of 2. Retry 8 of this message.",
    ]
    assert [r["revision"] for _, r in client.records()] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert log[-1].endswith("turn landed, 6 retries inside the agent")


def test_an_error_record_beside_the_answer_passes_and_ends_nothing():
    background = record("bg", severity="error", category="connection", title="Another turn failed.")
    agent = scripted(warned(background, says("hello")), typed=True)
    answer, client = one_prompt(agent, AIR)
    assert answer["result"] == {"stopReason": "end_turn"}
    assert client.records() == [("update", background)]


def test_one_notice_id_for_two_notices_is_two_notices_here():
    def notice(title):
        return record(title=title, id="s1:notice:e:1")

    agent = scripted(
        warned(notice("No sandbox."), says("a")),
        warned(notice("Old model."), says("b")),
        typed=True,
    )

    async def main():
        async with staged(agent) as stage:
            session_id = await ready(stage, AIR)
            for _ in range(2):
                await stage.client.answer(stage.client.prompt(session_id))
            return [(r["id"], r["revision"], r["title"]) for _, r in stage.client.records()]

    (one, first, _), (two, second, _) = seen = play(main)
    assert [title for _, _, title in seen] == ["No sandbox.", "Old model."]
    assert (first, second) == (1, 1)
    assert one != two


def test_notices_are_notices_of_the_protocol_for_a_client_that_wants_those():
    capabilities = {**AIR, "session": {"notices": {}}}
    agent = scripted(says("cut", stop="max_tokens"))
    _, client = one_prompt(agent, capabilities)
    updates = [m["params"]["update"] for m in client.frames if "params" in m]
    assert updates[-1]["sessionUpdate"] == "notice"
    assert updates[-1]["severity"] == "warning"


def test_a_request_for_a_sign_in_keeps_its_carrier_and_settles_the_warning():
    agent = scripted(fails(*OVERLOADED), fails(-32000, "Authentication required"))
    answer, client = one_prompt(agent, AIR)
    assert answer["error"] == {"code": -32000, "message": "Authentication required"}
    (_, first), (carrier, last) = client.records()
    assert (first["id"], first["severity"]) == (last["id"], "warning")
    assert (carrier, last["severity"], last["actions"]) == ("update", "error", ["login"])


def test_a_request_for_a_sign_in_alone_needs_no_record():
    answer, client = one_prompt(scripted(fails(-32000, "Authentication required")), AIR)
    assert answer["error"]["code"] == -32000
    assert client.records() == []


def test_an_answer_with_nothing_in_it_is_no_success():
    agent = scripted(says(), says("hello"))
    answer, client = one_prompt(agent)
    assert answer["result"] == {"stopReason": "end_turn"}
    assert client.texts() == ["hello"]
    assert agent.methods().count("session/prompt") == 2


def test_what_was_shown_is_never_sent_for_again():
    async def half(agent, prompt):
        agent.text("s1", "half of ")
        agent.fail(prompt, *OVERLOADED)

    agent = scripted(half, says("the answer"))
    answer, client = one_prompt(agent)
    assert answer["result"] == {"stopReason": "end_turn"}
    assert client.texts() == ["half of ", "the answer"]
    prompts = [m["params"]["prompt"] for m in agent.sent if m["method"] == "session/prompt"]
    assert prompts[0] == [{"type": "text", "text": "hello"}]
    assert "hello" not in str(prompts[1])


def test_after_a_tool_call_nothing_is_sent_verbatim():
    async def tool(agent, prompt):
        agent.update("s1", sessionUpdate="tool_call", toolCallId="t", title="rm", status="pending")
        agent.fail(prompt, *OVERLOADED)

    agent = scripted(tool, says("done"))
    one_prompt(agent)
    prompts = [m["params"]["prompt"] for m in agent.sent if m["method"] == "session/prompt"]
    assert prompts[0] != prompts[1]


def test_a_stop_in_a_wait_answers_at_once_and_sends_nothing_more():
    async def main(capabilities):
        agent = scripted(fails(*OVERLOADED))
        async with staged(agent) as stage:
            session_id = await ready(stage, capabilities)
            number = stage.client.prompt(session_id)
            await anyio.sleep(1)
            before = anyio.current_time()
            stage.client.notify("session/cancel", {"sessionId": session_id})
            answer = await stage.client.answer(number)
            assert anyio.current_time() == before
            await anyio.sleep(60)
            assert answer["result"] == {"stopReason": "cancelled"}
            assert agent.methods().count("session/prompt") == 1
            assert "session/cancel" not in agent.methods()
            return [r for _, r in stage.client.records()]

    assert play(main, None) == []
    warning, error = play(main, AIR)
    assert warning["id"] == error["id"]
    assert (error["severity"], error["actions"]) == ("error", ["retry"])


@pytest.mark.parametrize("stop", ["cancelled", "end_turn"])
def test_a_stop_in_flight_reads_as_cancelled_whatever_the_agent_calls_it(stop):
    async def main():
        async def until_cancelled(agent, prompt):
            agent.text("s1", "so far")
            await agent.next("session/cancel")
            await anyio.sleep(2)
            agent.reply(prompt, {"stopReason": stop, "usage": {"n": 7}})

        agent = scripted(until_cancelled)
        async with staged(agent) as stage:
            session_id = await ready(stage)
            number = stage.client.prompt(session_id)
            await anyio.sleep(1)
            stage.client.notify("session/cancel", {"sessionId": session_id})
            answer = await stage.client.answer(number)
            assert answer["result"] == {"stopReason": "cancelled", "usage": {"n": 7}}
            assert stage.client.texts() == ["so far"]

    play(main)


def test_a_cancelled_request_stops_its_prompt_and_no_other():
    async def main():
        agent = scripted(fails(*OVERLOADED), says("second"))
        async with staged(agent) as stage:
            session_id = await ready(stage)
            first, second = (stage.client.prompt(session_id) for _ in range(2))
            await anyio.sleep(1)
            stage.client.notify("$/cancel_request", {"requestId": first})
            assert (await stage.client.answer(first))["result"]["stopReason"] == "cancelled"
            assert (await stage.client.answer(second))["result"]["stopReason"] == "end_turn"

    play(main)


def test_a_cancelled_request_that_names_no_id_stops_nothing():
    async def main():
        async with staged(scripted(fails(*OVERLOADED))) as stage:
            session_id = await ready(stage)
            prompt = {"sessionId": session_id, "prompt": [{"type": "text", "text": "hi"}]}
            stage.client.ask("session/prompt", prompt, number=0)
            await anyio.sleep(1)
            stage.client.notify("$/cancel_request", {"requestId": False})
            await anyio.sleep(0.1)
            assert "0" not in stage.client.answers
            stage.client.notify("$/cancel_request", {"requestId": 0})
            assert (await stage.client.answer(0))["result"]["stopReason"] == "cancelled"

    play(main)


def test_an_agent_that_gives_a_sessions_id_to_another_one_keeps_no_prompt_from_its_answer():
    async def main():
        async def script(agent):
            await greet(agent)
            agent.fail(await agent.next("session/prompt"), *OVERLOADED)
            agent.reply(await agent.next("session/new"), {"sessionId": "s1"})
            await says("landed")(agent, await agent.next("session/prompt"))
            await anyio.sleep_forever()

        async with staged(Script(script)) as stage:
            session_id = await ready(stage)
            prompt = stage.client.prompt(session_id)
            await anyio.sleep(1)
            assert await stage.client.new() == session_id
            assert (await stage.client.answer(prompt))["result"] == {"stopReason": "end_turn"}
            assert stage.client.texts() == ["landed"]

    play(main)


def test_a_second_prompt_stands_in_line_instead_of_being_refused():
    async def main():
        async def slow(agent, prompt):
            agent.text("s1", "one")
            await anyio.sleep(30)
            agent.reply(prompt, {"stopReason": "end_turn"})

        agent = scripted(slow, says("two"))
        async with staged(agent) as stage:
            session_id = await ready(stage)
            first, second = (stage.client.prompt(session_id, t) for t in ("a", "b"))
            await anyio.sleep(5)
            assert agent.methods().count("session/prompt") == 1
            await stage.client.answer(second)
            assert list(stage.client.answers)[-2:] == [str(first), str(second)]
            assert stage.client.texts() == ["one", "two"]

    play(main)


def test_a_stop_ends_what_runs_and_what_stands_in_line():
    async def main():
        async def never(agent, prompt):
            await agent.next("session/cancel")
            agent.reply(prompt, {"stopReason": "cancelled"})

        agent = scripted(never)
        async with staged(agent) as stage:
            session_id = await ready(stage)
            numbers = [stage.client.prompt(session_id) for _ in range(3)]
            await anyio.sleep(1)
            stage.client.notify("session/cancel", {"sessionId": session_id})
            for number in numbers:
                answer = await stage.client.answer(number)
                assert answer["result"] == {"stopReason": "cancelled"}
            assert agent.methods().count("session/prompt") == 1

    play(main)


def test_a_spent_allowance_ends_the_turn_with_its_reset_time():
    answer, client = one_prompt(scripted(fails(*LIMIT)), AIR)
    ((carrier, final),) = client.records()
    assert carrier == "response"
    assert final["category"] == "limit"
    assert "resets 3am" in final["title"]
    assert answer["result"]["stopReason"] == "end_turn"


def test_a_refusal_is_an_answer_and_no_failure():
    agent = scripted(says(stop="refusal"))
    answer, client = one_prompt(agent, AIR)
    assert answer["result"] == {"stopReason": "refusal"}
    assert client.records() == []


def test_codex_text_that_is_an_error_is_held_back_and_told_as_one():
    async def codex(agent, prompt):
        agent.text("s1", "We're at capacity, status 503 Service Unavailable\n\n", message_id=None)
        agent.update("s1", sessionUpdate="session_info_update", title="t")
        agent.reply(prompt, {"stopReason": "end_turn"})

    def agents():
        return scripted(codex, says("hello"), name="@agentclientprotocol/codex-acp")

    answer, client = one_prompt(agents())
    assert client.texts() == ["hello"]
    _, client = one_prompt(scripted(codex, codex, name="codex-acp"), settings=ONE_RETRY)
    assert client.texts() == ["We're at capacity, status 503 Service Unavailable\n\n"]
    assert answer["result"]["stopReason"] == "end_turn"
    updates = [m["params"]["update"]["sessionUpdate"] for m in client.frames if "params" in m]
    # The title between the text and the end keeps its place, and is shown once for each attempt.
    assert updates == ["session_info_update", "agent_message_chunk", "session_info_update"]


def test_claudes_error_text_goes_with_its_error():
    async def claude(agent, prompt):
        agent.text("s1", "API Error: 529 Overloaded", message_id="u1")
        agent.fail(prompt, -32603, "Internal error: API Error: 529 Overloaded")

    _, client = one_prompt(scripted(claude, says("hello"), name="claude-agent-acp"))
    assert client.texts() == ["hello"]
    answer, client = one_prompt(
        scripted(claude, claude, name="claude-agent-acp"), settings=ONE_RETRY
    )
    assert client.texts() == ["API Error: 529 Overloaded"]
    assert answer["error"]["message"] == "Internal error: API Error: 529 Overloaded"


def test_what_the_agent_echoes_and_advises_again_is_shown_once():
    def act(then):
        async def run(agent, prompt):
            content = {"type": "text", "text": "hello"}
            agent.update("s1", sessionUpdate="user_message_chunk", content=content)
            agent.text("s1", "Warning: old model\n\n", message_id=None)
            await then(agent, prompt)

        return run

    agent = scripted(act(fails(*OVERLOADED)), act(says("hi")), name="codex-acp")
    _, client = one_prompt(agent)
    updates = [m["params"]["update"] for m in client.frames if "params" in m]
    kinds = [u["sessionUpdate"] for u in updates]
    assert kinds == ["user_message_chunk", "agent_message_chunk", "agent_message_chunk"]


def test_the_model_is_swapped_through_the_agents_own_option_and_witnessed():
    def options(current):
        select = [{"value": "big"}, {"value": "small"}]
        return [{"id": "m", "category": "model", "currentValue": current, "options": select}]

    async def script(agent):
        hello = await agent.next("initialize")
        agent.reply(hello, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
        new = await agent.next("session/new")
        agent.reply(new, {"sessionId": "s1", "configOptions": options("big")})
        for _ in range(2):
            agent.fail(await agent.next("session/prompt"), *OVERLOADED)
        asked = await agent.next("session/set_config_option")
        assert asked["params"] == {"sessionId": "s1", "configId": "m", "value": "small"}
        agent.reply(asked, {"configOptions": options("small")})
        await says("hello")(agent, await agent.next("session/prompt"))
        await anyio.sleep_forever()

    settings = Settings(
        ladders=Ladders(transient_retries=1), recoveries=Recoveries(fallback_models=("small",))
    )
    answer, client = one_prompt(Script(script), AIR, settings)
    assert answer["result"]["stopReason"] == "end_turn"
    assert [r["title"] for _, r in client.records()][-1].endswith(
        "the model small in place of big."
    )


def test_the_log_has_a_line_for_each_decision_and_no_secret():
    secret = "sk-ant-api03-" + "a1B2" * 12
    log = []
    agent = scripted(
        fails(-32603, "Internal error", {"errorKind": "overloaded", "key": secret}), says("hi")
    )
    one_prompt(agent, log=log)
    text = "\n".join(log)
    assert "attempt 1 failed: overloaded" in text
    assert "transient 1 of 3: waiting" in text
    assert "attempt 2 by transient, verbatim" in text
    assert "turn landed" in text
    assert "    frame " in text
    assert secret not in text
