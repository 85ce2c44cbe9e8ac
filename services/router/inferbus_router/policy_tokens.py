"""How many tokens a prompt has, before any engine has counted them.

The reference takes a quarter of the characters (routing spec 2.2, step 7), which is right for
English and far off for scripts that need a token or more per character (its defect 8). Here a
character costs more the more bytes its UTF-8 form has, and what engines report about finished
requests corrects the estimate per model. Invariant: plain ASCII text costs ceil(characters / 4) as
long as no engine has said otherwise.
"""

from collections.abc import Iterable, Mapping
from typing import Any

_ASCII_EIGHTHS = 2
"""Eighths of a token per character."""
_EXTRA_BYTE_EIGHTHS = 3
"""Added per byte beyond the first of a character's UTF-8 form: a CJK character makes one token."""

_MESSAGE_FRAME = len("<|im_start|>\n<|im_end|>\n")
_TEXT_PARTS = frozenset({"text", "input_text", "output_text", None})


def estimate_prompt_tokens(document: Mapping[str, Any]) -> int:
    """Tokens of the prompt in an OpenAI or Anthropic request body; 0 where there is none.

    Understands `prompt` (text, token ids, or a batch of either), `messages` with `system`, and
    `input` with `instructions` (Responses and embeddings), in the reference's order of preference.
    Parts that aren't text, e.g. images, count nothing.
    """
    if (prompt := document.get("prompt")) is not None:
        return _batch_tokens(prompt)
    messages = document.get("messages")
    if isinstance(messages, list):
        weight = _messages_weight(messages)
        if (system := document.get("system")) is not None:
            weight += _message_weight("system", system)
        return -(-weight // 8)
    if (value := document.get("input")) is not None:
        weight = _message_weight("developer", document.get("instructions"))
        return _tokens(weight) + _input_tokens(value)
    return 0


def text_tokens(text: str) -> int:
    """Tokens of one text."""
    return _tokens(_weight(text))


def _tokens(eighths: int) -> int:
    return -(-eighths // 8)


def _weight(text: str) -> int:
    if text.isascii():
        return _ASCII_EIGHTHS * len(text)
    extra_bytes = len(text.encode("utf-8", "surrogatepass")) - len(text)
    return _ASCII_EIGHTHS * len(text) + _EXTRA_BYTE_EIGHTHS * extra_bytes


def _batch_tokens(prompt: Any) -> int:
    if isinstance(prompt, str):
        return text_tokens(prompt)
    if not isinstance(prompt, list):
        return 0
    return sum(1 if isinstance(part, int) else _batch_tokens(part) for part in prompt)


def _input_tokens(value: Any) -> int:
    if isinstance(value, str):
        return _tokens(_message_weight("user", value))
    if isinstance(value, list) and any(isinstance(part, dict) for part in value):
        return _tokens(_messages_weight(value))
    return _batch_tokens(value)


def _messages_weight(messages: Iterable[Any]) -> int:
    """Nearly all messages are plain ASCII text, so those are added up here."""
    weight = 0
    for message in messages:
        if not isinstance(message, dict):
            continue
        role, content = message.get("role"), message.get("content")
        if isinstance(role, str) and isinstance(content, str) and content.isascii():
            weight += _ASCII_EIGHTHS * (_MESSAGE_FRAME + len(role) + len(content))
        else:
            weight += _message_weight(role, content)
    return weight


def _message_weight(role: Any, content: Any) -> int:
    if not isinstance(role, str):
        return 0
    if isinstance(content, str):
        text = content
    elif isinstance(content, list) and (texts := [p["text"] for p in content if _is_text(p)]):
        text = "\n".join(texts)
    else:
        return 0
    return _ASCII_EIGHTHS * (_MESSAGE_FRAME + len(role)) + _weight(text)


def _is_text(part: Any) -> bool:
    return (
        isinstance(part, dict)
        and part.get("type") in _TEXT_PARTS
        and isinstance(part.get("text"), str)
    )


class TokenScale:
    """What one model's engines count, relative to the estimate; learned from finished requests.

    Requests count by their length, recent ones more: what was seen is halved whenever it exceeds
    `_MEMORY_TOKENS`. Ratios beyond a factor of 4 are no matter of tokenizers (images, hidden
    templates), and must not spoil the estimate of plain text.
    """

    _MEMORY_TOKENS = 100_000
    _MOST = 4

    def __init__(self) -> None:
        self._estimated = 1_000
        """Begins with as much evidence for the estimate as a few requests weigh."""
        self._counted = 1_000

    def scaled(self, estimate: int) -> int:
        """The corrected estimate, tokens; never 0 for a prompt that has any."""
        return -(-estimate * self._counted // self._estimated)

    def learn(self, estimate: int, counted: int) -> None:
        """An engine counted `counted` tokens for a prompt of `estimate` unscaled tokens."""
        if counted > estimate * self._MOST or estimate > counted * self._MOST:
            return
        self._estimated += estimate
        self._counted += counted
        if self._estimated > self._MEMORY_TOKENS:
            self._estimated //= 2
            self._counted //= 2
