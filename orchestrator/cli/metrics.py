"""`orchestrator metrics`: what can be scraped, and a process to scrape for trying things out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cyclopts import App
from rich.text import Text

from orchestrator.cli.codes import Exit, Halt
from orchestrator.cli.listening import listening, told_to_end
from orchestrator.cli.terminal import Output, columns
from orchestrator.metrics.series import SERIES, Labels, Series
from orchestrator.settings.model import Metrics

if TYPE_CHECKING:
    from orchestrator.service.demo import Traffic
    from orchestrator.service.serve import Listener

app = App(
    name="metrics",
    help="List what can be scraped, and try it out.",
    help_format="plaintext",
    group_commands="Commands",
)

_PLAIN: Final = Output()
_HEAD: Final = ("name", "type", "labels", "help")
_TICK_S: Final = 0.1
_FASTEST: Final = 10_000.0
_SEEN: Final = {
    Labels.PROVIDER: "as settings.metrics.providers lists them, else other",
    Labels.CONFIGURED: "one for each sink and observer",
}


@app.command(name="list")
def list_(*, output: Output = _PLAIN) -> int:
    """Print every series with its type, labels and meaning, straight from the code."""
    if output.json:
        output.data([_as_json(series) for series in SERIES])
        return Exit.OK
    rows: list[list[Text | str]] = [[Text(word, "bold") for word in _HEAD]]
    for row in SERIES:
        labels = ", ".join(row.labels) or "-"
        rows.append([Text(row.full_name, "cyan"), str(row.type), labels, row.help])
    columns(output.stdout, rows)
    return Exit.OK


def _as_json(series: Series) -> dict[str, object]:
    return {
        "name": series.full_name,
        "type": series.type,
        "help": series.help,
        "labels": {name: _values(values) for name, values in series.labels.items()},
        "buckets": list(series.buckets),
    }


def _values(values: object) -> object:
    if values is Labels.PROVIDER:
        return [*Metrics().providers, "other"]
    return _SEEN[values] if isinstance(values, Labels) else list(values)  # type: ignore[call-overload]


@app.command
def demo(
    *,
    listen: str = "127.0.0.1:9464",
    speed: float = 60.0,
    seed: int = 1,
    outage: bool = False,
    output: Output = _PLAIN,
) -> int:
    """Serve the metrics of scripted turns that meet every failure, until Ctrl-C.

    The turns run through the same state machine that runs in production, in accelerated time, so
    that every series moves: for trying a dashboard, an alert or a scrape configuration.

    Parameters
    ----------
    listen
        Where to serve, as HOST:PORT; only this machine can reach a loopback address.
        Default: 127.0.0.1:9464.
    speed
        How much faster than real time the turns go by, from 1 to 10,000.  Default: 60.
    seed
        Draw attempts and jitter with this seed.  Default: 1.
    outage
        Let most turns meet a provider and agents that are down, so that alerts fire.
    """
    if not 1.0 <= speed <= _FASTEST:
        allowed = f"a number from 1 to {_FASTEST:g}"
        raise Halt("usage", f"{speed:g} is not allowed; {allowed} is", field="--speed")
    listener = listening(listen)
    output.note(f"serving {listener.url}/metrics, {speed:g} times real time; Ctrl-C ends it")
    if not listener.address.loopback:
        output.warn("other machines can reach this address, and nobody is asked who they are")
    import anyio  # noqa: PLC0415 - `metrics list` does without an event loop

    anyio.run(_serve, listener, speed, seed, outage)
    return Exit.OK


async def _serve(listener: Listener, speed: float, seed: int, outage: bool) -> None:  # noqa: FBT001 - anyio.run passes by position
    import anyio  # noqa: PLC0415 - see `demo`

    from orchestrator.cli.loop_noise import LoopNoise  # noqa: PLC0415 - see `demo`
    from orchestrator.metrics import MetricsObserver  # noqa: PLC0415 - see `demo`
    from orchestrator.service.app import LOOPBACK_HOSTS, create_app  # noqa: PLC0415 - see `demo`
    from orchestrator.service.demo import Traffic  # noqa: PLC0415 - see `demo`
    from orchestrator.service.incidents import Incidents  # noqa: PLC0415 - see `demo`
    from orchestrator.service.serve import serve  # noqa: PLC0415 - see `demo`

    LoopNoise().install()
    observer, incidents = MetricsObserver(), Incidents()
    traffic = Traffic(observer, incidents, seed=seed, outage=outage)
    hosts = LOOPBACK_HOSTS if listener.address.loopback else None
    application = create_app(observer, incidents=incidents, hosts=hosts)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serve, application, listener)
        tasks.start_soon(_flow, traffic, speed)
        await told_to_end()
        tasks.cancel_scope.cancel()


async def _flow(traffic: Traffic, speed: float) -> None:
    import anyio  # noqa: PLC0415 - see `demo`

    while True:
        await anyio.sleep(_TICK_S)
        traffic.advance(_TICK_S * speed)
