"""The cheapest mix: against brute force, against HiGHS, and where it must give up."""

import itertools
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import (  # type: ignore[import-untyped]
    Bounds,
    LinearConstraint,
    milp,
)

from inferbus_optimizer import policy_covering
from inferbus_optimizer.policy_exact import (
    Choice,
    Mix,
    capacity_of,
    cheapest,
    exact,
    running_cost,
)


def choice(cost: int, capacity: float, low: int, high: int, **changes: Any) -> Choice:
    return Choice(
        cost=cost, capacity=exact(capacity), min_replicas=low, max_replicas=high, **changes
    )


def replicas(choices: list[Choice], demand: float) -> tuple[int, ...] | None:
    found = cheapest(choices, exact(demand))
    assert found is None or found.proven
    return found.replicas if found else None


def by_brute_force(choices: list[Choice], demand: Fraction) -> tuple[int, ...] | None:
    """Cheapest, then fewest, then most capacity, then lexicographically greatest."""
    ranges = [range(c.min_replicas, c.max_replicas + 1) for c in choices]
    serving = [mix for mix in itertools.product(*ranges) if capacity_of(choices, mix) >= demand]

    def rank(mix: tuple[int, ...]) -> Any:
        starts = sum(
            c.starting_cost * max(0, count - max(c.current, c.min_replicas))
            for c, count in zip(choices, mix, strict=True)
        )
        cost = running_cost(choices, mix) + starts
        return cost, sum(mix), -capacity_of(choices, mix), [-count for count in mix]

    return min(serving, key=rank, default=None)


