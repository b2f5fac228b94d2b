import json
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.failure.hint_values import MAX_DELAY_S, Hint
from orchestrator.failure.hints import read_hint

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC).timestamp()
"""A Monday, at noon."""
CASES = Path(__file__).parents[1] / "cases" / "failures.jsonl"
NOTHING = Hint()


def from_headers(now=NOW, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return read_hint(headers=named, data=None, texts=(), now=now)


def from_data(data, now=NOW):
    return read_hint(headers={}, data=data, texts=(), now=now)


def from_text(*texts, now=NOW, zone=UTC):
    return read_hint(headers={}, data=None, texts=texts, now=now, zone=zone)


def at(year, month, day, hour=0, minute=0, zone=UTC):  # noqa: PLR0917 - as in datetime
    return datetime(year, month, day, hour, minute, tzinfo=zone).timestamp()


# -- headers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "12"}, 12),
        ({"Retry_After": " 0 "}, 0),
        ({"retry_after": "2.5"}, 2.5),
        ({"retry_after": "1m30s"}, 90),
        ({"retry_after_ms": "1500"}, 1.5),
        ({"x_ms_retry_after_ms": "250", "retry_after": "1"}, 0.25),
        ({"x_amz_retry_after": "800"}, 0.8),
        ({"grpc_retry_pushback_ms": "40"}, 0.04),
        ({"retry_after": "Mon, 30 Nov 2026 12:00:20 GMT"}, 20),
        ({"retry_after": "Monday, 30-Nov-26 12:00:20 GMT"}, 20),
        ({"retry_after": "Mon Nov 30 12:00:20 2026"}, 20),
        # Their clock is an hour behind ours.
        (
            {
                "retry_after": "Mon, 30 Nov 2026 11:00:20 GMT",
                "date": "Mon, 30 Nov 2026 11:00:00 GMT",
            },
            20,
        ),
        # A moment ago is now.
        ({"retry_after": "Mon, 30 Nov 2026 11:59:30 GMT"}, 0),
        ({"ratelimit": '"default";r=0;t=30'}, 30),
        ({"ratelimit": '"burst";r=5;t=1, "daily";r=0;t=900'}, 900),
        ({"ratelimit": '"d";r=0', "ratelimit_policy": '"d";q=100;w=60'}, 60),
        ({"ratelimit": "limit=10, remaining=0, reset=7"}, 7),
        ({"ratelimit_reset": "9", "ratelimit_remaining": "0"}, 9),
        ({"x_ratelimit_reset_tokens": "6m0s", "x_ratelimit_remaining_tokens": "0"}, 360),
        ({"x_ratelimit_reset_requests": "12ms", "x_ratelimit_remaining_requests": "0"}, 0.012),
        ({"x_ratelimit_reset_tokens": "7.66s"}, 7.66),
        ({"x_ratelimit_reset_after": "3.5"}, 3.5),
        ({"x_ratelimit_reset": str(int(NOW) + 50)}, 50),
        ({"x_ratelimit_reset": str((int(NOW) + 50) * 1000)}, 50),
        ({"anthropic_ratelimit_tokens_reset": "2026-11-30T12:01:00Z"}, 60),
    ],
)
def test_a_header_says_how_long_to_wait(headers, seconds):
    assert from_headers(**headers).retry_after_s == pytest.approx(seconds)


@pytest.mark.parametrize(
    "value",
    [
        "-5",
        "NaN",
        "inf",
        "1e3",
        "soon",
        "",
        "9" * 400,
        str(10 * 365 * 86400),
        "12, 13",
        "-1.5",
        "Mon, 30 Nov 2036 12:00:00 GMT",
        "Mon, 30 Nov 2026 09:00:00 GMT",
        "Mon, 99 Foo 2026",
    ],
)
def test_what_nobody_can_mean_is_refused(value):
    assert from_headers(retry_after=value) == NOTHING


def test_an_explicit_wait_wins_over_a_bucket():
    hint = from_headers(
        retry_after="17",
        anthropic_ratelimit_tokens_reset="2026-11-30T12:05:00Z",
        anthropic_ratelimit_tokens_remaining="0",
    )
    assert hint.retry_after_s == 17
    assert hint.resets_in_s == 300


