"""Nets: wordings that no speaker owns.  They speak last within each step."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import Surface
from orchestrator.failure.rule import Rule, Scope, Step, field_is, forbid, raised, says

_PROVIDER = Scope.PROVIDER
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
        (
            r"\b(?:limit|quota|allowance|maximum|cap)\b.{0,60}\b(?:for (?:this|the) (?:day|week"
            r"|month|billing)|for today|(?:this|per) (?:day|week|month)|a (?:day|week|month))\b"
        ),
        r"\b(?:limit|quota)s?\b.{0,60}\b(?:will )?resets? (?:at|on|in|after)\b",
        r"\blimits?\b.{0,30} . resets\b",
        r"\bmaximum\b.{0,80}\breached for this month\b",
        unless=(
            r"\b(?:session|turn|tool|step) (?:turn |token )?limit\b.{0,20}config|rate limit"
            r" reached|per min|requests per minute"
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
        "any.context_overflow",
        Step.SHAPE,
        Kind.CONTEXT_OVERFLOW,
        r"\bconversation_?state_?too_?large\b|\bconversation_?too_?(?:large|long)\b",
        r"\brange of input length should be\b|\binput length\b.{0,40}(?:exceed|out of range)",
        (
            r"\b(?:prompt|input|conversation|chat|history|thread|messages)\b(?: \w+){0,3} too "
            r"(?:long|large|big)\b"
        ),
        r"\btoo long for (?:the |this |requested )?(?:model|context)\b",
        (
            r"\bcontext (?:length|window|size|limit)s?\b.{0,40}(?:exceed|overflow|full|too (?:long"
            r"|large|small)|reached|surpass)"
        ),
        (
            r"\b(?:exceed|exceeds|exceeded|exceeding|over|overflow\w*|larger than|longer than"
            r"|greater than)\b.{0,50}\bcontext (?:length|window|size|limit)\b"
        ),
        r"\bmaximum context(?: length)?\b|\bcontextwindowexceeded\w*",
        r"\bcontext_?(?:length|window)_?exceeded\w*|\bcontextlengthexceeded\w*",
        r"\bcontext_?overflow\w*",
        (
            r"\breduce (?:the )?(?:length|size) of (?:the |your )?(?:messages|prompt|input"
            r"|conversation|history)\b"
        ),
        r"\b(?:input|prompt|request|message)s?\b.{0,40}\btokens?\b.{0,60}exceeds?\b",
        r"\btokens?\b.{0,60}\bexceeds? (?:the )?(?:model'?s? )?(?:maximum|max|limit|context)\b",
        r"\btoken limit (?:exceeded|reached)\b|\btoo many (?:input |prompt )?tokens\b",
        scope=_PROVIDER,
        unless=(
            r"\bper[- ]?min|\btpm\b|\bper (?:day|hour)\b|please wait|\bmcp\b|\bmax_tokens\b.{0,60}"
            r"(?:greater|larger|exceeds|must be)|\bimage\b|\baudio\b|\boutput token"
        ),
        priority=-10,
    ),
    says(
        "any.output_over_model",
        Step.SHAPE,
        Kind.INVALID_REQUEST,
        (
            r"\bmax_(?:completion_|output_)?tokens\b.{0,40}(?:is )?(?:too large|must be|greater"
            r" than|exceeds|larger than|cannot exceed)"
        ),
        r"\bmax_tokens: \d+ >",
        scope=_PROVIDER,
        unless=r"context (?:length|window|limit)|context_length",
        priority=-10,
    ),
    says(
        "any.request_too_large",
        Step.SHAPE,
        Kind.REQUEST_TOO_LARGE,
        r"\brequest(?: body| entity| payload)?(?: is| size)? too (?:large|big)\b",
        r"\brequest (?:body |payload )?size (?:exceeds|is over|limit)\b",
        r"\bexceeds \d+ ?[mk]i?b limit\b",
        r"\brequest_too_large\b|\bpayload (?:is )?too (?:large|big)\b|\bentity too large\b",
        r"\brequest (?:body |size )?exceeds (?:the )?(?:maximum|max|limit|size)\b",
        r"\bcontent too large\b|\bbody exceeded \d+|\brequest exceeds the maximum size\b",
        scope=_PROVIDER,
        priority=-9,
    ),
    field_is(
        "any.request_too_large_type",
        Step.SHAPE,
        Kind.REQUEST_TOO_LARGE,
        "type",
        "request_too_large",
    ),
    says(
        "any.image",
        Step.SHAPE,
        Kind.IMAGE_REJECTED,
        r"\b(?:invalid|unsupported|corrupt(?:ed)?|undecodable|unreadable|broken) image\b",
        (
            r"\bimage\b.{0,40}\b(?:exceeds?|cannot exceed|larger than|over)\b.{0,20}\b(?:limit|\d+"
            r" ?[mk]b)"
        ),
        (
            r"\bimages?\b(?: \w+){0,6} (?:is |are )?(?:too (?:large|big|many|small)|not "
            r"(?:supported|valid|a valid)|unsupported|invalid|corrupt|exceeds?|could not be "
            r"(?:decoded|processed|read|downloaded))\b"
        ),
        (
            r"\b(?:cannot|can't|could not|failed to|unable to) (?:decode|process|read|load"
            r"|identify|parse) (?:the |this |input |an? )?image\b"
        ),
        r"\btoo many images\b|\bunsupported image (?:format|type)\b",
        scope=_PROVIDER,
        unless=r"docker|container image|disk image|image pull",
        priority=-8,
    ),
    says(
        "any.malformed",
        Step.SHAPE,
        Kind.MALFORMED_REQUEST,
        r"\bmalformed (?:request|conversation|message|history|input)\b",
        (
            r"\bmessages?(?:\[\d+\])?(?:\.\w+)* (?:must not|cannot|can't|may not|should not) be"
            r" empty\b"
        ),
        (
            r"\b(?:empty|blank) (?:content|message|text) (?:block|part|is not allowed|not"
            r" allowed)\b"
        ),
        r"\bmessage content (?:is|was) empty\b",
        (
            r"\bmust (?:not )?(?:end|start|begin) with (?:a |an )?(?:user|assistant) (?:message"
            r"|role)\b"
        ),
        r"\bconversation roles must alternate\b",
        r"\borphan(?:ed)? tool (?:result|call|response)\b",
        (
            r"\btool (?:call|result|response)s?\b.{0,40}(?:without|missing|unmatched|no matching"
            r"|not match)\b.{0,40}(?:result|call|response|preceding)"
        ),
        r"\blast message must (?:be|have)\b|\bassistant message prefill\b",
        scope=_PROVIDER,
        priority=-10,
    ),
    says(
        "any.tool_schema",
        Step.SHAPE,
        Kind.TOOL_SCHEMA_REJECTED,
        (
            r"\b(?:tool|function)s?\b.{0,60}(?:schema|parameters|definition)\b.{0,60}(?:invalid"
            r"|not valid|unsupported|rejected|must|missing)"
        ),
        (
            r"\b(?:invalid|unsupported|malformed) (?:tool|function) (?:schema|definition"
            r"|declaration|parameters|name)\b"
        ),
        r"\bjson schema is (?:invalid|not supported)\b|\binvalid json schema\b",
        r"\btool names? must (?:be unique|match)\b|\btoo many tools\b",
        scope=_PROVIDER,
        priority=-9,
    ),
    says(
        "any.max_output",
        Step.SHAPE,
        Kind.MAX_OUTPUT_TOKENS,
        (
            r"\b(?:hit|reached|exceeded) (?:its|the) (?:max(?:imum)? )?(?:output|token) (?:token"
            r" )?limit\b"
        ),
        (
            r"\b(?:output|response|completion)\b.{0,40}(?:token|length) (?:limit|maximum)\b.{0,20}"
            r"(?:reached|exceeded|hit)?"
        ),
        r"\bmax(?:imum)?[_ ]output[_ ]tokens?\b.{0,30}(?:reached|exceeded|hit)\b",
        r"\bexceeded the .{0,20}output token\b",
        r"\bresponse (?:was )?truncated\b.{0,40}(?:length|max_tokens|token limit)",
        r"\bmaximum output length\b",
        scope=_PROVIDER,
        unless=r"\bper[- ]?min",
        priority=-9,
    ),
    says(
        "any.refused",
        Step.SHAPE,
        Kind.CONTENT_REFUSED,
        r"\bcontent[_ ]filter(?:ed|ing)?\b",
        (
            r"\b(?:blocked|rejected|flagged|refused|filtered|stopped)\b.{0,60}\b(?:safety"
            r"|moderation|content policy|usage policy|policy violation|guardrails?)\b"
        ),
        (
            r"\bviolat(?:e|es|ed|ing)\b.{0,40}\b(?:usage|content|acceptable use|safety|use) polic"
            r"(?:y|ies)\b"
        ),
        r"\bmoderation\b.{0,30}(?:flagged|blocked|failed|rejected)|\bcontent_filtered\b",
        r"\bguardrail (?:intervened|blocked)\b",
        scope=_PROVIDER,
        priority=-10,
    ),
    says(
        "any.model_unavailable",
        Step.MODEL,
        Kind.MODEL_UNAVAILABLE,
        (
            r"\bmodel\b(?: ['\"`]?[\w.:/@-]+['\"`]?)? (?:is )?(?:temporarily|currently) "
            r"(?:unavailable|not available|disabled|offline)\b"
        ),
        scope=_PROVIDER,
        priority=-10,
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
        r"\btoo many concurrent\b|\bconcurren(?:cy|t requests?) limit\b",
        r"\bwait \S+ \w+ before (?:trying|retrying|sending)\b|\bspeed[ -]limited\b",
        r"\bmax organi[sz]ation (?:concurrency|rpm|tpm)\b",
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
    says(
        "any.auth",
        Step.ACCESS,
        Kind.AUTH_REQUIRED,
        r"\b(?:token|session|credential|login)s?\b[^.]{0,30}\b(?:has|have|is|are) expired\b",
        (
            r"\b(?:session|login|authentication|token|credentials?|api key|access token|oauth"
            r" token)s? (?:has |have |is |are )?(?:expired|been revoked|revoked|timed ?out|no"
            r" longer valid)\b"
        ),
        r"\bsession ?timeout\b",
        r"\bnot (?:logged|signed) in\b|\bnot authenticated\b",
        r"\b(?:re-?authenticate|re-?login)\b|\blogin (?:is )?required\b",
        r"\bauth(?:entication)? (?:is )?required\b|\bplease (?:log|sign) ?in\b",
        r"\bsign in again\b|\blog in again\b|\bunauthenticated\b",
        r"\bbearer token\b[^.]{0,80}\binvalid\b|\binvalid bearer token\b",
        r"\binvalid (?:access |auth(?:entication)? |oauth )?(?:token|credentials?)\b",
        r"\binvalid authentication\b|\bauthentication (?:failed|error|failure|fails)\b",
        r"\bunauthorized\b|\bauthenticationerror\b|\binvalid x-api-key\b",
        r"\binvalid or expired\b.{0,20}(?:key|bearer|api)",
        r"\bcredentials? (?:are |is |were |was )?(?:invalid|missing|rejected|not found|required)\b",
        unless=r"security token|\bsyntaxerror\b|unexpected token",
        priority=-10,
    ),
    raised(
        "any.auth_exception",
        Step.ACCESS,
        Kind.AUTH_REQUIRED,
        "AuthenticationError",
        "UnauthorizedError",
        "NoCredentialsError",
        "RefreshError",
        priority=-20,
    ),
    says(
        "any.denied",
        Step.ACCESS,
        Kind.ACCESS_DENIED,
        (
            r"\b(?:unsupported|restricted) (?:countr(?:y|ies)|regions?|territor(?:y|ies)"
            r"|locations?)"
            r"\b|\b(?:country|region|territory|location)\b.{0,40}(?:not (?:supported|available"
            r"|allowed)|unsupported|blocked|restricted)"
        ),
        r"\bnot available in your (?:country|region)\b|\bunsupported (?:country|region)\b",
        r"\bpermission[_ ]denied\b|\baccess (?:is |was )?(?:denied|forbidden|blocked)\b",
        r"\brequest not allowed\b|\bforbidden\b|\bnot authorized to\b",
        (
            r"\b(?:disabled|blocked|restricted|not allowed|not permitted) by (?:your )?"
            r"(?:organi[sz]ation|admin\w*|policy|workspace|enterprise)\b"
        ),
        r"\bdo(?:es)? not have (?:permission|access)\b|\bdon't have (?:permission|access)\b",
        r"\binsufficient permissions?\b",
        (
            r"\baccount (?:is |has been )?(?:suspended|disabled|banned|blocked|deactivated"
            r"|terminated)\b"
        ),
        r"\bnot (?:eligible|enabled) for (?:your|this) (?:account|plan|organi[sz]ation)\b",
        unless=(
            r"(?:file|directory|path|open|mkdir|read|write)\W.{0,30}permission denied|permission"
            r" denied \(publickey|os error 13|eacces|(?:not exist|not found) or you"
            r"(?:r project)? do(?:es)? not have access"
        ),
        priority=-15,
    ),
    raised(
        "any.denied_exception",
        Step.ACCESS,
        Kind.ACCESS_DENIED,
        "PermissionDeniedError",
        "Forbidden",
        "PermissionDenied",
        priority=-20,
    ),
    says(
        "any.overloaded",
        Step.SERVER,
        Kind.OVERLOADED,
        r"\boverload(?:ed)?\b",
        (
            r"\b(?:at|over|exceeded|insufficient|no|out of) (?:server |model |available"
            r" )?capacity\b"
        ),
        r"\bcapacity (?:exceeded|exhausted|constraints?|limit)\b",
        r"\bhigh (?:demand|traffic|load|volume)\b",
        (
            r"\b(?:server|service|model|system|engine)s? (?:is |are )?(?:currently |too |very "
            r"|temporarily )*busy\b"
        ),
        unless=(
            r"\b(?:method|function|operator|constructor) overload|\boverloaded (?:method|function"
            r"|operator|constructor)"
        ),
        priority=-12,
    ),
    says(
        "any.temporarily_unavailable",
        Step.SERVER,
        Kind.SERVER_ERROR,
        r"\btemporarily unavailable\b",
        scope=_PROVIDER,
        priority=-16,
    ),
    says(
        "any.server_error",
        Step.SERVER,
        Kind.SERVER_ERROR,
        r"\binternal[ _-]?server[ _-]?(?:error|exception)\b|\bbad[ _-]?gateway\b",
        r"\bgateway[ _-]?time-?(?:d[ _-])?out\b",
        r"\bservice[ _-]?(?:is )?(?:temporarily |currently )?unavailable\b",
        r"\bupstream (?:error|connect error|service|server|failure)\b|\bserver[_ ]error\b",
        r"\bserver (?:encountered|had) an? (?:internal |unexpected )?error\b",
        r"\binternal service error\b|\bno healthy upstream\b",
        r"\bweb server is down\b|\borigin (?:is unreachable|time-?out)\b",
        r"\bunexpected (?:server|api|internal) error\b|\bunder maintenance\b|\bcircuit_open\b",
        r"\bcircuit breaker\b|\bservice (?:disruption|outage)\b",
        unless=r"^(?:\W*)failed with 5xx",
        priority=-15,
    ),
    raised(
        "any.server_exception",
        Step.SERVER,
        Kind.SERVER_ERROR,
        "InternalServerError",
        "ServiceUnavailableError",
        "ServiceUnavailable",
        "BadGateway",
        "GatewayTimeout",
        priority=-25,
    ),
    says(
        "any.html",
        Step.SERVER,
        Kind.SERVER_ERROR,
        r"\bunexpected token '?<'?|<!doctype html|<html\b|\bin json at position \d+.{0,40}<",
        r"\binvalid character '<' looking for beginning of value",
        priority=-30,
    ),
    says(
        "any.empty",
        Step.SERVER,
        Kind.EMPTY_RESPONSE,
        r"\bno (?:actual |visible |usable )?(?:response|answer|output) (?:content|text|tokens)\b",
        (
            r"\b(?:empty|blank|no) (?:response|completion|output|content|answer|reply) (?:was |is"
            r" )?(?:returned|received|generated|from (?:the )?(?:model|api|provider|server))"
        ),
        (
            r"\b(?:model|provider|api|server) (?:returned|sent|gave|produced) (?:an |a )?(?:empty"
            r"|blank|no) (?:response|completion|output|content|answer|message)"
        ),
        r"\breceived (?:an )?empty (?:response|completion)\b|\bresponse (?:was|is) empty\b",
        r"\breturned no (?:content|output|choices|candidates)\b",
        priority=-12,
    ),
    forbid(
        # Gateways answer 500 for a 404 of the model behind them.
        "any.missing_model_is_no_outage",
        (Kind.SERVER_ERROR,),
        r"\bdeploymentnotfound\b|\bmodel_not_found\b|\bmodels?/\S+ (?:is |was )?not found\b",
        r"\bmodel ['\"`]?[\w.:/@-]+['\"`]? (?:does not exist|(?:was |is )?not found)\b",
        scope=_PROVIDER,
        priority=-19,
    ),
    says(
        "any.model_not_found",
        Step.REQUEST,
        Kind.MODEL_NOT_FOUND,
        (
            r"\bmodels?\b(?: (?:id|name))?(?:[ :]+['\"`]?[\w.:/@()-]+['\"`]?)? (?:is |was |does "
            r"|are )?(?:not (?:found|exist|supported|available|recognized|valid|deployed)|no"
            r" longer (?:available|supported)|unknown|deprecated|retired|invalid|decommissioned)\b"
        ),
        (
            r"\bmodel\b.{0,60}(?:does not exist|doesn't exist|has been (?:deprecated|retired"
            r"|decommissioned|removed|sunset))"
        ),
        r"\b(?:unknown|invalid|unsupported|no such|unrecognized) model\b",
        r"\bdeployment\b.{0,40}does not exist\b|\bmodelnotfound\w*",
        r"\bmodel_not_(?:found|supported|available)\b",
        scope=_PROVIDER,
        priority=-10,
    ),
    says(
        "any.parse_error",
        Step.REQUEST,
        Kind.PARSE_ERROR,
        r"\bunexpected (?:line|response|chunk|event|message|stream) (?:format|type|shape)\b",
        r"\bunexpected non-whitespace character\b|\bafter json at position\b",
        r"\bunexpected token\b|\bis not valid json\b|\bunexpected end of json input\b",
        r"\blooking for beginning of value\b|\bcontent is not json\b|\bno json (?:object )?found\b",
        r"\bjsondecodeerror\b|\bexpecting value: line\b",
        (
            r"\b(?:failed|unable|could not|cannot|error) (?:to )?(?:pars(?:e|ing)|decod(?:e|ing)"
            r"|deserializ(?:e|ing)|unmarshal)\b.{0,60}(?:response|json|body|stream|output|answer"
            r"|chunk|event|message)"
        ),
        r"\bunterminated string in json\b|\blist index out of range\b|\bkeyerror: [\'\"]",
        r"\bcannot read propert(?:y|ies) of (?:undefined|null)\b",
        r"\bvalidation errors? for \w+response\b",
        r"\binvalid json (?:response|in response|from)\b",
        r"\bkeyerror: '(?:choices|content|message|candidates)'|\bundefined is not an object\b",
        r"\b'nonetype' object (?:is not|has no)\b",
        r"\bexpected (?:value|`\S`) at line \d+ column\b|\bmissing field `\w+` at line\b",
        priority=-20,
    ),
    says(
        "any.invalid_request",
        Step.REQUEST,
        Kind.INVALID_REQUEST,
        (
            r"\b(?:exceeds|above|below|less than|greater than)\b.{0,20}\b(?:maximum|minimum) "
            r"(?:allowed )?value\b"
        ),
        r"\binvalid[_ ]request(?:_error)?\b|\bbad[_ ]request\b",
        r"\binvalid[_ ](?:argument|parameter|params|value)s?\b",
        r"\bunsupported (?:parameter|value)\b|\bunknown (?:parameter|field)\b",
        r"\bbadrequesterror\b|\bmissing required (?:parameter|field|argument)\b",
        r"\bunprocessable entity\b",
        priority=-30,
    ),
    raised(
        "any.invalid_request_exception",
        Step.REQUEST,
        Kind.INVALID_REQUEST,
        "BadRequestError",
        "BadRequest",
        "InvalidRequestError",
        "UnprocessableEntityError",
        priority=-30,
    ),
    raised(
        "any.not_found_exception", Step.REQUEST, Kind.INVALID_REQUEST, "NotFoundError", priority=-35
    ),
    raised(
        "any.parse_exception",
        Step.REQUEST,
        Kind.PARSE_ERROR,
        "JSONDecodeError",
        "APIResponseValidationError",
        "DecodingError",
        "UnicodeDecodeError",
        "ContentTypeError",
        priority=-20,
    ),
    says(
        "any.request_timeout",
        Step.REQUEST,
        Kind.REQUEST_TIMEOUT,
        r"\b(?:response|answer) missed its budget\b",
        (
            r"\b(?:prompt|turn|request) (?:budget|deadline) (?:of \S+ )?(?:exceeded|ran out"
            r"|expired|elapsed)\b"
        ),
        priority=5,
    ),
    says(
        "any.compaction_failed",
        Step.REQUEST,
        Kind.COMPACTION_FAILED,
        (
            r"\b(?:compaction|compacting|summari[sz]ation|/compact)\b.{0,40}(?:failed|error|could"
            r" not|unable)"
        ),
        r"\b(?:failed|unable|could not) to (?:compact|summari[sz]e)\b",
        r"\berror (?:during|while|running) (?:compaction|compacting|compact)\b",
        priority=-40,
    ),
    forbid(
        "any.tool_output",
        (Kind.CONTEXT_OVERFLOW,),
        r"\bmcp tool\b.{0,120}maximum allowed tokens",
        surfaces=frozenset({Surface.TEXT_CHUNK}),
    ),
)
