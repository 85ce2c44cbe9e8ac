"""How many tokens an engine says a request used, read from its response on the way through.

Knows the usage objects of OpenAI's chat, completions, embeddings and responses, and of Anthropic's
messages (routing spec 2.5). Invariant: reading never holds more than a fixed number of bytes back,
however long the response is.
"""

import re
from collections.abc import Mapping
from typing import Any

import orjson

_MARK = b'"usage"'
_OBJECT = re.compile(rb'"usage"\s*:\s*(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})')
_MOST_OBJECT_BYTES = 2048


class UsageReader:
    """Keeps the last numbers that were seen."""

    prompt_tokens: int | None = None
    """None: nothing was said."""
    output_tokens: int | None = None
    cached_tokens: int | None = None
    """Of the prompt, those that the engine held already."""

    def read(self, usage: Any) -> bool:
        """Take the numbers of a usage object; False where it holds none above 0."""
        if not isinstance(usage, dict):
            return False
        prompt, output = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if prompt is None and output is None:
            prompt, output = _prompt_tokens(usage), usage.get("output_tokens")
        if isinstance(prompt, int):
            self.prompt_tokens = prompt
        if isinstance(output, int):
            self.output_tokens = output
        cached = _cached_tokens(usage)
        if isinstance(cached, int):
            self.cached_tokens = cached
        return bool(prompt or output)


def _cached_tokens(usage: Mapping[str, Any]) -> Any:
    for name in ("prompt_tokens_details", "input_tokens_details"):
        details = usage.get(name)
        if isinstance(details, dict):
            return details.get("cached_tokens")
    return usage.get("cache_read_input_tokens")


def _prompt_tokens(usage: Mapping[str, Any]) -> int | None:
    """All of an Anthropic prompt: its cached tokens are counted beside the others."""
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    counts = [usage[name] for name in names if isinstance(usage.get(name), int)]
    return sum(counts) if counts else None


class JsonUsageReader(UsageReader):
    """Finds the last `usage` object of a JSON response whose bytes arrive in pieces."""

    _tail = b""
    _open = False
    """`_tail` begins with the mark of an object that hasn't arrived in full."""

    def feed(self, data: bytes) -> None:
        """The next piece of the body."""
        window = self._tail + data if self._tail else data
        start = window.rfind(_MARK)
        if start < 0:
            if not self._open:
                self._tail = window[1 - len(_MARK) :]
                return
            start = 0
        match = _OBJECT.match(window, start, start + _MOST_OBJECT_BYTES)
        if match is not None:
            self._open = False
            self._tail = window[1 - len(_MARK) :]
            self._read(match[1])
            return
        self._open = len(window) - start < _MOST_OBJECT_BYTES
        self._tail = window[start if self._open else 1 - len(_MARK) :]

    def _read(self, text: bytes) -> None:
        try:
            self.read(orjson.loads(text))
        except orjson.JSONDecodeError:
            return  # the response is passed on as it is; what can't be read isn't counted
