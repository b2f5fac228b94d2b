"""Agents that don't start, don't stay, or say that something inside them is gone."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.raw import Surface
from orchestrator.failure.rule import Rule, Step, errno_is, raised, says
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
        "start.shell_missing",
        _START,
        Kind.AGENT_START_FAILED,
        r"\bon windows requires git-?bash\b|\brequires (?:git for windows|wsl|bash\.exe)\b",
        r"\bno suitable shell found\b|\bposix shell .{0,40}(?:not found|required)",
        cause=Cause.INSTALL,
    ),
    says(
        "start.sandbox",
        _START,
        Kind.AGENT_START_FAILED,
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
        r"\bpermission denied \(os error 13\)",
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
    says(
        "inner.killed",
        _START,
        Kind.INNER_LOST,
        (
            r"\b(?:agent|process|command|claude|codex|server)\b.{0,40}(?:exited|failed|terminated"
            r"|died)(?: with)?(?: exit)?(?: code| status)?:? ?(?:13[0-9]|14[0-3]|-9|-15|-11|-6)\b"
        ),
        r"\bkilled by sig(?:kill|term|segv|abrt|bus|ill|hup|pipe)\b",
        r"\b(?:was|been) killed by signal\b|\bterminated by signal\b",
        surfaces=_ALIVE | {Surface.EXCEPTION},
        cause=Cause.SIGNAL,
    ),
    says(
        "inner.gone",
        _START,
        Kind.INNER_LOST,
        r"\bquery closed before response received\b",
        (
            r"\b(?:codex|claude|agent|inner|child) (?:process|app-server|agent process|runtime"
            r"|query) (?:is )?(?:not available|unavailable|not running|gone|has exited|exited"
            r" unexpectedly|died|crashed|was lost|terminated unexpectedly)"
        ),
        (
            r"\b(?:claude agent|claude code|codex|agent) process (?:has )?(?:exited|terminated"
            r"|died|crashed|stopped)(?: unexpectedly)?\b"
        ),
        r"\bserver (?:has )?(?:shut ?down|exited|crashed|stopped|terminated|died) unexpectedly\b",
        r"\b(?:incoming|outgoing)[ _]transport[ _]closed\b",
        r"\bthe connection to (?:claude|codex|the agent) was lost\b",
        r"\bconnection to (?:claude|codex) was lost\b",
        (
            r"\b(?:app-server|language server|agent server|inner process|worker) (?:was killed"
            r"|exited unexpectedly|crashed|died|stopped unexpectedly)\b"
        ),
        surfaces=_ALIVE | {Surface.EXCEPTION},
        priority=-10,
    ),
    Rule(
        "inner.restartable",
        _START,
        Kind.INNER_LOST,
        facts=(("jsonrpc", "1001"),),
        surfaces=frozenset({Surface.ACP_ERROR}),
    ),
    says(
        "process.shutdown",
        _START,
        Kind.AGENT_SHUTDOWN,
        r"\b(?:worker|agent|server|runtime) (?:is |was )?shutting down\b",
        r"\bworker_shutting_down\b|\bworker_shutdown\b|\bserver is draining\b",
    ),
    says(
        "process.registration_throttled",
        _START,
        Kind.REGISTRATION_THROTTLED,
        r"registration failed.{0,200}(?:http 429|too many requests|requested too many times)",
        r"(?:http 429|too many requests|requested too many times).{0,200}registration failed",
        surfaces=_DEAD,
        check="registration_on_one_line",
        priority=20,
    ),
    says(
        "process.out_of_memory",
        _START,
        Kind.AGENT_DIED,
        r"\bjavascript heap out of memory\b|\breached heap limit\b|\bineffective mark-compacts\b",
        r"^(?:thread '.{0,60}' panicked.{0,80})?memory allocation of \d+ bytes failed",
        r"\bfatal: out of memory\b|\bstd::bad_alloc\b",
        r"\bout of memory: killed process\b|\boom-?killed\b",
        r"\bfatal error: runtime: out of memory\b",
        surfaces=_DEAD | {Surface.EXCEPTION},
        cause=Cause.OOM,
    ),
    says(
        "process.crash",
        _START,
        Kind.AGENT_DIED,
        r"\bsegmentation fault\b|\bsigsegv\b|\boh no: bun has crashed\b|\bfatal python error\b",
        r"\bbus error \(core dumped\)",
        r"\bpanic: runtime error\b|\bfatal error: all goroutines are asleep\b",
        surfaces=_DEAD,
        cause=Cause.CRASH,
    ),
    says(
        "process.pipe",
        _START,
        Kind.AGENT_DIED,
        r"\bprocesstransport is not ready for writing\b",
        r"\bcannot write to (?:terminated|closed) process\b",
        r"\bwrite after end\b|\berr_stream_write_after_end\b|\berr_stream_destroyed\b",
        r"\bseparator is not found, and chunk exceed the limit\b",
        r"\bseparator is found, but chunk is longer than limit\b",
        r"\b(?:stdin|stdout|pipe) (?:is |was )?(?:already )?(?:closed|broken)\b",
        r"\bthe pipe (?:is being closed|has been ended)\b|\bwrite epipe\b",
        r"\bagent (?:process )?(?:is )?not running\b",
        r"\bprocess (?:has )?(?:already )?exited\b(?: unexpectedly)?\.?$",
        r"\bprocess (?:is |was )?not running\b|^(?:\[errno 32\] )?broken pipe\b",
        surfaces=_DEAD | {Surface.EXCEPTION},
        cause=Cause.PIPE,
        priority=-5,
    ),
    raised(
        "process.pipe_exception",
        _START,
        Kind.AGENT_DIED,
        "BrokenPipeError",
        "BrokenResourceError",
        "ClosedResourceError",
        "EndOfStream",
        "LimitOverrunError",
        "IncompleteReadError",
        "ProcessLookupError",
        cause=Cause.PIPE,
        check="not_over_network",
    ),
    raised(
        "process.missing_command",
        _START,
        Kind.AGENT_NOT_FOUND,
        "FileNotFoundError",
        check="while_starting",
    ),
    errno_is(
        "process.missing_command_errno",
        _START,
        Kind.AGENT_NOT_FOUND,
        "ENOENT",
        check="while_starting",
    ),
    errno_is(
        "process.no_permission",
        _START,
        Kind.AGENT_START_FAILED,
        "EACCES",
        "EPERM",
        "ENOEXEC",
        check="while_starting",
        cause=Cause.PERMISSION,
    ),
    says(
        "process.start_timeout",
        _START,
        Kind.AGENT_START_TIMEOUT,
        r"\btook too long to (?:get ready|start|initiali[sz]e|respond to initiali[sz]e|load)",
        (
            r"\b(?:timed? ?out|timeout) (?:while )?(?:waiting for|awaiting) (?:the )?(?:agent"
            r"|server|process|initiali[sz]e|session/new|handshake)"
        ),
        (
            r"\b(?:initiali[sz]e|initiali[sz]ation|session/new|handshake|startup|start-up)(?:"
            r" request)? (?:timed out|timeout)"
        ),
        (
            r"\b(?:agent|server|process) (?:did not|didn't|failed to) (?:start|respond"
            r"|initiali[sz]e|become ready) (?:within|in time|after)"
        ),
        unless=r"\btls\b|\bssl\b|\bhttp\b",
    ),
    says(
        "process.host_throttled",
        _START,
        Kind.AGENT_OVERLOADED,
        (
            r"\binitiali[sz]e (?:went unanswered|was not answered|got no answer|timed out) while"
            r" .{0,60}(?:throttled|memory pressure)"
        ),
        r"\b(?:agents? )?(?:slice|cgroup|memory\.high) (?:is |was )?(?:being )?throttled\b",
        priority=10,
    ),
    says(
        "process.gate_bypassed",
        _START,
        Kind.AGENT_UNSAFE,
        (
            r"\btool calls? (?:would|could|can) (?:bypass|escape|skip|not reach) (?:the )?(?:\w+"
            r" ){0,2}gate\b"
        ),
        (
            r"\bfail(?:ed|s)? (?:its |the )?(?:digest|integrity|checksum|signature) (?:check"
            r"|verification)\b"
        ),
        r"\b(?:digest|checksum|integrity) mismatch\b.{0,60}(?:extension|plugin|gate|hook)",
        (
            r"\b(?:extension|plugin|gate|hook)\b.{0,60}(?:digest|checksum|integrity) (?:mismatch"
            r"|does not match)"
        ),
        r"\bgate extension\b.{0,40}tampered\b|\btoolgateunroutable\b|\bgateextensiontampered\b",
    ),
    says(
        "process.binding",
        _START,
        Kind.BINDING_MISMATCH,
        (
            r"\b(?:runtime|process|agent) (?:can't|cannot|can not) (?:safely )?serve (?:another|a"
            r" different|this|that|the requested) (?:cwd|workspace|working directory|tool surface"
            r"|folder|directory)"
        ),
        (
            r"\b(?:is |was )?bound to (?:another|a different) (?:cwd|workspace|working directory"
            r"|folder|tool surface)"
        ),
        r"\b(?:workspace|tool ?surface) ?binding ?(?:error|mismatch)\b",
    ),
    says(
        "host.exhausted",
        _START,
        Kind.HOST_EXHAUSTED,
        r"\benospc\b|\bno space left on device\b|\bnot enough space on the disk\b",
        r"\bdisk (?:is )?full\b|\bdisk quota exceeded\b|\bedquot\b",
        cause=Cause.DISK,
        priority=15,
    ),
    says(
        "host.descriptors",
        _START,
        Kind.HOST_EXHAUSTED,
        r"\b(?:low|reached) max(?:imum)? (?:open )?file descriptors\b|\bfile descriptor limit\b",
        r"\bemfile\b|\benfile\b|\btoo many open files\b|\bfile table overflow\b",
        r"\bsystem limit for number of file watchers\b|\binotify (?:watch|instance) limit\b",
        cause=Cause.DESCRIPTORS,
        priority=16,
    ),
    says(
        "host.memory",
        _START,
        Kind.HOST_EXHAUSTED,
        r"\benomem\b|\bcannot allocate memory\b|\bspawn \S+ (?:eagain|enomem)\b",
        r"\bresource temporarily unavailable\b.{0,20}(?:fork|spawn)",
        r"\bfork: (?:retry: )?resource temporarily unavailable\b",
        r"\b(?:can't|cannot) (?:start|create) new thread\b|\binsufficient system resources\b",
        cause=Cause.MEMORY,
        priority=15,
    ),
    errno_is(
        "host.disk_errno",
        _START,
        Kind.HOST_EXHAUSTED,
        "ENOSPC",
        "EDQUOT",
        cause=Cause.DISK,
        priority=20,
    ),
    errno_is(
        "host.descriptors_errno",
        _START,
        Kind.HOST_EXHAUSTED,
        "EMFILE",
        "ENFILE",
        cause=Cause.DESCRIPTORS,
        priority=20,
    ),
    errno_is(
        "host.memory_errno", _START, Kind.HOST_EXHAUSTED, "ENOMEM", cause=Cause.MEMORY, priority=20
    ),
    raised("host.memory_error", _START, Kind.HOST_EXHAUSTED, "MemoryError", cause=Cause.MEMORY),
)
