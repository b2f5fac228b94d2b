"""Nets: the other wordings that no speaker owns.  They speak last within each step."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.rule import Rule, Scope, Step, forbid, raised, says

_PROVIDER = Scope.PROVIDER


RULES: Final[tuple[Rule, ...]] = (
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
        (
            r"\binvalid (?:access |auth(?:entication)? |oauth |refresh |id |session )?"
            r"(?:token|credentials?)\b"
        ),
        r"\binvalidgrant\w*|\bunable to authenticate\b",
        r"\binvalid authentication\b|\bauthentication (?:failed|error|failure|fails)\b",
        r"\bcould not resolve authentication method\b",
        r"\bunauthorized\b|\bauthenticationerror\b|\binvalid x-api-key\b",
        r"\binvalid or expired\b.{0,20}(?:key|bearer|api)",
        r"\bcredentials? (?:are |is |were |was )?(?:invalid|missing|rejected|not found|required)\b",
        (
            r"\btim(?:ed |e)out (?:while )?waiting for (?:the )?(?:user |browser )?"
            r"(?:auth(?:entication|ori[sz]ation)?|log-?in|sign-?in|oauth|device code)\b"
        ),
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
        r"\bnot allowed to (?:use|access|call|invoke)\b",
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
        r"\binsufficient permissions?\b|\brequest (?:was |is )?blocked by\b",
        (
            r"\b(?:tier|plan|key|token|license|subscription|account|model)s?\b.{0,20} can only be"
            r" used (?:from|with|within|in|by)\b"
        ),
        (
            r"\baccount (?:is |has been )?(?:suspended|disabled|banned|blocked|deactivated"
            r"|terminated)\b"
        ),
        (
            r"\bnot (?:yet )?(?:eligible|enabled|available) (?:for|on|with) (?:your|this) "
            r"(?:current )?(?:account|plan|organi[sz]ation|subscription|tier)\b"
        ),
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
        r"\bresponse (?:contained|contains|had|has) no (?:choices|candidates|content|parts|text)\b",
        r"\breturned (?:no (?:content|output|choices|candidates)|an empty or)\b",
        r"\b(?:did not|didn't) (?:provide|return|produce) any (?:\w+ )?(?:message|text)",
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
        # Whatever a gateway in front of it makes of that.
        "any.model_gone",
        Step.MODEL,
        Kind.MODEL_NOT_FOUND,
        r"\b(?:api|http|status|error)(?: error| code)?:? ?410:? gone\b|^410:? gone\b",
        scope=_PROVIDER,
        priority=-10,
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
        "any.model_list",
        Step.MODEL_LIST,
        Kind.MODEL_LIST_UNAVAILABLE,
        (
            r"\b(?:could not|couldn't|cannot|can't|failed to|unable to) (?:list|load|fetch|get"
            r"|retrieve) (?:the )?(?:list of )?(?:available |supported )?models\b"
        ),
        unless=r"\b40[0-9]\b|denied|forbidden|unauthorized|policy",
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
        r"\beof while parsing\b|\bcould not interpret tool use parameters\b",
        r"\bunterminated string in json\b|\bjson parse error\b",
        r"\blist index out of range\b|\bkeyerror: [\'\"]",
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
        r"\bunexpected endpoint or method\b",
        r"\bbadrequesterror\b|\bmissing required (?:parameter|field|argument)\b",
        r"\bunprocessable entity\b|\bnot supported (?:with|by|for|in) (?:this|the) model\b",
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
)