capacities = st.sampled_from([0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 7.0])
choices_lists = st.lists(
    st.builds(
        lambda cost, capacity, low, more, current, start: choice(
            cost, capacity, low, low + more, current=current, starting_cost=start
        ),
        st.integers(0, 6),
        capacities,
        st.integers(0, 2),
        st.integers(0, 5),
        st.integers(0, 6),
        st.integers(0, 4),
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=400)
@given(choices_lists, st.integers(-10, 700))
def test_brute_force(choices: list[Choice], tenths: int) -> None:
    demand = Fraction(tenths, 10)
    found = cheapest(choices, demand)
    assert (found and found.replicas) == by_brute_force(choices, demand)
    assert found is None or found.proven


linear_prices = st.lists(
    st.tuples(st.integers(1, 5), st.integers(0, 1), st.integers(1, 5)), min_size=3, max_size=4
).map(lambda made: [choice(2 * size, float(size), low, low + more) for size, low, more in made])


@settings(max_examples=300)
@given(linear_prices, st.integers(1, 25))
def test_brute_force_where_many_mixes_cost_the_same(choices: list[Choice], demand: int) -> None:
    found = cheapest(choices, Fraction(demand))
    assert (found and found.replicas) == by_brute_force(choices, Fraction(demand))


def least_cost(choices: list[Choice], demand: int) -> int | None:
    """The least cost as HiGHS finds it; all numbers are whole."""
    answer = milp(
        c=np.array([c.cost for c in choices]),
        integrality=np.ones(len(choices)),
        bounds=Bounds([c.min_replicas for c in choices], [c.max_replicas for c in choices]),
        constraints=LinearConstraint(np.array([[int(c.capacity) for c in choices]]), lb=demand),
        options={"mip_rel_gap": 0.0},
    )
    return round(answer.fun) if answer.success else None


@pytest.mark.parametrize("seed", range(12))
def test_highs_agrees_on_mixes_of_ten_types_and_500_replicas(seed: int) -> None:
    rng = random.Random(seed)
    costs = [70, 101, 367, 752, 150, 220, 480, 980, 60, 310]
    choices = [
        choice(cost, max(1, round(cost / 10 * rng.uniform(0.6, 1.6))), 0, rng.randint(4, 500))
        for cost in costs
    ]
    room = int(capacity_of(choices, [c.max_replicas for c in choices]))
    demand = rng.randint(10, int(room * 0.95))
    found = cheapest(choices, Fraction(demand))
    assert found is not None
    assert found.proven
    assert capacity_of(choices, found.replicas) >= demand
    assert running_cost(choices, found.replicas) == least_cost(choices, demand)


def test_as_ex8_capacity_is_seen() -> None:
    """Upstream's block order serves this for 480 or 640."""
    mix = [choice(100, 4.0, 0, 4), choice(60, 1.0, 1, 8)]
    assert replicas(mix, 8.0) == (2, 1)
    assert running_cost(mix, (2, 1)) == 260


def test_a_demand_that_the_minima_serve_adds_nothing() -> None:
    assert replicas([choice(5, 2.0, 3, 9), choice(0, 1.0, 1, 9)], 7.0) == (3, 1)
    assert replicas([choice(5, 2.0, 3, 9)], 0.0) == (3,)


def test_too_large_a_demand_has_no_mix() -> None:
    assert replicas([choice(5, 2.0, 0, 3), choice(9, 1.0, 0, 2)], 8.0) == (3, 2)
    assert replicas([choice(5, 2.0, 0, 3), choice(9, 1.0, 0, 2)], 8.1) is None


def test_numbers_are_taken_as_they_are_written() -> None:
    """Three times 0.7 is 2.1, though the float64 next to it is smaller."""
    assert 3 * Fraction(0.7) < Fraction(2.1)
    assert replicas([choice(1, 0.7, 0, 20)], 2.1) == (3,)
    assert replicas([choice(1, 0.1, 0, 20)], 1.0) == (10,)


@pytest.mark.parametrize(
    ("mix", "demand", "expected"),
    [
        ([choice(10, 1.0, 0, 9), choice(10, 1.0, 0, 9)], 7.0, (7, 0)),
        ([choice(10, 1.0, 0, 4), choice(10, 1.0, 0, 9)], 7.0, (4, 3)),
        ([choice(10, 1.0, 0, 9), choice(40, 4.0, 0, 9)], 8.0, (0, 2)),
        ([choice(0, 1.0, 0, 9), choice(0, 4.0, 0, 9)], 5.0, (0, 2)),
        ([choice(10, 2.0, 0, 9), choice(10, 3.0, 0, 9)], 2.0, (0, 1)),
        ([choice(s, float(s), 0, 9) for s in (1, 2, 3)], 4.0, (1, 0, 1)),
        ([choice(s, float(s), 0, 9) for s in (2, 1, 3)], 4.0, (2, 0, 0)),
        ([choice(s, float(s), 0, 9) for s in (1, 2, 3, 10)], 14.0, (1, 0, 1, 1)),
        ([choice(s, float(s), 0, 9) for s in (2, 1, 3, 10)], 14.0, (2, 0, 0, 1)),
        ([choice(s, float(s), 0, 9) for s in (3, 2, 1, 10)], 14.0, (1, 0, 1, 1)),
    ],
    ids=[
        "the first listed",
        "up to its maximum",
        "fewer replicas",
        "free ones too",
        "more capacity",
        "two ways to 4",
        "in the order listed",
        "two ways to 4 beside a 10",
        "in the order listed beside a 10",
        "in the reverse order",
    ],
)
def test_ties(mix: list[Choice], demand: float, expected: tuple[int, ...]) -> None:
    assert replicas(mix, demand) == expected


def test_what_runs_is_not_started_again() -> None:
    running = choice(60, 1.0, 0, 8, current=3, starting_cost=1000)
    cheaper = choice(50, 1.0, 0, 8, current=0, starting_cost=1000)
    assert replicas([running, cheaper], 3.0) == (3, 0)
    assert replicas([running, cheaper], 5.0) == (3, 2)


def test_large_numbers_do_not_overflow() -> None:
    huge = 2**31 - 1
    mix = [choice(huge, 1e9, 0, 10**6), choice(huge - 1, 1e9, 0, 10**6)]
    assert replicas(mix, 1e9 * 1_500_000) == (500_000, 1_000_000)


proportional = st.lists(
    st.tuples(st.integers(1, 60), st.integers(1, 40)), min_size=2, max_size=6
).map(lambda pairs: [choice(7 * size, float(size), 0, count) for size, count in pairs])


@settings(max_examples=60)
@given(proportional, st.floats(0.05, 0.95))
def test_equally_efficient_types_are_proven_too(choices: list[Choice], share: float) -> None:
    """Linear prices give no bound to prune by; HiGHS finds the same cost."""
    room = int(capacity_of(choices, [c.max_replicas for c in choices]))
    demand = max(1, int(room * share))
    found = cheapest(choices, Fraction(demand))
    assert found is not None
    assert found.proven
    assert running_cost(choices, found.replicas) == least_cost(choices, demand)


def test_a_search_that_is_cut_off_says_so_and_still_serves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(policy_covering, "MOST_STEPS", 5)
    rng = random.Random(3)
    sizes = [rng.randint(10**5, 10**6) for _ in range(8)]
    choices = [choice(size, float(size), 0, 50) for size in sizes]
    demand = Fraction(sum(sizes) * 20 + 1)
    found = cheapest(choices, demand)
    assert found is not None
    assert not found.proven
    assert capacity_of(choices, found.replicas) >= demand


@settings(max_examples=100)
@given(choices_lists, st.integers(1, 300), st.integers(1, 300))
def test_more_demand_never_costs_less(choices: list[Choice], one: int, other: int) -> None:
    free = [
        Choice(
            cost=c.cost,
            capacity=c.capacity,
            min_replicas=c.min_replicas,
            max_replicas=c.max_replicas,
        )
        for c in choices
    ]
    found = [cheapest(free, Fraction(tenths, 10)) for tenths in sorted((one, other))]
    assume(all(found))
    costs = [running_cost(free, mix.replicas) for mix in found if isinstance(mix, Mix)]
    assert costs == sorted(costs)
