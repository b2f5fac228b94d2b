"""Models served on this machine: Ollama, LM Studio, llama.cpp, vLLM."""

from __future__ import annotations

from typing import Final

from orchestrator.failure.kinds import Kind
from orchestrator.failure.rule import Rule, Scope, Step, says

_PROVIDER = Scope.PROVIDER

RULES: Final[tuple[Rule, ...]] = (
    says(
        "local.no_memory",
        Step.SHAPE,
        Kind.MODEL_NOT_FOUND,
        r"\bmodel requires more system memory\b",
        r"\binsufficient (?:gpu |system )?(?:memory|vram|resources) to load\b",
        r"\bcuda (?:error: )?out of memory\b|\bout of (?:gpu|cuda|device) memory\b",
        r"\bmodel loading was stopped due to insufficient\b",
        scope=_PROVIDER,
        priority=10,
    ),
    says(
        "local.failed_load",
        Step.SHAPE,
        Kind.MODEL_NOT_FOUND,
        r"\bfailed to load (?:the )?model\b|\berror loading model\b|\bunable to load model\b",
        scope=_PROVIDER,
    ),
    says(
        "local.unloaded",
        Step.MODEL,
        Kind.MODEL_UNAVAILABLE,
        r"\bmodel (?:is|was|has been|got) unloaded\b",
        r"\bno models? (?:is |are )?(?:currently )?loaded\b|\bloading model\b",
        r"\bmodel is (?:still |currently )?loading\b",
        scope=_PROVIDER,
    ),
    says(
        "local.loading_slowly",
        Step.MODEL,
        Kind.MODEL_UNAVAILABLE,
        r"\btimed out waiting for (?:llama|model|the model) (?:runner )?to (?:start|load)\b",
        scope=_PROVIDER,
    ),
    says(
        "local.crashed",
        Step.SERVER,
        Kind.SERVER_ERROR,
        r"\b(?:the )?model has crashed\b",
        (
            r"\b(?:llama|model) runner (?:process )?(?:has )?(?:terminated|stopped|exited|no"
            r" longer running|unexpectedly stopped)\b"
        ),
        r"\bllama-server\b.{0,40}(?:exited|crashed)",
        r"\bcould not connect to (?:llama|ollama) (?:runner|app)\b",
    ),
    says(
        "local.overflow",
        Step.SHAPE,
        Kind.CONTEXT_OVERFLOW,
        r"\bconfigured context size is\b|\bexceeds the available context size\b",
        r"\bgreater than the context length\b",
        r"\bexceed_context_size_error\b|\bkv cache is full\b",
        r"\bexceeded (?:max )?context length\b|\bcontext size has been exceeded\b",
        r"\btrying to keep the first \d+ tokens when context\b",
        r"\binput length exceeds (?:maximum )?context\b",
        scope=_PROVIDER,
        priority=5,
    ),
    says(
        "local.no_tools",
        Step.SHAPE,
        Kind.UNSUPPORTED,
        r"\b(?:does not|doesn't|do not) support (?:tools?|thinking|function calling|tool calls?"
        r"|tool use|tool calling|reasoning)\b",
        scope=_PROVIDER,
    ),
    says(
        "local.no_images",
        Step.SHAPE,
        Kind.IMAGE_REJECTED,
        (
            r"\bmodel\b.{0,80}\b(?:does not|doesn't|cannot) (?:support|accept|process|handle) "
            r"(?:images?|vision|multimodal)\b"
        ),
        r"\bdoes not support image inputs?\b",
        r"\bno (?:endpoints|models?) found that support image input\b",
        scope=_PROVIDER,
    ),
    says(
        "local.grammar",
        Step.SHAPE,
        Kind.TOOL_SCHEMA_REJECTED,
        r"\b(?:failed to|error|could not|unable to) (?:parse|parsing|compile|compiling) (?:the )?"
        r"grammar\b",
        scope=_PROVIDER,
    ),
    says(
        "local.template",
        Step.REQUEST,
        Kind.INVALID_REQUEST,
        r"\b(?:issue|error|problem) with the model's prompt template\b|\bjinja exception\b",
        r"\b(?:error|failed) (?:rendering|to render|applying|to apply) (?:the )?"
        r"(?:prompt|chat|jinja) ?template\b",
        priority=-20,
    ),
    says(
        "local.model_missing",
        Step.REQUEST,
        Kind.MODEL_NOT_FOUND,
        r"\bmodel ['\"`]?[\w.:/@-]+['\"`]? not found\b|\btry pulling it first\b",
        r"\bmodel not found\b",
    ),
    says(
        "local.queue_full",
        Step.SERVER,
        Kind.OVERLOADED,
        r"\bserver busy, please try again\b|\bmaximum pending requests exceeded\b",
        r"\bno slots? (?:is |are )?available\b|\bqueue is full\b",
    ),
)
