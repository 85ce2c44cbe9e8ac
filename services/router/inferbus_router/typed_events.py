"""What events say that carry their kind in `type`: OpenAI's responses and Anthropic's messages.

Their usage counts once the response is whole (routing spec 2.5): a stream that ends before has told
only a part of it. Invariant: a reader learns nothing from such a stream before the event that ends
it, and then what the stream said last.
"""

from collections.abc import Mapping
from typing import Any

from inferbus_router.usage import UsageReader

_LAST_OF_RESPONSE = frozenset({"response.completed", "response.incomplete", "response.failed"})
_COUNTED = frozenset({"response.completed", "response.incomplete"})
_PROMPT_FIELDS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class TypedEvents:
    """One such stream."""

    is_message = False
    """It is an Anthropic message: its last event has no usage of its own."""
    is_finished = False
    """The event that ends the response was seen."""

    def __init__(self) -> None:
        self._message_usage: dict[str, int] = {}

    def read(self, kind: str, document: Mapping[str, Any], usage: UsageReader) -> None:
        """Take what one event says, into `usage` once all is said; unknown kinds say nothing."""
        if kind in _LAST_OF_RESPONSE:
            self.is_finished = True
            if kind in _COUNTED and isinstance(response := document.get("response"), dict):
                usage.read(response.get("usage"))
        elif kind == "message_start":
            self.is_message = True
            if isinstance(message := document.get("message"), dict):
                self._merge(message.get("usage"), _PROMPT_FIELDS)
        elif kind == "message_delta":
            self._merge(document.get("usage"), (*_PROMPT_FIELDS, "output_tokens"))
        elif kind == "message_stop":
            self.is_finished = True
            usage.read(self._message_usage)

    def _merge(self, usage: Any, names: tuple[str, ...]) -> None:
        """Numbers are cumulative: a later one replaces an earlier one, an absent one doesn't."""
        if isinstance(usage, dict):
            said = {name: usage[name] for name in names if isinstance(usage.get(name), int)}
            self._message_usage |= said
