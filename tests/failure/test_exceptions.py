"""Live exceptions: types and errno decide, text only where there is neither."""

from __future__ import annotations

import asyncio
import concurrent.futures
import errno
import http.client
import socket
import ssl
import sys
from functools import partial

import aiohttp
import anyio
import httpx
import pytest

from orchestrator.failure.classify import classify
from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.verdict import Cause, Context, Phase


def read(error, **context):
    return classify(RawFailure.exception(error), context=Context(**context))


def chained(outer, inner):
    outer.__cause__ = inner
    return outer


LOST = [
    (ConnectionRefusedError(errno.ECONNREFUSED, "x"), Cause.REFUSED),
    (ConnectionResetError(errno.ECONNRESET, "x"), Cause.RESET),
    (ConnectionAbortedError(errno.ECONNABORTED, "x"), Cause.RESET),
    (OSError(errno.ETIMEDOUT, "x"), Cause.TIMEOUT),
    (OSError(errno.EHOSTUNREACH, "x"), Cause.UNREACHABLE),
    (OSError(errno.ENETUNREACH, "x"), Cause.UNREACHABLE),
    (socket.gaierror(-2, "Name or service not known"), Cause.DNS),
    (TimeoutError(), Cause.TIMEOUT),
    (httpx.ConnectTimeout("x"), Cause.TIMEOUT),
    (httpx.ReadTimeout("x"), Cause.TIMEOUT),
    (httpx.PoolTimeout("x"), Cause.TIMEOUT),
    (http.client.BadStatusLine("\x00"), Cause.STREAM_CUT),
    (httpx.RemoteProtocolError("peer closed connection"), Cause.STREAM_CUT),
    (httpx.ReadError("x"), Cause.CLOSED),
    (
        chained(httpx.ConnectError("x"), ConnectionRefusedError(errno.ECONNREFUSED, "x")),
        Cause.REFUSED,
    ),
    (chained(httpx.ConnectError("x"), socket.gaierror(-3, "x")), Cause.DNS),
    (aiohttp.ServerDisconnectedError(), Cause.CLOSED),
    (aiohttp.ClientPayloadError("x"), Cause.STREAM_CUT),
    (aiohttp.ServerTimeoutError("x"), Cause.TIMEOUT),
]


@pytest.mark.parametrize(("error", "cause"), LOST, ids=lambda x: type(x).__name__)
def test_a_lost_connection_says_how(error, cause):
    verdict = read(error)
    assert verdict.kind is Kind.CONNECTION_LOST
    assert verdict.network_path
    assert verdict.cause in {cause, None} if cause is Cause.CLOSED else verdict.cause is cause


def test_errno_beats_the_text():
    error = OSError(errno.ECONNRESET, "connection refused by peer, says the text")
    assert read(error).cause is Cause.RESET


def test_errno_is_read_through_a_chain_and_a_group():
    group = ExceptionGroup(
        "many", [ValueError("x"), chained(RuntimeError("y"), OSError(errno.ECONNREFUSED, "z"))]
    )
    assert read(group).cause is Cause.REFUSED


@pytest.mark.parametrize(
    ("number", "cause"),
    [
        (errno.ENOSPC, Cause.DISK),
        (errno.EMFILE, Cause.DESCRIPTORS),
        (errno.ENFILE, Cause.DESCRIPTORS),
        (errno.ENOMEM, Cause.MEMORY),
    ],
)
def test_a_host_without_resources_is_no_network(number, cause):
    verdict = read(OSError(number, "x"))
    assert (verdict.kind, verdict.cause) == (Kind.HOST_EXHAUSTED, cause)


@pytest.mark.parametrize(
    "error",
    [
        BrokenPipeError(errno.EPIPE, "x"),
        anyio.BrokenResourceError(),
        anyio.ClosedResourceError(),
        anyio.EndOfStream(),
    ],
)
def test_our_own_pipe_to_the_agent_breaking_is_its_death(error):
    verdict = read(error)
    assert (verdict.kind, verdict.cause) == (Kind.AGENT_DIED, Cause.PIPE)


