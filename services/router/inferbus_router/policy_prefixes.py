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
"""A beginning that more endpoints hold is no reason to look for them: one meets them anyway."""
MOST_BLOCKS = 400_000
"""Entries over all endpoints, about 200 bytes each."""
LEAST_BLOCKS = 64
"""An endpoint is thought to hold at least so many."""
_SHARE_IF_MISSED = 0.9
_GROWTH_IF_THERE = 1.003


class PrefixIndex(Generic[HolderT]):
    """Blocks and who holds them."""

    def __init__(self, most_blocks: int = MOST_BLOCKS) -> None:
        self._most_blocks = most_blocks
        self._count = 0
        self._holders: dict[int, tuple[HolderT, ...]] = {}
        self._held: dict[HolderT, OrderedDict[int, None]] = {}
        self._limits: dict[HolderT, float] = {}
        """Blocks that an endpoint is thought to hold at most, where something told of it."""

    def __len__(self) -> int:
        """Entries over all endpoints."""
        return self._count

    def depths(self, blocks: Sequence[int]) -> tuple[dict[HolderT, int], bool]:
        """How many blocks of a prompt, from its first, endpoints hold, and whether that is all.

        It isn't where a beginning is held by more than `MOST_OWNERS`: those that hold no more than
        that one are left out, and can be asked for (`depth`).
        """
        holders = self._holders
        found: dict[HolderT, int] = {}
        depth = len(blocks)
        for block in reversed(blocks):
            held_by = holders.get(block)
            if held_by is not None and len(held_by) > len(found):
                if len(held_by) > MOST_OWNERS:
                    return found, False
                for holder in held_by:
                    if holder not in found:
                        found[holder] = depth
            depth -= 1
        return found, True

    def depth(self, holder: HolderT, blocks: Sequence[int]) -> int:
        """How many of the blocks, from the first, one endpoint holds."""
        depth = len(blocks)
        if held := self._held.get(holder):
            for block in reversed(blocks):
                if block in held:
                    return depth
                depth -= 1
        return 0

    def sent(self, holder: HolderT, blocks: Sequence[int]) -> None:
        """A prompt goes to an endpoint: it holds all of its blocks from now on.

        The first ones are used last: what they begin is worth nothing without them.
        """
        held = self._held.get(holder)
        if held is None:
            held = self._held[holder] = OrderedDict()
        for block in reversed(blocks):
            if block in held:
                held.move_to_end(block)
            else:
                held[block] = None
                self._count += 1
                others = self._holders.get(block)
                self._holders[block] = (holder,) if others is None else (*others, holder)
        if self._limits or self._count > self._most_blocks:
            self._shrink(holder, held)

    def _shrink(self, holder: HolderT, held: OrderedDict[int, None]) -> None:
        limit = self._limits.get(holder)
        if limit is not None:
            while len(held) > limit:
                self._forget_oldest(holder, held)
        while self._count > self._most_blocks:
            self._make_room()

    def _make_room(self) -> None:
        """Take a block from an endpoint that has more than its share, each in turn."""
        share = self._most_blocks // len(self._held)
        holder, held = next(iter(self._held.items()))
        if len(held) > share:
            self._forget_oldest(holder, held)
        else:
            self._held[holder] = self._held.pop(holder)

    def _forget_oldest(self, holder: HolderT, held: OrderedDict[int, None]) -> None:
        block, _ = held.popitem(last=False)
        self._release(holder, block)

    def _release(self, holder: HolderT, block: int) -> None:
        self._count -= 1
        left = tuple(each for each in self._holders[block] if each is not holder)
        if left:
            self._holders[block] = left
        else:
            del self._holders[block]

    def found(self, holder: HolderT, was_there: bool) -> None:
        """A prefix that should be there was there, or was not.

        An engine that lost one holds less than was thought; one that has what it should may hold
        more. So about one in forty prefixes that are counted on is missed.
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
