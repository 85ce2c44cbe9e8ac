"""Which endpoints are thought to hold the beginning of which prompts in their prefix caches.

An entry is a block's chained hash, written when a prompt is sent. What an endpoint was sent is
forgotten in the order it was last used, as engines do, once it exceeds what the engine is thought
to hold. Invariant: `holders` and the endpoints' own entries say the same; their number is bounded
by `most_blocks` over all endpoints, and an endpoint that is gone has none.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

HolderT = TypeVar("HolderT")

MOST_OWNERS = 16
"""Owners that a lookup gives at most in a large fleet: those that hold most of a prompt."""
MOST_BLOCKS = 400_000
"""Entries over all endpoints, about 200 bytes each."""
LEAST_BLOCKS = 64
"""An endpoint is thought to hold at least so many."""
_SHARE_IF_MISSED = 0.95
_GROWTH_IF_THERE = 1.001


class PrefixIndex(Generic[HolderT]):
    """Blocks and who holds them."""

    def __init__(self, most_blocks: int = MOST_BLOCKS) -> None:
        self._most_blocks = most_blocks
        self._holders: dict[int, tuple[HolderT, ...]] = {}
        self._held: dict[HolderT, OrderedDict[int, None]] = {}
        self._limits: dict[HolderT, float] = {}
        """Blocks that an endpoint is thought to hold at most, where something told of it."""

    def __len__(self) -> int:
        """Entries over all endpoints."""
        return sum(len(held) for held in self._held.values())

    def depths(self, blocks: Sequence[int]) -> dict[HolderT, int]:
        """How many blocks of a prompt, from its first, each endpoint holds; only those with any.

        At most `MOST_OWNERS` endpoints or a few more, those that hold most.
        """
        holders = self._holders
        found: dict[HolderT, int] = {}
        depth = len(blocks)
        known: tuple[HolderT, ...] = ()
        for block in reversed(blocks):
            held_by = holders.get(block)
            if held_by is not None and held_by is not known:
                known = held_by
                for holder in held_by:
                    if holder not in found:
                        found[holder] = depth
                if len(found) >= MOST_OWNERS:
                    break
            depth -= 1
        return found

    def sent(self, holder: HolderT, blocks: Sequence[int]) -> int:
        """A prompt goes to an endpoint; returns how many of its blocks were there already."""
        held = self._held.get(holder)
        if held is None:
            held = self._held[holder] = OrderedDict()
        depth = 0
        for block in blocks:
            if block not in held:
                break
            depth += 1
        for block in reversed(blocks):
            if block in held:
                held.move_to_end(block)
            else:
                held[block] = None
                self._holders[block] = (*self._holders.get(block, ()), holder)
        self._shrink(holder, held)
        return depth

    def _shrink(self, holder: HolderT, held: OrderedDict[int, None]) -> None:
        most = self._most_blocks // len(self._held)
        if self._limits:
            most = min(most, int(self._limits.get(holder, most)))
        while len(held) > most:
            block, _ = held.popitem(last=False)
            self._release(holder, block)

    def _release(self, holder: HolderT, block: int) -> None:
        left = tuple(each for each in self._holders[block] if each is not holder)
        if left:
            self._holders[block] = left
        else:
            del self._holders[block]

    def found(self, holder: HolderT, was_there: bool) -> None:
        """A prefix that should be there was there, or was not.

        An engine that lost one holds less than was thought; one that has what it should may hold
        more. So about one in fifty prefixes that are counted on is missed.
        """
        limit = self._limits.get(holder)
        if was_there:
            if limit is not None:
                self._limits[holder] = limit * _GROWTH_IF_THERE
        elif held := self._held.get(holder):
            most = len(held) if limit is None else min(limit, len(held))
            self._limits[holder] = max(most * _SHARE_IF_MISSED, LEAST_BLOCKS)

    def removed(self, holder: HolderT, blocks: Iterable[int]) -> None:
        """The engine says that it no longer holds these."""
        held = self._held.get(holder)
        if held is None:
            return
        for block in blocks:
            if block in held:
                del held[block]
                self._release(holder, block)

    def drop(self, holder: HolderT) -> None:
        """The endpoint is gone, or its cache is empty."""
        self._limits.pop(holder, None)
        for block in self._held.pop(holder, ()):
            self._release(holder, block)
