"""A failure can be of any size; what is read of it is not, and no cut leaves half of a secret."""

from __future__ import annotations

import pytest

from orchestrator.failure import secret_search
from orchestrator.failure.classify import classify
from orchestrator.failure.cuts import head, tail
from orchestrator.failure.explain import explain
from orchestrator.failure.raw import RawFailure
from orchestrator.failure.redact import one_line, scrub
from orchestrator.failure.secret_search import CREDENTIAL_TAG
from orchestrator.failure.secret_values import MAX_LINE
from orchestrator.failure.sentences import MAX_READ
from orchestrator.failure.unwrap import MAX_ALL, MAX_TEXT, Contents
from orchestrator.failure.verdict import Context
from tests.failure.planting import BARE, NAMED

SURFACES = {
    "message": lambda t: RawFailure.acp_error(-32603, t),
    "data": lambda t: RawFailure.acp_error(-32603, "Internal error", {"details": t, "more": [t]}),
    "body": lambda t: RawFailure.http(500, None, t),
    "bytes": lambda t: RawFailure.acp_error(-32603, "E", t.encode("utf-8", "replace")),
    "causes": lambda t: RawFailure(RawFailure.exception_text("").surface, causes=(t,) * 8),
    "stderr": lambda t: RawFailure.exit(1, stderr=t),
    "envelope": lambda t: RawFailure.from_envelope({"type": "x", "message": t}),
    "record": lambda t: RawFailure.from_record({"category": "service", "title": t}),
}
SLOW = (
    "key=",
    "bearer ",
    "password=x1 ",
    '{"message": "',
    "\U0001f600key=",
    "aB3dE5fG7hJ ",
    "\n",
)


@pytest.fixture
def read(monkeypatch):
    """Bytes looked through for secrets, one number a look."""
    looks = []
    seen = secret_search.seen

    def counted(data):
        looks.append(len(data))
        return seen(data)

    monkeypatch.setattr(secret_search, "seen", counted)
    return looks


# -- how much is read -----------------------------------------------------------------------------


