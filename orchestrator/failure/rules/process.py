"""Agents that do not stay, say that something inside is gone, or stand on an exhausted host."""

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
        r"\bquery closed before response received\b|\bconnection is disposed\b",
        r"\bprocess ?transport (?:is )?(?:closed|not ready|not connected|terminated)\b",
        r"\bfailed to write to (?:the )?(?:process|child|agent)(?:'s)? stdin\b",
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
        check="not_over_network",
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
        r"\bunable to (?:start|initiali[sz]e) (?:with)?(?:in|after) \d+ ?s",
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
        r"\bno file descriptors available\b|\bos error (?:23|24)\b",
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
