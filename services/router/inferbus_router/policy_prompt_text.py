"""The one text that stands for a prompt where scheduler plugins compare prompts.

Invariant: requests whose prompts begin alike have texts that begin alike, whichever of the APIs
they use; the text is the reference's for every body that it reads (routing spec 2.2).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_TEXT_TYPES = frozenset({"text", "input_text", "output_text", None})
_MESSAGE_TYPES = frozenset({"message", None})


def prompt_text(document: Mapping[str, Any]) -> str:
    """The prompt of an OpenAI or Anthropic request body; empty where it has none.

    The order of preference is `prompt`, `messages`, `input`. A `prompt` that is no text (a batch,
    token ids), which the reference refuses, is written out part by part.
    """
    if (prompt := document.get("prompt")) is not None:
        return "\n".join(_parts(prompt))
    messages = document.get("messages")
    if isinstance(messages, list):
        return "".join(_turns([_message("system", document.get("system")), *messages]))
    value = document.get("input")
    if isinstance(value, str):
        value = [_message("user", value)]
    if isinstance(value, list):
        instructions = _message("developer", document.get("instructions"))
        return "".join(_turns([instructions, *value]))
    return ""


def _message(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def _turns(messages: Iterable[Any]) -> Iterator[str]:
    """Each message in the frame that chat templates of the Qwen family put around it."""
    for message in messages:
        if not isinstance(message, dict) or message.get("type") not in _MESSAGE_TYPES:
            continue
        role, text = message.get("role"), _text(message.get("content"))
        if role and isinstance(role, str) and text:
            yield f"<|im_start|>{role}\n{text}<|im_end|>\n"


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(
        part["text"]
        for part in content
        if isinstance(part, dict)
        and part.get("type") in _TEXT_TYPES
        and isinstance(part.get("text"), str)
    )


def _parts(prompt: Any) -> Iterator[str]:
    if isinstance(prompt, list):
        for part in prompt:
            yield from _parts(part)
    elif isinstance(prompt, str | int):
        yield str(prompt)
