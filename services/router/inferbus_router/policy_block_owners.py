"""Which endpoints have seen which blocks of which prompts: the memory of the cache-aware plugins.

Blocks are known by hashes that are chained, so that having one means having all before it.
Invariant: an endpoint owns at most `capacity` blocks, those it used last; what nobody owns takes no
memory (routing spec 3.4).
"""

from collections.abc import Collection, Hashable, Iterable, Sequence

_NOBODY: frozenset[Hashable] = frozenset()
_Block = tuple[str, int]
"""(model, hash)."""


class BlockOwners:
    """The blocks of all models."""

    def __init__(self, capacity: int) -> None:
        """`capacity`: blocks per endpoint, greater than 0."""
        self.capacity = capacity
        self.evictions: dict[str, int] = {}
        """Blocks that were dropped for lack of room, by model."""
        self._owners: dict[str, dict[int, set[Hashable]]] = {}
        self._used: dict[Hashable, dict[_Block, None]] = {}
        """By endpoint, the block used longest ago first."""

    def __len__(self) -> int:
        """Blocks of all endpoints together."""
        return sum(map(len, self._used.values()))

    def blocks_by_endpoint(self) -> dict[Hashable, int]:
        """How many each owns."""
        return {endpoint: len(blocks) for endpoint, blocks in self._used.items()}

    def models(self) -> list[str]:
        """Those of which somebody owns a block."""
        return list(self._owners)

    def matches(
        self, model: str, hashes: Sequence[int], candidates: Collection[Hashable], most: int
    ) -> dict[Hashable, int]:
        """How many blocks from the start each candidate has; the `most` longest, greater than 0.

        Candidates without any are left out.
        """
        found: dict[Hashable, int] = {}
        owners = self._owners.get(model)
        if owners is None:
            return found
        for index in range(len(hashes) - 1, -1, -1):
            for endpoint in owners.get(hashes[index], ()):
                if endpoint in candidates and endpoint not in found:
                    found[endpoint] = index + 1
                    if len(found) == most:
                        return found
        return found

    def leading_runs(
        self, model: str, hashes: Sequence[int], candidates: Collection[Hashable]
    ) -> dict[Hashable, int]:
        """How many blocks from the first each candidate has without a gap (routing spec 3.5).

        Candidates without the first are left out.
        """
        owners = self._owners.get(model, {})
        return leading_runs((owners.get(block, _NOBODY) for block in hashes), candidates)

    def add(self, model: str, hashes: Sequence[int], endpoint: Hashable) -> None:
        """The endpoint has these blocks now.

        The first of them counts as used last, so that of a long prompt the end is dropped first.
        """
        if not hashes:
            return
        used = self._used.setdefault(endpoint, {})
        owners = self._owners.setdefault(model, {})
        for block in reversed(hashes):
            used.pop((model, block), None)
            used[model, block] = None
            owners.setdefault(block, set()).add(endpoint)
        while len(used) > self.capacity:
            oldest = next(iter(used))
            del used[oldest]
            self._disown(oldest, endpoint)
            self.evictions[oldest[0]] = self.evictions.get(oldest[0], 0) + 1

    def forget(self, endpoint: Hashable) -> None:
        """The endpoint is gone, and its cache with it."""
        for block in self._used.pop(endpoint, {}):
            self._disown(block, endpoint)

    def _disown(self, block: _Block, endpoint: Hashable) -> None:
        model, hash_ = block
        owners = self._owners[model]
        owners[hash_].discard(endpoint)
        if not owners[hash_]:
            del owners[hash_]
        if not owners:
            del self._owners[model]


def leading_runs(
    owners: Iterable[Collection[Hashable]], candidates: Iterable[Hashable]
) -> dict[Hashable, int]:
    """How many blocks from the first each candidate owns without a gap; none: left out.

    `owners` are those of each block, in the prompt's order (routing spec 3.5).
    """
    runs: dict[Hashable, int] = {}
    running = set(candidates)
    for holders in owners:
        running.intersection_update(holders)
        if not running:
            break
        for holder in running:
            runs[holder] = runs.get(holder, 0) + 1
    return runs
