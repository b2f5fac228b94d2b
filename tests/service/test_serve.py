"""Serving on a real loopback socket, on both event loops."""

import asyncio
import socket
from contextlib import suppress
from functools import partial

import anyio
import httpx
import pytest

from orchestrator.metrics import MetricsObserver
from orchestrator.service.app import create_app
from orchestrator.service.serve import Address, CannotListen, Listener, listen, read_address, serve


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9464", Address("127.0.0.1", 9464)),
        (":8080", Address("127.0.0.1", 8080)),
        ("8080", Address("127.0.0.1", 8080)),
        ("localhost", Address("localhost", 9464)),
        ("[::1]:0", Address("::1", 0)),
        ("0.0.0.0:80", Address("0.0.0.0", 80)),
    ],
)
def test_an_address_is_loopback_unless_a_host_is_named(text, address):
    assert read_address(text) == address


@pytest.mark.parametrize(
    "text", ["", ":", "::1", "host:port", "host:70000", "host:-1", "host:1.5", "1" * 5000]
)
def test_an_address_that_is_none_is_refused_with_what_is_allowed(text):
    with pytest.raises(ValueError, match=r"listen: .* is not allowed; HOST:PORT .* is"):
        read_address(text)


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("192.0.2.1", False),
        ("example.org", False),
    ],
)
def test_it_is_known_whether_only_this_machine_can_reach_an_address(host, loopback):
    assert Address(host).loopback is loopback


def test_an_address_that_is_taken_is_one_clear_value():
    first = listen(Address(port=0))
    assert isinstance(first, Listener)
    second = listen(first.address)
    first.close()
    assert isinstance(second, CannotListen)
    assert str(second) == f"cannot listen on {first.address}: address already in use"


def test_an_address_of_another_machine_is_one_clear_value():
    refused = listen(Address("192.0.2.1", 9464))
    assert str(refused) == "cannot listen on 192.0.2.1:9464: cannot assign requested address"


@pytest.mark.parametrize("host", ["ü..example", "a" * 70])
def test_an_address_that_can_be_no_machines_is_one_clear_value(host):
    refused = listen(Address(host, 9464))
    assert str(refused).endswith(":9464: that can't be the name of a machine")


def test_an_address_of_version_six_is_written_in_brackets():
    assert str(Address("::1", 9464)) == "[::1]:9464"


@pytest.fixture
def listener():
    bound = listen(Address(port=0))
    assert isinstance(bound, Listener)
    return bound


@pytest.mark.anyio
async def test_a_scrape_over_a_real_socket_then_a_clean_end(listener):
    app = create_app(MetricsObserver())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, app, listener)
        async with httpx.AsyncClient(base_url=listener.url) as client:
            assert "orchestrator_build_info" in (await client.get("/metrics")).text
        tasks.cancel_scope.cancel()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((listener.address.host, listener.address.port))


@pytest.mark.anyio
async def test_cancelling_with_an_idle_connection_open_does_not_hang_or_warn(listener):
    app = create_app(MetricsObserver())
    async with httpx.AsyncClient(base_url=listener.url) as client:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(serve, app, listener)
                assert (await client.get("/healthz")).status_code == 200
                tasks.cancel_scope.cancel()


@pytest.mark.anyio
async def test_an_answer_under_way_goes_out_although_the_end_was_asked_for(listener):
    asked, go_on = anyio.Event(), anyio.Event()

    async def slow(scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        asked.set()
        await go_on.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"late, but here"})

    answers = []

    async def ask():
        async with httpx.AsyncClient(base_url=listener.url) as client:
            answers.append((await client.get("/")).text)

    async with anyio.create_task_group() as clients:
        clients.start_soon(ask)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(serve, slow, listener)
            await asked.wait()
            tasks.cancel_scope.cancel()
            go_on.set()
    assert answers == ["late, but here"]


@pytest.mark.anyio
async def test_an_answer_that_never_comes_does_not_hold_up_the_end(listener):
    asked = anyio.Event()

    async def endless(scope, receive, send):
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        asked.set()
        await anyio.sleep_forever()

    async def ask():
        async with httpx.AsyncClient(base_url=listener.url) as client:
            with pytest.raises(httpx.HTTPError):
                await client.get("/")

    with anyio.fail_after(20):
        async with anyio.create_task_group() as clients:
            clients.start_soon(ask)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(partial(serve, endless, listener, grace_s=0.05))
                await asked.wait()
                tasks.cancel_scope.cancel()


BROKEN = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: h2c\r\nHTTP2-Settings: AAAA\r\n"
BROKEN += b"Connection: Upgrade, HTTP2-Settings\r\n\r\n"


@pytest.mark.anyio
async def test_a_client_that_breaks_the_protocol_ends_only_its_own_connection(listener, caplog):
    if anyio.get_cancelled_exc_class() is asyncio.CancelledError:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, create_app(MetricsObserver()), listener)
        for _ in range(2):
            async with await anyio.connect_tcp("127.0.0.1", listener.address.port) as client:
                await client.send(BROKEN)
                with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                    while True:
                        await client.receive()
        async with httpx.AsyncClient(base_url=listener.url) as client:
            assert (await client.get("/healthz")).status_code == 200
        tasks.cancel_scope.cancel()
    assert "Traceback" not in caplog.text


@pytest.mark.anyio
async def test_an_app_that_fails_to_start_ends_the_program_around_it(listener):
    async def broken(scope, receive, send):
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no"})

    with pytest.RaisesGroup(Exception, allow_unwrapped=True, flatten_subgroups=True):
        await serve(broken, listener)
