"""What a request asks of an endpoint: all that a scheduler may know of it.

One object goes from the request to whoever chooses, so that schedulers differ in nothing but how
they use it. Invariant: an ask says nothing about any attempt; the same ask may be put to several
endpoints, one after the other or at once.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from inferbus_router.policy_blocks import BLOCK_ENDS, chained_blocks
from inferbus_router.policy_prefixes import PrefixIndex

_NOTHING: dict[Any, int] = {}


class PromptSource(Protocol):
    """Where the prompt stands, for those who need more than its length."""

    def prompt_bytes(self) -> bytes:
        """The prompt in one form for all who send the same; empty where there is none."""
        ...


class Ask:
    """What one request asks of an endpoint."""

    __slots__ = (
        "_blocks",
        "_ends",
        "_incomplete",
        "_size",
        "body",
        "cached",
        "is_hashed",
        "is_stream",
        "model",
        "prompt_tokens",
        "session",
    )

    def __init__(self, model: str, prompt_tokens: int, body: PromptSource | None = None) -> None:
        """`model` is the name upstream (an adapter's own), `prompt_tokens` estimated and scaled."""
        self.model = model
        self.prompt_tokens = prompt_tokens
        self.body = body
        self.is_stream = True
        """The first token of its response can be seen."""
        self.session: str | None = None
        """Requests with the same key belong together; None: to nobody."""
        self.cached: dict[Any, int] = _NOTHING
        """Tokens at the prompt's beginning that endpoints are thought to hold; others hold none."""
        self.is_hashed = False
        """Somebody asked for the blocks: there was a choice."""
        self._blocks: Sequence[int] = ()
        self._ends: Sequence[int] = BLOCK_ENDS
        self._size = 0
        self._incomplete: PrefixIndex[Any] | None = None

    @classmethod
    def of_blocks(
        cls, model: str, prompt_tokens: int, blocks: Sequence[int], ends: Sequence[int]
    ) -> "Ask":
        """An ask whose prompt was hashed elsewhere; `ends` are its blocks' ends in tokens."""
        ask = cls(model, prompt_tokens)
        ask._blocks, ask._ends, ask._size = blocks, ends, prompt_tokens
        ask.is_hashed = True
        return ask

    @property
    def blocks(self) -> Sequence[int]:
        """The chained hashes of the prompt's whole blocks, first one first (`policy_blocks`)."""
        if not self.is_hashed:
            self._hash()
        return self._blocks

    def _hash(self) -> None:
        prompt = self.body.prompt_bytes() if self.body is not None else b""
        self._size = len(prompt)
        self._blocks = chained_blocks(self.model, prompt)
        self.is_hashed = True

    def look_up(self, prefixes: PrefixIndex[Any]) -> None:
        """Find out who holds the prompt's beginning."""
        if not self.is_hashed:
            self._hash()
        found, is_all = prefixes.depths(self._blocks)
        tokens, ends, size = self.prompt_tokens, self._ends, self._size
        for holder, depth in found.items():
            found[holder] = tokens * ends[depth - 1] // size
        self.cached = found
        self._incomplete = None if is_all else prefixes

    def complete(self, holders: Iterable[Any]) -> None:
        """Make sure that `cached` is right about these."""
        prefixes = self._incomplete
        if prefixes is not None:
            for holder in holders:
                if holder not in self.cached:
                    self.cached[holder] = self.tokens_of(prefixes.depth(holder, self.blocks))

    def tokens_of(self, depth: int) -> int:
        """Tokens in the first `depth` blocks."""
        if not depth or not self.blocks:
            return 0
        return self.prompt_tokens * self._ends[depth - 1] // self._size
