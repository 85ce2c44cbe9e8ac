"""A prompt as bytes that can be compared: what an engine would see first stands first.

The parsed prompt is written out anew, so that white space and escapes of the client's encoder make
no difference, and everything counts that a chat template may render: tools, images, whole message
objects (routing spec, defect 10). Invariant: where one conversation is the beginning of another,
its bytes, but for the closing brackets, are the beginning of the other's.
"""

from collections.abc import Mapping
from typing import Any

import orjson

_AHEAD = ("tools", "system", "instructions")
"""What templates render before the conversation."""
_NAMES_AHEAD = frozenset(_AHEAD)
_CONVERSATIONS = ("prompt", "messages", "input")
"""In the order of preference of `policy_tokens`."""


def prompt_bytes(document: Mapping[str, Any]) -> bytes:
    """The prompt of an OpenAI or Anthropic request body; empty where it has none."""
    for name in _CONVERSATIONS:
        conversation = document.get(name)
        if conversation is not None:
            break
    else:
        return b""
    try:
        written = orjson.dumps(conversation)
        if _NAMES_AHEAD.isdisjoint(document):
            return written
        return orjson.dumps([document[name] for name in _AHEAD if name in document]) + written
    except orjson.JSONEncodeError:
        return b""  # numbers or surrogates that only the slow parser reads: nobody holds it
