"""What looks like a failure and is none: notices, warnings, cancellations, model prose, noise."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import Surface
from orchestrator.failure.rule import Rule, Step, forbid, raised, says

_TEXT = frozenset({Surface.TEXT_CHUNK})
_NOTICE, _NONE = Step.NOTICE, Kind.NOT_A_FAILURE

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "notice.model_prose",
        _NOTICE,
        _NONE,
        pattern=(
            # The first words of somebody who talks about an error instead of reporting one.
            r"^(?:[-*+>|#`]|\d+[.)] |i |i'(?:m|ll|ve|d) |let me |let's |thank|thanks|sure[,.! ]"
            r"|okay[,.! ]"
            r"|ok[,.! ]|now[, ]|here(?:'s| is| are)|looking at|added |fixed |updated |removed "
            r"|refactored "
            r"|implemented |changed |created |this (?:function|test|code|file|class|change|commit"
            r"|handler|"
            r"module|means|is (?:why|because|critical))|the (?:function|test|code|file|class|retry"
            r"|handler"
            r"|error (?:shows|message|says|occurs|comes|means)|logs? show|issue is|problem is|fix)"
            r"|we (?:need|should|can|could|will|have|now)|you (?:can|could|should|might|may want)"
            r"|if (?:the|you|a|it)|when (?:the|a|you)|to (?:handle|fix|avoid|debug|reproduce)|for"
            r" example"
            r"|first[, ]|next[, ]|then[, ]|yes[,. ]|no[,] |great[,.! ]|perfect[,.! ]|good[,. ])"
        ),
        unless=r"\binternal error: \w+ api error: |\bapi error: (?:post|get) \W?https?://",
        surfaces=_TEXT,
    ),
    says(
        "notice.limit_is_near",
        _NOTICE,
        _NONE,
        r"\bapproaching (?:your |the )?(?:\S+ ){0,3}(?:limit|quota)",
        r"\b(?:limit|quota)s? (?:is |are )?(?:approaching|almost reached|nearly reached)",
        r"\byou(?:'ve| have) used \d+ ?% of your",
        r"\b\d+ ?% of (?:your )?(?:\w+ ){0,3}(?:limit|quota|usage) used",
        r"close to (?:your |the )?(?:\w+ ){0,3}(?:limit|quota)\b",
        r"\b(?:less than|only) \d+ ?% (?:of .{0,40})?(?:left|remaining)",
        r"\d+ (?:requests|messages|tokens|prompts) (?:left|remaining)\b",
    ),
    says(
        "notice.context_is_compacted",
        _NOTICE,
        _NONE,
        r"overflow\w*, (?:now )?(?:summari[sz]ing|compacting)",
        r"(?:summari[sz]ing|compacting) (?:the |your )?(?:conversation|history|context)\b",
        r"^\W*context (?:was |has been )?compacted",
        r"context left until auto-compact",
    ),
    says(
        "notice.steer_echo",
        _NOTICE,
        _NONE,
        r"continue from where you left off",
        r"limit was detected\. try to continue",
        surfaces=_TEXT,
    ),
    says(
        "notice.transport_fallback",
        _NOTICE,
        _NONE,
        r"falling back (?:from websockets? )?to (?:https?|sse|polling|http transport)",
        r"^(?:\W*)(?:config )?warning: ",
        surfaces=_TEXT,
    ),
    says(
        "notice.tool_output_too_long",
        _NOTICE,
        _NONE,
        r"mcp tool .{0,120}exceeds maximum allowed tokens",
        r"^mcpcontenttoolargeerror",
        r"content \(.{0,60}\) exceeds maximum allowed (?:tokens|size)",
    ),
    says(
        "notice.model_switched",
        _NOTICE,
        Kind.ADVISORY,
        r"\bautomatically (?:switched|switching|downgraded|falling back|fell back)\b",
        r"\blimit reached, now using\b|\bnow using (?:the )?\S+ (?:model|instead)\b",
        (
            r"(?:switched|switching|falling back|fell back|downgraded) (?:you )?to .{0,60}(?:model"
            r"|gpt|claude|gemini|flash|sonnet|haiku|opus|auto)"
        ),
        r"you are now using .{0,60}(?:model|flash|mini)",
        # Whoever reports the error in the same breath reports an error.
        unless=r"^\W*api error\b",
    ),
    says(
        "notice.proactor_noise",
        _NOTICE,
        _NONE,
        r"exception in callback _proactorbasepipetransport\._call_connection_lost",
        r"exception ignored in: <function _proactorbasepipetransport\.__del__",
        r"event loop is closed.{0,200}_proactor",
        surfaces=frozenset({Surface.STDERR}),
    ),
    says(
        "notice.crash_after_goodbye",
        _NOTICE,
        _NONE,
        r"^resume this session with: .{0,400}(?:panic|segmentation fault|crashed)",
        surfaces=frozenset({Surface.EXIT}),
    ),
    says(
        "cancelled.wording",
        _NOTICE,
        Kind.CANCELLED,
        (
            r"^(?:error: )?aborterror: (?:the|this) (?:user )?(?:operation|request) was (?:aborted"
            r"|canceled|cancelled)"
        ),
        (
            r"^(?:error: )?(?:request|turn|prompt|operation) (?:was )?(?:aborted|cancelled"
            r"|canceled)(?: by (?:the )?user)?\.?(?: at |$)"
        ),
        (
            r"^(?:error: )?(?:the|this) (?:operation|request) was (?:aborted|cancelled|canceled)"
            r"(?: by (?:the )?user)?\.?$"
        ),
        r"(?:interrupted|cancelled|canceled|aborted|stopped) by (?:the )?user\b",
        r"^user (?:aborted|cancelled|canceled|interrupted)",
        r"^context canceled$|: context canceled$",
        r"^keyboardinterrupt$",
        unless=r"due to (?:a )?timeout|timed? out|timeout (?:of|exceeded|error)",
    ),
    raised(
        "cancelled.exception",
        _NOTICE,
        Kind.CANCELLED,
        "CancelledError",
        "Cancelled",
        "KeyboardInterrupt",
        "AbortError",
    ),
    Rule(
        "cancelled.field",
        _NOTICE,
        Kind.CANCELLED,
        facts=(
            ("errorkind", "aborted"),
            ("errorname", "messageabortederror"),
            ("errorkind", "cancelled"),
        ),
    ),
    forbid(
        "notice.go_deadline",
        (Kind.CONTEXT_OVERFLOW,),
        r"context deadline exceeded|context cancell?ed",
    ),
)
