"""The exceptions an embedder catches, at the boundary only.

Two families that know nothing of each other, so that catching one never swallows the other:
`AgentError` (the protocol and the prompt: something answered) and `RuntimeFailure` (the process and
the transport: something is gone).  `ERRORS` maps every kind to its class; inside the package
failures are values.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from orchestrator.failure.kinds import Action, Kind
from orchestrator.failure.verdict import Refusal, Verdict


class _Told:
    """What every error of both families carries.  Not an exception: nobody can catch it."""

    verdict: Verdict
    """What the failure was understood to be."""
    outcome: object
    """How the turn ended, where there was a turn."""
    partial_output: str
    """Text that was shown before the end."""

    def __init__(
        self, verdict: Verdict, *, outcome: object = None, partial_output: str = ""
    ) -> None:
        self.verdict = verdict
        self.outcome = outcome
        self.partial_output = partial_output

    def __str__(self) -> str:
        return self.verdict.title

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.verdict.title!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Keyword-only arguments do not survive the default, which replays `args`.
        return _rebuilt, (type(self), self.verdict, self.outcome, self.partial_output)

    @property
    def title(self) -> str:
        """What happened and a short next step, as the user reads it."""
        return self.verdict.title

    @property
    def kind(self) -> Kind:
        return self.verdict.kind

    @property
    def actions(self) -> tuple[Action, ...]:
        return self.verdict.actions

    @property
    def transient(self) -> bool:
        """The identical request may succeed later."""
        return self.verdict.transient

    @property
    def structural(self) -> bool:
        """The identical message in the identical conversation can't succeed: do not loop."""
        return self.verdict.structural

    @property
    def retry_after_s(self) -> float | None:
        return self.verdict.retry_after_s


class AgentError(_Told, Exception):
    """The agent or its provider answered, and the answer is a failure."""


class PromptTimeoutError(AgentError):
    """The answer missed its budget; `partial_output` holds what arrived in time."""


class ProviderError(AgentError):
    """The model's service failed or gave nothing usable."""


class AgentInternalError(AgentError):
    """The adapter itself failed."""


class LimitError(AgentError):
    """A limit was reached."""


class RateLimitedError(LimitError):
    """A short-term limit: it clears on its own."""


class QuotaError(LimitError):
    """An allowance or credit is spent."""


class TooLargeError(LimitError):
    """The conversation or the message does not fit."""


class AccessError(AgentError):
    """The account is not let in."""


class SignInRequiredError(AccessError):
    """Somebody has to sign in."""


class ModelNotAvailableError(AgentError):
    """The model does not exist here or is not in the account's plan."""


class RequestRejectedError(AgentError):
    """The request is invalid as it is."""


class ConversationRejectedError(RequestRejectedError):
    """The conversation itself is rejected; another one may be accepted."""


class RefusedError(AgentError):
    """The model, or a filter before it, declined.  Not a failure of the request."""

    @property
    def refusal(self) -> Refusal:
        """Why; each field is empty when unsaid."""
        return self.verdict.refusal or Refusal()


class PromptBusyError(AgentError):
    """A prompt is already running on this session."""


class SessionUnavailableError(AgentError):
    """The agent does not know the session, or holds it locked."""


class UnsafeAgentError(AgentError):
    """Tool calls would bypass the gate, so the agent is not used."""


class StoppedError(AgentError):
    """The turn was stopped or made way for a newer message."""


class RuntimeFailure(_Told, Exception):  # noqa: N818 - `RuntimeError` is the interpreter's own
    """The process or the transport underneath the agent failed."""


class TransportError(RuntimeFailure):
    """Nothing answered on the network path."""


class AgentDiedError(RuntimeFailure):
    """The agent's process, or the one inside it, is gone."""


class RegistrationThrottledError(AgentDiedError):
    """The agent died because its registration was throttled; it may be started again."""


class StartError(RuntimeFailure):
    """The agent could not be started; a fact of this machine, so starting again repeats it."""


class CommandNotFoundError(StartError):
    """The agent's command does not exist."""


class RequestTimeoutError(RuntimeFailure):
    """A request to the process missed its budget."""


class StartTimeoutError(RequestTimeoutError):
    """Starting the agent or its session missed its budget."""


class HostOverloadedError(RequestTimeoutError):
    """The host is too busy for the agent to answer; freeing memory helps, trying again does not."""


