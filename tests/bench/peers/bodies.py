"""What the clients of a measurement ask: chat completions whose prompts differ."""

import json
from pathlib import Path

_SYSTEM = {"role": "system", "content": "You are a helpful assistant that answers in short."}


def chat_bodies(path: Path, *, count: int, prompt_bytes: int, stream: bool = False) -> Path:
    """Write that many bodies, one a line, each with a prompt of its own of that size."""
    lines = []
    for number in range(count):
        user = {"role": "user", "content": _prompt(number, prompt_bytes)}
        body: dict[str, object] = {"model": "m", "messages": [_SYSTEM, user], "max_tokens": 64}
        if stream:
            body["stream"] = True
        lines.append(json.dumps(body, separators=(",", ":")))
    path.write_text("\n".join(lines))
    return path


def _prompt(number: int, size_bytes: int) -> str:
    words = f"question {number} about the weather in town {number * 7919 % 1000} and its hills; "
    return (words * (size_bytes // len(words) + 1))[:size_bytes]
