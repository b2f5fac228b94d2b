"""A conversation that is loaded again tells its past incidents under the ids they had live."""

import json
from pathlib import Path

import anyio
import pytest

from orchestrator.acp.proxy.records import IncidentMap, Told
from orchestrator.acp.proxy.store import Kept, Store, default_folder
from tests.acp.proxy.harness import AIR, Script, greet, play, staged
from tests.acp.proxy.test_turns import failed, ready, says, scripted, told
from tests.acp.replay_agent import recordings, replay_wire

LIMIT = "You've hit your limit · resets 10:09pm (UTC)"


def limit(number):
    return {**failed(LIMIT), "id": f"user-{number}:error", "category": "limit", "actions": []}


def history(*parts):
    """An agent that replays these updates and then waits."""

    async def script(agent):
        hello = await agent.next("initialize")
        info = {"name": "claude-agent-acp"}
        capabilities = {"loadSession": True}
        result = {"protocolVersion": 1, "agentCapabilities": capabilities, "agentInfo": info}
        agent.reply(hello, result)
        while True:
            load = await agent.next("session/load")
            for part in parts:
                agent.update(load["params"]["sessionId"], **part)
            agent.reply(load, {})

    return Script(script)


def user(number, text="hello"):
    content = {"type": "text", "text": text}
    return {
        "sessionUpdate": "user_message_chunk",
        "messageId": f"user-{number}",
        "content": content,
    }


def prose(text, message_id="p"):
    content = {"type": "text", "text": text}
    return {"sessionUpdate": "agent_message_chunk", "messageId": message_id, "content": content}


def typed(record):
    meta = {"jetbrains": {"air": {"version": 1, "sessionFailure": record}}}
    return {"sessionUpdate": "session_info_update", "_meta": meta}


async def load(stage, capabilities=None, session_id="s1"):
    """Load a session and give what was replayed."""
    await stage.client.hello(capabilities)
    before = len(stage.client.frames)
    params = {"sessionId": session_id, "cwd": "/project", "mcpServers": []}
    answer = await stage.client.request("session/load", params)
    assert "result" in answer, answer
    place = stage.client.frames.index(answer)
    return [m["params"]["update"] for m in stage.client.frames[before:place]]


def records(updates):
    found = [u.get("_meta", {}).get("jetbrains", {}).get("air", {}) for u in updates]
    return [air["sessionFailure"] for air in found if "sessionFailure" in air]


def live(folder, *limits, capabilities=AIR):
    """Run into limits live; the terminal records that the client got."""

    async def main():
        agent = scripted(*[told(limit(n)) for n in limits], name="claude-agent-acp")
        async with staged(agent, store=Store(folder, "agent")) as stage:
            session_id = await ready(stage, capabilities)
            for _ in limits:
                await stage.client.answer(stage.client.prompt(session_id))
            return [r for carrier, r in stage.client.records() if carrier == "response"]

    return play(main)


def reloaded(folder, *parts, capabilities=AIR):
    async def main():
        async with staged(history(*parts), store=Store(folder, "agent")) as stage:
            return await load(stage, capabilities)

    return play(main)


def test_a_limit_that_was_told_live_is_the_same_entry_after_a_reload(tmp_path):
    (mine,) = live(tmp_path, 1)
    assert mine["id"] != "user-1:error"
    updates = reloaded(tmp_path, user(1), typed(limit(1)))
    (again,) = records(updates)
    assert (again["id"], again["revision"]) == (mine["id"], mine["revision"])
    assert again["title"] == LIMIT
    assert updates[0] == user(1)


def test_two_limits_stay_two_entries(tmp_path):
    mine = live(tmp_path, 1, 2)
    updates = reloaded(tmp_path, user(1), typed(limit(1)), user(2), typed(limit(2)))
    assert [r["id"] for r in records(updates)] == [r["id"] for r in mine]


def test_a_second_reload_tells_the_same_again(tmp_path):
    live(tmp_path, 1)
    first = reloaded(tmp_path, user(1), typed(limit(1)))
    assert reloaded(tmp_path, user(1), typed(limit(1))) == first


def test_a_limit_nobody_told_live_passes_unchanged_at_its_place(tmp_path):
    parts = [user(1), typed(limit(1)), prose("later")]
    assert reloaded(tmp_path, *parts) == parts


def test_a_client_without_records_gets_what_the_agent_replays(tmp_path):
    parts = [user(1), prose(LIMIT), prose("later", "q")]
    live(tmp_path, 1, capabilities=None)
    assert reloaded(tmp_path, *parts, capabilities=None) == parts


def test_a_limit_told_live_without_records_comes_back_as_one_record(tmp_path):
    live(tmp_path, 1, capabilities=None)
    (record,) = records(reloaded(tmp_path, user(1), typed(limit(1))))
    assert record == limit(1)


