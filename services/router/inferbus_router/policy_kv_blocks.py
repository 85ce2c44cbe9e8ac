"""The blocks of KV caches as the reference's sidecars write them into Redis (routing spec 3.5).

A sidecar notes under each block of tokens which pods hold it, and since when. Invariant: the hashes
and keys are the sidecars' own, bit for bit; what is made of them obeys the defects' remedies.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_BYTES_PER_TOKEN = 4
_POSITIVE = (1 << 63) - 1


def token_block_hashes(
    tokens: Sequence[int], block_tokens: int, most_blocks: int = 128
) -> list[int]:
    """The hash of each block by itself: SHA-256 of the token ids, its first 63 bits but one.

    The last block may be short. A token id is 4 bytes, the highest first.
    """
    data = b"".join(token.to_bytes(_BYTES_PER_TOKEN, "big") for token in tokens)
    size = block_tokens * _BYTES_PER_TOKEN
    ends = range(size, min(len(data) + size - 1, size * most_blocks) + 1, size)
    digests = (hashlib.sha256(data[end - size : end]).digest() for end in ends)
    return [int.from_bytes(digest[:8], "big") & _POSITIVE for digest in digests]


def block_key(model: str, block: int) -> str:
    """The Redis key of the hash that maps `pod.namespace` to a time in Unix seconds."""
    return f"matrix:kv:block:{model}@{block}"


def fresh_owners(written: Mapping[str, str], started_seconds: Mapping[str, float]) -> Iterable[str]:
    """Those that hold a block still: written after the pod's containers started.

    The same second is too early; a time that can't be read counts as fresh; pods that aren't in
    `started_seconds` are no candidates.
    """
    for pod, text in written.items():
        if pod in started_seconds and _is_after(text, started_seconds[pod]):
            yield pod


def _is_after(text: str, start_seconds: float) -> bool:
    try:
        return float(text) > start_seconds
    except ValueError:
        return True


def tokenize_body(model: str, document: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What to ask an engine for the tokens of a request; None where it has no tokenizer for it.

    Tools are passed, because the template puts them before the messages (defect 10).
    """
    common = {"model": model, "return_token_strs": False}
    if isinstance(document.get("prompt"), str):
        return {**common, "prompt": document["prompt"], "add_special_tokens": True}
    if not isinstance(document.get("messages"), list):
        return None
    chat = {
        **common,
        "messages": document["messages"],
        "add_special_tokens": False,
        "add_generation_prompt": True,
    }
    return {**chat, "tools": document["tools"]} if document.get("tools") else chat
