"""Nets for requests that can't succeed as they are, in words that no speaker owns."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import Surface
from orchestrator.failure.rule import Rule, Scope, Step, field_is, forbid, says

_PROVIDER = Scope.PROVIDER


RULES: Final[tuple[Rule, ...]] = (
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
        # What the conversation leaves for the answer is less than nothing.
        "any.no_room_for_an_answer",
        Step.SHAPE,
        Kind.CONTEXT_OVERFLOW,
        r"\bmax_(?:completion_|output_)?tokens\b.{0,20} must be .{0,40}\b(?:got|is|was):? -\d",
        scope=_PROVIDER,
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
        r"\brequest body\b.{0,30}\b(?:length|size) limit\b",
        r"\bexceeds \d+ ?[mk]i?b limit\b",
        r"\brequest_too_large\b|\bpayload (?:is )?too (?:large|big)\b|\bentity too large\b",
        r"\brequest (?:body |size )?(?:which )?exceeds (?:the )?(?:maximum|max|limit|size)\b",
        r"\b(?:maximum|max|allowed|permitted) content[ -]length\b|\brequestsize\(bytes\)",
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
            r"|identify|parse|determine|detect) (?:the |this |input |an? )?image\b"
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
        r"\btool names? must (?:be unique|match)\b|\btoo many (?:tools|functions)\b",
        (
            r"\b(?:tools|functions)\W{1,6}(?:array too long|maximum number of items"
            r"|(?:must|should) (?:have|contain) at most)\b"
        ),
        r"\bgrammar is too complex\b|\bmaximum (?:number of|of \d+) (?:tools|functions)\b",
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
    forbid(
        "any.tool_output",
        (Kind.CONTEXT_OVERFLOW,),
        r"\bmcp tool\b.{0,120}maximum allowed tokens",
        surfaces=frozenset({Surface.TEXT_CHUNK}),
    ),
)