def test_a_limit_replayed_as_text_becomes_a_record_for_a_client_that_reads_them(tmp_path):
    updates = reloaded(tmp_path, user(1), prose(LIMIT), user(2), prose(LIMIT), prose("fine", "q"))
    one, two = records(updates)
    assert (one["id"], two["id"]) == ("user-1:error", "user-2:error")
    assert (one["title"], one["category"], one["severity"]) == (LIMIT, "limit", "error")
    assert updates[-1] == prose("fine", "q")


def test_a_limit_told_live_and_replayed_as_text_is_one_entry(tmp_path):
    async def text_and_error(agent, prompt):
        agent.text("s1", LIMIT, message_id="u")
        agent.fail(prompt, -32603, f"Internal error: {LIMIT}", {"errorKind": "rate_limit"})

    async def main():
        agent = scripted(text_and_error, text_and_error, name="claude-agent-acp")
        async with staged(agent, store=Store(tmp_path, "agent")) as stage:
            session_id = await ready(stage, AIR)
            for _ in range(2):
                await stage.client.answer(stage.client.prompt(session_id))
            return [r for _, r in stage.client.records()]

    mine = play(main)
    updates = reloaded(tmp_path, prose(LIMIT, "a"), prose(LIMIT, "b"))
    assert [r["id"] for r in records(updates)] == [r["id"] for r in mine]
    assert len({r["id"] for r in mine}) == 2


def test_a_model_that_writes_about_limits_is_never_taken_for_one(tmp_path):
    parts = [user(1), prose("Once you've hit your limit, wait.")]
    assert reloaded(tmp_path, *parts) == parts


@pytest.mark.parametrize("capable", [True, False])
def test_the_recorded_reload_of_a_real_agent_is_one_entry(tmp_path, capable):
    async def main():
        capabilities = AIR if capable else None
        name = "usage_limit_oauth_replay" + (".air" if capable else "")
        wires = replay_wire("claude", name), replay_wire("claude", f"{name}.2")
        new = next(
            f["result"]["sessionId"]
            for _, way, f in recordings("claude")[name]
            if way == "in" and f.get("id") == 1
        )
        async with staged(wires[0], store=Store(tmp_path, "agent")) as stage:
            session_id = await ready(stage, capabilities)
            assert session_id == new
            await stage.client.answer(stage.client.prompt(session_id))
            first = [r for c, r in stage.client.records() if c == "response"]
        async with staged(wires[1], store=Store(tmp_path, "agent")) as stage:
            return first, await load(stage, capabilities, session_id)

    first, updates = play(main)
    if capable:
        (again,) = records(updates)
        assert (again["id"], again["revision"]) == (first[0]["id"], first[0]["revision"])
    else:
        assert [u["content"]["text"] for u in updates if "content" in u] == ["hello", LIMIT]


def test_a_session_that_moved_is_found_after_a_restart_of_the_proxy(tmp_path):
    async def main():
        async def lost(agent):
            await greet(agent)
            agent.fail(await agent.next("session/prompt"), -32602, "Session not found")
            agent.fail(await agent.next("session/load"), -32602, "Session not found")
            agent.reply(await agent.next("session/new"), {"sessionId": "s2"})
            prompt = await agent.next("session/prompt")
            agent.text("s2", "hello")
            agent.reply(prompt, {"stopReason": "end_turn"})
            await anyio.sleep_forever()

        async with staged(Script(lost), store=Store(tmp_path, "agent")) as stage:
            session_id = await ready(stage)
            await stage.client.answer(stage.client.prompt(session_id))
        again = history(user(1), prose("hello"))
        async with staged(again, store=Store(tmp_path, "agent")) as stage:
            updates = await load(stage, session_id=session_id)
            assert again.sent[1]["params"]["sessionId"] == "s2"
            assert "s2" not in str(stage.client.frames)
            return updates

    assert play(main) == [user(1), prose("hello")]


def test_a_loaded_session_knows_its_history_when_it_has_to_start_anew(tmp_path):
    async def main():
        async def script(agent):
            hello = await agent.next("initialize")
            agent.reply(hello, {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})
            asked = await agent.next("session/load")
            for part in (user(1, "Capital of France?"), prose("Paris.")):
                agent.update("s1", **part)
            agent.reply(asked, {})
            agent.fail(await agent.next("session/prompt"), -32602, "Session not found")
            # This very process loaded it just now: to load it again would help nobody.
            agent.reply(await agent.next("session/new"), {"sessionId": "s2"})
            prompt = await agent.next("session/prompt")
            assert "Paris." in prompt["params"]["prompt"][0]["text"]
            agent.text("s2", "hello")
            agent.reply(prompt, {"stopReason": "end_turn"})
            await anyio.sleep_forever()

        async with staged(Script(script)) as stage:
            await load(stage)
            answer = await stage.client.answer(stage.client.prompt("s1"))
            assert answer["result"] == {"stopReason": "end_turn"}

    play(main)