def test_a_broken_pipe_below_an_http_client_is_the_network():
    error = chained(httpx.WriteError("x"), BrokenPipeError(errno.EPIPE, "x"))
    assert read(error).kind is Kind.CONNECTION_LOST


async def broken_by_the_other_end():
    """What anyio raises where the other end of a TCP connection has gone, in each of the ways."""

    async def hang_up(stream):
        async with stream:
            await stream.receive(1)

    errors = []
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, hang_up)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        stream = await anyio.connect_tcp("127.0.0.1", port)
        large = partial(stream.send, b"x" * 9_000_000)
        for use in (large, large, stream.receive, stream.aclose, stream.receive):
            try:
                await use()
            except Exception as error:  # noqa: BLE001 - this is what it is about
                errors.append(error)
        tasks.cancel_scope.cancel()
    return errors


async def test_a_stream_over_a_socket_that_breaks_is_the_network(anyio_backend):
    errors = await broken_by_the_other_end()
    assert len(errors) >= 2
    assert {read(error).kind for error in errors} == {Kind.CONNECTION_LOST}


async def test_an_agents_pipe_that_breaks_is_its_death(anyio_backend):
    async with await anyio.open_process([sys.executable, "-c", ""]) as process:
        await process.wait()
        with pytest.raises(anyio.EndOfStream) as caught:
            await process.stdout.receive()
    assert read(caught.value).kind is Kind.AGENT_DIED


def test_an_answer_that_is_no_http_is_a_broken_connection():
    async def no_http(reader, writer):
        await reader.read(1)
        writer.write(b"SSH-2.0-OpenSSH_9\r\n\r\n")
        writer.close()

    async def ask():
        server = await asyncio.start_server(no_http, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError) as caught:
                await session.get(f"http://127.0.0.1:{port}/")
        return caught.value

    verdict = read(asyncio.run(ask()))
    assert (verdict.kind, verdict.cause) == (Kind.CONNECTION_LOST, Cause.STREAM_CUT)


def test_an_exception_of_one_word_keeps_it():
    assert read(PermissionError("nope")).title.endswith("(nope)")
    assert "(x)" not in read(ValueError("x")).title


def test_a_missing_command_is_one_only_while_starting():
    error = FileNotFoundError(errno.ENOENT, "No such file or directory", "npx")
    assert read(error, phase=Phase.START).kind is Kind.AGENT_NOT_FOUND
    assert read(error, phase=Phase.START).title.startswith("The command npx was not found.")
    assert read(error).kind is not Kind.AGENT_NOT_FOUND or "npx" in read(error).title
    assert (
        read(PermissionError(errno.EACCES, "x", "/a/b"), phase=Phase.START).cause
        is Cause.PERMISSION
    )


def test_a_rejected_certificate_is_not_retried():
    error = ssl.SSLCertVerificationError(1, "certificate verify failed: self-signed certificate")
    verdict = read(error)
    assert verdict.kind is Kind.TLS_FAILURE
    assert not verdict.transient
    assert read(chained(httpx.ConnectError("x"), error)).kind is Kind.TLS_FAILURE


def test_a_proxy_is_named_as_one():
    assert read(httpx.ProxyError("403 Forbidden")).kind is Kind.PROXY_REFUSED


def test_a_cancelled_task_is_no_failure():
    import asyncio

    assert read(asyncio.CancelledError()).kind is Kind.CANCELLED
    assert read(KeyboardInterrupt()).kind is Kind.CANCELLED


def test_a_class_name_lies_and_its_sentence_decides():
    class RateLimitError(Exception):
        pass

    assert read(RateLimitError("insufficient_quota")).kind is Kind.BILLING
    assert read(RateLimitError("x")).kind is Kind.RATE_LIMITED


def test_the_answer_that_an_http_clients_exception_carries_is_read():
    request = httpx.Request("POST", "https://api.example.com/v1")
    response = httpx.Response(429, headers={"Retry-After": "7"}, request=request)
    with pytest.raises(httpx.HTTPStatusError) as caught:
        response.raise_for_status()
    verdict = read(caught.value)
    assert (verdict.kind, verdict.retry_after_s) == (Kind.RATE_LIMITED, 7)
    answered = aiohttp.ClientResponseError(None, (), status=503, headers={"Retry-After": "3"})
    assert (read(answered).kind, read(answered).retry_after_s) == (Kind.SERVER_ERROR, 3)


