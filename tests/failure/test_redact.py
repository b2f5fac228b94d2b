import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.failure.base64_runs import CORE, runs
from orchestrator.failure.linear import compile_signs, find_all, find_next
from orchestrator.failure.randomness import MIXED_CASE, random_enough
from orchestrator.failure.redact import one_line, scrub, scrub_value, terminal_line
from orchestrator.failure.secret_search import CREDENTIAL_TAG
from orchestrator.failure.secret_shapes import SHAPES
from orchestrator.failure.secret_values import MAX_LINE
from orchestrator.failure.secret_views import ESCAPED, views
from orchestrator.failure.secret_words import NONE, STRONG, strength
from tests.failure.false_positives import touched
from tests.failure.planting import BARE, BARE_SPELLINGS, NAMED, SPELLINGS, survives, wrapped

ANYTHING = st.text(st.characters())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANYTHING,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANYTHING, inner, max_size=4),
    max_leaves=12,
)


def clean(text):
    """Scrub, and hold that scrubbing once more changes nothing."""
    out = scrub(text)
    assert scrub(out) == out
    return out


# -- planted secrets ------------------------------------------------------------------------------


def test_the_corpus_has_far_more_than_forty_shapes():
    assert len({name for name, _ in BARE}) > 100
    assert len({name for name, _, _ in NAMED}) > 40


@pytest.mark.parametrize("spelling", SPELLINGS | BARE_SPELLINGS)
def test_no_secret_of_a_known_shape_survives(spelling):
    spell = (SPELLINGS | BARE_SPELLINGS)[spelling]
    left = [name for name, secret in BARE if survives(secret, clean(text := spell(secret)), text)]
    assert left == []


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_secret_beside_its_name_survives(spelling):
    spell = SPELLINGS[spelling]
    left = [
        (name, text)
        for name, secret, plain in NAMED
        if survives(secret, clean(text := spell(plain)), text)
    ]
    assert left == []


def test_no_secret_survives_in_a_value_or_its_line():
    for name, secret, text in [(n, s, s) for n, s in BARE] + NAMED:
        for value in (text, {"data": {"message": text}}, [[text]]):
            assert not survives(secret, one_line(value)), name
            assert not survives(secret, json.dumps(scrub_value(value))), name


def test_no_secret_survives_in_a_parsed_value():
    parsed = 0
    for name, secret, text in NAMED:
        try:
            value = json.loads(text)
        except ValueError:
            continue
        parsed += 1
        assert secret not in one_line({"data": value}), name
        assert secret not in json.dumps(scrub_value(value)), name
    assert parsed > 15


def test_names_and_values_in_neighbouring_fields_find_each_other():
    assert scrub_value({"name": "api_key", "value": "zzz9"}) == {
        "name": "api_key",
        "value": CREDENTIAL_TAG,
    }
    assert scrub_value({"value": "zzz9", "in": "header", "name": "X-Api-Key"})["value"] == (
        CREDENTIAL_TAG
    )
    assert scrub_value(["--password", "swordfish1", "--verbose"]) == [
        "--password",
        CREDENTIAL_TAG,
        "--verbose",
    ]
    assert scrub_value(["Authorization", "Bearer abcdefgh12"])[1] == CREDENTIAL_TAG
    assert scrub_value({"api_key": {"value": "zzz9zz"}}) == {"api_key": {"value": CREDENTIAL_TAG}}
    assert scrub_value({"password": 12345678}) == {"password": CREDENTIAL_TAG}


def test_names_and_values_side_by_side_in_a_text_find_each_other():
    for text in (
        "name=api_key value=zzz9",
        "name: api_key, value: zzz9",
        "{ name: 'api_key', value: 'zzz9' }",
        '<add key="Password" value="zzz9" />',
        "- name: API_KEY\n  value: zzz9",
    ):
        assert "zzz9" not in clean(text)


DIGEST = "9f86d081884c7d659a2feaa0c55ad015"


@pytest.mark.parametrize(
    "text",
    [
        "API key {} is invalid",
        "the x-api-key {} was refused",
        "subscription key {}",
        "apikey/{}/models",
        "Access token -> {}",
        "API key <{}>",
        "client secret ({})",
    ],
)
def test_a_bare_key_right_behind_its_name_goes(text):
    assert DIGEST not in clean(text.format(DIGEST))


@pytest.mark.parametrize(
    "text",
    [
        "cache key: {}",
        "md5 {}",
        "commit {}",
        "request id {}",
        "the key {} is not in the table",
        "object key/{}",
    ],
)
def test_a_digest_behind_another_name_stays(text):
    assert clean(text.format(DIGEST)) == text.format(DIGEST)


