"""Where the own search is cut off a general solver goes on; this holds its answers to account."""

import random
import subprocess
import sys
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inferbus_optimizer import policy_covering, policy_exact
from inferbus_optimizer.policy_covering import Cover, Item
from inferbus_optimizer.policy_exact import Choice, capacity_of, cheapest, running_cost
from inferbus_optimizer.policy_highs import settled
from services.optimizer.tests.test_exact import by_brute_force, choice, choices_lists


@pytest.fixture(autouse=True)
def cut_off_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_covering, "MOST_STEPS", 1)


def total_cost(choices: list[Choice], replicas: tuple[int, ...]) -> int:
    started = (
        c.starting_cost * max(0, count - max(c.current, c.min_replicas))
        for c, count in zip(choices, replicas, strict=True)
    )
    return running_cost(choices, replicas) + sum(started)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(choices_lists, st.integers(-10, 700))
def test_the_cost_is_that_of_brute_force(choices: list[Choice], tenths: int) -> None:
    demand = Fraction(tenths, 10)
    found, best = cheapest(choices, demand), by_brute_force(choices, demand)
    assert (found is None) == (best is None)
    if found is not None and best is not None:
        assert found.proven
        assert capacity_of(choices, found.replicas) >= demand
        assert total_cost(choices, found.replicas) == total_cost(choices, best)


def strongly_correlated(seed: int) -> tuple[list[Choice], Fraction]:
    """Sizes with a price on top that is the same for all: hard for a search that prunes by rate."""
    rng = random.Random(seed)
    sizes = [rng.randint(10**3, 10**4) for _ in range(10)]
    choices = [choice(size + 1000, float(size), 0, 100) for size in sizes]
    return choices, Fraction(sum(sizes) * rng.randint(5, 80) + 1)


@pytest.mark.parametrize("seed", [3, 11])
def test_it_is_no_dearer_than_the_search_that_was_cut_off(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    choices, demand = strongly_correlated(seed)
    found = cheapest(choices, demand)
    assert found is not None
    assert found.proven
    monkeypatch.setattr(policy_exact, "settled", lambda items, size, cut_off: cut_off)
    alone = cheapest(choices, demand)
    assert alone is not None
    assert not alone.proven
    assert running_cost(choices, found.replicas) < running_cost(choices, alone.replicas)
    assert capacity_of(choices, found.replicas) >= demand


def test_the_same_problem_has_the_same_answer() -> None:
    choices, demand = strongly_correlated(5)
    assert len({cheapest(choices, demand) for _ in range(3)}) == 1


def test_numbers_beyond_float64_are_checked_and_not_called_proven() -> None:
    """The solver sees 10^17 and 10^17 + 3 as one size."""
    big = 10**17
    items = [
        Item(owner=0, size=big, cost=10, count=4),
        Item(owner=1, size=big + 3, cost=11, count=4),
    ]
    found = settled(items, 3 * big + 1, Cover((4, 0), proven=False))
    assert sum(item.size * n for item, n in zip(items, found.pieces, strict=True)) > 3 * big
    assert not found.proven


def test_what_float64_cannot_tell_apart_is_not_proven() -> None:
    big = 10**17
    items = [
        Item(owner=0, size=big, cost=10, count=4),
        Item(owner=1, size=big + 3, cost=11, count=4),
    ]
    found = settled(items, 3 * big - 5, Cover((4, 0), proven=False))
    assert found == Cover((3, 0), proven=False)


def test_a_better_answer_at_hand_is_kept() -> None:
    items = [Item(owner=0, size=1, cost=1, count=9), Item(owner=1, size=3, cost=3, count=3)]
    best = Cover((0, 3), proven=False)
    assert settled(items, 9, best) == Cover((0, 3), proven=True)


def test_a_service_that_needs_no_solver_does_not_load_it() -> None:
    code = "import sys, inferbus_optimizer.main; print({'scipy', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
