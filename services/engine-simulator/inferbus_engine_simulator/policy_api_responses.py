"""The bodies of OpenAI answers, whole and streamed.

A stream is server-sent events: `data: <chunk>` per token, a chunk with the finish reason per
choice, a chunk with the usage and no choices where the client asked for it, and `data: [DONE]`.

Invariant: the tokens of a stream, put together, are the text of the whole answer.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from inferbus_engine_simulator.policy_events import FinishReason, Timeline
from inferbus_engine_simulator.policy_tokens import OUTPUT_WORDS, output_index

DONE = b"data: [DONE]\n\n"

_PLACE = "\u0000"


class Answer(NamedTuple):
    """What is the same in all parts of an answer."""

    answer_id: str
    model: str
    created_seconds: int
    chat: bool


class StreamWriter:
    """The chunks of one streamed answer, as bytes to be sent.

    The JSON of a token's chunk is prepared once per choice, because words need no escaping.
    """

    def __init__(self, answer: Answer, choices: int) -> None:
        self._answer = answer
        self._around = [self._token_parts(index) for index in range(choices)]

    def head(self) -> bytes:
        """The chunks before the first token: the role of each chat message."""
        if not self._answer.chat:
            return b""
        delta = {"role": "assistant", "content": ""}
        return b"".join(
            _event(self._chunk([self._choice(index, delta, None)]))
            for index in range(len(self._around))
        )

    def tokens(self, choice: int, seed: int, first: int, count: int) -> bytes:
        """The chunks of `count` tokens of the text `seed` from position `first` on."""
        before, after = self._around[choice]
        return b"".join(
            before + OUTPUT_WORDS[output_index(seed, position)].encode() + after
            for position in range(first, first + count)
        )

    def text(self, choice: int, text: str) -> bytes:
        """A chunk with any text (an echoed prompt)."""
        delta = {"content": text} if self._answer.chat else text
        return _event(self._chunk([self._choice(choice, delta, None)]))

    def end(self, choice: int, reason: FinishReason) -> bytes:
        """The chunk that ends a choice."""
        delta: Any = {} if self._answer.chat else ""
        return _event(self._chunk([self._choice(choice, delta, str(reason))]))

    def usage(self, numbers: dict[str, Any]) -> bytes:
        """The chunk with the usage."""
        return _event({**self._chunk([]), "usage": numbers})

    def _token_parts(self, choice: int) -> tuple[bytes, bytes]:
        delta: Any = {"content": _PLACE} if self._answer.chat else _PLACE
        chunk = _event(self._chunk([self._choice(choice, delta, None)]))
        before, _, after = chunk.partition(json.dumps(_PLACE)[1:-1].encode())
        return before, after

    def _chunk(self, choices: list[dict[str, Any]]) -> dict[str, Any]:
        kind = "chat.completion.chunk" if self._answer.chat else "text_completion"
        return {**_header(self._answer, kind), "choices": choices}

    def _choice(self, index: int, delta: Any, reason: str | None) -> dict[str, Any]:
        name = "delta" if self._answer.chat else "text"
        return {"index": index, name: delta, "logprobs": None, "finish_reason": reason}


def whole_body(
    answer: Answer, texts: Sequence[str], lives: Sequence[Timeline], prompt_tokens: int
) -> dict[str, Any]:
    """The body of an answer that isn't streamed; one text and one life per choice."""
    choices = []
    for index, (text, life) in enumerate(zip(texts, lives, strict=True)):
        content: dict[str, Any] = (
            {"message": {"role": "assistant", "content": text}} if answer.chat else {"text": text}
        )
        choices.append(
            {"index": index, **content, "logprobs": None, "finish_reason": str(life.reason)}
        )
    kind = "chat.completion" if answer.chat else "text_completion"
    return {
        **_header(answer, kind),
        "choices": choices,
        "usage": usage(prompt_tokens, lives),
    }


def usage(prompt_tokens: int, lives: Sequence[Timeline]) -> dict[str, Any]:
    """Token counts of a call; `prompt_tokens` counts each prompt once, whatever n is."""
    completion = sum(life.output_tokens for life in lives)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": prompt_tokens + completion,
        "prompt_tokens_details": {"cached_tokens": max(life.cached_tokens for life in lives)},
    }


def embedding(prompt: Sequence[int], seed: int, dimensions: int) -> list[float]:
    """A vector that depends on the prompt alone, each part from -1 to 1."""
    return [
        round((output_index(seed ^ (position << 8), len(prompt)) - 47.5) / 48, 6)
        for position in range(dimensions)
    ]


def _header(answer: Answer, kind: str) -> dict[str, Any]:
    return {
        "id": answer.answer_id,
        "object": kind,
        "created": answer.created_seconds,
        "model": answer.model,
    }


def _event(chunk: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n".encode()