def test_digits_of_base_16_that_spell_no_secret_stay():
    for spelt in ("the quick brown fox jumps", "line 1: expected a value"):
        text = f"dump: {spelt.encode().hex()}"
        assert clean(text) == text


def test_a_secret_that_a_terminal_wrapped_goes_to_its_end():
    left = [
        name
        for name, secret in BARE
        if len(secret) > 90
        and "\n" not in secret
        and any(line in clean(f"error: {wrapped(secret)}\nbye") for line in _lines(secret))
    ]
    assert left == []
    assert clean(wrapped(f"key {BARE[0][1]}") + "\n2026-11-30T12:00:00 next line").endswith(
        "2026-11-30T12:00:00 next line"
    )


def _lines(secret):
    return [line for line in wrapped(secret).splitlines() if len(line) > 12]


def test_values_that_are_no_secrets_keep_their_place():
    value = {"name": "model", "value": "gpt-5", "max_tokens": 500, "token": None, "ok": True}
    assert scrub_value(value) == value
    assert scrub_value({"sessionId": "sess_0123456789abcdef"}) == {
        "sessionId": "sess_0123456789abcdef"
    }


# -- ordinary text --------------------------------------------------------------------------------


def test_ordinary_text_is_untouched():
    changed, total = touched()
    assert total > 2000
    assert changed == []


def test_the_surroundings_of_a_secret_stay():
    assert clean("a=1&api_key=hunter22&b=2") == f"a=1&api_key={CREDENTIAL_TAG}&b=2"
    assert clean('{"api_key": "hunter22", "model": "m"}') == (
        f'{{"api_key": "{CREDENTIAL_TAG}", "model": "m"}}'
    )
    assert clean(r"{\"api_key\":\"hunter22\",\"x\":1}") == (
        rf"{{\"api_key\":\"{CREDENTIAL_TAG}\",\"x\":1}}"
    )
    assert clean("Authorization: Bearer abcdef123456, retrying") == (
        f"Authorization: Bearer {CREDENTIAL_TAG}, retrying"
    )
    assert clean("api_key%3Dabc123def%26x%3D1") == f"api_key%3D{CREDENTIAL_TAG}%26x%3D1"


# -- URLs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("see https://alice:pw@git.example.com/x.git.", "git.example.com"),
        ("https://h.example:8443/x?access_token=abc123", "h.example"),
        ("https://h.example/cb#access_token=abc123", "h.example"),
        ("postgres://alice:p@ss/w#rd@DB.internal:5432/app", "db.internal"),
        ("http://alice:pw@[::1]:8080/", "::1"),
        ("http://alice:pw@bücher.example/", "unknown host"),
        ("https://ghp_abcdefghijklmnopqrstuvwxyz0123456789@github.com/x", "github.com"),
        (f"https://evil.example/p?d={'A1' * 130}", "evil.example"),
    ],
)
def test_a_url_with_a_credential_leaves_its_host(text, host):
    assert f"[REDACTED: suspicious URL to {host}]" in clean(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://ai.dev/usage?tab=rate-limit.",
        "https://alice@example.com/x",
        "ssh://git@github.com/example/project.git",
        "https://example.com/search?q=try+again%21&page=2",
        "https://evil.example.com/x?d=secret",
        "https://example.com/?token=<token>",
        "https://example.com/list?next_page_token=abc",
    ],
)
def test_an_ordinary_url_stays(text):
    assert clean(text) == text


# -- tags -----------------------------------------------------------------------------------------


def test_tags_are_fixed_points():
    text = (
        f"{CREDENTIAL_TAG} and [REDACTED: suspicious URL to h.example] and api_key={CREDENTIAL_TAG}"
    )
    assert scrub(text) == text
    assert one_line(text) == json.dumps(text)


def test_a_tag_of_a_url_alone_is_a_fixed_point():
    text = "login alice password [REDACTED: suspicious URL to h.example]"
    assert scrub(text) == text


def test_a_forged_tag_hides_nothing():
    assert "sk-ant" not in clean("[REDACTED: suspicious URL to sk-ant-api03-abcdefgh12345678]")
    assert "hunter" not in clean(f"password={CREDENTIAL_TAG}hunter22")
    assert "hunter" not in clean(f"Cookie: a={CREDENTIAL_TAG}; sid=hunter22")


# -- one line -------------------------------------------------------------------------------------


