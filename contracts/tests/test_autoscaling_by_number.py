"""Admission of policies by number: T125 to T134 of autoscaling spec 6.6; D18, D26 and D27 of 7.

Where the numbered result is a refusal that v0.1.0's schema doesn't know, ruling 4 of precedence
makes it a doubt that is told; the test says so. The defects are shown in the other direction by
the one-line mutants of `contract_mutants`, or in compat mode.
"""

from collections.abc import Callable
from typing import Any

import pytest

from contracts.tests.rule_cases.autoscaling import (
    CONFIGURATION,
    METRIC,
    MIX,
    PARAMS,
    SINGLE,
    SPLIT,
    ratio,
    role,
    split,
    target,
)
from contracts.tests.test_defaults import ALL, UP, WRITTEN
from inferbus_contracts.admission import Admitted
from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.resources.autoscaling import AutoscalingPolicy

Admits = Callable[..., Admitted]
Refuses = Callable[..., tuple[Problem, ...]]

POLICY, BINDING = "AutoscalingPolicy", "AutoscalingPolicyBinding"
BEHAVIOR = "spec.behavior"
GUIDE_PANIC = {"panicThresholdPercent": 150, "panicModeHold": "5m"}
"""The example of upstream's own user guide, which its schema refuses."""


def behavior(admitted: Admits, written: Any) -> dict[str, Any]:
    found: dict[str, Any] = admitted(POLICY, {BEHAVIOR: written}).object["spec"]["behavior"]
    return found


def fields(problems: tuple[Problem, ...]) -> list[str | None]:
    assert all(problem.message and problem.remedy for problem in problems)
    return [problem.field for problem in problems]


def test_as_t125_without_a_behaviour_all_of_it_is_filled_in(admitted: Admits) -> None:
    assert behavior(admitted, ...) == ALL


def test_as_t126_an_empty_block_is_another_policy_than_none(admitted: Admits) -> None:
    found = behavior(admitted, {"scaleDown": {}})
    assert found["scaleDown"] == WRITTEN | {"stabilizationWindow": "5m"}
    assert found["scaleUp"]["stablePolicy"] == UP | {"stabilizationWindow": "0s"}


def test_as_t127_as_d26_the_user_guide_s_panic_example_is_accepted(admitted: Admits) -> None:
    """Refused upstream; ruling F2: an absent period means no rate limit in panic."""
    once = admitted(POLICY, {f"{BEHAVIOR}.scaleUp.panicPolicy": GUIDE_PANIC})
    assert once.warnings == ()
    assert isinstance(once.resource, AutoscalingPolicy)
    scale_up = once.resource.spec.behavior and once.resource.spec.behavior.scale_up
    assert scale_up
    assert scale_up.panic_policy
    assert scale_up.panic_policy.period_ms == 0
    assert scale_up.panic_policy.panic_mode_hold_ms == 300_000


def test_as_t128_everything_that_is_wrong_is_told_at_once(
    admitted: Admits, problems: Refuses
) -> None:
    """Three lines upstream; a window of 31 minutes fits v0.1.0's schema and is a doubt here."""
    window = {f"{BEHAVIOR}.scaleDown.stabilizationWindow": "31m"}
    wrong = {
        "spec.metrics[0].targetValue": "-100m",
        "spec.metrics[1]": {"name": METRIC, "targetValue": 1},
    }
    assert fields(problems(POLICY, wrong | window)) == [
        "spec.metrics[0].targetValue",
        "spec.metrics[1]",
    ]
    (doubt,) = admitted(POLICY, window).warnings
    assert doubt.field == f"{BEHAVIOR}.scaleDown.stabilizationWindow"
    assert "30 minutes" in doubt.message


def test_as_t129_two_targets_are_refused_and_none_is_v0_1_0_s_form(
    admitted: Admits, problems: Refuses
) -> None:
    assert fields(problems(POLICY, {SINGLE: target(), PARAMS: [target()]})) == [MIX]
    assert fields(problems(BINDING, {CONFIGURATION: ...})) == ["spec"]
    assert admitted(POLICY).warnings == ()


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        (split(p=role(9, 8)), f"{SPLIT}.roles.p.minReplicas", "maxReplicas (8)"),
        (
            split(p=role(1, 2, metricSources={"x": {"pod": {}}})),
            f"{SPLIT}.roles.p.metricSources.x",
            "no metric of this name",
        ),
        (
            split(p=role(1, 2, metricSources={})),
            f"{SPLIT}.roles.p.metricSources",
            "where the role's metrics are read",
        ),
    ],
)
def test_as_t130_roles_that_could_never_follow_load_are_refused(
    problems: Refuses, given: dict[str, Any], field: str, words: str
) -> None:
    (problem,) = problems(POLICY, {SPLIT: given})
    assert problem.field == field
    assert words in problem.message