def test_only_the_empty_bucket_counts():
    hint = from_headers(
        anthropic_ratelimit_requests_reset="2026-11-30T13:00:00Z",
        anthropic_ratelimit_requests_remaining="40",
        anthropic_ratelimit_input_tokens_reset="2026-11-30T12:00:30Z",
        anthropic_ratelimit_input_tokens_remaining="0",
    )
    assert (hint.retry_after_s, hint.resets_at) == (30, NOW + 30)


def test_a_bucket_with_something_left_says_nothing():
    assert (
        from_headers(x_ratelimit_reset_tokens="6m0s", x_ratelimit_remaining_tokens="900") == NOTHING
    )
    assert from_headers(ratelimit='"default";r=4;t=30') == NOTHING


def test_of_several_empty_buckets_the_last_to_fill_counts():
    hint = from_headers(
        x_ratelimit_reset_tokens="20s",
        x_ratelimit_remaining_tokens="0",
        x_ratelimit_reset_requests="90s",
        x_ratelimit_remaining_requests="0",
    )
    assert hint.retry_after_s == 90


def test_a_window_counts_when_it_rejected():
    hint = from_headers(
        anthropic_ratelimit_unified_5h_reset=str(int(NOW) + 600),
        anthropic_ratelimit_unified_5h_status="rejected",
        anthropic_ratelimit_unified_7d_reset=str(int(NOW) + 90_000),
        anthropic_ratelimit_unified_7d_status="allowed",
    )
    assert hint.resets_at == NOW + 600


def test_a_codex_window_counts_when_it_is_used_up():
    hint = from_headers(
        x_codex_primary_used_percent="100",
        x_codex_primary_reset_after_seconds="13873",
        x_codex_secondary_used_percent="31",
        x_codex_secondary_reset_after_seconds="500000",
    )
    assert hint.resets_in_s == 13873


def test_without_a_clock_only_what_needs_none_is_read():
    assert from_headers(now=None, retry_after="5").retry_after_s == 5
    assert from_headers(now=None, retry_after="Mon, 30 Nov 2026 12:00:20 GMT") == NOTHING
    hint = from_data({"resets_at": int(NOW) + 60}, now=None)
    assert hint == Hint(resets_at=NOW + 60)
    assert from_text("resets 5:50pm", now=None) == NOTHING


@pytest.mark.parametrize("now", [float("nan"), float("inf"), -1.0])
def test_a_clock_that_is_no_number_is_no_clock(now):
    assert from_text("resets 5:50pm", now=now) == NOTHING
    assert from_data({"resets_in_seconds": 5}, now=now) == Hint(5, None, 5)


# -- fields ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "seconds"),
    [
        ({"error": {"details": [{"@type": "x/google.rpc.RetryInfo", "retryDelay": "9s"}]}}, 9),
        ({"details": [{"retryDelay": "0.539477544s"}]}, 0.539477544),
        ({"retryDelay": {"seconds": "34", "nanos": 500_000_000}}, 34.5),
        ({"metadata": {"quotaResetDelay": "539.477544ms"}}, 0.539478),
        ({"metadata": {"quotaResetDelay": "2h30m0s"}}, 9000),
        ({"retry_after": 20}, 20),
        ({"retryAfter": "20"}, 20),
        ({"retry_after_seconds": 1.5}, 1.5),
        ({"retry_after_ms": 1500}, 1.5),
        ({"error": {"resets_in_seconds": 602705}}, 602705),
        ({"resetsInSeconds": 0}, 0),
        ({"headers": {"Retry-After": "12"}}, 12),
        ({"error": json.dumps({"message": json.dumps({"retry_after": 3})})}, 3),
        ({"error": {"message": "Please retry in 44.097740004s."}}, 44.097740004),
        (json.dumps({"retry_after": 3}), 3),
    ],
)
def test_a_field_says_how_long_to_wait(data, seconds):
    assert from_data(data).retry_after_s == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(
    ("data", "instant"),
    [
        ({"resets_at": int(NOW) + 60}, NOW + 60),
        ({"resetsAt": (int(NOW) + 60) * 1000}, NOW + 60),
        ({"reset_at": "2026-12-01T08:00:00+01:00"}, at(2026, 12, 1, 7)),
        ({"quotaResetTimeStamp": "2026-12-01T08:00:00Z"}, at(2026, 12, 1, 8)),
    ],
)
def test_a_field_says_when_a_limit_resets(data, instant):
    assert from_data(data) == Hint(resets_at=instant, resets_in_s=instant - NOW)


