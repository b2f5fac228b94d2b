"""Agents that do not start: a missing command, an old Node.js, a broken installation."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import Surface
from orchestrator.failure.rule import Rule, Step, says
from orchestrator.failure.verdict import Cause

_START = Step.START
_DEAD = frozenset({Surface.EXIT, Surface.STDERR})
_ALIVE = frozenset({Surface.ACP_ERROR, Surface.TEXT_CHUNK, Surface.RECORD})

RULES: Final[tuple[Rule, ...]] = (
    says(
        "start.command_not_found",
        _START,
        Kind.AGENT_NOT_FOUND,
        r"(?:^|: )(?:line \d+: )?[\w@./-]+: (?:command )?not found$",
        r"\bcommand not found: \S+",
        r"\bspawn \S+ enoent\b",
        r"\bexec: \"[^\"]+\": executable file not found\b|executable file not found in \$path",
        r"\bis not recognized as (?:an internal or external command|the name of a cmdlet)",
        r"\b(?:failed|unable|could not|couldn't|cannot) to spawn(?: \w+){0,2} command:? \S+",
        (
            r"\bfailed to spawn [^:]{0,80}: (?:no such file|enoent|program not found|the system"
            r" cannot find)"
        ),
        (
            r"\bfailed to (?:start|launch|run|execute) (?:the )?(?:agent|command"
            r"|server)[^:]{0,60}: .{0,60}(?:no such file or directory|not found in path|program"
            r" not found)"
        ),
        r"\b(?:agent|command|process) returned a failure code: (?:127|9009)\b",
        r"\b(?:command|agent|process)\b.{0,40}exit(?:ed)?(?: with)?(?: code| status)? 127\b",
        (
            r"\b(?:claude|codex|gemini|opencode|goose|copilot|kiro(?:-cli)?|qwen|node|npx|npm|bun"
            r"|uvx?|python3?|bash)(?: cli| binary| executable)? (?:was |is )?not (?:found"
            r"|installed)(?: in (?:your |the )?\$?path)?\b"
        ),
        r"\bexecvpe?\b.{0,80}no such file or directory",
        (
            r"\bno such file or directory: '(?:npx|node|claude|codex|gemini|opencode|goose|copilot"
            r"|kiro-cli|uvx?|bun|python3?)'"
        ),
        r"\bcould not (?:find|locate) (?:the )?(?:\w+ ){0,2}(?:executable|binary|command)\b",
        r"^the system cannot find the (?:file|path) specified",
        r"^env: ['\"]?\S+?['\"]?: no such file or directory",
        unless=r"file not found in (?:the )?(?:project|workspace|repo)",
    ),
    says(
        "start.auth_before_spawn",
        Step.START,
        Kind.AUTH_REQUIRED,
        r"failed to (?:spawn|start|launch) .{0,40}: authentication required",
        priority=30,
    ),
    says(
        "start.node_version",
        _START,
        Kind.AGENT_START_FAILED,
        r"\brequire\(\) of es module\b|\berr_require_esm\b",
        (
            r"\bsyntaxerror: unexpected (?:token (?:'?(?:\?|\?\?=?|\?\.|\{|\.|=|\|\|=|#|import"
            r"|export|static)'?)(?:$| )|identifier|reserved word)"
        ),
        r"\bcannot use import statement outside a module\b|\berr_unsupported_esm_url_scheme\b",
        r"\bunsupported engine\b|\bebadengine\b|\bthe engine \"node\" is incompatible\b",
        (
            r"\b(?:requires|needs|need|install|upgrade to) node(?:\.?js)?(?: version)? (?:>=? ?|v"
            r"|at least )*\d+"
        ),
        (
            r"\bnode(?:\.?js)? (?:version )?v?\d[\d.]* is (?:not supported|no longer supported|too"
            r" old|unsupported)"
        ),
        (
            r"\bnode(?:\.?js)?(?: version)? v?\d[\d.]* or (?:higher|later|newer|above) (?:is"
            r" )?required"
        ),
        r"\berr_unknown_builtin_module\b|\bno such built-in module: node:",
        r"\bglibc_[\d.]+'? not found\b",
        cause=Cause.NODE_VERSION,
    ),
    says(
        "start.package_install",
        _START,
        Kind.AGENT_START_FAILED,
        r"(?:^|\W)npm (?:err!|error) ",
        r"\berr_module_not_found\b|\bcannot find (?:module|package) ['\"]",
        r"\bmodulenotfounderror: no module named\b|\bimporterror: cannot import name\b",
        r"\bcould not determine executable to run\b",
        r"\bno matching version found for\b|\bnot in this registry\b",
        r"\b(?:corrupt|stale|broken|incomplete) (?:install|installation|download|cache)\b",
        (
            r"\bfailed to (?:download|install|extract|unpack) (?:the )?(?:agent|package|archive"
            r"|binary|engine|claude|codex|gemini)"
        ),
        r"\berror: (?:could not|failed to) (?:install|resolve) (?:package|dependenc)",
        surfaces=_DEAD,
        cause=Cause.INSTALL,
    ),
    says(
        "start.package_missing",
        _START,
        Kind.AGENT_START_FAILED,
        r"\bimport failed\b.{0,20}\bpip install\b|\bplease (?:run|install)\b.{0,20}\bpip install\b",
        surfaces=_DEAD | {Surface.EXCEPTION, Surface.ACP_ERROR},
        cause=Cause.INSTALL,
    ),
    says(
        "start.shell_missing",
        _START,
        Kind.AGENT_START_FAILED,
        r"\bon windows requires git-?bash\b|\brequires (?:git for windows|wsl|bash\.exe)\b",
        r"\bno suitable shell found\b|\bposix shell .{0,40}(?:not found|required)",
        cause=Cause.INSTALL,
    ),
    says(
        "start.container",
        _START,
        Kind.AGENT_START_FAILED,
        r"\b(?:cannot|could not|failed to) connect to the docker daemon\b|\bdocker_engine\b",
        r"\bis the docker daemon running\b|\bunable to find image\b",
        surfaces=_DEAD,
        cause=Cause.INSTALL,
    ),
    says(
        "start.sandbox",
        _START,
        Kind.AGENT_START_FAILED,
        (
            r"\berror (?:applying|running|setting up|starting)\b.{0,40}\b(?:sandbox|landlock"
            r"|seccomp)\b"
        ),
        r"\b(?:unable|failed) to set up (?:the |a )?[\w-]+ sandbox\b",
        (
            r"\bsandbox\b.{0,80}(?:failed to|could not|cannot|unable to|refused to) "
            r"(?:initiali[sz]e|start|launch|apply|create)"
        ),
        (
            r"\b(?:failed|unable) to (?:initiali[sz]e|start|create|apply|set ?up) (?:the )?(?:\w+"
            r" )?sandbox\b"
        ),
        (
            r"\b(?:bwrap|bubblewrap|landlock|seccomp|seatbelt|sandbox-exec)\b.{0,80}(?:permission"
            r" denied|not permitted|failed|not supported|no such file)"
        ),
        r"\bsandbox (?:is )?(?:unavailable|not (?:available|supported))\b",
        cause=Cause.SANDBOX,
    ),
    says(
        "start.engine_refused",
        _START,
        Kind.AGENT_START_FAILED,
        r"\bv\d+ is (?:currently )?not supported on this (?:system|host|platform|machine)",
        r"\bkas[/ ].{0,60}(?:incomplete|could not be (?:moved|extracted)|broken|missing)",
        r"\bunsupported (?:platform|architecture|operating system)\b",
        r"\bcannot execute binary file\b|\bexec format error\b",
        r"\bbad cpu type in executable\b|\billegal instruction\b.{0,40}avx",
        cause=Cause.ENGINE,
    ),
    says(
        "start.delegate",
        _START,
        Kind.AGENT_START_FAILED,
        (
            r"\bkiro-cli-chat\b.{0,80}(?:failed to launch|not found|no such file|could not be "
            r"(?:started|launched)|mismatch)"
        ),
        r"\bfailed to (?:launch|exec(?:ute)?|start) (?:the )?(?:delegate|kiro-cli-chat)\b",
        cause=Cause.DELEGATE,
    ),
    says(
        "start.config",
        _START,
        Kind.AGENT_START_FAILED,
        r"\bfailed to (?:load|parse|read) (?:the )?(?:\w+ ){0,2}config(?:uration)?\b",
        (
            r"\berror (?:loading|parsing|reading|in) (?:the )?(?:\S+ ){0,2}(?:config(?:uration)?"
            r"|settings|config\.toml|settings\.json)\b"
        ),
        r"\b(?:invalid|malformed) (?:config(?:uration)?|settings)(?: file)?\b",
        (
            r"\bconfig(?:uration)?(?: file)? (?:at |is )?(?:\S+ )?(?:is )?(?:invalid|malformed|not"
            r" valid|corrupt)"
        ),
        r"\bunknown (?:option|argument|flag)s?:? ['\"]?-",
        r"\bunknown command:? ['\"]?\w",
        r"\bunexpected argument '--|\bunrecognized (?:option|arguments?)\b",
        r"\b(?:no such|missing) model provider\b|\bmodel provider .{0,40} not found\b",
        r"\bwire_api ?= ?\"?chat\"? is (?:no longer|not) supported",
        cause=Cause.CONFIG,
    ),
    says(
        "start.permission",
        _START,
        Kind.AGENT_START_FAILED,
        r"\bspawn \S+ (?:eacces|eperm)\b",
        r"(?:^|: )(?:line \d+: )?\S+: permission denied$",
        r"\bpermission denied \(os error 13\)|\bexec\b.{0,120}: permission denied\b",
        r"\bpermission denied while trying to connect to the docker daemon\b",
        r"\beacces: permission denied, (?:open|mkdir|access|exec|spawn|rename|unlink)",
        r"\brunning scripts is disabled on this system\b",
        r"\bcannot be loaded because running scripts\b",
        r"\bcannot be (?:used|run) with root/sudo privileges\b|\bmust not be run as root\b",
        surfaces=_DEAD | {Surface.EXCEPTION, Surface.ACP_ERROR},
        cause=Cause.PERMISSION,
    ),
    says(
        "start.died_while_starting",
        _START,
        Kind.AGENT_START_FAILED,
        r"\b(?:process|agent|adapter|cli|server) failed to (?:start|launch|initiali[sz]e)\b",
        (
            r"\b(?:died|exited|crashed|failed|terminated) (?:during|on|at|while) (?:start-?up"
            r"|starting|launch\w*|initiali[sz]\w+)\b"
        ),
        cause=Cause.EXIT,
    ),
    says(
        # A client's words for the agent; the servers of its tools come and go.
        "start.server_exited",
        _START,
        Kind.AGENT_START_FAILED,
        r"\bserver exited with status (?:exit (?:code|status): )?[1-9]\d?\b",
        surfaces=_ALIVE | {Surface.EXCEPTION},
        unless=r"\bmcp\b|\blanguage server\b|\bdev server\b",
        cause=Cause.EXIT,
        priority=-5,
    ),
    says(
        "start.process_exited_inside_adapter",
        _START,
        Kind.AGENT_START_FAILED,
        r"\bprocess exited with (?:exit )?code:? ?[1-9]\d?\b",
        (
            r"\b(?:claude code|codex|gemini|opencode)(?: process| cli)? (?:exited|failed) with "
            r"(?:exit )?code ?[1-9]\d?\b"
        ),
        r"\b(?:claude|agent|sdk) native binary (?:not found|failed)",
        surfaces=_ALIVE | {Surface.EXCEPTION},
        cause=Cause.EXIT,
        priority=-5,
    ),
)