def test_one_line_is_one_line_of_compact_ascii_json():
    line = one_line({"a": "x\ny\u2028z\u202e", "b": [1, None, True]})
    assert line == r'{"a":"x\ny\u2028z\u202e","b":[1,null,true]}'


def test_a_line_is_cut_only_after_it_was_scrubbed():
    secret = "sk-ant-api03-" + "Ab1" * 30
    text = "x" * (MAX_LINE - 20) + " " + secret
    line = one_line(text)
    assert "sk-ant" not in line
    long = one_line("y" * 5000)
    assert long == '"' + "y" * (MAX_LINE - 1) + "... (3002 more characters)"


def test_a_secret_is_scrubbed_in_its_own_spelling_before_it_is_escaped():
    assert "ab" not in one_line({"m": 'password="ab\\"cdEF12'}).replace(CREDENTIAL_TAG, "")


def test_values_that_json_has_no_word_for_are_named_and_never_printed():
    class Client:
        def __repr__(self):
            return "Client(api_key=hunter2)"

    assert one_line({"c": Client()}) == '{"c":"<Client>"}'
    assert one_line(b"password=hunter22") == f'"password={CREDENTIAL_TAG}"'
    assert one_line({1: "x"}) == '{"<int>":"x"}'
    assert one_line(10**6000) == '"[left out]"'


def test_a_value_without_an_end_has_one_here():
    loop = []
    loop += [loop, loop]
    assert one_line(loop) == '["[left out]","[left out]"]'
    deep = "end"
    for _ in range(2000):
        deep = [deep]
    assert "[left out]" in one_line(deep)


def test_two_keys_that_become_the_same_tag_both_stay():
    keys = {secret: n for n, (_, secret) in enumerate(BARE[:3])}
    assert list(scrub_value(keys).values()) == [0, 1, 2]


# -- a terminal -----------------------------------------------------------------------------------


def test_a_foreign_line_can_not_steer_a_terminal():
    text = "\x1b[2Jok\r\n\u202egnp\u2028x\x9b1m\x00\ud800\t"
    assert terminal_line(text) == (r"\x1b[2Jok\r\n\u202egnp\u2028x\x9b1m\x00\ud800\t")
    assert terminal_line("naïve 日本語 🙂 text") == "naïve 日本語 🙂 text"
    assert len(terminal_line("a\nb").splitlines()) == 1


# -- total, idempotent, linear --------------------------------------------------------------------


@given(ANYTHING)
@settings(max_examples=200, deadline=None)
def test_any_text_can_be_scrubbed_and_once_is_enough(text):
    clean(text)
    terminal_line(text)


SECRET_PARTS = st.sampled_from(
    [s for _, s in BARE]
    + [t for _, _, t in NAMED]
    + [CREDENTIAL_TAG, "[REDACTED: suspicious URL to h.example]", "password=", "://", "@", '"']
    + ["\\", "%25", "&amp;", "token: ", "\n", " ", "key", "a.b", "Cookie: ", "=", "?sig="]
)


@given(st.lists(SECRET_PARTS | st.text(max_size=5), max_size=6).map("".join))
@settings(max_examples=150, deadline=None)
def test_once_is_enough_for_any_mixture_of_secrets(text):
    clean(text)


@given(JSON)
@settings(max_examples=100, deadline=None)
def test_any_value_becomes_one_clean_line(value):
    line = one_line(value)
    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert scrub(line) == line
    clean_value = scrub_value(value)
    assert json.dumps(scrub_value(clean_value)) == json.dumps(clean_value)


# -- what proves a text clean ---------------------------------------------------------------------

PLAIN_PARTS = ["u", "x", "n", "25", "41", "a", "&", "%", ";", "lt;", "&#", "="]
ESCAPE_PARTS = [
    "\\",
    "\\\\",
    "\\n",
    "\\u0041",
    "\\x41",
    '\\"',
    "%25",
    "&amp;",
    "#x41;",
    "#65;",
    "&quot;",
]


@given(
    st.lists(st.sampled_from(PLAIN_PARTS + ESCAPE_PARTS) | st.text(max_size=3), max_size=8).map(
        "".join
    )
)
@settings(max_examples=200, deadline=None)
def test_a_text_of_which_a_view_differs_shows_an_escape(text):
    data = text.encode("utf-8", "surrogatepass")
    if len(list(views(data))) > 1:
        assert compile_signs(ESCAPED, text=False)(data)


RUN_PARTS = st.sampled_from(["Ab3dEf6hIj9lMn2p", "ab3def6hij9lmn2p", "A" * 60, "Ab", "-", "_", "="])