@pytest.mark.parametrize(
    "data",
    [
        {"retry_after": True},
        {"retry_after": -1},
        {"retry_after": float("nan")},
        {"retry_after": float("inf")},
        {"retry_after": 10**400},
        {"retryDelay": 5},
        {"retryDelay": {"seconds": "x"}},
        {"totalRetryDelay": 274},
        {"resets_at": 5},
        {"resets_at": int(NOW) - 86_400},
        {"resets_at": int(NOW) + 10 * 366 * 86_400},
        {"resets_in_seconds": None},
    ],
)
def test_a_field_that_says_nothing_is_not_read(data):
    assert from_data(data) == NOTHING


def test_a_reset_that_is_long_past_leaves_the_seconds_beside_it():
    hint = from_data({"resets_at": 1_775_317_531, "resets_in_seconds": 60})
    assert hint == Hint(60, NOW + 60, 60)


# -- wording --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Please try again in 20s.", 20),
        ("Please retry in 1m3.2s.", 63.2),
        ("stream disconnected before completion: Please try again in 34.337s. Visit x", 34.337),
        ("Please retry after 86400 seconds.", 86_400),
        ("Please retry after 86,400 seconds.", 86_400),
        ("Retrying in 4 seconds… (attempt 4/10)", 4),
        ("retry attempt 2/5 in 3s", 3),
        ("Please try again in 58 hours.", 58 * 3600),
        ("or try again in 5 days 22 hours 11 minutes.", 511_860),
        ("try again in 2 hours and 5 minutes", 7500),
        ("try again in 7m12s", 432),
        ("Please try again in 28ms", 0.028),
        ("Please try a\ngain in 28ms", 0.028),
        ("Please try again in 28\n  ms", 0.028),
        ("try again in an hour", 3600),
        ("try again in about 3 minutes", 180),
        ("try again in 01:30:00", 5400),
        ("Please wait 20 seconds and try again", 20),
        ("Waiting 1m before retrying", 60),
        ("backoff=5s}", 5),
        ("Sleeping for 12.5 seconds", 12.5),
        ("retry-after: 30", 30),
        ("Retry-After 7", 7),
        ("{'retryDelay': '34.074824224s'}", 34.074824224),
        (r"\"retryDelay\": \"34s\"", 34),
        ("retry_after_ms=1500", 1.5),
        ('Object {"retry_after": Number(20)}', 20),
        ("Your quota will reset after 0s.", 0),
        ("Quota resets after 12h30m5s", 45_005),
        ("resets in 3h 20m", 12_000),
        ("Bitte versuchen Sie es in 20 Sekunden erneut.", 20),
        ("Versuchen Sie es in 1,5 Stunden erneut.", 5400),
        ("Veuillez réessayer dans 20 secondes.", 20),
        ("Inténtelo de nuevo en 20 segundos.", 20),
        ("Tente novamente em 20 segundos.", 20),
        ("Riprova tra 20 secondi.", 20),
        ("Повторите попытку через 20 секунд.", 20),
        ("请在 20 秒后重试", 20),
        ("请 5 分钟后再试", 300),
        ("20秒後に再試行してください", 20),
        ("20초 후에 다시 시도하세요", 20),
    ],
)
def test_a_sentence_says_how_long_to_wait(text, seconds):
    assert from_text(text).retry_after_s == pytest.approx(seconds)


