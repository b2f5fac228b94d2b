"""THE table of secrets that give themselves away by their shape: one row per issuer.

Adding a shape is one row here and one planted secret in `tests/failure/data/secrets.json`.  The
patterns run in RE2 over bytes (`linear`), so no row can backtrack whatever it says.

Sources are the issuers' own pages on token formats (for example GitHub's "token prefixes", GitLab's
"token overview", AWS' "IAM identifiers", RFC 7519 for web tokens, RFC 7468 for PEM).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from attrs import frozen

from orchestrator.failure.base64_runs import unbase64
from orchestrator.failure.linear import compile_linear, find_next
from orchestrator.failure.randomness import DIGIT, LETTER, mixed_case, random_enough


@frozen
class Shape:
    """One kind of secret that is recognisable without a name beside it."""

    name: str
    """Group name in the joined pattern; one word per issuer and kind."""
    pattern: str
    """RE2 syntax, ASCII; matches the whole secret.  No long counts: they make the automaton of all
    rows large; the length goes into `least`."""
    least: int = 0
    """Characters of the shortest match that counts."""
    check: str = ""
    """A second look for shapes that ordinary text can take: a name in `_CHECKS`."""


_S = Shape
_W = r"[A-Za-z0-9_-]+"
"""A run of base64url, which most issuers use."""
_D = r"[A-Za-z0-9_.-]+"
_A = r"[A-Za-z0-9]+"
_B = r"[A-Za-z0-9+/]+={0,2}"
_X = r"[a-f0-9]+"

SHAPES: Final[tuple[Shape, ...]] = (
    # Keys in armour.  A block cut short, or flattened onto one line, counts to its last character.
    _S(
        "pem",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:"
        r"[A-Za-z0-9+/=\s\\,:_.@()\xff-]*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----"
        r"|(?:[\s\\nr]*[A-Za-z0-9+/=]{16,})+[\s\\nr]*[A-Za-z0-9+/=]*)",
    ),
    _S("ssh2", r"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----(?:[\s\\nr]*[A-Za-z0-9+/=]{16,})+"),
    _S("putty", r"Private-Lines: \d+\s+[A-Za-z0-9+/=\s]+(?:Private-MAC: [0-9a-f]+)?"),
    _S("openssh_body", r"\bb3BlbnNzaC1rZXktdjE[A-Za-z0-9+/=]*"),
    _S("age", r"AGE-SECRET-KEY-1[A-Z0-9]+", 32),
    # Web tokens: JWS, JWE, and one cut to its first two parts.
    _S("jwt", rf"\beyJ{_W}\.{_W}(?:\.[A-Za-z0-9_-]*){{0,3}}", 20),
    _S("jwt_head", rf"\beyJ(?:hbGciOi|0eXAiOi|raWQiOi|lbmMiOi|jdHkiOi|4NXQiOi){_W}"),
    _S("paseto", rf"\bv[1-4]\.(?:local|public)\.{_W}", 26),
    # Model providers.
    _S("anthropic", r"sk-ant-[A-Za-z0-9_*.-]+", 13),
    _S("openai", r"\bsk-(?:proj|svcacct|admin|None|service)-[A-Za-z0-9_*.-]+", 14),
    _S("sk", r"\bsk-[A-Za-z0-9_*-]+", 15, check="random"),
    _S("openai_session", rf"\bsess-{_A}", 37),
    _S("codex_refresh", rf"\brt_{_D}", 35, check="random"),
    _S("google_api", rf"AIza{_W}", 24),
    _S("google_aq", rf"\bAQ\.Ab8{_W}", 26),
    _S("google_access", rf"\bya29\.{_D}", 15),
    _S("google_refresh", rf"\b1//0{_W}", 24),
    _S("google_client", rf"GOCSPX-{_W}", 23),
    _S("huggingface", rf"\b(?:hf_|api_org_){_A}", 30),
    _S("groq", rf"\bgsk_{_A}", 20),
    _S("xai", rf"\bxai-{_W}", 20, check="random"),
    _S("replicate", rf"\br8_{_A}", 19),
    _S("perplexity", rf"\bpplx-{_A}", 21, check="random"),
    _S("nvidia", rf"\bnvapi-{_W}", 26),
    _S("cerebras", rf"\bcsk-{_A}", 24),
    _S("together", rf"\btgp_v\d_{_W}", 27),
    _S("fireworks", rf"\bfw_{_A}", 23, check="random"),
    _S("langsmith", r"\blsv2_(?:pt|sk)_[a-f0-9_]+", 24),
    _S("pinecone", r"\bpcsk_[A-Za-z0-9_]+", 25),
    _S("tavily", rf"\btvly-{_W}", 21),
    _S("firecrawl", rf"\bfc-{_X}", 35),
    _S("elevenlabs", rf"\bsk_{_X}", 43),
    _S("jina", rf"\bjina_{_W}", 37),
    # Clouds.
    _S("aws_key_id", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]+", 16),
    _S("aws_session", rf"\b(?:IQoJ|FwoG|FQoG){_B}", 64),
    _S("aws_sso", r"\bao[ar]AAAA[A-Za-z0-9+/=:_-]+", 24),
    _S("bedrock", rf"\bABSK{_B}", 44),
    _S("bedrock_short", r"\bbedrock-api-key-[A-Za-z0-9+/=_-]+", 32),
    _S("azure_openai", rf"\b{_A}JQQJ99{_A}", 66),
    _S("azure_devops", rf"\b{_A}AZDO{_A}", 68),
    _S("azure_shared", r"\b[A-Za-z0-9+/]+(?:APIM|ACDb|\+ABa|\+AMC|\+ASt)[A-Za-z0-9+/]+={1,2}", 82),
    _S("azure_hub", r"\b[A-Za-z0-9+/]+(?:AIoT|\+ASb|\+AEh|\+ARm)[A-Za-z0-9+/]+={1,2}", 43),
    _S("azure_function", rf"\b{_W}Az[FS][ue]{_W}={{0,2}}", 52, check="mixed"),
    _S("azure_client", r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]+", 37),
    _S("azure_acr", r"\b[A-Za-z0-9+/]+\+ACR[A-Za-z0-9+/]+", 52),
    _S("digitalocean", rf"\bdo[oprst]_v1_{_X}", 39),
    _S("cloudflare_origin", rf"\bv1\.0-{_X}-{_X}", 60),
    _S("cloudflare", rf"\bcf(?:ut|at|k)_{_W}", 34),
    _S("heroku", rf"\bHRKU-{_W}", 25),
    _S("fly", r"\bfm[12][ar]?_[A-Za-z0-9+/=_,-]+", 44),
    _S("fly_old", rf"\bfo1_{_W}", 34),
    _S("alibaba", rf"\bLTAI{_A}", 16),
    _S("tencent", rf"\bAKID{_A}", 32),
    _S("databricks", r"\bdapi[a-f0-9]+(?:-\d+)?", 28),
    _S("planetscale", rf"\bpscale_(?:tkn|pw|oauth)_{_D}", 30),
    _S("supabase", rf"\b(?:sbp_|sb_secret_){_W}", 24),
    _S("netlify", rf"\bnfp_{_A}", 24),
    _S("vercel", rf"\bvc[aiprk]_{_A}", 24),
    _S("render", rf"\brnd_{_A}", 24),
    # Code hosts and package registries.
    _S("github", rf"gh[opsur]_{_D}", 20),
    _S("github_pat", r"github_pat_[A-Za-z0-9_]+", 27),
    _S("copilot", r"\btid=[A-Za-z0-9-]+;[^\s\"']+", 24),
    _S("gitlab", rf"\bgl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas|ffct|wt)-{_D}", 22),
    _S("gitlab_runner", rf"\bGR1348941{_W}", 25),
    _S("bitbucket", r"\bATBB[A-Za-z0-9_=-]+", 28),
    _S("atlassian", r"\bAT(?:ATT|CTT)3[A-Za-z0-9_=-]+", 46),
    _S("npm", rf"\bnpm_{_A}", 20, check="random"),
    _S("pypi", rf"\bpypi-{_W}", 21, check="random"),
    _S("rubygems", rf"\brubygems_{_X}", 33),
    _S("crates", rf"\bcio{_A}", 35, check="random"),
    _S("nuget", r"\boy2[a-z0-9]+", 46),
    _S("docker", rf"\bdckr_(?:pat|oat)_{_W}", 25),
    _S("artifactory", rf"\bAKCp{_A}", 24),
    _S("artifactory_ref", rf"\bcmVmd{_B}", 40),
    # Chat and mail.
    _S("slack", r"\bxox[abeoprs]-[A-Za-z0-9-]+", 13),
    _S("slack_refresh", r"\bxoxe\.xox[bp]-[A-Za-z0-9-]+", 26),
    _S("slack_app", r"\bxapp-\d-[A-Za-z0-9-]+", 23),
    _S("slack_hook", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]+", 38),
    _S("discord_hook", rf"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/{_W}", 46),
    _S("discord", rf"\b[MNO]{_W}\.{_W}\.{_W}", 56, check="discord"),
    _S("discord_mfa", rf"\bmfa\.{_W}", 44),
    _S("telegram", rf"\b(?:bot)?\d+:AA{_W}", 40),
    _S("teams_hook", r"webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]+", 57),
    _S("sendgrid", rf"\bSG\.{_W}\.{_W}", 36),
    _S("mailgun", rf"\bkey-{_X}\b", 36),
    _S("mailchimp", rf"\b{_X}-us\d{{1,2}}\b", 36),
    _S("brevo", rf"\bxkeysib-{_X}(?:-{_A})?", 40),
    _S("twilio", r"\bSK[a-fA-F0-9]+\b", 34),
    _S("resend", rf"\bre_{_A}_{_A}", 28, check="random"),
    # Money.
    _S("stripe", rf"\b(?:sk|rk|pk)_(?:live|test|prod)_{_A}", 16),
    _S("stripe_hook", r"\bwhsec_[A-Za-z0-9+/=]+", 26),
    _S("square", rf"\bsq0(?:atp|csp|idp)-{_W}", 27),
    _S("shopify", r"\bshp(?:at|ss|ca|pa|tka)_[a-fA-F0-9]+", 30),
    _S("paypal", rf"access_token\$(?:production|sandbox)\$[a-z0-9]+\${_X}", 44),
    _S("plaid", r"\baccess-(?:production|sandbox|development)-[a-f0-9-]+", 48),
    # Operations.
    _S("vault", rf"\bhv[bsr]\.{_W}", 20),
    _S("terraform", rf"\b{_A}\.atlasv1\.{_W}", 60),
    _S("doppler", rf"\bdp\.(?:pt|st|ct|sa|scim|audit)\.{_D}", 26),
    _S("pulumi", rf"\bpul-{_X}", 44),
    _S("grafana", r"\bgl(?:c|sa)_[A-Za-z0-9+/=_]+", 25),
    _S("sentry", r"\bsntry[su]_[A-Za-z0-9+/=_]+", 27),
    _S("newrelic", rf"\bNR(?:AK|JS|II|RA|IQ)-{_W}", 21),
    _S("dynatrace", r"\bdt0c01\.[A-Z0-9]+\.[A-Z0-9]+", 56),
    _S("sonar", rf"\bsq[pua]_{_X}", 44),
    _S("posthog", rf"\bph[xs]_{_A}", 34),
    _S("onepassword", r"\bops_eyJ[A-Za-z0-9+/=_-]+", 48),
    _S("tailscale", r"\btskey-[a-z]+-[A-Za-z0-9-]+", 26),
    _S("linear", rf"\blin_(?:api|oauth)_{_A}", 28),
    _S("notion", rf"\b(?:secret_|ntn_){_A}", 44),
    _S("figma", rf"\bfig[dou]_{_W}", 25),
    _S("postman", r"\bPMAK-[a-f0-9-]+", 45),
    _S("airtable", rf"\bpat{_A}\.{_X}", 58),
    _S("facebook", rf"\bEAA{_A}", 64),
    _S("mapbox", rf"\bsk\.eyJ{_W}\.{_W}", 40),
    _S("clojars", r"\bCLOJARS_[a-z0-9]+", 48),
    _S("asana", rf"\b[12]/\d+(?:/\d+)?:{_X}", 44),
    # Others.
    _S("adobe", rf"\bp8e-{_A}", 36),
    _S(
        "authress", r"\b(?:sc|ext|scauth|authress)_[a-z0-9]+\.[a-z0-9]+\.acc_[A-Za-z0-9+/=_.-]+", 40
    ),
    _S("clickhouse", rf"\b4b1d{_A}\b", 42, check="random"),
    _S("defined", rf"\bdnkey-{_W}", 40),
    _S("duffel", r"\bduffel_(?:test|live)_[A-Za-z0-9_=-]+", 40),
    _S("easypost", rf"\bEZ[AT]K{_A}", 50),
    _S("facebook_app", rf"\b\d+\|{_W}", 40, check="facebook"),
    _S("flutterwave", rf"\bFLW(?:SECK|PUBK)(?:_TEST)?-{_W}", 24),
    _S("frameio", r"\bfio-u-[A-Za-z0-9_=-]+", 60),
    _S("grafana_old", rf"\beyJrIjoi{_B}", 50),
    _S("harness", rf"\b[ps]at\.{_W}\.{_A}\.{_A}", 60),
    _S("infracost", rf"\bico-{_A}", 36, check="random"),
    _S("maxmind", r"\b[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk\b"),
    _S("octopus", r"\bAPI-[A-Z0-9]+", 30, check="random"),
    _S("one_password", r"\bA3-[A-Z0-9]{6}-[A-Z0-9-]+", 30),
    _S("openshift", rf"\bsha256~{_W}", 50),
    _S("prefect", rf"\bpn[ub]_{_A}", 40),
    _S("readme", rf"\brdme_{_A}", 60),
    _S("scalingo", rf"\btk-us-{_W}", 54),
    _S("settlemint", rf"\bsm_[aps]at_{_A}", 23),
    _S("shippo", r"\bshippo_(?:live|test)_[a-fA-F0-9]+", 50),
    _S("sourcegraph", r"\bsgp_(?:[a-fA-F0-9]+_|local_)?[a-fA-F0-9]+", 44),
    _S("twitter", r"\bAAAAAAAAAAAAAAAAAAAA[A-Za-z0-9%]+", 80),
    _S("typeform", rf"\btfp_{_D}", 50),
    _S("vault_old", rf"\bs\.{_A}\b", 26, check="noise"),
    _S("yandex", r"\bt1\.[A-Za-z0-9_-]+[=]{0,2}\.[A-Za-z0-9_-]+={0,2}", 80),
    _S("yandex_key", rf"\bAQVN{_W}", 39),
    # A scheme and its credential, wherever they stand.
    _S("bearer", r"(?i:\bbearer)(?:[ \t:=]+|%20)[\"']?[A-Za-z0-9._~+/=*|:-]+", check="bearer"),
    _S("basic", r"(?i:\bbasic)(?:[ \t]+|%20)[A-Za-z0-9+/_-]+={0,2}", check="basic"),
    _S(
        "curl_user",
        r"(?:^|[\s\"',\[(])(?:-u|--user|--proxy-user)[\s=\"',]{1,4}[^\s:\"'@/]+:[^\s\"']+",
        check="flag",
    ),
    _S("netrc", r"\blogin[ \t]+[^\s]+[ \t]+password[ \t]+[^\s]+", check="last"),
    _S("sshpass", r"\bsshpass[ \t]+-p[ \t]*[^\s-][^\s]*", check="sshpass"),
)


# -- second looks ---------------------------------------------------------------------------------

_LONG_BEARER = 24
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_BEARER = re.compile(rb"(?i)bearer(?:[ \t:=]+|%20)[\"']?")
_BASIC = re.compile(rb"(?i)basic(?:[ \t]+|%20)")
_CURL = re.compile(rb"[\s\"',\[(]*-[a-z-]+[\s=\"',]+")


def _prefix(pattern: re.Pattern[bytes], secret: bytes) -> int:
    match = pattern.match(secret)
    return match.end() if match else 0


def _looks_random(secret: bytes) -> int | None:
    """Letters and digits mixed, or a masked middle; a word with hyphens is neither."""
    if b"*" in secret or (DIGIT.search(secret, 4) and LETTER.search(secret, 4)):
        return 0
    return None


def _bearer(secret: bytes) -> int | None:
    start = _prefix(_BEARER, secret)
    token = secret[start:]
    if DIGIT.search(token) or len(token) >= _LONG_BEARER or mixed_case(token):
        return start
    return None


def _basic(secret: bytes) -> int | None:
    start = _prefix(_BASIC, secret)
    decoded = unbase64(secret[start:])
    if b":" in decoded and not _CONTROL.search(decoded):
        return start
    return None


def _after_flag(secret: bytes) -> int | None:
    return _prefix(_CURL, secret)


def _discord(secret: bytes) -> int | None:
    first, middle, last = secret.split(b".")
    fits = 20 <= len(first) <= 30 and 5 <= len(middle) <= 8 and len(last) >= 26  # noqa: PLR2004
    return 0 if fits else None


def _mixed(secret: bytes) -> int | None:
    return 0 if DIGIT.search(secret) and mixed_case(secret) else None


_CHECKS: Final[Mapping[str, Callable[[bytes], int | None]]] = {
    "discord": _discord,
    "facebook": lambda secret: 0 if len(secret.split(b"|")[0]) in {15, 16} else None,
    "noise": lambda secret: 0 if len(secret) in {26, 28} and mixed_case(secret) else None,
    "mixed": _mixed,
    "last": lambda secret: len(secret) - len(secret.split()[-1]),
    "sshpass": lambda secret: len(secret) - len(secret.split(b"-p", 1)[1].lstrip()),
    "random": _looks_random,
    "bearer": _bearer,
    "basic": _basic,
    "flag": _after_flag,
}
"""Each answers how many leading bytes stay readable, or None for ordinary text."""


# -- the search ----------------------------------------------------------------------------------

_SHORT = 160
"""A match up to this long that fails its second look is looked into once more."""


@cache
def joined() -> str:
    """All rows as one pattern without groups, for a gate."""
    return "|".join(shape.pattern for shape in SHAPES)


@cache
def _pattern() -> Any:
    return compile_linear("|".join(f"(?P<{s.name}>{s.pattern})" for s in SHAPES))


@cache
def _rows() -> Mapping[int, tuple[int, Callable[[bytes], int | None] | None]]:
    """Least length and check by the number of the row's group."""
    groups = _pattern().groupindex
    return {groups[s.name.encode()]: (s.least, _CHECKS.get(s.check)) for s in SHAPES}


