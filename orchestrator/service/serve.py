"""Serve an ASGI app inside a program that already runs, on asyncio or trio.

Binding comes first and is its own step: what can't be bound is one value with one clear sentence,
before anything else starts.  A cancelled `serve` lets answers that are under way go out.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
from attrs import field, frozen
from hypercorn.config import Config
from hypercorn.utils import LifespanFailureError

logger = logging.getLogger("orchestrator")

LOOPBACK: Final = "127.0.0.1"
PORT: Final = 9464
"""The port Prometheus exporters of applications commonly use."""
_HIGHEST_PORT: Final = 65_535
GRACE_S: Final = 2.0
"""How long answers under way may take after the end was asked for."""
_BACKLOG: Final = 100


@frozen
class Address:
    """Where to listen."""

    host: str = LOOPBACK
    port: int = PORT
    """0 takes any free port."""

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@frozen
class CannotListen:
    """Why an address can't be served."""

    address: Address
    reason: str

    def __str__(self) -> str:
        return f"cannot listen on {self.address}: {self.reason}"


@frozen
class Listener:
    """A bound socket, not yet served."""

    address: Address
    """With the port that was really taken."""
    socket: socket.socket = field(repr=False)

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def close(self) -> None:
        self.socket.close()


def read_address(text: str) -> Address:
    """Read `HOST:PORT`, `[V6]:PORT`, `:PORT`, `PORT` or `HOST`; loopback unless a host is named.

    Raises ValueError that says what is allowed.
    """
    host, colon, port = text.strip().rpartition(":")
    if not colon and not port.isdecimal():
        host, port = port, str(PORT)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host or not text.strip():
        host, port = "", ""
    is_number = port.isascii() and port.isdecimal() and len(port) <= len(str(_HIGHEST_PORT))
    if not is_number or int(port) > _HIGHEST_PORT:
        raise ValueError(
            f"listen: {text!r} is not allowed; HOST:PORT with a port from 0 to {_HIGHEST_PORT} is, "
            f"such as {LOOPBACK}:{PORT}"
        )
    return Address(host or LOOPBACK, int(port))


def listen(address: Address) -> Listener | CannotListen:
    """Bind and listen, so that the first client can connect before the app is served."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        address.host.encode("idna")  # else the socket would be left open behind an odd error
        bound = socket.create_server((address.host, address.port), family=family, backlog=_BACKLOG)
    except OSError as error:
        return CannotListen(address, _reason(error))
    except UnicodeError:
        return CannotListen(address, "that can't be the name of a machine")
    return Listener(Address(address.host, bound.getsockname()[1]), bound)


def _reason(error: OSError) -> str:
    """The system's own words, without the address that Python repeats in them."""
    return (error.strerror or str(error)).split(" (while", 1)[0].lower()


async def serve(app: Any, listener: Listener, *, grace_s: float = GRACE_S) -> None:
    """Serve until cancelled; then stop taking connections and let answers under way go out.

    Takes the listener over and closes it.  An answer that takes longer than `grace_s` is cut.
    """
    stop = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_run, app, listener, stop, grace_s)
        try:
            await anyio.sleep_forever()
        finally:
            stop.set()


async def _run(app: Any, listener: Listener, stop: anyio.Event, grace_s: float) -> None:
    config = Config()
    config.graceful_timeout = grace_s
    # Access and error lines are the program's business, not its standard output's.
    config.accesslog = config.errorlog = None
    config.include_server_header = False

    async def stopped() -> None:
        await stop.wait()
        # From Python 3.12 on the server waits for open streams without a limit of its own.
        scope.deadline = anyio.current_time() + 2 * grace_s

    # Not cancelled from outside: the server ends by itself once `stopped` returns.
    with anyio.CancelScope(shield=True) as scope, listener.socket as bound:
        while not stop.is_set():
            config.bind = [f"fd://{bound.dup().detach()}"]
            try:
                await _worker()(app, config, shutdown_trigger=stopped, mode="asgi")
            except asyncio.InvalidStateError:
                # The server asks a task for its error that our deadline has just cancelled.
                if not scope.cancel_called:
                    raise
            except ExceptionGroup as group:
                # On trio, one client that breaks HTTP/2 ends the whole server, and would end the
                # program around it.
                if group.subgroup((LifespanFailureError, OSError)) is not None:
                    raise
                logger.warning("a client broke the protocol: serving again")


def _worker() -> Callable[..., Awaitable[None]]:
    """Return hypercorn's server for the event loop that runs."""
    if anyio.get_cancelled_exc_class() is asyncio.CancelledError:
        from hypercorn.asyncio import serve as on_asyncio  # noqa: PLC0415  # only the loop in use

        return on_asyncio
    from hypercorn.trio import serve as on_trio  # noqa: PLC0415  # only the loop in use

    return on_trio
