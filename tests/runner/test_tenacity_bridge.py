import pytest
from tenacity import AsyncRetrying, Retrying, stop_after_attempt, wait_fixed

from orchestrator import Kind, Verdict, retry_if_transient, verdict_on, wait_for_hint
from orchestrator.errors import error_for


def failing(*errors):
    left = list(errors)

    def call():
        if left:
            raise left.pop(0)
        return "ok"

    return call


def limited(seconds):
    return error_for(Verdict.of(Kind.RATE_LIMITED, "Too many requests.", retry_after_s=seconds))


def retrying(**kwargs):
    slept = []
    kwargs = {"retry": retry_if_transient(), "stop": stop_after_attempt(4), **kwargs}
    return Retrying(sleep=slept.append, reraise=True, **kwargs), slept


def test_what_passes_is_tried_again_and_what_does_not_is_raised():
    loop, slept = retrying(wait=wait_fixed(1))
    assert loop(failing(ConnectionResetError(), TimeoutError())) == "ok"
    assert slept == [1, 1]
    with pytest.raises(ValueError, match="a bug"):
        loop(failing(ValueError("a bug")))


def test_the_servers_hint_is_waited_for_and_never_less_than_the_curve():
    loop, slept = retrying(wait=wait_for_hint(wait_fixed(5)))
    assert loop(failing(limited(2.0), limited(30.0), ConnectionResetError())) == "ok"
    assert slept == [5, 30.0, 5]


def test_a_hint_that_is_too_long_is_not_waited_for():
    loop, slept = retrying(wait=wait_for_hint())
    with pytest.raises(type(limited(1.0))):
        loop(failing(limited(3600.0)))
    assert slept == []
    patient, slept = retrying(
        retry=retry_if_transient(longest_hint_s=7200),
        wait=wait_for_hint(longest_hint_s=7200),
    )
    assert patient(failing(limited(3600.0))) == "ok"
    assert slept == [3600.0]


def test_the_default_curve_doubles():
    loop, slept = retrying(wait=wait_for_hint())
    loop(failing(*[ConnectionResetError() for _ in range(3)]))
    assert slept == [2, 4, 8]


def test_a_hint_beyond_the_longest_is_cut_where_somebody_else_decides_to_retry():
    from tenacity import retry_if_exception_type

    loop, slept = retrying(
        retry=retry_if_exception_type(Exception),
        wait=wait_for_hint(wait_fixed(1), longest_hint_s=10),
    )
    loop(failing(limited(3600.0)))
    assert slept == [10]


def test_a_returned_value_is_no_failure():
    loop, slept = retrying(
        retry=retry_if_transient() | (lambda state: state.outcome.result() is None),
        wait=wait_for_hint(wait_fixed(1)),
    )
    values = iter([None, "ok"])
    assert loop(lambda: next(values)) == "ok"
    assert slept == [1]


@pytest.mark.anyio
async def test_it_works_in_an_asynchronous_loop_and_lets_cancellation_pass():
    import anyio

    calls = []

    async def ask():
        calls.append(1)
        await anyio.sleep_forever()

    loop = AsyncRetrying(
        retry=retry_if_transient(),
        stop=stop_after_attempt(2),
        sleep=anyio.sleep,
        wait=wait_fixed(0),
    )
    with anyio.move_on_after(0.001):
        await loop(ask)
    assert calls == [1]


def test_a_verdict_can_be_had_for_any_exception():
    assert verdict_on(ConnectionResetError("x")).kind is Kind.CONNECTION_LOST
    assert verdict_on(limited(1.0)).retry_after_s == 1.0
