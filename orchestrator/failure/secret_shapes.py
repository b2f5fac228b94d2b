"""THE table of secrets that give themselves away by their shape: one row per issuer.

Adding a shape is one row here and one planted secret in `tests/failure/data/secrets.json`.  The
patterns run in RE2 over bytes, so no row can backtrack whatever it says; a row needs only to keep
what follows its prefix free of a far-away end mark, so that a failed match stays cheap.

Sources are the issuers' own pages on token formats (for example GitHub's "token prefixes", GitLab's
"token overview", AWS' "IAM identifiers", RFC 7519 for web tokens, RFC 7468 for PEM).
"""

from __future__ import annotations

from typing import Final

from attrs import frozen


@frozen
class Shape:
    """One kind of secret that is recognisable without a name beside it."""

    name: str
    """Group name in the joined pattern; one word per issuer and kind."""
    pattern: str
    """RE2 syntax, ASCII; matches the whole secret."""
    check: str = ""
    """A second look for shapes that ordinary text can take: a name in `redact._CHECKS`."""


_S = Shape
_W = r"[A-Za-z0-9_-]"
"""Characters of base64url, which most issuers use."""
_B = r"[A-Za-z0-9+/_-]"

SHAPES: Final[tuple[Shape, ...]] = (
    # Keys in armour.  A block cut short, or flattened onto one line, counts to its last character.
    _S(
        "pem",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"[A-Za-z0-9+/=\s\\,:_.@()\xff-]*(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    _S("ssh2", r"---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----[A-Za-z0-9+/=\s\\,:_.@()\"-]*"),
    _S("putty", r"Private-Lines: \d+\s+[A-Za-z0-9+/=\s]+(?:Private-MAC: [0-9a-f]+)?"),
    _S("openssh_body", r"\bb3BlbnNzaC1rZXktdjE[A-Za-z0-9+/=]*"),
    _S("age", r"AGE-SECRET-KEY-1[A-Z0-9]{20,}"),
    # Web tokens: JWS, JWE, and one cut to its first two parts.
    _S("jwt", rf"\beyJ{_W}{{8,}}\.{_W}{{6,}}(?:\.{_W}*){{0,3}}"),
    _S("jwt_head", rf"\beyJ(?:hbGciOi|0eXAiOi|raWQiOi|lbmMiOi|jdHkiOi|4NXQiOi){_W}{{8,}}"),
    _S("paseto", rf"\bv[1-4]\.(?:local|public)\.{_W}{{16,}}"),
    # Model providers.
    _S("anthropic", r"sk-ant-[A-Za-z0-9_*.-]{6,}"),
    _S("openai", r"\bsk-(?:proj|svcacct|admin|None|service)-[A-Za-z0-9_*.-]{6,}"),
    _S("sk", r"\bsk-[A-Za-z0-9_*-]{12,}", check="random"),
    _S("openai_session", r"\bsess-[A-Za-z0-9]{32,}"),
    _S("codex_refresh", r"\brt_[A-Za-z0-9_.-]{32,}", check="random"),
    _S("google_api", rf"AIza{_W}{{20,}}"),
    _S("google_aq", rf"\bAQ\.Ab8{_W}{{20,}}"),
    _S("google_access", r"\bya29\.[A-Za-z0-9_.-]{10,}"),
    _S("google_refresh", rf"\b1//0{_W}{{20,}}"),
    _S("google_client", rf"GOCSPX-{_W}{{16,}}"),
    _S("huggingface", r"\b(?:hf_|api_org_)[A-Za-z0-9]{16,}", check="random"),
    _S("groq", r"\bgsk_[A-Za-z0-9]{16,}"),
    _S("xai", r"\bxai-[A-Za-z0-9_-]{16,}", check="random"),
    _S("replicate", r"\br8_[A-Za-z0-9]{16,}"),
    _S("perplexity", r"\bpplx-[A-Za-z0-9]{16,}", check="random"),
    _S("nvidia", rf"\bnvapi-{_W}{{20,}}"),
    _S("cerebras", r"\bcsk-[A-Za-z0-9]{20,}"),
    _S("together", r"\btgp_v\d_[A-Za-z0-9_-]{20,}"),
    _S("fireworks", r"\bfw_[A-Za-z0-9]{20,}", check="random"),
    _S("langsmith", r"\blsv2_(?:pt|sk)_[a-f0-9]{16,}(?:_[a-f0-9]+)?"),
    _S("pinecone", r"\bpcsk_[A-Za-z0-9_]{20,}"),
    _S("tavily", r"\btvly-[A-Za-z0-9_-]{16,}"),
    _S("firecrawl", r"\bfc-[a-f0-9]{32}"),
    _S("elevenlabs", r"\bsk_[a-f0-9]{40,}"),
    _S("jina", r"\bjina_[A-Za-z0-9_-]{32,}"),
    # Clouds.
    _S("aws_key_id", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}"),
    _S("aws_session", r"\b(?:IQoJ|FwoG|FQoG)[A-Za-z0-9+/]{60,}={0,2}"),
    _S("aws_sso", r"\bao[ar]AAAA[A-Za-z0-9+/=:_-]{16,}"),
    _S("bedrock", r"\bABSK[A-Za-z0-9+/]{40,}={0,2}"),
    _S("bedrock_short", r"\bbedrock-api-key-[A-Za-z0-9+/=_-]{16,}"),
    _S("azure_openai", r"\b[A-Za-z0-9]{40,60}JQQJ99[A-Za-z0-9]{20,40}"),
    _S("azure_devops", r"\b[A-Za-z0-9]{60,80}AZDO[A-Za-z0-9]{4}"),
    _S(
        "azure_shared",
        r"\b[A-Za-z0-9+/]{70,90}(?:APIM|ACDb|\+ABa|\+AMC|\+ASt)[A-Za-z0-9+/]{5,7}={1,2}",
    ),
    _S("azure_hub", r"\b[A-Za-z0-9+/]{33}(?:AIoT|\+ASb|\+AEh|\+ARm)[A-Za-z0-9+/]{5,7}={1,2}"),
    _S("azure_function", rf"\b{_W}{{44}}Az[FS][ue]{_W}{{5,8}}={{0,2}}"),
    _S("azure_client", r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    _S("azure_acr", r"\b[A-Za-z0-9+/]{42}\+ACR[A-Za-z0-9+/]{6}"),
    _S("digitalocean", r"\bdo[oprst]_v1_[a-f0-9]{32,}"),
    _S("cloudflare_origin", r"\bv1\.0-[a-f0-9]{24}-[a-f0-9]{100,}"),
    _S("cloudflare", r"\bcf(?:ut|at|k)_[A-Za-z0-9_-]{30,}"),
    _S("heroku", rf"\bHRKU-{_W}{{20,}}"),
    _S("fly", r"\bfm[12][ar]?_[A-Za-z0-9+/=_,-]{40,}"),
    _S("fly_old", rf"\bfo1_{_W}{{30,}}"),
    _S("alibaba", r"\bLTAI[A-Za-z0-9]{12,}"),
    _S("tencent", r"\bAKID[A-Za-z0-9]{28,}"),
    _S("ibm", r"\bcrn_apikey-[A-Za-z0-9_-]{20,}"),
    _S("databricks", r"\bdapi[a-f0-9]{24,}(?:-\d+)?"),
    _S("planetscale", r"\bpscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{20,}"),
    _S("supabase", rf"\b(?:sbp_|sb_secret_){_W}{{20,}}"),
    _S("netlify", r"\bnfp_[A-Za-z0-9]{20,}"),
    _S("vercel", r"\bvc[aiprk]_[A-Za-z0-9]{20,}"),
    _S("render", r"\brnd_[A-Za-z0-9]{20,}"),
    # Code hosts and package registries.
    _S("github", r"gh[opsur]_[A-Za-z0-9_.-]{16,}"),
    _S("github_pat", r"github_pat_[A-Za-z0-9_]{16,}"),
    _S("copilot", r"\btid=[A-Za-z0-9-]{8,};[^\s\"']{10,}"),
    _S(
        "gitlab",
        rf"\bgl(?:pat|dt|ft|soat|rt|cbt|imt|ptt|agent|oas|ffct|wt)-{_W}{{16,}}(?:\.{_W}+)*",
    ),
    _S("gitlab_runner", rf"\bGR1348941{_W}{{16,}}"),
    _S("bitbucket", r"\bATBB[A-Za-z0-9_=-]{24,}"),
    _S("atlassian", r"\bAT(?:ATT|CTT)3[A-Za-z0-9_=-]{40,}"),
    _S("npm", r"\bnpm_[A-Za-z0-9]{16,}", check="random"),
    _S("pypi", rf"\bpypi-{_W}{{16,}}", check="random"),
    _S("rubygems", r"\brubygems_[a-f0-9]{24,}"),
    _S("crates", r"\bcio[A-Za-z0-9]{32}\b", check="random"),
    _S("nuget", r"\boy2[a-z0-9]{43}"),
    _S("docker", rf"\bdckr_(?:pat|oat)_{_W}{{16,}}"),
    _S("artifactory", r"\bAKCp[A-Za-z0-9]{20,}"),
    _S("artifactory_ref", r"\bcmVmdGtuOj[A-Za-z0-9+/=]{20,}"),
    # Chat and mail.
    _S("slack", r"\bxox[abeoprs]-[A-Za-z0-9-]{8,}"),
    _S("slack_refresh", r"\bxoxe\.xox[bp]-[A-Za-z0-9-]{16,}"),
    _S("slack_app", r"\bxapp-\d-[A-Za-z0-9-]{16,}"),
    _S("slack_hook", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/_-]{12,}"),
    _S("discord_hook", rf"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{{5,}}/{_W}{{16,}}"),
    _S("discord", rf"\b[MNO][A-Za-z0-9_-]{{22,27}}\.{_W}{{6}}\.{_W}{{27,40}}"),
    _S("discord_mfa", rf"\bmfa\.{_W}{{40,}}"),
    _S("telegram", r"\d{8,10}:AA[A-Za-z0-9_-]{30,}"),
    _S("teams_hook", r"webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{30,}"),
    _S("sendgrid", rf"\bSG\.{_W}{{16,}}\.{_W}{{16,}}"),
    _S("mailgun", r"\bkey-[a-f0-9]{32}\b"),
    _S("mailchimp", r"\b[a-f0-9]{32}-us\d{1,2}\b"),
    _S("brevo", r"\bxkeysib-[a-f0-9]{32,}(?:-[A-Za-z0-9]+)?"),
    _S("twilio", r"\bSK[a-f0-9]{32}\b"),
    _S("resend", r"\bre_[A-Za-z0-9]{8}_[A-Za-z0-9]{16,}"),
    # Money.
    _S("stripe", r"\b(?:sk|rk|pk)_(?:live|test|prod)_[A-Za-z0-9]{8,}"),
    _S("stripe_hook", r"\bwhsec_[A-Za-z0-9+/=]{20,}"),
    _S("square", rf"\bsq0(?:atp|csp|idp)-{_W}{{20,}}"),
    _S("shopify", r"\bshp(?:at|ss|ca|pa|tka)_[a-fA-F0-9]{24,}"),
    _S("paypal", r"access_token\$(?:production|sandbox)\$[a-z0-9]+\$[a-f0-9]{20,}"),
    _S("plaid", r"\baccess-(?:production|sandbox|development)-[a-f0-9-]{36}"),
    # Operations.
    _S("vault", r"\bhv[bsr]\.[A-Za-z0-9_-]{16,}"),
    _S("terraform", rf"[A-Za-z0-9]{{10,14}}\.atlasv1\.{_W}{{40,}}"),
    _S("doppler", r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{20,}"),
    _S("pulumi", r"\bpul-[a-f0-9]{40}"),
    _S("grafana", r"\bgl(?:c|sa)_[A-Za-z0-9+/=_]{20,}"),
    _S("sentry", r"\bsntry[su]_[A-Za-z0-9+/=_]{20,}"),
    _S("newrelic", r"\bNR(?:AK|JS|II|RA|IQ)-[A-Za-z0-9_-]{16,}"),
    _S("dynatrace", r"\bdt0c01\.[A-Z0-9]{16,}\.[A-Z0-9]{32,}"),
    _S("sonar", r"\bsq[pua]_[a-f0-9]{40}"),
    _S("posthog", r"\bph[xs]_[A-Za-z0-9]{30,}"),
    _S("onepassword", r"\bops_eyJ[A-Za-z0-9+/=_-]{40,}"),
    _S("tailscale", r"\btskey-[a-z]+-[A-Za-z0-9-]{16,}"),
    _S("linear", r"\blin_(?:api|oauth)_[A-Za-z0-9]{20,}"),
    _S("notion", r"\b(?:secret_|ntn_)[A-Za-z0-9]{40,}"),
    _S("figma", rf"\bfig[dou]_{_W}{{20,}}"),
    _S("postman", r"\bPMAK-[a-f0-9-]{40,}"),
    _S("airtable", r"\bpat[A-Za-z0-9]{14}\.[a-f0-9]{40,}"),
    _S("facebook", r"\bEAA[A-Za-z0-9]{60,}"),
    _S("mapbox", rf"\bsk\.eyJ{_W}{{20,}}\.{_W}{{16,}}"),
    _S("clojars", r"\bCLOJARS_[a-z0-9]{40,}"),
    _S("asana", r"\b[12]/\d{10,}(?:/\d{10,})?:[a-f0-9]{32}"),
    # A scheme and its credential, wherever they stand.
    _S("bearer", r"(?i:\bbearer)(?:[ \t:=]+|%20)[\"']?[A-Za-z0-9._~+/=*|:-]{8,}", check="bearer"),
    _S("basic", r"(?i:\bbasic)(?:[ \t]+|%20)[A-Za-z0-9+/_-]{6,}={0,2}", check="basic"),
    _S(
        "curl_user",
        r"(?:^|[\s\"',\[(])(?:-u|--user|--proxy-user)[\s=\"',]{1,4}[^\s:\"'@/]{1,80}:[^\s\"']{1,200}",
    ),
    _S("mysql_dsn", r"[A-Za-z0-9_.-]+:[^\s@/\"']{1,200}@(?:tcp|unix|udp)\("),
    _S("sshpass", r"\bsshpass[ \t]+-p[ \t]*[^\s-][^\s]*"),
)
