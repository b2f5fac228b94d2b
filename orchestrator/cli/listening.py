"""`--listen HOST:PORT`: the address is bound before anything else starts."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from orchestrator.cli.codes import Halt

if TYPE_CHECKING:
    from orchestrator.service.serve import Listener


def listening(address: str, option: str = "--listen") -> Listener:
    """Bind what the user wrote.  Raises Halt with one sentence when that can't be."""
    try:
        from orchestrator.service.serve import (  # noqa: PLC0415 - an extra
            CannotListen,
            listen,
            read_address,
        )
    except ImportError:
        raise Halt(
            "missing_extra",
            "serving needs packages that are not installed",
            hint="pip install 'turn-orchestrator[service]'",
        ) from None
    try:
        where = read_address(address)
    except ValueError as error:
        raise Halt("usage", str(error).removeprefix("listen: "), field=option) from None
    bound = listen(where)
    if isinstance(bound, CannotListen):
        raise Halt(
            "cannot_bind", str(bound), field=option, hint="choose another port, or 0 for any"
        )
    return bound


async def told_to_end() -> None:
    """Serve until Ctrl-C or SIGTERM: where that is how a command ends, it ends well."""
    import anyio  # noqa: PLC0415 - not for commands without an event loop

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            return
