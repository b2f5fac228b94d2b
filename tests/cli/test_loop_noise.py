"""What reaches only the event loop, in our own processes."""

import asyncio
import logging

import trio

from orchestrator.cli.loop_noise import LoopNoise
from orchestrator.turn.effects import CancelWait, Dispatch, Payload, Send


def handled(*contexts, caplog, noise=None):
    noise = noise or LoopNoise()
    with caplog.at_level(logging.WARNING, "orchestrator"):
        for context in contexts:
            noise.handle(None, context)
    return [(record.levelname, record.getMessage()) for record in caplog.records]


def reset(where="Exception in callback _SelectorTransport._call_connection_lost()"):
    return {"exception": ConnectionResetError(104, "reset by peer"), "message": where}


def test_repeated_resets_while_closing_are_one_warning(caplog):
    noise = LoopNoise()
    told = handled(reset(), reset(), reset(), caplog=caplog, noise=noise)
    assert [level for level, _ in told] == ["WARNING"]
    assert noise.resets == 3


def test_a_reset_anywhere_else_stays_an_error(caplog):
    ((level, text),) = handled(reset("Task exception was never retrieved"), caplog=caplog)
    assert level == "ERROR"
    assert "ConnectionResetError" in text


def test_clients_that_break_the_protocol_are_one_warning(caplog):
    old = {
        "exception": ValueError("frame"),
        "message": "Unhandled exception in client_connected_cb",
    }
    told = handled(old, old, caplog=caplog)
    assert told == [
        ("WARNING", "a client of the scrape endpoint broke its protocol; more are not told")
    ]


def test_a_client_that_is_still_there_at_the_end_is_no_news(caplog):
    where = "Exception in callback StreamReaderProtocol.connection_made.<locals>.callback()"
    left = {"exception": asyncio.CancelledError(), "message": where}
    assert handled(left, caplog=caplog) == []


def test_an_error_has_the_last_effects_beside_it_and_no_secret(caplog):
    noise = LoopNoise()
    noise(None, None, (Dispatch(Payload.VERBATIM, 1), Send(1)))
    noise(None, None, (CancelWait(),))
    secret = "sk-ant-api03-" + "a1B2c3D4" * 8
    context = {"exception": RuntimeError(f"bad key {secret}")}
    ((_, text),) = handled(context, caplog=caplog, noise=noise)
    assert text.endswith("last effects: Dispatch, Send, CancelWait")
    assert secret not in text


def test_a_context_without_an_exception_is_told_by_its_message(caplog):
    ((level, text),) = handled({"message": "Task was destroyed"}, caplog=caplog)
    assert (level, text) == (
        "ERROR",
        "the event loop caught Task was destroyed; last effects: none",
    )


def test_it_handles_what_reaches_the_running_loop(caplog):
    async def main():
        LoopNoise().install()
        loop = asyncio.get_running_loop()
        loop.call_soon(lambda: 1 / 0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    with caplog.at_level(logging.WARNING, "orchestrator"):
        asyncio.run(main())
    assert "ZeroDivisionError" in caplog.text


def test_on_trio_there_is_nothing_to_handle():
    async def main():
        LoopNoise().install()

    trio.run(main)
