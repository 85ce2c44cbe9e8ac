"""The KV cache: blocks with reference counts, and the prefix cache made of those nobody uses.

Invariant: private blocks + referenced blocks + idle cached blocks never exceed the capacity, and a
block that is referenced is never evicted. A cached block is known by the hash of its tokens and of
all tokens before it, so equal prefixes share blocks (vLLM's automatic prefix caching; Kwon et al.,
SOSP 2023). Idle blocks are evicted least recently used first, the tail of a sequence before its
head.
"""

import hashlib
import struct
from collections import OrderedDict
from collections.abc import Sequence

BlockHash = bytes


def chain_hash(parent: BlockHash, tokens: Sequence[int]) -> BlockHash:
    """The hash of a full block after the block `parent`; 8 bytes, stable over processes."""
    packed = struct.pack(f">{len(tokens)}I", *tokens)
    return hashlib.blake2b(packed, digest_size=8, key=parent).digest()


def root_hash(adapter: str) -> BlockHash:
    """What the first block of a sequence has as its parent; differs for each LoRA adapter."""
    return hashlib.blake2b(adapter.encode(), digest_size=8).digest()


class BlockPool:
    """Counts blocks; knows nothing of sequences.

    A block is private (content not yet complete, or a duplicate), shared (referenced by its hash),
    idle (cached, referenced by nobody) or free.
    """

    def __init__(self, capacity: int, caching: bool = True) -> None:
        """`capacity` in blocks, at least 1; without `caching` nothing is ever found again."""
        if capacity < 1:
            raise ValueError(f"a pool needs at least one block, not {capacity}")
        self.capacity = capacity
        self._caching = caching
        self._private = 0
        self._references: dict[BlockHash, int] = {}
        self._idle: OrderedDict[BlockHash, None] = OrderedDict()

    @property
    def used(self) -> int:
        """Blocks that requests hold."""
        return self._private + len(self._references)

    @property
    def idle(self) -> int:
        """Cached blocks that nobody holds: they count as free, and are lost when space is short."""
        return len(self._idle)

    @property
    def available(self) -> int:
        """Blocks that can be allocated, evicting where needed."""
        return self.capacity - self.used

    def match(self, hashes: Sequence[BlockHash]) -> int:
        """How many leading blocks of a sequence are cached."""
        count = 0
        for block in hashes:
            if block not in self._references and block not in self._idle:
                break
            count += 1
        return count

    def acquire(self, hashes: Sequence[BlockHash]) -> None:
        """Take a reference on each of these cached blocks; they must be cached."""
        for block in hashes:
            if block in self._idle:
                del self._idle[block]
                self._references[block] = 1
            else:
                self._references[block] += 1

    def allocate(self, count: int) -> bool:
        """Take `count` private blocks, or none and answer False when there are too few."""
        if count > self.available:
            return False
        shortage = count - (self.capacity - self.used - len(self._idle))
        for _ in range(shortage):
            self._idle.popitem(last=False)
        self._private += count
        return True

    def publish(self, block: BlockHash) -> bool:
        """Turn a private block into a shared one with this hash.

        False, and the block stays private, when caching is off or another block has that content.
        """
        if not self._caching or block in self._references:
            return False
        self._idle.pop(block, None)
        self._references[block] = 1
        self._private -= 1
        return True

    def release(self, held: Sequence[BlockHash | None]) -> None:
        """Give back the blocks of one sequence, in its order; None stands for a private block."""
        for block in reversed(held):
            if block is None:
                self._private -= 1
                continue
            count = self._references[block] - 1
            if count:
                self._references[block] = count
            else:
                del self._references[block]
                self._idle[block] = None

    def forget(self) -> None:
        """Drop every idle block (SGLang's flush of the cache)."""
        self._idle.clear()
