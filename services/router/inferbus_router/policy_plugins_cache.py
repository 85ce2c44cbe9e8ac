"""The plugins that go by caches: prefix-cache and kvcache-aware (routing spec 3.4, 3.5 and 9.2).

Both know which endpoint has served which beginnings of prompts, by the hashes of their blocks;
prefix-cache counts blocks of bytes as the reference does, kvcache-aware blocks of tokens as engines
keep them. Invariant: a block is found only behind the same beginning, whatever stands in it, and
everything is keyed by the name that engines know.
"""

import hashlib
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from itertools import islice
from typing import Any

import orjson
import xxhash

from inferbus_router.policy_block_owners import BlockOwners
from inferbus_router.policy_plugins import HIGHEST_SCORE, Candidate, PluginRequest

DEFAULT_BLOCK_BYTES = 64
DEFAULT_BLOCK_TOKENS = 16
DEFAULT_MOST_BLOCKS = 128
DEFAULT_CAPACITY = 50_000
DEFAULT_TOP = 5

BYTES_PER_TOKEN = 4
"""Text is cut into pieces of this length where tokens are meant and no tokenizer is at hand."""

BlockHashes = Callable[[PluginRequest], Sequence[int]]
Held = Callable[[str, Sequence[int], Collection[Hashable]], Mapping[Hashable, int]]
"""Takes the model, a prompt's blocks and the candidates; gives how many of them each has."""
Matched = Callable[[str, str, float], None]
"""Takes the plugin's name, the model and a share of the blocks, 0 to 1."""


def prefix_hashes(model: str, prompt: bytes, block_bytes: int, most_blocks: int) -> list[int]:
    """The reference's chain: XXH64 over the hash before, in decimal, and the block.

    The model is the first link, the last block may be short, what comes behind `most_blocks` is
    left out (routing spec 3.4).
    """
    digest = xxhash.xxh64_intdigest
    link = digest(model.encode())
    hashes = []
    for start in range(0, min(len(prompt), block_bytes * most_blocks), block_bytes):
        link = digest(b"%d%b" % (link, prompt[start : start + block_bytes]))
        hashes.append(link)
    return hashes


def chained_token_hashes(tokens: bytes, block_bytes: int, most_blocks: int) -> list[int]:
    """Hashes of whole blocks, each over all before it (the reference's defect 10).

    `tokens` are of one length each, `block_bytes` a multiple of it. SHA-256 of the hash before and
    the block; the first 8 bytes of it are the hash.
    """
    link = b""
    hashes = []
    for end in islice(range(block_bytes, len(tokens) + 1, block_bytes), most_blocks):
        link = hashlib.sha256(link + tokens[end - block_bytes : end]).digest()
        hashes.append(int.from_bytes(link[:8], "big"))
    return hashes


def token_bytes(request: PluginRequest) -> bytes:
    """What an engine tokenizes, `BYTES_PER_TOKEN` bytes for each token.

    Token ids stand for themselves. Text has the tools before it, since chat templates put them
    there.
    """
    prompt = request.document.get("prompt")
    if isinstance(prompt, list) and all(_is_token(token) for token in prompt):
        return b"".join(token.to_bytes(BYTES_PER_TOKEN, "big") for token in prompt)
    tools = request.document.get("tools")
    return (orjson.dumps(tools) if tools else b"") + request.prompt


def _is_token(token: Any) -> bool:
    return type(token) is int and 0 <= token < 1 << (8 * BYTES_PER_TOKEN)


class PrefixOwners:
    """Scores by the part of a prompt's blocks that an endpoint has served before."""

    def __init__(self, name: str, owners: BlockOwners, hashes: BlockHashes, held: Held) -> None:
        """`hashes` makes the blocks of a prompt, `held` says who has how many of them."""
        self.name = name
        self.owners = owners
        self.matched: Matched = lambda plugin, model, ratio: None
        """Is told the longest match of every request that has blocks."""
        self.hashes = hashes
        """Makes the blocks of a prompt."""
        self._held = held

    def scores(
        self, request: PluginRequest, candidates: Sequence[Candidate]
    ) -> Sequence[int] | None:
        """See `ScorePlugin`."""
        hashes = self.hashes(request)
        if not hashes:
            return None
        known = {candidate.endpoint for candidate in candidates}
        held = self._held(request.model, hashes, known)
        longest = max(held.values(), default=0)
        self.matched(self.name, request.model, longest / len(hashes))
        return [
            int(held.get(candidate.endpoint, 0) / len(hashes) * HIGHEST_SCORE)
            for candidate in candidates
        ]

    def served(self, request: PluginRequest, endpoint: Hashable) -> None:
        """See `Remembering`."""
        if hashes := self.hashes(request):
            self.owners.add(request.model, hashes, endpoint)

    def forget(self, endpoint: Hashable) -> None:
        """See `Remembering`."""
        self.owners.forget(endpoint)


def prefix_cache(
    block_bytes: int = DEFAULT_BLOCK_BYTES,
    most_blocks: int = DEFAULT_MOST_BLOCKS,
    capacity: int = DEFAULT_CAPACITY,
    top: int = DEFAULT_TOP,
) -> PrefixOwners:
    """The plugin prefix-cache; all arguments are greater than 0."""

    def hashes(request: PluginRequest) -> list[int]:
        return prefix_hashes(request.model, request.prompt, block_bytes, most_blocks)

    def held(
        model: str, hashes: Sequence[int], candidates: Collection[Hashable]
    ) -> Mapping[Hashable, int]:
        return owners.matches(model, hashes, candidates, top)

    owners = BlockOwners(capacity)
    return PrefixOwners("prefix-cache", owners, hashes, held)


def kvcache_aware(
    block_tokens: int = DEFAULT_BLOCK_TOKENS,
    most_blocks: int = DEFAULT_MOST_BLOCKS,
    capacity: int = DEFAULT_CAPACITY,
) -> PrefixOwners:
    """The plugin kvcache-aware; all arguments are greater than 0.

    Its index is the router's own, so that choosing asks nobody (the reference's defect 9).
    """
    block_bytes = block_tokens * BYTES_PER_TOKEN

    def hashes(request: PluginRequest) -> list[int]:
        return chained_token_hashes(token_bytes(request), block_bytes, most_blocks)

    owners = BlockOwners(capacity)
    return PrefixOwners("kvcache-aware", owners, hashes, owners.leading_runs)