@pytest.mark.parametrize("surface", SURFACES)
def test_of_a_huge_text_no_more_is_scrubbed_than_of_a_large_one(surface, read):
    for unit in SLOW:
        classify(SURFACES[surface](unit * (100_000 // len(unit))))
        large = sum(read)
        read.clear()
        classify(SURFACES[surface](unit * (1_500_000 // len(unit))))
        assert sum(read) <= 1.1 * large + 2000, unit
        assert sum(read) <= 500_000, unit
        read.clear()


@pytest.mark.parametrize(
    "data",
    [
        {f"key{n}": "api_key=a1" for n in range(50_000)},
        {f"sk-ant-api03-{n:09d}": 1 for n in range(50_000)},
        ["key=a1"] * 50_000,
        [[1] * 50_000] * 20,
        {"errors": [{"message": "key=a1 " * 200}] * 3000},
        {f"n{n}": 10**2900 for n in range(1000)},
    ],
    ids=["fields", "secret names", "texts", "numbers", "objects", "long numbers"],
)
def test_of_a_huge_value_only_a_part_is_scrubbed(data, read):
    line = one_line(data)
    assert sum(read) <= 300_000
    assert line.endswith(" more characters)")
    assert len(line) < MAX_LINE + 60


def test_of_one_failure_only_so_much_is_read_in_all():
    contents = Contents()
    contents.add({"errors": [{"message": f"{n} " * MAX_TEXT} for n in range(10, 40)]})
    assert MAX_ALL / 2 < sum(len(s.original) for s in contents.sentences) <= MAX_ALL + 2 * MAX_TEXT


def test_only_so_many_fields_and_items_are_visited():
    contents = Contents()
    contents.add({f"k{n}": {"message": "m"} for n in range(100_000)})
    contents.add([{"message": "m"}] * 100_000)
    assert len(contents.facts) < 10_000


# -- what a cut leaves ----------------------------------------------------------------------------

PLANTED = [(name, secret, secret) for name, secret in BARE] + NAMED


def halves(secret):
    """What must not be left of a secret that a cut went through."""
    middle = len(secret) // 2
    return [half for half in (secret[:middle], secret[middle:]) if len(half) > 7]


def straddling(text, at, size=60_000):
    """A long text in which a part begins at this place."""
    around = "lorem ipsum " * (size // 12)
    return f"{around[: at - 1]} {text} {around}"


@pytest.mark.parametrize("place", [3000, 5000])
def test_no_half_of_a_secret_is_left_at_the_start_of_a_text(place):
    for name, secret, text in PLANTED:
        for into in (9, len(text) // 2, len(text) - 3):
            out = head(straddling(text, place - into), 3000)
            assert not any(half in out for half in halves(secret)), name


@pytest.mark.parametrize("place", [3000, 5000])
def test_no_half_of_a_secret_is_left_at_the_end_of_a_text(place):
    around = "lorem ipsum " * 5000
    for name, secret, text in PLANTED:
        for into in (9, len(text) // 2, len(text) - 3):
            end = f"{text[into:]} {around}"[: place - 1] + "."
            out = tail(f"{around} {text[:into]}{end}", 3000)
            assert not any(half in out for half in halves(secret)), name


def test_a_text_that_fits_is_only_scrubbed():
    text = "api_key=hunter22 and more"
    assert head(text, 100) == tail(text, 100) == scrub(text) == f"api_key={CREDENTIAL_TAG} and more"
    assert head("abc " * 2000, 10) == "abc abc ab"
    assert tail("abc " * 2000, 10) == "c abc abc "


def test_a_key_in_armour_does_not_show_where_the_end_of_a_text_begins_inside_it():
    body = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2\n" * 400
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}"
    whole = f"start\n{key}-----END RSA PRIVATE KEY-----\n" + "the reason stands here\n" * 120
    assert tail(whole, 5000).endswith("the reason stands here\n")
    assert "QUJDREVG" not in tail(whole, 5000)
    assert "QUJDREVG" not in tail(key, 5000)


@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("filler", [" ", "lorem ipsum "])
def test_no_half_of_a_secret_reaches_a_verdict(surface, filler):
    key = "sk-ant-api03-" + "Ab1" * 30
    for place in (240, 2000, 4000, 6000, 8000, 10_000, MAX_READ, MAX_READ + 2000, MAX_TEXT // 2):
        for size in (len(key), place):
            around = filler * (MAX_TEXT // len(filler))
            start, end = around[: place - 12], around[: max(0, size - 12)]
            text = f"{start} {key}{' ' if end else ''}{end}"
            verdict = classify(SURFACES[surface](text))
            shown = repr(verdict)
            assert "sk-ant" not in shown, place
            assert "Ab1Ab1" not in shown, place


def test_a_long_text_says_how_much_of_it_is_not_shown():
    line = one_line("y" * 1_000_000)
    assert line.startswith('"yyyy')
    assert line.endswith(f"... ({1_000_002 - MAX_LINE} more characters)")
    stderr = classify(RawFailure.exit(1, stderr="z" * 50_000)).raw_detail
    assert "(46000 characters before) ...zzz" in stderr
    many = one_line({"a": [1] * 9000, **{f"k{n}": "v" * 90 for n in range(9000)}})
    assert many.endswith(" more characters)")
    shorter = one_line(["password=" + "x1" * 5000, *["t"] * 5000])
    assert "more" in shorter


def test_details_that_are_cut_say_so():
    said = "The prompt is too long for this model. " + "It has a great many words. " * 400
    assert classify(RawFailure.http(400, None, {"error": {"message": said}})).details.endswith("…")


def test_an_explanation_of_a_huge_text_is_bounded_too(read):
    text = "key=" * 100_000 + " too many requests " + "key=" * 100_000
    explanation = explain(RawFailure.exception_text(f"{text} HTTP 429 too many requests"))
    assert explanation.verdict.kind.value == "rate_limited"
    assert sum(read) <= 1_000_000
    traces = [rule for step in explanation.steps for rule in step.rules]
    assert "(far down in a long text)" in {trace.matched for trace in traces}


def test_a_moment_is_read_from_a_huge_text_all_the_same():
    text = "x " * 500_000 + " rate limit exceeded, try again in 20s"
    verdict = classify(RawFailure.exception_text(text), context=Context(wall_now=1e9))
    assert verdict.retry_after_s == 20