class HostExhaustedError(RuntimeFailure):
    """The host ran out of disk, memory or file descriptors."""


class BindingMismatchError(RuntimeFailure):
    """This runtime can't serve that workspace or tool surface."""


Error = AgentError | RuntimeFailure

ERRORS: Final[Mapping[Kind, type[AgentError | RuntimeFailure]]] = MappingProxyType(
    {
        Kind.OVERLOADED: ProviderError,
        Kind.SERVER_ERROR: ProviderError,
        Kind.MODEL_UNAVAILABLE: ProviderError,
        Kind.MODEL_LIST_UNAVAILABLE: ProviderError,
        Kind.EMPTY_RESPONSE: ProviderError,
        Kind.PARSE_ERROR: ProviderError,
        Kind.INTERNAL_ERROR: AgentInternalError,
        Kind.COMPACTION_FAILED: AgentInternalError,
        Kind.RATE_LIMITED: RateLimitedError,
        Kind.USAGE_LIMIT: QuotaError,
        Kind.BILLING: QuotaError,
        Kind.CONTEXT_OVERFLOW: TooLargeError,
        Kind.REQUEST_TOO_LARGE: TooLargeError,
        Kind.MESSAGE_TOO_LARGE: TooLargeError,
        Kind.MAX_OUTPUT_TOKENS: LimitError,
        Kind.BUDGET_EXHAUSTED: LimitError,
        Kind.AUTH_REQUIRED: SignInRequiredError,
        Kind.ACCESS_DENIED: AccessError,
        Kind.CREDENTIAL_PROPAGATION: AccessError,
        Kind.CREDENTIAL_RELOAD: AccessError,
        Kind.MODEL_NOT_ENTITLED: ModelNotAvailableError,
        Kind.MODEL_NOT_FOUND: ModelNotAvailableError,
        Kind.INVALID_REQUEST: RequestRejectedError,
        Kind.MALFORMED_REQUEST: ConversationRejectedError,
        Kind.TOOL_SCHEMA_REJECTED: RequestRejectedError,
        Kind.IMAGE_REJECTED: ConversationRejectedError,
        Kind.THINKING_BINDING: ConversationRejectedError,
        Kind.THINKING_REJECTED: ConversationRejectedError,
        Kind.CONTENT_REFUSED: RefusedError,
        Kind.PROMPT_BUSY: PromptBusyError,
        Kind.UNSUPPORTED: RequestRejectedError,
        Kind.CONNECTION_LOST: TransportError,
        Kind.TLS_FAILURE: TransportError,
        Kind.PROXY_REFUSED: TransportError,
        Kind.AGENT_DIED: AgentDiedError,
        Kind.INNER_LOST: AgentDiedError,
        Kind.AGENT_SHUTDOWN: AgentDiedError,
        Kind.REGISTRATION_THROTTLED: RegistrationThrottledError,
        Kind.AGENT_NOT_FOUND: CommandNotFoundError,
        Kind.AGENT_START_FAILED: StartError,
        Kind.AGENT_START_TIMEOUT: StartTimeoutError,
        Kind.AGENT_OVERLOADED: HostOverloadedError,
        Kind.AGENT_UNSAFE: UnsafeAgentError,
        Kind.BINDING_MISMATCH: BindingMismatchError,
        Kind.SESSION_NOT_FOUND: SessionUnavailableError,
        Kind.SESSION_LOCKED: SessionUnavailableError,
        Kind.REQUEST_TIMEOUT: PromptTimeoutError,
        Kind.HOST_EXHAUSTED: HostExhaustedError,
        Kind.UNKNOWN: AgentError,
        Kind.CANCELLED: StoppedError,
        Kind.ADVISORY: AgentError,
        Kind.NOT_A_FAILURE: AgentError,
    }
)
"""The class of every kind.  The last two never end a turn; the table is total all the same."""


def error_for(verdict: Verdict, *, outcome: object = None, partial_output: str = "") -> Error:
    """The exception to raise for a verdict."""
    return ERRORS[verdict.kind](verdict, outcome=outcome, partial_output=partial_output)


def _rebuilt(
    cls: type[AgentError | RuntimeFailure], verdict: Verdict, outcome: object, partial: str
) -> Error:
    return cls(verdict, outcome=outcome, partial_output=partial)
