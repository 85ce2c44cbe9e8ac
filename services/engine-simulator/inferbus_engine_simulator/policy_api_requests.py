"""From the body of an OpenAI request to the sequences that the engine has to compute.

A request that names a limit (`max_tokens`, `max_completion_tokens`) gets exactly that many tokens
and ends with `length`: load generators ask for a length this way. Without a limit the model stops
by itself after a length that follows from the prompt (`policy_tokens.natural_output_tokens`), at
least `min_tokens`; with `ignore_eos` it goes on to the end of the context.

Invariant: a call that was accepted fits into the context, and the same body always gives the same
call.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from inferbus_engine_simulator.policy_api_errors import bad_request
from inferbus_engine_simulator.policy_events import FinishReason
from inferbus_engine_simulator.policy_tokens import (
    MAX_TOKEN_ID,
    natural_output_tokens,
    prompt_seed,
    tokenize,
)

_MAX_N = 128
_MEDIA_TOKENS = 256
"""What an image or audio part of a message counts as."""


class Output(NamedTuple):
    """What one sequence will generate."""

    prompt: tuple[int, ...]
    tokens: int
    reason: FinishReason
    seed: int


class Call(NamedTuple):
    """A parsed request to /v1/completions or /v1/chat/completions."""

    model: str
    outputs: tuple[Output, ...]
    """One per choice: the choices of the first prompt, then those of the second, …"""
    n: int
    max_tokens: int | None
    stream: bool
    include_usage: bool
    """Whether a stream ends with a chunk that has the usage."""
    echo: bool
    kv_transfer: Mapping[str, Any] | None
    """`kv_transfer_params` of a disaggregated request (vLLM)."""
    rooms: tuple[int, ...]
    """`bootstrap_room`, one for each prompt, where prefill and decode meet (SGLang)."""
    bootstrap_host: str
    """Of the engine that prefills."""
    bootstrap_port: int | None

    @property
    def prompts(self) -> tuple[tuple[int, ...], ...]:
        """The distinct prompts, in order."""
        return tuple(output.prompt for output in self.outputs[:: self.n])

    @property
    def asks_for_prefill(self) -> bool:
        """Whether another engine will decode it."""
        return self.kv_transfer is not None and bool(self.kv_transfer.get("do_remote_decode"))

    @property
    def names_blocks(self) -> bool:
        """Whether another engine has computed the prompt, and keeps the blocks (vLLM)."""
        return self.kv_transfer is not None and bool(self.kv_transfer.get("do_remote_prefill"))


def parse_chat(body: Any, max_model_len: int, seed: int) -> Call:
    """A body of /v1/chat/completions; raises `ApiError` with status 400."""
    fields = _object(body)
    prompt = chat_tokens(fields.get("messages"))
    limit = _limit(fields, ("max_completion_tokens", "max_tokens"))
    return _call(fields, [prompt], limit, max_model_len, seed)


def parse_completion(body: Any, max_model_len: int, seed: int) -> Call:
    """A body of /v1/completions; raises `ApiError` with status 400."""
    fields = _object(body)
    limit = _limit(fields, ("max_tokens", "max_completion_tokens"))
    prompts = text_or_tokens(fields.get("prompt"), "prompt")
    return _call(fields, prompts, limit, max_model_len, seed)


def chat_tokens(messages: Any) -> tuple[int, ...]:
    """The tokens of a conversation, with the start of the answer; raises `ApiError`.

    Header, content and end of each message start a token of their own, so what was said before
    keeps its tokens when the conversation goes on.
    """
    if not isinstance(messages, list) or not messages:
        raise bad_request("messages must be a list with at least one message", "messages")
    tokens: list[int] = []
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise bad_request("each message must be an object with a role", "messages")
        tokens += tokenize(f"<|{message['role']}|>\n")
        tokens += _content_tokens(message.get("content"))
        tokens += tokenize("<|end|>\n")
    return (*tokens, *tokenize("<|assistant|>\n"))


def text_or_tokens(value: Any, parameter: str) -> list[tuple[int, ...]]:
    """A string, a list of strings, a list of token ids, or a list of such lists."""
    if isinstance(value, str):
        prompts = [tuple(tokenize(value))]
    elif _is_token_list(value):
        prompts = [tuple(value)]
    elif isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        prompts = [tuple(tokenize(part)) for part in value]
    elif isinstance(value, list) and value and all(_is_token_list(part) for part in value):
        prompts = [tuple(part) for part in value]
    else:
        raise bad_request(
            f"{parameter} must be a string, a list of strings, or lists of token ids", parameter
        )
    if not all(prompts):
        raise bad_request(f"{parameter} must not be empty", parameter)
    return prompts


def _call(
    fields: Mapping[str, Any],
    prompts: Sequence[tuple[int, ...]],
    limit: int | None,
    max_model_len: int,
    seed: int,
) -> Call:
    n = _integer(fields, "n", 1, 1, _MAX_N)
    minimum = _integer(fields, "min_tokens", 0, 0, max_model_len)
    if limit is not None and minimum > limit:
        raise bad_request("min_tokens must not be above max_tokens", "min_tokens")
    ignore_eos = bool(fields.get("ignore_eos"))
    outputs = tuple(
        _output(prompt, limit, minimum, ignore_eos, max_model_len, seed + choice)
        for prompt in prompts
        for choice in range(n)
    )
    options = fields.get("stream_options") or {}
    if not isinstance(options, dict):
        raise bad_request("stream_options must be an object", "stream_options")
    transfer = fields.get("kv_transfer_params")
    if transfer is not None and not isinstance(transfer, dict):
        raise bad_request("kv_transfer_params must be an object", "kv_transfer_params")
    return Call(
        model=_model(fields),
        outputs=outputs,
        n=n,
        max_tokens=limit,
        stream=bool(fields.get("stream")),
        include_usage=bool(options.get("include_usage")),
        echo=bool(fields.get("echo")),
        kv_transfer=transfer,
        rooms=_rooms(fields.get("bootstrap_room")),
        bootstrap_host=str(_first(fields.get("bootstrap_host")) or "127.0.0.1"),
        bootstrap_port=_bootstrap_port(_first(fields.get("bootstrap_port"))),
    )


def _output(
    prompt: tuple[int, ...],
    limit: int | None,
    minimum: int,
    ignore_eos: bool,
    max_model_len: int,
    seed: int,
) -> Output:
    room = max_model_len - len(prompt)
    if room < max(1, limit or 0):
        raise bad_request(
            f"the context holds {max_model_len} tokens, the request needs "
            f"{len(prompt)} for the prompt and {limit or 1} for the output"
        )
    text_seed = prompt_seed(prompt, seed)
    if limit is not None:
        return Output(prompt, limit, FinishReason.LENGTH, text_seed)
    wanted = room if ignore_eos else max(natural_output_tokens(text_seed), minimum)
    reason = FinishReason.STOP if wanted < room else FinishReason.LENGTH
    return Output(prompt, min(wanted, room), reason, text_seed)


def _object(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise bad_request("the body must be a JSON object")
    return body


def _model(fields: Mapping[str, Any]) -> str:
    model = fields.get("model") or ""
    if not isinstance(model, str):
        raise bad_request("model must be a string", "model")
    return model


def _limit(fields: Mapping[str, Any], names: Sequence[str]) -> int | None:
    name = next((name for name in names if fields.get(name) is not None), None)
    return None if name is None else _integer(fields, name, 1, 1, None)


def _integer(
    fields: Mapping[str, Any], name: str, default: int, minimum: int, maximum: int | None
) -> int:
    value = fields.get(name)
    if value is None:
        return default
    below = isinstance(value, int) and not isinstance(value, bool) and value >= minimum
    if not below or (maximum is not None and value > maximum):
        limits = f"at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
        raise bad_request(f"{name} must be a whole number, {limits}", name)
    return int(value)


def _rooms(value: Any) -> tuple[int, ...]:
    rooms = value if isinstance(value, list) else [] if value is None else [value]
    if not all(type(room) is int and 0 <= room < 2**63 for room in rooms):
        raise bad_request("bootstrap_room must be a whole number, or a list", "bootstrap_room")
    return tuple(rooms)


def _bootstrap_port(value: Any) -> int | None:
    if value is not None and not (type(value) is int and 0 < value < 65536):
        raise bad_request("bootstrap_port must be a port", "bootstrap_port")
    return value


def _first(value: Any) -> Any:
    """Of a batch, for which fields are lists; its prompts are computed at one place."""
    return next(iter(value), None) if isinstance(value, list) else value


def _content_tokens(content: Any) -> list[int]:
    if content is None:
        return []
    if isinstance(content, str):
        return tokenize(content)
    if not isinstance(content, list):
        raise bad_request("content must be a string or a list of parts", "messages")
    tokens: list[int] = []
    for part in content:
        if not isinstance(part, dict):
            raise bad_request("each part of a content must be an object", "messages")
        text = part.get("text")
        tokens += tokenize(text) if isinstance(text, str) else tokenize("<|media|>") * _MEDIA_TOKENS
    return tokens


def _is_token_list(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(type(token) is int and 0 <= token <= MAX_TOKEN_ID for token in value)
    )