def test_as_t131_fixed_roles_need_no_metric(admitted: Admits) -> None:
    fixed = split(p={"minReplicas": 2, "maxReplicas": 2})
    assert admitted(POLICY, {"spec.metrics": ..., SPLIT: fixed}).warnings == ()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param(
            ratio(0, 1, role(0, 2), role(1, 2)), "may go to zero and the other", id="t132"
        ),
        pytest.param(
            ratio("0.25", 1, role(9, 10), role(1, 8)), "too many replicas even at its", id="t133"
        ),
    ],
)
def test_as_t132_as_t133_a_ratio_that_no_numbers_have_is_refused(
    problems: Refuses, given: dict[str, Any], words: str
) -> None:
    (problem,) = problems(POLICY, {SPLIT: given})
    assert problem.field == f"{SPLIT}.ratioConstraint"
    assert words in problem.message


def test_as_t134_a_ratio_that_only_whole_numbers_miss_is_accepted(admitted: Admits) -> None:
    assert admitted(POLICY, {SPLIT: ratio("0.55", "0.55", role(1, 2), role(2, 3))}).warnings == ()


@pytest.mark.parametrize(
    ("token", "changes", "field"),
    [
        (BINDING, {f"{CONFIGURATION}.minReplicas": 4}, f"{CONFIGURATION}.minReplicas"),
        (POLICY, {SINGLE: target(low=9, high=2)}, f"{SINGLE}.minReplicas"),
        (POLICY, {PARAMS: [target("a"), target("b", 9, 2)]}, f"{PARAMS}[1].minReplicas"),
    ],
)
def test_as_d18_crossed_bounds_are_told_with_field_value_and_remedy(
    admitted: Admits, token: str, changes: dict[str, Any], field: str
) -> None:
    """v0.1.0 accepts them, so they are accepted; upstream says nothing and pins to the maximum."""
    (doubt,) = admitted(token, changes).warnings
    assert doubt.field == field
    assert doubt.value in (4, 9)
    assert "above maxReplicas" in doubt.message
    assert doubt.remedy


def test_as_d18_a_target_that_stands_twice_in_a_mix_is_refused(problems: Refuses) -> None:
    (problem,) = problems(POLICY, {PARAMS: [target("a"), target("b"), target("a", 3, 4)]})
    assert problem.code is ErrorCode.DUPLICATE_NAME
    assert problem.field == f"{PARAMS}[2].target.targetRef.name"
    assert problem.value == "a"


@pytest.mark.parametrize("token", [POLICY, BINDING])
def test_as_d26_a_single_target_may_go_to_zero(admitted: Admits, token: str) -> None:
    """Upstream's documents demand a minimum of one; its schema doesn't."""
    place = SINGLE if token == POLICY else CONFIGURATION
    changes = {SINGLE: target(low=0)} if token == POLICY else {f"{place}.minReplicas": 0}
    once = admitted(token, changes)
    assert once.warnings == ()


@pytest.mark.parametrize("panic", [..., {}, GUIDE_PANIC, {"panicThresholdPercent": 300}], ids=str)
def test_as_d27_panic_is_off_or_adds_something(admitted: Admits, panic: Any) -> None:
    """Upstream's percent is 0 or 1000, depending on who filled it in: never 0 while panic is on."""
    changes = {f"{BEHAVIOR}.scaleUp.stablePolicy": {}, f"{BEHAVIOR}.scaleUp.panicPolicy": panic}
    resource = admitted(POLICY, changes).resource
    assert isinstance(resource, AutoscalingPolicy)
    scale_up = resource.spec.behavior and resource.spec.behavior.scale_up
    assert scale_up
    assert scale_up.panic_policy
    assert scale_up.panic_policy.panic_mode_hold_ms == 0 or scale_up.panic_policy.percent == 1000


def test_as_d27_compat_with_v0_1_0_leaves_what_was_not_written_absent(admitted: Admits) -> None:
    """The other direction: there no webhook fills in anything, whatever block was left out."""
    compat = {"metadata.annotations": {"inferbus.dev/compat": "kthena-v0.1"}}
    assert "behavior" not in admitted(POLICY, compat).object["spec"]
