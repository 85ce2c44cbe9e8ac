"""Upstream's block order against the worked examples of autoscaling spec 3.4, by number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_optimizer.policy_compat_blocks import MixTarget, allocate, blocks

Spec = tuple[str, int, int, int]
"""name, cost, min, max"""


def targets(*specs: Spec) -> list[MixTarget]:
    return [
        MixTarget(name=name, cost=cost, min_replicas=low, max_replicas=high)
        for name, cost, low, high in specs
    ]


EX1 = targets(("gpu", 100, 1, 5), ("cpu", 30, 2, 8))
EX3 = targets(("h100", 100, 0, 4), ("a100", 60, 1, 8))
EX6 = targets(("A", 10, 0, 10), ("B", 10, 0, 10))
EX7 = targets(("x", 8, 0, 7), ("y", 12, 0, 7), ("z", 20, 1, 3))
EX9 = targets(("a", 10, 3, 1), ("b", 20, 0, 4))

EX1_TOTALS: dict[int, tuple[int, ...]] = {
    3: (1, 2), 4: (1, 3), 6: (1, 5), 9: (1, 8), 10: (2, 8), 13: (5, 8), 0: (1, 2), 99: (5, 8),
}  # fmt: skip

Totals = dict[int, tuple[int, ...]]

EXAMPLES: dict[str, tuple[list[MixTarget], int, Totals]] = {
    "AS_T78": (EX1, 20, EX1_TOTALS),
    "AS_T79": (EX1, 200, EX1_TOTALS),
    "AS_T80": (EX3, 100, {2: (0, 2), 5: (0, 5), 8: (0, 8), 9: (1, 8), 12: (4, 8)}),
    "AS_T81": (
        EX3,
        200,
        {
            1: (0, 1), 2: (0, 2), 3: (1, 2), 4: (2, 2), 5: (2, 3), 6: (2, 4),
            7: (3, 4), 8: (4, 4), 9: (4, 5), 10: (4, 6), 12: (4, 8),
        },
    ),
    "AS_T82": (EX3, 300, {3: (1, 2), 5: (1, 4), 9: (1, 8), 10: (2, 8), 12: (4, 8)}),
    "AS_T83a": (EX6, 100, {7: (7, 0), 15: (10, 5)}),
    "AS_T83b": (EX6, 200, {3: (2, 1), 4: (3, 1), 5: (3, 2), 7: (4, 3), 10: (6, 4), 15: (9, 6)}),
    "AS_T84": (
        EX7,
        200,
        {
            3: (1, 1, 1), 5: (3, 1, 1), 7: (3, 1, 3),
            9: (3, 3, 3), 13: (7, 3, 3), 17: (7, 7, 3),
        },
    ),
    "AS_T85a": (EX3, 100, {8: (0, 8)}),
    "AS_T85b": (EX3, 200, {8: (4, 4)}),
    "AS_T86": (EX9, 200, {4: (3, 1), 9: (3, 2)}),
}  # fmt: skip


@pytest.mark.parametrize("case", EXAMPLES)
def test_worked_examples(case: str) -> None:
    mix, rate, totals = EXAMPLES[case]
    order = blocks(mix, rate)
    assert {total: allocate(mix, order, total) for total in totals} == totals


def test_the_blocks_of_example_4() -> None:
    order = [(EX3[b.target].name, b.replicas, b.sort_cost) for b in blocks(EX3, 200)]
    assert order == [
        ("a100", 1, 60),
        ("h100", 1, 100),
        ("h100", 1, 100),
        ("a100", 2, 120),
        ("h100", 2, 200),
        ("a100", 4, 240),
    ]


specs = st.lists(
    st.tuples(st.just("t"), st.integers(0, 50), st.integers(0, 4), st.integers(0, 12)),
    min_size=1,
    max_size=4,
)


@given(specs, st.integers(0, 400))
def test_a_larger_total_takes_nothing_away(given_specs: list[Spec], rate: int) -> None:
    mix = targets(*((name, cost, low, low + more) for name, cost, low, more in given_specs))
    order = blocks(mix, rate)
    most = sum(target.max_replicas for target in mix)
    before = allocate(mix, order, 0)
    for total in range(1, most + 2):
        after = allocate(mix, order, total)
        assert all(more >= less for more, less in zip(after, before, strict=True))
        assert sum(after) == max(min(total, most), sum(t.min_replicas for t in mix))
        before = after
