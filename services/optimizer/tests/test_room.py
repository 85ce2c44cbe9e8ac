"""What may be asked for where accelerators are short, and what is counted on."""

from dataclasses import replace

from inferbus_contracts.events.scaling import Limiter
from inferbus_optimizer.events import Option
from inferbus_optimizer.policy_placement import Placement, place
from inferbus_optimizer.policy_room import choices_of, needed_of
from inferbus_optimizer.policy_switching import Regret
from services.optimizer.tests.builders import A100, H100, T0, demand, option


def placed(
    h100: Option, a100: int, frozen: frozenset[str] = frozenset(), rate: int = 0
) -> Placement:
    options = (h100, option(A100, a100))
    the_demand = demand(8.0, options=options, rate_percent=rate)
    return place(the_demand, (h100.current, a100), frozen, Regret(), T0)


def test_a_probe_comes_on_top_of_what_serves_without_it() -> None:
    found = placed(option(H100, 0, schedulable=0, probe=True), 8)
    assert found.replicas == (1, 8)
    assert found.binding is Limiter.CAPACITY
    assert found.steps[-1].detail == f"{H100}: 0 can be scheduled, one more is tried"


def test_a_probe_under_way_changes_nothing() -> None:
    under_way = option(H100, 1, schedulable=0, probe=True)
    assert placed(under_way, 8).replicas == (1, 8)


def test_a_probe_that_succeeded_relieves_the_others() -> None:
    assert placed(option(H100, 1, schedulable=1), 8).replicas == (1, 4)


def test_nothing_is_tried_that_nobody_would_take() -> None:
    dear = option(H100, 0, schedulable=0, probe=True, cost=10_000)
    found = placed(dear, 8)
    assert found.replicas == (0, 8)
    assert found.steps[-1].detail == f"{H100}: 0 can be scheduled"


def test_a_probe_is_made_when_switching_pays_and_not_before() -> None:
    """The regret of a dearer mix is that of a mix which needn't exist: it is tried."""
    waiting = placed(option(H100, 0, schedulable=0, probe=True), 8, rate=200)
    assert (waiting.replicas, waiting.binding) == ((0, 8), Limiter.STABILISATION)
    assert waiting.due_ms is not None
    options = (option(H100, 0, schedulable=0, probe=True), option(A100, 8))
    the_demand = demand(8.0, options=options)
    due = place(the_demand, (0, 8), frozenset(), waiting.regret, waiting.due_ms)
    assert due.replicas == (1, 8)


def test_a_minimum_that_cannot_be_scheduled_stays_and_carries_nothing() -> None:
    held = option(H100, 1, schedulable=0, min_replicas=1)
    the_demand = demand(8.0, options=(held, option(A100, 1)))
    assert needed_of(the_demand, (1, 1), frozenset()) == 12
    assert placed(held, 1).replicas == (1, 8)


def test_frozen_replicas_that_wait_for_a_node_carry_nothing_either() -> None:
    held = option(H100, 2, schedulable=1)
    assert placed(held, 1, frozenset({H100})).replicas == (2, 4)


def test_sure_choices_leave_probes_out() -> None:
    options = (option(H100, 0, schedulable=2, probe=True), option(A100, 1))
    the_demand = replace(demand(8.0), options=options)
    most = [each.max_replicas for each in choices_of(the_demand, (0, 1), frozenset())]
    sure = [each.max_replicas for each in choices_of(the_demand, (0, 1), frozenset(), sure=True)]
    assert (most, sure) == ([3, 8], [2, 8])
