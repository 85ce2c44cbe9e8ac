"""The index of who holds the beginning of what."""

from hypothesis import given
from hypothesis import strategies as st

from inferbus_router.policy_prefixes import LEAST_BLOCKS, MOST_OWNERS, PrefixIndex

Sent = list[tuple[str, list[int]]]
SENT = st.lists(
    st.tuples(st.sampled_from("abc"), st.lists(st.integers(0, 30), unique=True, max_size=12))
)


def index_of(*sent: tuple[str, list[int]], most_blocks: int = 1000) -> PrefixIndex[str]:
    index: PrefixIndex[str] = PrefixIndex(most_blocks)
    for holder, blocks in sent:
        index.sent(holder, blocks)
    return index


def test_those_that_hold_a_beginning_are_found_with_how_much() -> None:
    index = index_of(("a", [1, 2, 3]), ("b", [1, 2]), ("c", [7]))

    assert index.depths([1, 2, 3, 4]) == ({"a": 3, "b": 2}, True)
    assert index.depths([9, 1]) == ({"a": 2, "b": 2}, True)
    assert index.depths([8]) == ({}, True)
    assert index.depth("b", [1, 2, 3, 4]) == 2


def test_a_beginning_that_all_hold_doesnt_make_owners() -> None:
    index = index_of(*((f"e{n}", [1, 2]) for n in range(MOST_OWNERS + 1)), ("e0", [1, 2, 3]))

    assert index.depths([1, 2, 3]) == ({"e0": 3}, False)
    assert index.depth("e5", [1, 2, 3]) == 2


@given(SENT, st.integers(1, 20))
def test_rt_22_memory_is_bounded_and_what_was_used_last_stays(sent: Sent, most: int) -> None:
    index = index_of(*sent, most_blocks=most * 3)

    assert len(index) <= most * 3
    assert len(index) == sum(index.depth(holder, [n]) for holder in "abc" for n in range(31))
    if sent and len(sent[-1][1]) <= most:
        assert index.depth(*sent[-1]) == len(sent[-1][1]), "no more than its share"


@given(SENT)
def test_an_endpoint_that_is_gone_leaves_nothing(sent: Sent) -> None:
    index = index_of(*sent)
    for holder in "abc":
        index.drop(holder)

    assert len(index) == 0
    assert index.depths(list(range(31))) == ({}, True)


def test_rt_22_what_the_engine_removed_is_removed() -> None:
    index = index_of(("a", [1, 2, 3]), ("b", [1, 2, 3]))
    index.removed("a", [2, 3, 4])

    assert index.depths([1, 2, 3])[0] == {"b": 3, "a": 1}


def test_rt_22_an_engine_that_loses_prefixes_is_thought_to_hold_less() -> None:
    index = index_of(("a", list(range(500))))
    for _ in range(5):
        index.found("a", was_there=False)
    index.sent("a", [1000])

    assert LEAST_BLOCKS < len(index) < 350
    assert index.depth("a", list(range(500))) < 350
    before = len(index)
    for _ in range(200):
        index.found("a", was_there=True)
    index.sent("a", list(range(500)))
    assert len(index) > before, "it may hold more again"


def test_nobody_is_thought_to_hold_nearly_nothing() -> None:
    index = index_of(("a", list(range(200))))
    for _ in range(100):
        index.found("a", was_there=False)
    index.sent("a", [0])

    assert len(index) == LEAST_BLOCKS
