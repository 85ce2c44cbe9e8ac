"""Upstream's mixes over time against autoscaling spec 6.3: autoscaler and optimizer together."""

from dataclasses import replace

import pytest

from inferbus_autoscaler.facts import Behaviour, PanicPolicy, StepPolicy
from inferbus_autoscaler.policy_compat_head import CompatLoop, run_loop
from inferbus_autoscaler.policy_correction import HEAD_MIX_RULES, HEAD_RULES, CompatRules
from inferbus_autoscaler.policy_recommendation import RecommendationInput
from inferbus_optimizer.policy_compat_blocks import MixTarget, allocate, blocks

MIX = (
    MixTarget(name="h100", cost=100, min_replicas=1, max_replicas=5),
    MixTarget(name="a100", cost=30, min_replicas=2, max_replicas=8),
)
ORDER = blocks(MIX, 200)
DOWN = StepPolicy(instances=0, period_ms=60_000, stabilisation_ms=300_000)
DEFAULTS = Behaviour(
    scale_down=DOWN,
    scale_up=StepPolicy(instances=4, period_ms=60_000),
    panic=PanicPolicy(percent=0, hold_ms=0),
)
T76 = replace(DEFAULTS, scale_down=replace(DOWN, stabilisation_ms=60_000))
T77 = replace(DEFAULTS, scale_up=StepPolicy(instances=4, period_ms=15_000, stabilisation_ms=30_000))

Pair = tuple[int, ...]


def run(behaviour: Behaviour, rules: CompatRules, start: Pair, loads: list[float]) -> list[Pair]:
    loop, current, seen = CompatLoop.first(behaviour, rules), start, []
    for index, load in enumerate(loads):
        given = RecommendationInput(
            min_replicas=3,
            max_replicas=13,
            current=sum(current),
            tolerance_percent=10,
            targets={"m": 10.0},
            entries=[{}, {}],
            external_totals={"m": load},
        )
        result = run_loop(loop, given, behaviour, 10**12 + index * 15_000, rules)
        assert result.applied is not None
        loop, current = result.loop, allocate(MIX, ORDER, result.applied)
        seen.append(current)
    return seen


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (HEAD_MIX_RULES, [(5, 8)] * 15),
        (HEAD_RULES, [(5, 8)] * 7 + [(1, 2)] * 8),
    ],
    ids=["as it is", "D1 fixed"],
)
def test_as_t76_scaling_down(rules: CompatRules, expected: list[Pair]) -> None:
    assert run(T76, rules, (5, 8), [130.0] * 3 + [30.0] * 12) == expected


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (HEAD_MIX_RULES, [(1, 2)] * 8),
        (HEAD_RULES, [(1, 2)] * 4 + [(1, 6)] * 2 + [(5, 8)] * 2),
    ],
    ids=["as it is", "D1 fixed"],
)
def test_as_t77_scaling_up(rules: CompatRules, expected: list[Pair]) -> None:
    assert run(T77, rules, (1, 2), [30.0, 30.0] + [130.0] * 6) == expected
