"""What the engine keeps of one request between steps.

Invariant: `computed` tokens have their KV in the blocks of `held`, `emitted` tokens were produced,
and the two differ by at most one token once the prompt is computed.
"""

from collections.abc import Iterator

from inferbus_engine_simulator.policy_blocks import BlockHash, chain_hash, root_hash
from inferbus_engine_simulator.policy_events import Prefilled, Request, Timeline
from inferbus_engine_simulator.policy_tokens import output_token


class Sequence:
    """A request inside the engine."""

    __slots__ = (
        "admitted_us",
        "cached_tokens",
        "chain",
        "computed",
        "emitted",
        "first_token_us",
        "held",
        "last_token_us",
        "published",
        "request",
        "submitted_us",
    )

    def __init__(self, request: Request, submitted_us: int) -> None:
        self.request = request
        self.submitted_us = submitted_us
        self.admitted_us = -1
        self.first_token_us = -1
        self.last_token_us = submitted_us
        self.cached_tokens = 0
        self.computed = 0
        """Tokens whose KV is in the cache."""
        self.emitted = 0
        self.held: list[BlockHash | None] = []
        """Its blocks in order; None where the block is private."""
        self.published = 0
        """Leading blocks that were offered to the prefix cache."""
        self.chain: list[BlockHash] = []
        """Hashes of its leading full blocks, as far as they were needed."""

    @property
    def length(self) -> int:
        """Tokens that exist: the prompt and what was emitted."""
        return len(self.request.prompt) + self.emitted

    def hashes(self, count: int, block_size: int) -> list[BlockHash]:
        """Hashes of the first `count` full blocks."""
        chain = self.chain
        while len(chain) < count:
            start = len(chain) * block_size
            parent = chain[-1] if chain else root_hash(self.request.adapter)
            chain.append(chain_hash(parent, list(self._tokens(start, start + block_size))))
        return chain[:count]

    def reset(self) -> None:
        """Nothing of it is computed any more; what it emitted stays emitted."""
        self.held = []
        self.computed = 0
        self.published = 0

    @property
    def transferred_tokens(self) -> int:
        """Prompt tokens that came from another engine and weren't cached here already."""
        beyond_cache = len(self.request.prompt) - self.cached_tokens
        return min(self.request.transferred_tokens, beyond_cache)

    def prefilled(self, now_us: int) -> Prefilled:
        """Its prompt is computed now."""
        request = self.request
        return Prefilled(
            request_id=request.request_id,
            at_us=now_us,
            prompt_tokens=len(request.prompt),
            cached_tokens=self.cached_tokens,
            transferred_tokens=self.transferred_tokens,
            streaming=request.streaming,
        )

    def timeline(self, finished_us: int) -> Timeline:
        """Its life, when it ends now."""
        request = self.request
        return Timeline(
            arrived_us=self.submitted_us,
            admitted_us=self.admitted_us,
            first_token_us=self.first_token_us,
            finished_us=finished_us,
            prompt_tokens=len(request.prompt),
            cached_tokens=self.cached_tokens,
            transferred_tokens=self.transferred_tokens,
            output_tokens=self.emitted,
            reason=request.finish_reason,
            streaming=request.streaming,
            adapter=request.adapter,
        )

    def _tokens(self, start: int, end: int) -> Iterator[int]:
        prompt = self.request.prompt
        yield from prompt[start:end]
        for index in range(max(start - len(prompt), 0), end - len(prompt)):
            yield output_token(self.request.output_seed, index)