BERLIN, NEW_YORK = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("resets 5:50pm", at(2026, 11, 30, 17, 50)),
        ("resets 5:50\u202fPM", at(2026, 11, 30, 17, 50)),
        ("resets 11:30am (Europe/Berlin)", at(2026, 12, 1, 11, 30, BERLIN)),
        ("5-hour limit reached ∙ resets 3pm", at(2026, 11, 30, 15)),
        (
            "You've hit your limit · resets 8pm (America/New_York)",
            at(2026, 11, 30, 20, 0, NEW_YORK),
        ),
        ("Limits will reset at 9:30 AM. View your usage", at(2026, 12, 1, 9, 30)),
        ("resets at 2026-11-30T20:00:00Z", at(2026, 11, 30, 20)),
        ("resets at 2026-11-30T20:00:00.123+02:00", at(2026, 11, 30, 18)),
        ("resets at 2026-11-30 20:00", at(2026, 11, 30, 20)),
        ("reset time: 2026-12-01 08:00:00 PST", at(2026, 12, 1, 16)),
        ("resets Monday at 9am", at(2026, 12, 7, 9)),
        ("resets Monday at 3pm", at(2026, 11, 30, 15)),
        ("resets on Friday", at(2026, 12, 4)),
        ("resets Thu 9:00 AM", at(2026, 12, 3, 9)),
        ("resets tomorrow at 9am (UTC)", at(2026, 12, 1, 9)),
        ("You will regain access on 2027-04-01 at 00:00 UTC.", at(2027, 4, 1)),
        ("You will regain access on 2027-04-01", at(2027, 4, 1)),
        ("try again at Dec 15th, 2026 9:25 AM.", at(2026, 12, 15, 9, 25)),
        ("try again at 3:40 PM.", at(2026, 11, 30, 15, 40)),
        ("resets Dec 6, 1pm (America/New_York)", at(2026, 12, 6, 13, 0, NEW_YORK)),
        ("resets Jan 6 at 1pm", at(2027, 1, 6, 13)),
        ("resets 6 January 2027 13:00", at(2027, 1, 6, 13)),
        ("Try again on 12/3/2026, 5:50 PM", at(2026, 12, 3, 17, 50)),
        ("available again at 17:30 UTC", at(2026, 11, 30, 17, 30)),
        ("resets at midnight UTC", at(2026, 12, 1)),
        ("resets at noon", at(2026, 11, 30, 12)),
        ("resets at 12am", at(2026, 12, 1)),
        ("Limit resets daily at 00:00 UTC", at(2026, 12, 1)),
        ("resets 8pm PST", at(2026, 12, 1, 4)),
        ("resets 8pm (GMT+2)", at(2026, 11, 30, 18)),
        ("resets 3pm (local time)", at(2026, 11, 30, 15)),
        ("Claude AI usage limit reached|1796061600", 1_796_061_600),
        ("Claude AI usage limit reached|1796061600000", 1_796_061_600),
        ("resets at 1796061600", 1_796_061_600),
    ],
)
def test_a_sentence_says_when_a_limit_resets(text, instant):
    hint = from_text(text)
    assert hint.resets_at == pytest.approx(instant, abs=1)
    assert hint.resets_in_s == pytest.approx(instant - NOW, abs=1)
    assert hint.retry_after_s is None


@pytest.mark.parametrize(
    "text",
    [
        "try again in -5s",
        "try again in 99999999999 hours",
        "try again in 10 years",
        "try again in a moment",
        "try again later",
        "please try again",
        "decrease input length or max_tokens and try again",
        "timeout after 30s",
        "request timed out after 15000ms",
        "the retry count was 30",
        "connection reset by peer after 5s",
        "read ECONNRESET 104",
        "resets 25:00",
        "resets 13pm",
        "resets 0am",
        "resets 8pm (Mars/Olympus)",
        "resets 8pm IST",
        "resets 8pm (XYZT)",
        "resets Feb 31 at 9am",
        "resets at 2026-13-45T99:00:00Z",
        "You will regain access on 2026-04-01",
        "resets at 2046-11-30T20:00:00Z",
        "usage limit reached|123",
        "usage limit reached|17960616001796061600",
        "Limit 30000, Used 14567, Requested 24754",
        "run /clear to reset your conversation state",
    ],
)
def test_a_sentence_that_names_no_time_gives_no_hint(text):
    assert from_text(text) == NOTHING


def test_a_clock_time_that_has_just_passed_means_now():
    assert from_text("resets 11:59am").resets_in_s == 0
    assert from_text("resets 11:30am").resets_in_s == 23.5 * 3600