def test_a_load_that_fails_leaves_nothing_behind():
    async def main():
        async def script(agent):
            hello = await agent.next("initialize")
            agent.reply(hello, {"protocolVersion": 1})
            agent.fail(await agent.next("session/load"), -32002, "Resource not found")
            await anyio.sleep_forever()

        async with staged(Script(script)) as stage:
            await stage.client.hello()
            params = {"sessionId": "s9", "cwd": "/x", "mcpServers": []}
            answer = await stage.client.request("session/load", params)
            assert answer["error"] == {"code": -32002, "message": "Resource not found"}
            assert stage.proxy.sessions.known == {}

    play(main)


def test_a_prompt_in_a_session_that_could_not_be_loaded_keeps_no_other_from_being_stopped():
    async def main():
        async def script(agent):
            hello = await agent.next("initialize")
            agent.reply(hello, {"protocolVersion": 1})
            load = await agent.next("session/load")
            await anyio.sleep(1)  # the prompt comes meanwhile
            agent.fail(load, -32002, "Resource not found")
            agent.reply(await agent.next("x/after"), {"is": "answered"})
            await anyio.sleep_forever()

        async with staged(Script(script)) as stage:
            await stage.client.hello()
            load = stage.client.ask("session/load", {"sessionId": "s9", "cwd": "/x"})
            stage.client.prompt("s9")
            assert "error" in await stage.client.answer(load)
            stage.client.notify("$/cancel_request", {"requestId": "nobody's"})
            assert (await stage.client.request("x/after"))["result"] == {"is": "answered"}

    play(main)


def test_the_store_keeps_ids_and_digests_and_no_text(tmp_path):
    live(tmp_path, 1)
    (path,) = tmp_path.glob("*/*")
    stored = path.read_text()
    assert "limit" not in stored
    assert "user-1:error" in stored
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"session":"other"}', "\x00", '{"session":"s1","incidents":7}']
)
def test_a_damaged_file_costs_the_ids_and_nothing_else(tmp_path, damage):
    store = Store(tmp_path, "agent")
    kept = store.load("s1")
    kept.incidents.learn({"a"}, "text", Told("mine", 2))
    assert store.save("s1", kept)
    (path,) = tmp_path.glob("*/*")
    path.write_text(damage)
    assert store.load("s1").incidents.of_id("a") is None


def test_odd_pairs_in_a_file_are_left_out():
    stored = {"ids": {"a": ["x", 1], "b": ["x", 0], "c": [1, 1], "d": "x"}, "texts": {"t": 3}}
    incidents = IncidentMap.from_json(stored)
    assert incidents.of_id("a") == Told("x", 1)
    assert [incidents.of_id(name) for name in "bcd"] == [None] * 3
    assert IncidentMap.from_json(json.loads(json.dumps(incidents.as_json()))).of_id("a")


def test_a_folder_that_cannot_be_written_is_said_and_costs_nothing_else(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    log = []

    async def main():
        agent = scripted(told(limit(1)), says("hello"), typed=True)
        async with staged(agent, store=Store(blocked, "agent"), log=log) as stage:
            session_id = await ready(stage, AIR)
            for _ in range(2):
                await stage.client.answer(stage.client.prompt(session_id))

    play(main)
    assert sum("state folder can't be written" in line for line in log) == 1


def test_state_goes_where_xdg_says(tmp_path):
    assert default_folder({"XDG_STATE_HOME": str(tmp_path)}).is_relative_to(tmp_path)
    assert default_folder({"XDG_STATE_HOME": "relative"}).parts[-4:-2] == (".local", "state")


def test_a_user_without_a_home_is_served_and_nothing_is_kept(monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert default_folder({}) is None
    assert Store(None, "agent").save("s1", Kept())


def test_what_nobody_used_for_long_is_forgotten(tmp_path):
    import os

    store = Store(tmp_path, "agent")
    kept = store.load("old")
    kept.native = "s2"
    store.save("old", kept)
    store.save("new", kept)
    old = store._path("old")
    os.utime(old, (0, 0))
    store.tidy()
    assert not old.exists()
    assert store.load("new").native == "s2"


def test_what_is_not_ours_in_the_state_folder_is_left_alone(tmp_path):
    import os

    names = ["photos/holiday.jpg", f"{'a' * 32}/notes.json", f"photos/{'b' * 32}.json"]
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("kept")
        os.utime(path, (0, 0))
    Store(tmp_path, "agent").tidy()
    assert [(tmp_path / name).read_text() for name in names] == ["kept"] * 3


def test_many_incidents_are_kept_up_to_a_bound():
    incidents = IncidentMap()
    for number in range(2000):
        incidents.learn({f"a{number}"}, f"text {number}", Told(f"t{number}", 1))
    assert incidents.of_id("a1999") == Told("t1999", 1)
    assert incidents.of_id("a0") is None
    assert len(json.dumps(incidents.as_json())) < 100_000
