"""Which host did not answer, which command is missing, and why a start failed: read for wording."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from orchestrator.failure.linear import Signs, compile_signs, compile_text
from orchestrator.failure.redact import scrub

if TYPE_CHECKING:
    from orchestrator.failure.view import View

_HOST: Final = r"[a-z0-9](?:[a-z0-9-]{0,62}\.)*[a-z0-9-]{0,62}[a-z0-9](?::\d{2,5})?"
_DOTTED: Final = r"(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)+|\[[0-9a-f:]+\])(?::\d{2,5})?"

_HOSTS: Final = (
    rf"(?i)(?:https?|wss?)://(?:[^\s/@]*@)?(?P<url>{_DOTTED})"
    rf"|getaddrinfo(?: \w+)? (?P<dns>{_DOTTED})"
    rf"|host='(?P<pool>[^'\s]+)', port=(?P<port>\d+)"
    r"|(?:cannot connect to host|connect(?:ing|ion)? to|reach|resolve(?: host(?:name)?)?:?|peer"
    r"|request to|dial tcp:?(?: lookup)?|lookup|connect \w+|econn\w+|etimedout|enotfound|to server)"
    rf" (?P<named>{_DOTTED})"
)


_DOCS: Final = (
    b"docs.",
    b"aka.ms",
    b"github.com",
    b"status.",
    b"developer.mozilla",
    b"support.",
    b"help.",
)


def host(view: View) -> str:
    """The peer that did not answer, with its port where one is named; empty when nobody says."""
    if view.raw.host:
        return scrub(view.raw.host)
    for sentence in view.sentences:
        if sentence.code:
            continue
        for found in compile_text(_HOSTS).finditer(
            sentence.original[:4000].encode("utf-8", "replace")
        ):
            groups = found.groupdict()
            name = next((v for k, v in groups.items() if v and k != "port"), b"")
            if name.startswith(_DOCS):
                continue
            port = groups.get("port")
            whole = name + b":" + port if port and port not in {b"80", b"443"} else name
            return str(whole.decode("ascii", "replace").removesuffix(":443").removesuffix(":80"))
    return ""


_COMMANDS: Final = (
    r"(?im)spawn ['\"]?(?P<a>[^\s'\"]+)['\"]? enoent|exec: \"(?P<b>[^\"]+)\": executable file"
    r"|(?:command not found|not found|introuvable): (?P<c>[\w@./\\:-]+)\s*$"
    r"|(?:^|: )(?:line \d+: )?(?P<d>[\w@./-]+): (?:command )?not found\s*$"
    r"|(?:failed|unable) to spawn(?: \w+){0,2} command:? (?P<e>\S+)"
    r"|['\"]{1,2}(?P<f>[\w@./\\:-]+)['\"]{1,2}(?: is not recognized| 不是| n'est pas| no se"
    r" reconoce| não é| は、?)"
    r"|der befehl ['\"](?P<g>[^'\"]+)['\"]|env: ['\"]?(?P<h>[^\s:'\"]+)['\"]?: no such file"
    r"|no such file or directory: '(?P<i>[^']+)'|(?P<j>\b(?:claude|codex|gemini|opencode"
    r"|goose|copilot|kiro-cli|qwen|node|npx|npm|bun|uvx?|python3?)) (?:was |is )?not "
    r"(?:found|installed)"
)


def command(view: View) -> str:
    """The command that is missing, without its folder."""
    for sentence in view.sentences:
        found = compile_text(_COMMANDS).search(sentence.original[:4000].encode("utf-8", "replace"))
        if found is not None:
            name = next(g for g in found.groups() if g).decode("utf-8", "replace")
            return scrub(str(name).replace("\\", "/").rstrip("/.,").rpartition("/")[2])[:80]
    return ""


_BOILERPLATE: Final = (
    r"(?i)^\W*$|^\s*at |^\s*\^|^node:|^npm (?:err!|error) (?:a complete log|code |syscall "
    r"|path |dest |errno |[{}]|\s*$|this is|network (?:this|in most)|if you|404\s*$|404"
    r" note)"
    r"|^please make sure you have the correct|^and the repository exists|^node\.js v\d"
    r"|^\s*(?:code|errno|syscall|path|spawnargs):"
    r"|^traceback |^\s*file \"|^<---|^-{3,}|^={3,}|^\[\d+:0x|^error:?\s*$|^args: "
    r"|^elapsed: |^windows v|^bun v|^\s*\[cause\]|^instead change"
    r"|^(?:from \S+ )?import |^\s*lines\.|^/\S+:\d+$|^resume this session|^claude --resume"
)
_SAYS_WHY: Final = (
    r"(?i)\b(?:error|fatal|failed|cannot|could not|couldn't|unable|denied|refused|not"
    r" found|no such|missing|requires?|unsupported|not supported|invalid|timed out"
    r"|panic|exception|out of memory|killed|enoent|eacces|eperm|enotempty|e404|econn\w+"
    r"|etimedout|enotfound|eai_again|permission|resolve|unexpected|no module named)\b"
)
_TRANSPORT: Final = (
    r"(?i)\bssh: |\bcould not resolve\b|\beai_again\b|\benotfound\b|\beconn\w+\b"
    r"|\betimedout\b|\bpermission denied \(publickey|\bnetwork\b.{0,40}(?:failed"
    r"|unreachable)|\bcertificate\b"
)
_NPM_PREFIX: Final = (
    r"(?i)^npm (?:err!|error) (?:code |[a-z]+ )?|^(?:fatal|error|stderr|fatal error): "
)


_MAX_STDERR: Final = 64_000


def why(stderr: str) -> str:
    """The first line of stderr that says why: a transport's before any other, never boilerplate."""
    first: dict[int, str] = {}
    for line in map(str.strip, stderr[-_MAX_STDERR:].splitlines()):
        signs = _line_signs()(_bytes(line)) or (_USEFUL,) if line else (_IDLE,)
        if _IDLE not in signs:
            for sign in (_USEFUL, *signs):
                first.setdefault(sign, line)
    return first.get(_CARRIES) or first.get(_EXPLAINS) or first.get(_USEFUL, "")


_IDLE, _CARRIES, _EXPLAINS, _USEFUL = range(4)


@cache
def _line_signs() -> Signs:
    return compile_signs(_BOILERPLATE, _TRANSPORT, _SAYS_WHY)


def _bytes(text: str) -> bytes:
    return text[:2000].encode("utf-8", "replace")