def test_a_clock_time_without_a_zone_is_read_in_the_zone_of_the_machine():
    there = from_text("resets 5:50pm", zone=ZoneInfo("Asia/Tokyo"))
    assert there.resets_at == at(2026, 12, 1, 17, 50, ZoneInfo("Asia/Tokyo"))
    assert from_text("resets 5:50pm", zone=None).resets_at is not None


def test_a_clock_time_keeps_its_hour_over_the_change_to_summer_time():
    night = datetime(2027, 3, 27, 22, 0, tzinfo=BERLIN).timestamp()
    hint = from_text("resets 9am (Europe/Berlin)", now=night)
    assert hint.resets_in_s == 10 * 3600


def test_the_structured_answer_wins_over_the_sentence():
    hint = read_hint(
        headers={},
        data={"details": [{"retryDelay": "0.5s"}]},
        texts=["Your quota will reset after 0s."],
        now=NOW,
    )
    assert hint.retry_after_s == 0.5


def test_a_hint_at_the_end_of_a_long_text_is_found():
    assert from_text("x " * 500_000 + "Please try again in 20s.").retry_after_s == 20


# -- all together ---------------------------------------------------------------------------------


def test_the_stated_wait_of_every_case_is_read():
    wrong, seen = [], 0
    for line in CASES.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if "retry_after_s" not in case["expect"]:
            continue
        given_ = case["input"]
        hint = read_hint(
            headers=given_.get("headers", {}),
            data=given_.get("body", given_.get("data")),
            texts=[given_[k] for k in ("text", "message", "stderr") if given_.get(k)],
            now=NOW,
        )
        seen += 1
        if hint.retry_after_s != pytest.approx(case["expect"]["retry_after_s"]):
            wrong.append((case["id"], hint))
    assert seen > 10
    assert wrong == []


ANYTHING = st.text(st.characters(), max_size=40)
FIELDS = st.sampled_from(
    ["retry_after", "retryDelay", "resets_at", "resets_in_seconds", "headers", "message", "error"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANYTHING,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(FIELDS | ANYTHING, inner, max_size=3)
    ),
    max_leaves=8,
)
PHRASES = st.lists(
    st.sampled_from(
        [
            "try again",
            " in ",
            " at ",
            "resets ",
            "20s",
            "5:50pm",
            "Monday",
            "(",
            "Europe/Berlin",
            ")",
            "2026-11-30",
            "T20:00:00Z",
            "|",
            "1796061600",
            "retry after ",
            "99",
            ":",
            "/",
            "Feb",
            "+",
            "99999999999999999999",
            ".",
            "\n",
            " ",
            "1e9",
            "midnight",
            "29",
            "UTC",
            "½",
            "٣",
        ]
    ),
    max_size=8,
).map("".join)


def sane(hint):
    for seconds in (hint.retry_after_s, hint.resets_in_s):
        assert seconds is None or 0 <= seconds <= MAX_DELAY_S
    assert hint.resets_at is None or hint.resets_at >= 0
    return True


@given(
    headers=st.dictionaries(
        st.sampled_from(["retry-after", "ratelimit", "x-ratelimit-reset", "date"]) | ANYTHING,
        ANYTHING | PHRASES,
        max_size=4,
    ),
    data=JSON,
    texts=st.lists(ANYTHING | PHRASES, max_size=3),
    now=st.none() | st.floats() | st.floats(0, 4e9),
)
@settings(max_examples=250, deadline=None)
def test_any_failure_gives_a_sane_hint(headers, data, texts, now):
    assert sane(read_hint(headers=headers, data=data, texts=texts, now=now))


@pytest.mark.parametrize(
    "text", ["\ud800 try again in 5s \udfff", "try again in 5s\x00", "in \u0665s"]
)
def test_odd_characters_do_no_harm(text):
    assert sane(from_text(text))


def test_a_deep_or_endless_value_has_an_end():
    deep = {"retry_after": 1}
    for _ in range(5000):
        deep = {"error": deep}
    assert sane(from_data(deep))
    loop = []
    loop.append(loop)
    assert from_data(loop) == NOTHING
    assert from_data("[" * 100_000) == NOTHING
