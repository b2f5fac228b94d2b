"""Nets for what is spent and what is throttled, in words that no speaker owns."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.rule import Rule, Step, forbid, raised, says

_WINDOW = (
    r"(?:hourly|daily|weekly|monthly|yearly|session|\d+[- ]?(?:hours?|h|days?)"
    r"|five[- ]hour|per[- ](?:day|week|month))"
)

_ALLOWED = (
    "(?:usage|messages?|requests?|tokens?|quota|api|free|model|credits?|premium|chat|prompts?)"
)

RULES: Final[tuple[Rule, ...]] = (
    says(
        "any.named_window",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        rf"\b{_WINDOW} (?:{_ALLOWED} ){{0,3}}(?:limit|quota|allowance|cap)\b",
        rf"\b{_WINDOW} (?:{_ALLOWED} ){{0,3}}limits (?:reached|exceeded|hit|will|reset)\b",
        r"\b(?:exceed|reach|hit)\w*\b.{0,40}\b(?:daily|weekly|monthly) rate limit\b",
        (
            r"\b(?:limit|quota|allowance|maximum|cap)\b.{0,60}\b(?:for (?:this|the) (?:day|week"
            r"|month|billing)|for today|(?:this|per) (?:day|week|month)|a (?:day|week|month))\b"
        ),
        r"\b(?:limit|quota)s?\b.{0,60}\b(?:will )?resets? (?:at|on|in|after)\b",
        r"\blimits?\b.{0,30} . resets\b",
        r"\bmaximum\b.{0,80}\breached for this month\b",
        unless=(
            r"\b(?:session|turn|tool|step) (?:turn |token )?limit\b.{0,20}config|rate limit"
            r" reached|per min|requests per minute|\bconcurrent (?:session|request)"
        ),
        priority=-10,
    ),
    says(
        "any.usage_limit",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        (
            r"\busage (?:limits?|cap|quota) (?:(?:has|have) been |was |is )?(?:reached|exceeded"
            r"|hit|exhausted)\b"
        ),
        (
            r"\b(?:hit|reached|exceeded|exhausted) (?:your|the|its|my) (?:[\w-]+ ){0,3}(?:usage"
            r"|quota|allowance|plan) ?(?:limits?|cap|quota)?\b"
        ),
        r"\bout of (?:extra )?(?:usage|quota|messages|requests)\b",
        r"\bquota (?:has been |is |was )?(?:exceeded|exhausted|reached|used up|depleted)\b",
        r"\b(?:exceeded|insufficient|no) quota\b|\bquotaexceeded\b",
        (
            r"\b(?:allowance|quota|credits? allotment) (?:is |has been |was )?(?:spent|used up"
            r"|exhausted|depleted)\b"
        ),
        (
            r"\bfree (?:tier|plan|trial) (?:limit|quota|usage)\b.{0,40}(?:reached|exceeded"
            r"|exhausted|ended)"
        ),
        check="not_a_short_wait",
        priority=-12,
    ),
    says(
        "any.billing",
        Step.ALLOWANCE,
        Kind.BILLING,
        r"\bcredit balance\b.{0,20}too low\b|\binsufficient (?:credits?|funds|balance)\b",
        r"\binsufficient_\w*(?:balance|credits?|funds)\w*\b",
        r"\bnot enough (?:credits?|funds|balance)\b|\bout of (?:\w+ )?credits?\b",
        r"\bpayment (?:is )?required\b",
        r"\bpayment method\b.{0,40}(?:required|declined|failed|missing|add)",
        r"\bbilling (?:is not|not) (?:active|enabled|set up)\b|\bbilling (?:hard )?limit\b",
        r"\bbilling (?:issue|error|problem)\b|\boverdue (?:invoice|payment|balance)\b",
        r"\bspend(?:ing)? (?:limit|cap|budget)\b.{0,30}(?:reached|exceeded|hit)",
        (
            r"\b(?:reached|exceeded|hit) (?:your|the|its) (?:\w+ ){0,2}spend(?:ing)? (?:limit"
            r"|cap)\b"
        ),
        r"\baccount (?:is |has been )?(?:on hold|in arrears|past due|delinquent)\b",
        r"\btop up your (?:account|balance)\b",
        r"\bsubscription (?:has )?(?:expired|lapsed|inactive|ended)\b",
        r"\bcredits? (?:have been |has been |are |is )?(?:exhausted|depleted|used up|run out)\b",
        r"\b(?:balance|funds|credits?) (?:is|are) (?:insufficient|too low|not enough|negative)\b",
        r"\b(?:run|ran|runs) out of (?:\w+ )?(?:credits?|funds|balance)\b",
        r"\brequires? (?:a )?paid balance\b|\btop up and (?:try|retry)\b",
        (
            r"\b(?:does not|doesn't|do not|don't) have (?:any|enough|sufficient) (?:\w+ )?"
            r"(?:credits?|funds|balance)\b"
        ),
        priority=-8,
    ),
    says(
        "any.budget",
        Step.ALLOWANCE,
        Kind.BUDGET_EXHAUSTED,
        (
            r"\b(?:maximum|max) (?:number of )?(?:\w+ )?(?:turns|steps|iterations|tool"
            r" calls)\b.{0,40}(?:reached|exceeded)"
        ),
        (
            r"\b(?:reached|exceeded|hit) (?:the |your )?(?:max(?:imum)?|configured) (?:number of"
            r" )?(?:\w+ )?(?:turns|steps|iterations|tool calls|budget|cost)\b"
        ),
        r"\berror_max_turns\b|\berror_max_budget_usd\b|\bmax_turn_requests\b",
        r"\bnumber of tools? calls? limit reached\b|\btool calls? limit (?:reached|exceeded)\b",
        r"\bmax_budget_usd\b|\breached its configured (?:limit|budget)\b",
        r"\bbudget (?:limit )?(?:has been |was )?(?:exceeded|exhausted|reached)\b",
        priority=-5,
    ),
    says(
        "any.limit_for_hours",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        r"\blimits? (?:is |was |has been )?(?:reached|exceeded|hit)\b",
        check="waits_an_hour",
        priority=-15,
    ),
    forbid(
        "any.capacity_is_no_throttle",
        (Kind.RATE_LIMITED,),
        r"\boverloaded\b|\bat capacity\b|\bcapacity exceeded\b|\bno capacity\b|\bhigh demand\b",
        r"\bservers? (?:is|are) (?:currently |too )?busy\b",
        priority=-15,
    ),
    says(
        "any.throttle_for_hours",
        Step.ALLOWANCE,
        Kind.USAGE_LIMIT,
        r"\brate[ _-]?limit|\btoo many requests\b|\bthrottl",
        check="waits_an_hour",
        priority=-15,
    ),
    says(
        "any.throttle",
        Step.THROTTLE,
        Kind.RATE_LIMITED,
        r"\brate[ _-]?limit(?:s|ed|ing|er)?(?:[_ ]?(?:error|exceeded|reached|exception))?\b",
        r"\bratelimit\w*|\btoo[ _-]many[ _-]requests\b|\bthrottl(?:ed|ing|e)\b",
        (
            r"\b(?:requests?|tokens?|calls?)(?: \w+){0,2} (?:per|/) ?(?:minute|min|second"
            r"|sec)\b.{0,60}(?:exceed|limit|reach)"
        ),
        (
            r"\b(?:exceed|limit|reach)\w*\b.{0,60}\b(?:requests?|tokens?|calls?) (?:per|/) ?"
            r"(?:minute|min|second|sec)\b"
        ),
        r"\bper[- ]minute (?:limit|quota)\b|\bslow down\b.{0,40}request",
        r"\brequests? (?:are |is )?(?:being )?sent too (?:quickly|fast|frequently)\b",
        r"\btoo many connections\b|\ball (?:\w+ ){0,3}(?:in|on) cooldown\b",
        r"\btoo many concurrent\b|\bconcurren(?:cy|t \w+) limit\b",
        r"\bwait \S+ \w+ before (?:trying|retrying|sending)\b|\bspeed[ -]limited\b",
        r"\bmax organi[sz]ation (?:concurrency|rpm|tpm)\b",
        r"\breached (?:the |your )?(?:\w+ )?max(?:imum)? (?:rpm|tpm|qps|concurrency|requests?)\b",
        r"\bexceeded\b.{0,30}\brate\b",
        r"\btoo many tokens\b.{0,60}(?:please wait|per min|processed)",
        priority=-12,
    ),
    raised(
        "any.throttle_exception",
        Step.THROTTLE,
        Kind.RATE_LIMITED,
        "RateLimitError",
        "ThrottlingException",
        "TooManyRequests",
        "TooManyRequestsException",
        "ResourceExhausted",
        priority=-20,
    ),
)
