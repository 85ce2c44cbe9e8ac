"""What the optimizer counts of its own allocations."""

import pytest
from prometheus_client import CollectorRegistry

from inferbus_contracts.events.scaling import (
    DecisionRecord,
    Limiter,
    LimiterStep,
    ScalingAllocated,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_optimizer.outcomes import Allocate
from inferbus_optimizer.policy_placement import CUT_OFF
from inferbus_optimizer.telemetry import AllocationMetrics
from inferbus_shared.bus.decider import Verdict

MIX = ObjectKey("AutoscalingPolicyBinding", "default", "mix")
EVENT = object()
"""What was decided upon makes no difference."""


def allocation(cost: int, least: int, detail: str = "") -> Allocate:
    step = LimiterStep(name=Limiter.STABILISATION, before=1, after=1, detail=detail)
    record = DecisionRecord(
        decider="o", version="1", policy="p", policy_digest="d", input={}, limiters=[step]
    )
    data = ScalingAllocated(allocations=[], cost=cost, optimal_cost=least, record=record)
    return Allocate(str(MIX), data)


@pytest.mark.parametrize(("detail", "proven"), [("x", "true"), (f"x; {CUT_OFF}", "false")])
def test_allocations_are_counted_with_what_they_cost_too_much(detail: str, proven: str) -> None:
    registry = CollectorRegistry()
    metrics = AllocationMetrics(registry)
    for cost in (30, 20):
        metrics.committed(MIX, EVENT, Verdict({}, [allocation(cost, 20, detail)]))  # type: ignore[arg-type]
    name = "inferbus_optimizer_allocations_total"
    assert registry.get_sample_value(name, {"binding": "none", "proven": proven}) == 2
    assert registry.get_sample_value("inferbus_optimizer_cost_total") == 50
    assert registry.get_sample_value("inferbus_optimizer_extra_cost_total") == 10


def test_every_solve_is_timed() -> None:
    registry = CollectorRegistry()
    metrics = AllocationMetrics(registry)
    with metrics.solving():
        pass
    assert registry.get_sample_value("inferbus_optimizer_solve_seconds_count") == 1