def spans(data: bytes) -> Iterator[tuple[int, int]]:
    """Where secrets of a known shape stand."""
    pattern, rows, start = _pattern(), _rows(), 0
    while (match := find_next(pattern, data, start)) is not None:
        first, end = match.span()
        least, check = rows[match.lastindex]
        kept = 0 if end - first >= least else None
        if kept is not None and check:
            kept = check(match.group())
        if kept is not None:
            end = _unwrapped(data, end)
            yield first + kept, end
        # What failed may hide another shape; it is short, so the second look is cheap.
        start = first + 1 if kept is None and end - first <= _SHORT else end


_WRAPPED = re.compile(rb"\r?\n[ \t]*((?!\d{4}-\d\d)[A-Za-z0-9_+/=.:-]{8,})(?=[\s\"'\\)\]},;]|$)")
_NARROWEST = 60
"""Columns of the narrowest terminal that is expected to wrap a line."""


def _unwrapped(data: bytes, end: int) -> int:
    """The end of a secret that a terminal wrapped: it goes on in the lines below."""
    while end - data.rfind(b"\n", 0, end) > _NARROWEST:
        below = _WRAPPED.match(data, end)
        if below is None or not random_enough(below[1], 8):
            break
        end = below.end()
    return end


def any_in(data: bytes) -> bool:
    """True for a text with a secret of a known shape."""
    return next(spans(data), None) is not None
