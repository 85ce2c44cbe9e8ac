"""Which mix is taken under bounds, room, freezes and the price of switching."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferbus_contracts.events.scaling import Limiter
from inferbus_optimizer.events import Demand
from inferbus_optimizer.policy_placement import Placement, place, place_in_blocks
from inferbus_optimizer.policy_switching import Regret
from services.optimizer.tests.builders import A100, H100, START_MS, T0, demand, option


def placed(
    the_demand: Demand,
    frozen: frozenset[str] = frozenset(),
    regret: Regret | None = None,
    now_ms: int = T0,
) -> Placement:
    current = tuple(each.current for each in the_demand.options)
    return place(the_demand, current, frozen, regret or Regret(), now_ms)


def test_from_the_minimum_the_cheapest_is_started() -> None:
    found = placed(demand(8.0, rate_percent=0))
    assert found.replicas == (2, 1)
    assert (found.cost, found.optimal_cost, found.binding) == (260, 260, Limiter.NONE)


def test_what_can_be_spared_is_dropped_at_once() -> None:
    assert placed(demand(5.0, h100=3, a100=4)).replicas == (1, 1)


def test_a_sufficient_mix_is_kept_though_another_were_cheaper() -> None:
    """Eight A100 serve 8 for 480; (2, 1) costs 260 and two starts."""
    found = placed(demand(8.0, a100=8))
    assert found.replicas == (0, 8)
    assert (found.cost, found.optimal_cost) == (480, 260)
    assert found.binding is Limiter.STABILISATION
    assert found.regret == Regret(extra=220, since_ms=T0)


def test_it_is_given_up_when_the_extra_cost_has_run_up_to_200_percent_of_the_starts() -> None:
    starts = 2 * 100 * START_MS
    found = placed(demand(8.0, a100=8))
    assert found.due_ms == T0 + -(-2 * starts // 220)
    before = placed(demand(8.0, a100=8), regret=found.regret, now_ms=found.due_ms - 1)
    assert before.replicas == (0, 8)
    after = placed(demand(8.0, a100=8), regret=found.regret, now_ms=found.due_ms)
    assert after.replicas == (2, 1)
    assert after.regret == Regret()


@pytest.mark.parametrize(("rate", "replicas"), [(0, (2, 1)), (1, (0, 8))])
def test_a_rate_of_0_takes_the_optimum_at_once(rate: int, replicas: tuple[int, int]) -> None:
    assert placed(demand(8.0, a100=8, rate_percent=rate)).replicas == replicas


def test_a_switch_without_starts_is_made_at_once() -> None:
    assert placed(demand(8.0, h100=2, a100=8)).replicas == (2, 1)


def test_an_insufficient_mix_is_added_to() -> None:
    """Four A100 lack 3.5 units: one H100 covers them; nothing that runs is replaced."""
    found = placed(demand(7.5, a100=4))
    assert found.replicas == (1, 4)
    assert found.binding is Limiter.STABILISATION


def test_only_starts_beyond_those_of_staying_count_against_the_optimum() -> None:
    """Staying needs (2, 4), i.e. three starts for 260; the optimum (3, 1) three for 300."""
    found = placed(demand(12.0, a100=3, rate_percent=400))
    assert (found.replicas, found.cost, found.optimal_cost) == ((2, 4), 440, 360)
    assert found.due_ms == T0 + 4 * (300 - 260) * START_MS // 80


def test_quick_and_dear_replicas_are_not_started_only_because_they_are_quick() -> None:
    dear = option(H100, 0, cost=100_000, startup_ms=0, max_replicas=8)
    slow = option(A100, 1, startup_ms=600_000)
    the_demand = replace(demand(5.0), options=(dear, slow))
    assert placed(the_demand).replicas == (0, 5)


def test_without_start_up_times_the_optimum_is_taken() -> None:
    free = tuple(replace(each, startup_ms=0) for each in demand(8.0, a100=8).options)
    assert placed(demand(8.0, options=free)).replicas == (2, 1)


def test_no_more_than_can_be_scheduled() -> None:
    little = (option(H100, 0, schedulable=1), option(A100, 1))
    assert placed(demand(8.0, options=little)).replicas == (1, 4)


def test_too_much_takes_all_there_is_and_says_so() -> None:
    found = placed(demand(40.0))
    assert found.replicas == (4, 8)
    assert found.binding is Limiter.CAPACITY
    (step,) = found.steps
    assert (step.before, step.after) == (40, 24)
    assert step.detail == "40 units needed, 24 possible"


def test_a_frozen_target_stays_as_it_is() -> None:
    found = placed(demand(8.0, h100=0, a100=5), frozen=frozenset({H100}))
    assert found.replicas == (0, 8)
    assert found.binding is Limiter.FREEZE


def test_a_freeze_binds_nothing_where_it_changes_nothing() -> None:
    found = placed(demand(8.0, h100=2, a100=1), frozen=frozenset({H100}))
    assert (found.replicas, found.binding) == ((2, 1), Limiter.NONE)


def test_upstream_s_blocks_count_replicas() -> None:
    found = place_in_blocks(demand(8.0), (0, 1))
    assert found.replicas == (4, 4)
    assert (found.cost, found.optimal_cost) == (640, 260)


def test_upstream_s_total_is_clamped() -> None:
    found = place_in_blocks(demand(40.0), (0, 1))
    assert found.replicas == (4, 8)
    assert found.binding is Limiter.BOUNDS


@given(
    capacity=st.floats(0, 30),
    h100=st.integers(0, 4),
    a100=st.integers(1, 8),
    rate=st.sampled_from([0, 50, 200]),
    extra=st.integers(0, 300),
    waited_ms=st.integers(0, 10**6),
)
def test_bounds_hold_and_the_demand_is_served(
    capacity: float, h100: int, a100: int, rate: int, extra: int, waited_ms: int
) -> None:
    the_demand = demand(capacity, h100=h100, a100=a100, rate_percent=rate)
    regret = Regret(extra=extra, since_ms=T0)
    found = placed(the_demand, regret=regret, now_ms=T0 + waited_ms)
    assert 0 <= found.replicas[0] <= 4
    assert 1 <= found.replicas[1] <= 8
    served = 4 * found.replicas[0] + found.replicas[1]
    assert served >= capacity or found.binding is Limiter.CAPACITY
    assert found.cost >= found.optimal_cost
