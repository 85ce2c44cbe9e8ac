"""The KV cache: sharing, eviction order, counts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inferbus_engine_simulator.policy_blocks import BlockPool, chain_hash, root_hash


def chain(*blocks: int) -> list[bytes]:
    """Hashes of blocks with these contents, each after the one before."""
    hashes = [root_hash("")]
    for block in blocks:
        hashes.append(chain_hash(hashes[-1], [block] * 4))
    return hashes[1:]


def hold(pool: BlockPool, hashes: list[bytes]) -> list[bytes | None]:
    """Compute a sequence whose blocks have these hashes."""
    hits = hashes[: pool.match(hashes)]
    pool.acquire(hits)
    assert pool.allocate(len(hashes) - len(hits))
    rest = [block if pool.publish(block) else None for block in hashes[len(hits) :]]
    return [*hits, *rest]


def test_a_block_hash_depends_on_everything_before_it() -> None:
    assert chain(1, 2)[1] != chain(3, 2)[1]
    assert chain(1, 2) == chain(1, 2)
    assert root_hash("sql") != root_hash("")


def test_equal_prefixes_share_their_blocks() -> None:
    pool = BlockPool(10)
    hold(pool, chain(1, 2, 3))
    hold(pool, chain(1, 2, 4))

    assert pool.used == 4


def test_released_blocks_stay_cached_until_space_is_short() -> None:
    pool = BlockPool(4)
    pool.release(hold(pool, chain(1, 2, 3)))
    assert (pool.used, pool.idle, pool.available) == (0, 3, 4)

    assert pool.allocate(2)
    assert pool.match(chain(1, 2, 3)) == 2, "the tail goes first"
    assert not pool.allocate(3)
    assert pool.allocate(2)
    assert pool.idle == 0


def test_the_sequence_unused_for_longest_is_evicted_first() -> None:
    pool = BlockPool(4)
    pool.release(hold(pool, chain(1, 2)))
    pool.release(hold(pool, chain(8, 9)))
    pool.release(hold(pool, chain(1, 2)))

    assert pool.allocate(2)
    assert pool.match(chain(1, 2)) == 2
    assert pool.match(chain(8, 9)) == 0


def test_without_caching_nothing_is_found_again() -> None:
    pool = BlockPool(4, caching=False)
    held = hold(pool, chain(1, 2))
    assert held == [None, None]
    pool.release(held)

    assert (pool.used, pool.idle, pool.match(chain(1, 2))) == (0, 0, 0)


def test_a_pool_without_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one block"):
        BlockPool(0)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(1, 4)), max_size=60))
def test_counts_always_add_up(steps: list[tuple[bool, int, int]]) -> None:
    pool = BlockPool(12)
    held: list[list[bytes | None]] = []
    for release, first, length in steps:
        if release and held:
            pool.release(held.pop(0))
        elif pool.available >= length:
            held.append(hold(pool, chain(*range(first, first + length))))
        assert 0 <= pool.used + pool.idle <= pool.capacity
        assert pool.used <= sum(map(len, held))
    for each in held:
        pool.release(each)
    assert pool.used == 0
