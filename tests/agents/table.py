"""Scene x agent, without and with the proxy, as Markdown: `python -m tests.agents.table`.

Each cell says what a client that reads no failure records is left with, and behind the slash what
one that reads them gets where that differs.
"""

import argparse
import asyncio
import sys

from tests.agents.install import install
from tests.agents.kinds import CLAUDE, CODEX, KINDS, OPENCODE
from tests.agents.scenes import SCENES
from tests.agents.stage import ALONE_LIMIT_S, play

_AT_ONCE = 5

FACTS = {
    ("reset mid-stream", OPENCODE): (
        "opencode re-sends by itself and has no setting against it; the proxy has nothing to do."
    ),
    ("5xx burst", OPENCODE): (
        "opencode sends 6 requests before it tells anybody (waits shortened by `retry-after-ms`)."
    ),
    ("cancel in the wait", None): (
        "Without the proxy there is no wait to kill or cancel in: the turn has failed by then."
    ),
    ("usage limit", CLAUDE): (
        "With an API key claude passes on the provider's sentence about a rate limit alone, the"
        " same as for a throttle, so it is tried again (4 times 2 requests); the `You've hit your"
        " limit` of a subscription is not: 1 request."
    ),
    ("context overflow", OPENCODE): (
        "opencode compacts by itself first; where only the summary still fits, it would start over"
        " without end, and is stopped after 20 messages without a tool between them."
    ),
    ("401", OPENCODE): "opencode reports a rejected key as -32603, not as -32000.",
    ("lost session", OPENCODE): (
        "opencode is one process, so it cannot lose an inner one: nothing fails here."
    ),
    ("lost session", CLAUDE): "The inner process dies between two turns: -32002.",
    ("lost session", CODEX): (
        "The inner process dies within a turn: 1001. Between two turns codex mends it by itself."
    ),
}
"""What an agent cannot show, and why."""


def told(run):
    """One phrase for what the client was left with."""
    if run.silent:
        return f"no answer in {ALONE_LIMIT_S} s"
    if run.reply is None:
        return "agent gone, no answer"
    errors = [record for record in run.records if record.on_answer]
    if errors:
        offers = ", ".join(errors[-1].actions) or "no action"
        return f"error record ({errors[-1].category}; {offers})"
    if run.error:
        return f"error {run.error['code']}"
    return _ended(run) if run.stop_reason == "end_turn" else run.stop_reason


def _ended(run):
    """An `end_turn` alone says little."""
    if run.cancelled_at is not None:
        return "`end_turn`, though cancelled"
    return "answered" if run.answered else "`end_turn` with an error as text"


def cell(runs):
    """What both clients were left with, and at what cost."""
    phrases = list(dict.fromkeys(told(run) for run in runs))
    count = max(run.requests for run in runs)
    left = max(len(run.left) for run in runs)
    others = dict.fromkeys(stop for run in runs for stop in run.more_stops)
    phrases += [f"the other prompt: {stop}" for stop in others]
    cost = f"{count} request{'s' * (count != 1)}"
    orphans = f", **{left} left running**" if left else ""
    return f"{' / '.join(phrases)}; {cost}{orphans}"


async def _all(installed, names):
    """Every run, by scene, agent and whether the proxy was there."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(scene, kind, *, proxied):
        async with limit:
            runs = [
                await play(scene, kind, capable=capable, proxied=proxied, installed=installed)
                for capable in (False, True)
            ]
        sys.stderr.write(f"{scene.name}, {kind.name}, {proxied=}: {cell(runs)}\n")
        return cell(runs)

    scenes = [scene for scene in SCENES if not names or scene.name in names]
    keys = [(s, kind, proxied) for s in scenes for kind in KINDS for proxied in (False, True)]
    cells = await asyncio.gather(*(one(s, kind, proxied=proxied) for s, kind, proxied in keys))
    return dict(zip(keys, cells, strict=True)), scenes


def lines(cells, scenes):
    """The table, and the facts below it."""
    heads = [f"{kind.name}, {how} the proxy" for kind in KINDS for how in ("without", "with")]
    yield f"| scene | {' | '.join(heads)} |"
    yield f"|---|{'---|' * len(heads)}"
    for scene in scenes:
        row = [cells[scene, kind, proxied] for kind in KINDS for proxied in (False, True)]
        yield f"| {scene.name} | {' | '.join(row)} |"
    yield ""
    names = [scene.name for scene in scenes]
    for (name, kind), fact in FACTS.items():
        if name in names:
            yield f"- {name}, {kind.name if kind else 'all'}: {fact}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenes", nargs="*", help="names of scenes; all of them without any")
    cells, scenes = asyncio.run(_all(install(), parser.parse_args().scenes))
    sys.stdout.writelines(f"{line}\n" for line in lines(cells, scenes))


if __name__ == "__main__":
    main()
