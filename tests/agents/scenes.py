"""Everything that goes wrong: the scenes, in the order of the table."""

import asyncio

from tests.agents.provider import Answer, Cut, Fault, Hang, always, first
from tests.agents.stage import SPOKEN, Scene

_LONG = Answer(" ".join(f"w{n}" for n in range(400)), pause_s=0.1)
_SLOW = Answer(" ".join(f"w{n}" for n in range(30)) + f", {SPOKEN}.", pause_s=0.1)
_SOON_S = 0.5
_WAIT_S = 4.0
"""A wait of the proxy that is long enough to act in."""


def _failing(kind, attempts, *faults):
    """The faults until the agent has given up this many times, then answers."""
    per_attempt = kind.attempts.get(faults[0].name, 1)
    hurried = [Fault(f.name, f.status, {**f.headers, **kind.hurry}) for f in faults]
    return first(per_attempt * attempts, *hurried)


def _overload(kind):
    return _failing(kind, 1, Fault("overloaded", 529))


def _throttle(kind):
    return _failing(kind, 1, Fault("throttled", 429, {"retry-after": "1"}))


def _burst(kind):
    faults = Fault("internal", 500), Fault("bad_gateway", 502), Fault("unavailable", 503)
    return _failing(kind, 2, *faults)


def _reset(kind):
    return first(kind.attempts.get("cut", 1), Cut())


def _hang(_):
    return first(1, Hang())


def _well(_):
    return always(Answer())


def _slow_then_ok(_):
    return first(1, _LONG)


def _slow(_):
    return first(1, _SLOW)


def _patient(_):
    """A throttle that each agent waits out by itself, telling nobody."""
    return first(1, Fault("throttled", 429, {"retry-after": "20"}))


def _refused(name, status, *, wide=False):
    def script(kind):
        return always(Fault(name, status, kind.hurry if status == 429 else {}, wide))

    return script


async def _until_shown(run):
    """Wait until the client has seen some words of the long answer."""
    await run.client.until(lambda: "w1 " in run.text)
    await asyncio.sleep(_SOON_S)


async def _kill_mid_turn(run):
    await _until_shown(run)
    run.kill_agent()


async def _in_the_wait(run):
    """Wait until the proxy waits; without it, for ever."""
    await run.client.until(lambda: any(": waiting " in line for line in run.client.log))
    await asyncio.sleep(_SOON_S)


async def _kill_in_the_wait(run):
    await _in_the_wait(run)
    run.kill_agent()


async def _cancel_mid_turn(run):
    await _until_shown(run)
    run.cancel()


async def _cancel_its_own_wait(run):
    await run.provider.until_asked(1)
    await asyncio.sleep(1.5)
    run.cancel()


async def _prompt_too(run):
    await _until_shown(run)
    run.prompt_too("And why so late?")


async def _cancel_in_the_wait(run):
    await _in_the_wait(run)
    run.cancel()


async def _talk(run):
    """A healthy turn, so that there is something to lose."""
    await run.client.prompt(run.session, "Hello")
    run.talked += 1


async def _lose_inner_idle(run):
    await _talk(run)
    if run.kind.name == "claude":
        run.kill_inner()
        await asyncio.sleep(1.0)


async def _lose_inner_mid_turn(run):
    if run.kind.name == "codex":
        await _until_shown(run)
        run.kill_inner()


async def _lose_history(run):
    await _talk(run)
    run.kill_agent()
    await asyncio.sleep(1.0)
    run.forget()


def _lost(kind):
    """claude loses its inner process between two turns, codex (which mends that) within one."""
    return _slow_then_ok(kind) if kind.name == "codex" else _well(kind)


_PATIENT = {"ladders.curve.first_s": _WAIT_S}
_IMPATIENT = {"watchdogs.first_sign_s": 15, "watchdogs.silence_s": 15}
"""Still longer than an agent on a busy machine needs for its first word."""

SCENES = (
    Scene("overload, then ok", _overload),
    Scene("throttle with retry-after", _throttle),
    Scene("5xx burst", _burst),
    Scene("reset mid-stream", _reset),
    Scene("hang", _hang, settings=_IMPATIENT),
    Scene("kill -9 mid-turn", _slow_then_ok, _kill_mid_turn),
    Scene("kill -9 during our wait", _overload, _kill_in_the_wait, settings=_PATIENT),
    Scene("lost session", _lost, _lose_inner_mid_turn, _lose_inner_idle),
    Scene("kill -9 when idle, history gone", _well, before=_lose_history),
    Scene("cancel in the wait", _overload, _cancel_in_the_wait, settings=_PATIENT),
    Scene("cancel mid-turn", _slow_then_ok, _cancel_mid_turn),
    Scene("cancel in the agent's own wait", _patient, _cancel_its_own_wait),
    Scene("another prompt mid-turn", _slow, _prompt_too),
    Scene("401", _refused("key_rejected", 401)),
    Scene("usage limit", _refused("usage_limit", 429)),
    Scene("context overflow", _refused("context_overflow", 400, wide=True)),
)
