"""What a model provider says on the wire, per API: streams, whole answers and failures.

Pure: the provider sends what this builds.  Three APIs: Anthropic Messages (claude), OpenAI
Responses (codex) and OpenAI Chat Completions (opencode).
"""

import json
import time
from collections.abc import Callable

from attrs import frozen

RESET_IN_S = 7200
"""How far away the reset of a spent allowance is said to be."""


@frozen
class Spoken:
    """A streamed answer in three parts, so that it can be cut, slowed down or left open."""

    opening: list
    words: list
    closing: list


@frozen
class ToolCall:
    """What the model asks the agent to do."""

    name: str
    arguments: dict


@frozen
class Api:
    """How one API speaks."""

    path: str
    """How the address of its model requests ends."""
    stream: Callable
    """(serial, model, words) to Spoken."""
    call: Callable
    """(serial, model, tool call) to events."""
    whole: Callable
    """(serial, model, text) to the answer of a request that does not stream."""
    failure: Callable
    """Name of a fault to (body, headers)."""


def event(data, name=""):
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def words_of(text):
    return [word + " " for word in text.split()]


# --- Anthropic Messages --------------------------------------------------------------------------


def _messages_event(kind, **fields):
    return event({"type": kind, **fields}, kind)


def _messages_start(serial, model):
    message = {
        "id": f"msg_{serial}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 1},
    }
    return _messages_event("message_start", message=message)


def _messages_end(reason, count):
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [
        _messages_event("content_block_stop", index=0),
        _messages_event("message_delta", delta=delta, usage={"output_tokens": count}),
        _messages_event("message_stop"),
    ]


def _messages_block(block, deltas):
    start = _messages_event("content_block_start", index=0, content_block=block)
    return start, [_messages_event("content_block_delta", index=0, delta=d) for d in deltas]


def messages_stream(serial, model, words):
    deltas = [{"type": "text_delta", "text": word} for word in words]
    start, middle = _messages_block({"type": "text", "text": ""}, deltas)
    opening = [_messages_start(serial, model), start]
    return Spoken(opening, middle, _messages_end("end_turn", len(words)))


def messages_call(serial, model, tool):
    block = {"type": "tool_use", "id": f"toolu_{serial}", "name": tool.name, "input": {}}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(tool.arguments)}
    start, middle = _messages_block(block, [delta])
    return [_messages_start(serial, model), start, *middle, *_messages_end("tool_use", 5)]


