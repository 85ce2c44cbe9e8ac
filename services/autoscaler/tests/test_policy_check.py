"""What the core asks of a policy before it decides by it."""

import math
from dataclasses import replace
from typing import Any

import pytest

from inferbus_autoscaler.facts import Behaviour, MetricTarget, PanicPolicy, PolicyTarget, StepPolicy
from inferbus_autoscaler.policy_check import problems_of
from inferbus_contracts.resources.annotations import Compat
from services.autoscaler.tests.builders import KEY, POLICY, WEBHOOK_DEFAULTS, policy

ONE = PolicyTarget(key=KEY, min_replicas=1, max_replicas=9)


def test_a_usual_policy_has_no_problem() -> None:
    assert problems_of(policy(behaviour=WEBHOOK_DEFAULTS)) == ()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"metrics": {"load": 0.0}}, "metrics[0].targetValue"),
        ({"metrics": {"load": math.nan}}, "metrics[0].targetValue"),
        ({"metrics": {"load": math.inf}}, "metrics[0].targetValue"),
        ({"tolerance_percent": 101}, "tolerancePercent"),
        ({"bounds": (5, 4)}, "targets[0].minReplicas"),
        ({"bounds": (-1, 4)}, "targets[0].minReplicas"),
        ({"targets": ()}, "targets"),
        ({"targets": (ONE, replace(ONE, key="ModelServing/default/b"))}, "targets"),
        ({"targets": (ONE, ONE), "mix": True}, "targets[1]"),
        ({"targets": (replace(ONE, capacity=0.0),)}, "targets[0].capacity"),
        ({"targets": (replace(ONE, cost=-1),)}, "targets[0].cost"),
        (
            {"behaviour": Behaviour(scale_down=StepPolicy(stabilisation_ms=1_800_001))},
            "behavior.scaleDown.stabilizationWindow",
        ),
        (
            {"behaviour": Behaviour(scale_up=StepPolicy(period_ms=-1))},
            "behavior.scaleUp.stablePolicy.period",
        ),
        (
            {"behaviour": Behaviour(scale_up=StepPolicy(select="Max"))},
            "behavior.scaleUp.stablePolicy.selectPolicy",
        ),
        (
            {"behaviour": Behaviour(scale_up=StepPolicy(percent=-5))},
            "behavior.scaleUp.stablePolicy.percent",
        ),
        (
            {"behaviour": Behaviour(panic=PanicPolicy(hold_ms=1_800_001))},
            "behavior.scaleUp.panicPolicy.panicModeHold",
        ),
    ],
)
def test_a_problem_names_its_field(changes: dict[str, Any], field: str) -> None:
    (problem,) = problems_of(policy(**changes))
    assert problem.field == field
    assert problem.object == POLICY
    assert problem.remedy


def test_all_problems_are_told_at_once() -> None:
    twice = (MetricTarget(name="a", target=-1.0), MetricTarget(name="a", target=2.0))
    found = problems_of(replace(policy(bounds=(5, 4)), metrics=twice))
    assert [problem.field for problem in found] == [
        "metrics[0].targetValue",
        "metrics[1].name",
        "targets[0].minReplicas",
    ]


def test_as_d18_crossed_bounds_are_left_to_upstream_s_rules_in_compat() -> None:
    assert problems_of(policy(bounds=(5, 4), compat=Compat.KTHENA_HEAD)) == ()