@given(st.lists(RUN_PARTS | st.sampled_from(["\n", "\r\n", " ", "/", "+", "x1"]), max_size=8))
@settings(max_examples=200, deadline=None)
def test_every_run_of_base64_shows_its_core_and_its_mixed_case(parts):
    data = "".join(parts).encode()
    if list(runs(data)):
        assert len(compile_signs(CORE, MIXED_CASE, text=False)(data)) == 2


def test_runs_of_base64_go_over_lines_and_hyphens_and_end_where_they_end():
    line = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2"
    text = f"a {line}\n{line[:20]}== b {line[:15]} c {line[:8]}-{line[:20]}_ {line.lower()}"
    assert [run for _, _, run in runs(text.encode())] == [
        f"{line}\n{line[:20]}==".encode(),
        f"{line[:8]}-{line[:20]}_".encode(),
    ]


class CountingPattern:
    """Finds `x`; remembers how much it was given to read."""

    def __init__(self):
        self.read = 0

    def search(self, data, start, end):
        self.read += end - start
        at = data.find(b"x", start, end)
        return None if at < 0 else FakeMatch(at)


class FakeMatch:
    def __init__(self, at):
        self.at = at

    def start(self):
        return self.at

    def end(self):
        return self.at + 1


def test_a_search_reads_a_window_and_not_the_rest_of_the_text():
    pattern, data = CountingPattern(), b"." * 100 + b"x" + b"." * 900_000
    assert find_next(pattern, data, 0).start() == 100
    assert pattern.read <= 4096


def test_searching_a_text_to_its_end_reads_it_little_more_than_once():
    pattern, data = CountingPattern(), b"." * 1_000_000
    assert find_next(pattern, data, 0) is None
    assert pattern.read < 1.2 * len(data)


def test_many_matches_do_not_read_the_text_many_times():
    sizes = {}
    for size in (50_000, 1_000_000):
        pattern = CountingPattern()
        assert len(list(find_all(pattern, b"x........." * (size // 10)))) == size // 10
        sizes[size] = pattern.read
    assert sizes[1_000_000] <= 21 * sizes[50_000]


def test_a_match_that_touches_the_end_of_its_window_is_followed_to_its_end():
    key = "-----BEGIN PRIVATE KEY-----\n" + "QUJD" * 30_000 + "\n-----END PRIVATE KEY-----"
    assert scrub(f"a {key} b") == f"a {CREDENTIAL_TAG} b"
    assert scrub("password=" + "aB3" * 5000 + " b") == f"password={CREDENTIAL_TAG} b"


@pytest.mark.parametrize(
    "part",
    [
        "key=",
        "password=",
        "cookie:",
        "-Mm-AKIAABCDABCDABCDABCD",
        'password="',
        "\\",
        "%25",
        "&amp;",
        "http://u:p@h/ ",
        '"token","a":"b",',
        "eyJhbGci.",
        "-----BEGIN PRIVATE KEY-----",
        "\ud800",
        "authorization: bearer {",
        "x:y@tcp(",
        "[REDACTED: credential]x",
        "aB3dE5",
    ],
)
def test_texts_made_to_be_slow_are_not(part):
    clean(part * (100_000 // len(part)))


# -- tables ---------------------------------------------------------------------------------------


def test_every_shape_has_a_name_of_its_own():
    names = [shape.name for shape in SHAPES]
    assert len(names) == len(set(names))
    assert all(shape.name.isidentifier() for shape in SHAPES)


@pytest.mark.parametrize(
    "name", ["api_key", "x-api-key", "clientSecret", "FOO_TOKEN", "PGPASSWORD"]
)
def test_names_of_secrets_are_strong(name):
    assert strength(name) == STRONG


@pytest.mark.parametrize(
    "name",
    [
        "max_tokens",
        "model",
        "public_key",
        "cache_key",
        "next_page_token",
        "sessionId",
        "token_type",
        "password_file",
        "completion_tokens",
        "keyboard",
        "monkey_count",
    ],
)
def test_names_of_other_things_are_not(name):
    assert strength(name) == NONE


def test_noise_is_told_from_words():
    assert random_enough(b"k3J9xQ2mZp7Lr4Tw", 16)
    assert not random_enough(b"aaaaaaaaaaaaaaa1", 16)
    assert not random_enough(b"correcthorsebattery", 16)


def test_importing_the_scrubber_does_not_load_the_engine():
    code = "import sys, orchestrator.failure.redact; sys.exit('re2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
