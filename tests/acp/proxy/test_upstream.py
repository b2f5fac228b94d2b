from orchestrator.acp.framing import Frame, encode
from orchestrator.acp.process import Command
from orchestrator.acp.proxy.upstream import Upstream
from orchestrator.settings.model import Watchdogs


def update(session_id):
    message = {"method": "session/update", "params": {"sessionId": session_id, "update": {}}}
    return Frame(encode(message), message)


def relaying():
    """An upstream, and the sessions whose updates went on."""
    passed = []
    upstream = Upstream(Command(("/bin/agent",), "/"), Watchdogs())

    def relay(frame):
        session_id = frame.message["params"]["sessionId"]
        if not upstream.park(frame):
            passed.append(session_id)
        return True

    upstream.relay = relay
    return upstream, passed


def test_updates_of_unknown_sessions_wait_while_one_is_being_opened():
    upstream, passed = relaying()
    with upstream.opening():
        upstream.relay(update("a"))
        assert passed == []
    assert passed == ["a"]


def test_updates_wait_until_the_last_of_two_openings_is_over_whichever_ends_first():
    upstream, passed = relaying()
    first, second = upstream.opening(), upstream.opening()
    first.__enter__()
    second.__enter__()
    upstream.relay(update("a"))
    upstream.relay(update("b"))
    first.__exit__(None, None, None)
    assert passed == []
    second.__exit__(None, None, None)
    assert passed == ["a", "b"]
    assert not upstream.park(update("c"))


def test_updates_of_a_session_that_was_given_up_meanwhile_are_for_nobody():
    upstream, passed = relaying()
    with upstream.opening():
        upstream.relay(update("probe"))
        upstream.detach("probe")
    assert passed == []