def messages_whole(serial, model, text):
    return {
        "id": f"msg_{serial}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }


_MESSAGES_FAULTS = {
    "overloaded": ("overloaded_error", "Overloaded"),
    "throttled": (
        "rate_limit_error",
        "This request would exceed your organization's rate limit of 50,000 tokens per minute.",
    ),
    "internal": ("api_error", "Internal server error"),
    "bad_gateway": ("api_error", "Bad gateway"),
    "unavailable": ("api_error", "Service temporarily unavailable"),
    "key_rejected": ("authentication_error", "invalid x-api-key"),
    "usage_limit": (
        "rate_limit_error",
        "This request would exceed your account's rate limit. Please try again later.",
    ),
    "context_overflow": (
        "invalid_request_error",
        "prompt is too long: 205000 tokens > 200000 maximum",
    ),
}


def messages_failure(name):
    kind, message = _MESSAGES_FAULTS[name]
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    headers = {"request-id": "req_1"}
    if name == "usage_limit":
        reset = str(int(time.time()) + RESET_IN_S)
        unified = "anthropic-ratelimit-unified"
        headers |= {
            f"{unified}-status": "rejected",
            f"{unified}-representative-claim": "five_hour",
            f"{unified}-overage-status": "rejected",
            f"{unified}-reset": reset,
            f"{unified}-5h-status": "rejected",
            f"{unified}-5h-reset": reset,
        }
    return body, headers


# --- OpenAI Responses ----------------------------------------------------------------------------


def _responses_event(kind, **fields):
    return event({"type": kind, **fields}, kind)


def _response(serial, model, status, output=(), **more):
    return {
        "id": f"resp_{serial}",
        "object": "response",
        "created_at": int(time.time()),
        "model": model,
        "status": status,
        "output": list(output),
        **more,
    }


def _responses_usage(count):
    return {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": count,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 10 + count,
    }


def _responses_item(serial, text, status="completed"):
    content = [{"type": "output_text", "text": text, "annotations": []}] if text else []
    return {
        "id": f"msg_{serial}",
        "type": "message",
        "status": status,
        "role": "assistant",
        "content": content,
    }


def responses_stream(serial, model, words):
    place = {"item_id": f"msg_{serial}", "output_index": 0, "content_index": 0}
    empty = _responses_item(serial, "", "in_progress")
    part = {"type": "output_text", "text": "", "annotations": []}
    text = "".join(words)
    done = _responses_item(serial, text)
    final = _response(serial, model, "completed", [done], usage=_responses_usage(len(words)))
    return Spoken(
        [
            _responses_event("response.created", response=_response(serial, model, "in_progress")),
            _responses_event("response.output_item.added", output_index=0, item=empty),
            _responses_event("response.content_part.added", **place, part=part),
        ],
        [_responses_event("response.output_text.delta", **place, delta=word) for word in words],
        [
            _responses_event("response.output_text.done", **place, text=text),
            _responses_event("response.output_item.done", output_index=0, item=done),
            _responses_event("response.completed", response=final),
        ],
    )


def responses_call(serial, model, tool):
    item = {
        "id": f"fc_{serial}",
        "type": "function_call",
        "status": "completed",
        "call_id": f"call_{serial}",
        "name": tool.name,
        "arguments": json.dumps(tool.arguments),
    }
    final = _response(serial, model, "completed", [item], usage=_responses_usage(5))
    return [
        _responses_event("response.created", response=_response(serial, model, "in_progress")),
        _responses_event("response.output_item.added", output_index=0, item=item),
        _responses_event("response.output_item.done", output_index=0, item=item),
        _responses_event("response.completed", response=final),
    ]


def responses_whole(serial, model, text):
    item = _responses_item(serial, text)
    return _response(serial, model, "completed", [item], usage=_responses_usage(5))


def _openai_fault(message, kind, code):
    return {"message": message, "type": kind, "param": None, "code": code}


_OPENAI_FAULTS = {
    "overloaded": _openai_fault(
        "The engine is currently overloaded, please try again later",
        "server_error",
        "server_is_overloaded",
    ),
    "throttled": _openai_fault(
        "Rate limit reached for test-model on tokens per min (TPM): Limit 30000, Used 30000,"
        " Requested 100. Please try again in 1s.",
        "tokens",
        "rate_limit_exceeded",
    ),
    "internal": _openai_fault(
        "The server had an error while processing your request. Sorry about that!",
        "server_error",
        None,
    ),
    "bad_gateway": _openai_fault("Bad gateway", "server_error", None),
    "unavailable": _openai_fault("Service temporarily unavailable", "server_error", None),
    "key_rejected": _openai_fault(
        "Incorrect API key provided: sk-test.", "invalid_request_error", "invalid_api_key"
    ),
    "context_overflow": _openai_fault(
        "Your input exceeds the context window of this model. Please adjust your input and try"
        " again.",
        "invalid_request_error",
        "context_length_exceeded",
    ),
}
_QUOTA = _openai_fault(
    "You exceeded your current quota, please check your plan and billing details.",
    "insufficient_quota",
    "insufficient_quota",
)


def responses_failure(name):
    if name != "usage_limit":
        return {"error": _OPENAI_FAULTS[name]}, {"x-request-id": "req_1"}
    error = {
        "type": "usage_limit_reached",
        "message": "The usage limit has been reached",
        "plan_type": "plus",
        "resets_at": int(time.time()) + RESET_IN_S,
        "resets_in_seconds": RESET_IN_S,
    }
    return {"error": error}, {"x-request-id": "req_1"}


# --- OpenAI Chat Completions ---------------------------------------------------------------------


def _chunk(serial, model, delta, finish=None, **more):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event(
        {
            "id": f"chatcmpl-{serial}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": model,
            "choices": [choice],
            **more,
        }
    )


def _chat_usage(count):
    return {"prompt_tokens": 10, "completion_tokens": count, "total_tokens": 10 + count}


def chat_stream(serial, model, words):
    return Spoken(
        [_chunk(serial, model, {"role": "assistant", "content": ""})],
        [_chunk(serial, model, {"content": word}) for word in words],
        [_chunk(serial, model, {}, "stop", usage=_chat_usage(len(words))), event("[DONE]")],
    )


def chat_call(serial, model, tool):
    function = {"name": tool.name, "arguments": json.dumps(tool.arguments)}
    call = {"index": 0, "id": f"call_{serial}", "type": "function", "function": function}
    return [
        _chunk(serial, model, {"role": "assistant", "content": None, "tool_calls": [call]}),
        _chunk(serial, model, {}, "tool_calls", usage=_chat_usage(5)),
        event("[DONE]"),
    ]


def chat_whole(serial, model, text):
    message = {"role": "assistant", "content": text}
    return {
        "id": f"chatcmpl-{serial}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": _chat_usage(5),
    }


def chat_failure(name):
    error = _QUOTA if name == "usage_limit" else _OPENAI_FAULTS[name]
    return {"error": error}, {"x-request-id": "req_1"}


APIS = (
    Api("/messages", messages_stream, messages_call, messages_whole, messages_failure),
    Api("/responses", responses_stream, responses_call, responses_whole, responses_failure),
    Api("/chat/completions", chat_stream, chat_call, chat_whole, chat_failure),
)
FAULTS = tuple(_MESSAGES_FAULTS)