def test_the_body_of_a_providers_own_exception_goes_before_its_status():
    class APIStatusError(Exception):
        status_code = 429
        body = {"error": {"type": "insufficient_quota", "message": "x"}}  # noqa: RUF012

    assert read(APIStatusError("Error code: 429")).kind is Kind.BILLING


def test_an_exception_whose_fields_raise_is_still_read():
    class SpitefulError(Exception):
        @property
        def errno(self):
            raise RuntimeError("no")

        status_code = response = reason = os_error = errno

    assert read(SpitefulError("rate limit exceeded")).kind is Kind.RATE_LIMITED


def test_an_exception_whose_text_raises_still_has_its_type():
    class ReadTimeout(Exception):  # noqa: N818 - the name of a library's type
        def __str__(self):
            raise RuntimeError("hostile")

    assert read(ReadTimeout()).kind is Kind.CONNECTION_LOST


def test_the_host_of_a_failed_connection_stands_in_the_title():
    raw = RawFailure.exception(
        ConnectionRefusedError(errno.ECONNREFUSED, "x"), host="api.example.com"
    )
    assert classify(raw).title.startswith("Connection refused by api.example.com.")


# A timeout cancels what it waits for, and is raised from that.


def raised_behind(first, then):
    then.__context__ = first
    return then


async def _timed_out_by(limit):
    with pytest.raises(TimeoutError) as caught:
        await limit()
    return caught.value


async def _wait_for():
    await asyncio.wait_for(asyncio.sleep(60), 0)


async def _timeout():
    async with asyncio.timeout(0):
        await asyncio.sleep(60)


async def _fail_after():
    with anyio.fail_after(0):
        await anyio.sleep(60)


@pytest.mark.parametrize("limit", [_wait_for, _timeout, _fail_after])
def test_a_timeout_of_the_event_loop_is_a_timeout_and_no_cancellation(limit):
    error = asyncio.run(_timed_out_by(limit))
    verdict = classify(RawFailure.exception(error))
    assert (verdict.kind, verdict.cause) == (Kind.CONNECTION_LOST, Cause.TIMEOUT)


@pytest.mark.parametrize("cancelled", [asyncio.CancelledError, concurrent.futures.CancelledError])
def test_a_failure_behind_which_something_was_cancelled_is_still_a_failure(cancelled):
    verdict = classify(RawFailure.exception(raised_behind(cancelled(), ConnectionResetError())))
    assert (verdict.kind, verdict.cause) == (Kind.CONNECTION_LOST, Cause.RESET)


def test_what_stands_behind_a_cancellation_is_still_read():
    inner = raised_behind(ConnectionRefusedError(errno.ECONNREFUSED, "refused"), KeyError("x"))
    error = ValueError("no answer")
    error.__context__ = asyncio.CancelledError()
    error.__context__.__context__ = inner
    assert classify(RawFailure.exception(error)).cause is Cause.REFUSED


def test_a_cancellation_that_comes_out_by_itself_is_one():
    for error in (asyncio.CancelledError(), BaseExceptionGroup("", [asyncio.CancelledError()])):
        assert classify(RawFailure.exception(error)).kind is Kind.CANCELLED


def test_a_ring_of_cancellations_is_read_to_an_end():
    error, ring = ValueError("x"), asyncio.CancelledError()
    error.__context__, ring.__context__ = ring, asyncio.CancelledError()
    ring.__context__.__context__ = ring
    assert classify(RawFailure.exception(error)).kind is Kind.UNKNOWN


def test_what_a_library_says_has_nothing_to_do_with_its_error_is_not_read():
    async def end_of_stream():
        send, receive = anyio.create_memory_object_stream()
        send.close()
        with receive, pytest.raises(anyio.EndOfStream) as caught:
            await receive.receive()
        return caught.value

    error = asyncio.run(end_of_stream())
    error.__context__ = IndexError("pop from an empty deque")
    error.__suppress_context__ = True
    assert "deque" not in classify(RawFailure.exception(error)).title
