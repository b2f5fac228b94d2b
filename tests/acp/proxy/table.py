"""Print scenario x agent, without the proxy and with it: `python -m tests.acp.proxy.table`.

From the recordings, for a client that reads no records: what the agent alone left it with, and
what the proxy makes of the same failures when the agent's next answer is the recording's second.
"""

from orchestrator.turn.effects import How
from tests.acp.proxy.test_recordings import (
    PATIENT,
    expected,
    has_second_prompt,
    through_the_proxy,
    turn_of,
    was_cancelled,
)
from tests.acp.replay_agent import AGENTS, recordings
from tests.acp.test_replay import EXPECTED


def alone(agent, name):
    """What the client of the recording was left with."""
    _, end = turn_of(agent, name)
    if end is None:
        return "the agent is dead"
    if was_cancelled(agent, name) and expected(agent, name) is not How.STOPPED:
        return "silence for 45 s"
    if "error" in end:
        return f"error {end['error']['code']}"
    failed = expected(agent, name) not in (How.LANDED, How.REFUSED, How.STOPPED)
    return f"{end['result']['stopReason']}{', the failure as text' if failed else ''}"


def proxied(agent, name):
    """What the same client gets through the proxy."""
    if not has_second_prompt(agent, name) and f"{name}.2" not in recordings(agent):
        return "the same" if expected(agent, name) is How.LANDED else "-"
    client, _, answer = through_the_proxy(agent, name, capable=False, settings=PATIENT)
    if "error" in answer:
        kind = (answer["error"].get("data") or {}).get("errorKind")
        return f"error {answer['error']['code']}{f' ({kind})' if kind else ''}"
    said = "".join(client.texts())
    greeted = said.count("Hello from the lab provider.")
    stop = answer["result"]["stopReason"]
    return f"{stop}, answered" if greeted and stop == "end_turn" else stop


def rows():
    """One row for each scenario that an agent was recorded in."""
    for scenario in EXPECTED:
        cells = []
        for agent in AGENTS:
            known = scenario in recordings(agent)
            cells += [alone(agent, scenario), proxied(agent, scenario)] if known else ["", ""]
        yield [scenario, *cells]


def main():
    head = ["scenario", *[f"{a} {way}" for a in AGENTS for way in ("alone", "proxied")]]
    for row in [head, ["---"] * len(head), *rows()]:
        print(f"| {' | '.join(row)} |")  # noqa: T201 - printing is its work


if __name__ == "__main__":
    main()
