"""From stored objects to the planner's own words."""

from typing import Any

import pytest
from workload_builders import leader_worker_set, role, serving

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_workload_reconciler.policy_parsing import parse_workload
from inferbus_workload_reconciler.workload import RecoveryPolicy, RolloutType


def test_a_model_serving_with_everything_left_out_has_the_documented_defaults() -> None:
    spec = parse_workload(serving(roles=[role()]))
    assert spec.recovery is RecoveryPolicy.ROLE
    assert spec.rollout.type is RolloutType.GROUP
    assert (spec.rollout.max_unavailable, spec.rollout.max_surge) == (1, 0)
    assert spec.rollout.partition is None
    assert spec.restart_grace_ms == 0
    assert spec.scheduler_name == "volcano"


def test_a_negative_grace_period_counts_as_none() -> None:
    assert parse_workload(serving(grace_seconds=-5)).restart_grace_ms == 0
    assert parse_workload(serving(grace_seconds=60)).restart_grace_ms == 60_000


def test_rolling_update_knobs_of_groups_do_not_apply_to_role_updates() -> None:
    document = serving(by_role=True)
    knobs = {"maxUnavailable": 3, "partition": 2}
    document["spec"]["rolloutStrategy"]["rollingUpdateConfiguration"] = knobs
    rollout = parse_workload(document).rollout
    assert (rollout.type, rollout.max_unavailable, rollout.partition) == (RolloutType.ROLE, 1, None)


@pytest.mark.parametrize(
    ("policy", "recovery"),
    [
        (None, RecoveryPolicy.GROUP),
        ("RecreateGroupOnPodRestart", RecoveryPolicy.GROUP),
        ("Default", RecoveryPolicy.NONE),
        ("None", RecoveryPolicy.NONE),
    ],
)
def test_restart_policies_of_an_leader_worker_set(
    policy: str | None, recovery: RecoveryPolicy
) -> None:
    assert parse_workload(leader_worker_set(restartPolicy=policy)).recovery is recovery


@pytest.mark.parametrize(("size", "workers"), [(None, 0), (1, 0), (4, 3)])
def test_the_size_of_a_leader_worker_group_counts_the_leader(
    size: int | None, workers: int
) -> None:
    document = leader_worker_set()
    document["spec"]["leaderWorkerTemplate"]["size"] = size
    assert parse_workload(document).roles[0].template.worker_replicas == workers


def test_without_a_leader_template_the_leader_is_built_like_a_worker() -> None:
    alone = parse_workload(leader_worker_set(size=2)).roles[0].template
    assert alone.entry == alone.worker
    led = parse_workload(leader_worker_set(size=2, leader=True)).roles[0].template
    assert led.entry.spec["containers"][0]["image"] == "a-leader"


def broken(path: str, value: Any) -> dict[str, Any]:
    document = serving()
    *parents, last = path.split(".")
    place: Any = document
    for parent in parents:
        place = place[int(parent)] if parent.isdigit() else place[parent]
    place[last] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "code", "field"),
    [
        ("spec.replicas", "two", ErrorCode.WRONG_TYPE, "spec.replicas"),
        ("spec.template.roles", [], ErrorCode.MISSING_FIELD, "spec.template.roles"),
        ("spec.template.roles", ["a"], ErrorCode.WRONG_TYPE, "spec.template.roles[0]"),
        (
            "spec.template.roles.0.name",
            None,
            ErrorCode.MISSING_FIELD,
            "spec.template.roles[0].name",
        ),
        (
            "spec.template.roles.0.replicas",
            "1",
            ErrorCode.WRONG_TYPE,
            "spec.template.roles[0].replicas",
        ),
        (
            "spec.template.roles.0.workerReplicas",
            2,
            ErrorCode.MISSING_FIELD,
            "spec.template.roles[0].workerTemplate",
        ),
        ("spec.recoveryPolicy", "Never", ErrorCode.VALUE_OUT_OF_RANGE, "spec.recoveryPolicy"),
        (
            "spec.rolloutStrategy",
            {"rollingUpdateConfiguration": {"maxUnavailable": "some"}},
            ErrorCode.VALUE_OUT_OF_RANGE,
            "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable",
        ),
        ("metadata.uid", None, ErrorCode.MISSING_FIELD, "metadata.uid"),
    ],
)
def test_a_broken_object_is_told_with_the_field_and_never_planned(
    path: str, value: Any, code: ErrorCode, field: str
) -> None:
    with pytest.raises(ProblemsError) as raised:
        parse_workload(broken(path, value))
    (problem,) = raised.value.problems
    assert (problem.code, problem.field) == (code, field)
    assert problem.remedy


def test_a_restart_policy_that_does_not_exist_is_told() -> None:
    with pytest.raises(ProblemsError, match=r"spec\.leaderWorkerTemplate\.restartPolicy"):
        parse_workload(leader_worker_set(restartPolicy="Sometimes"))


def test_a_kind_that_is_not_planned_is_told() -> None:
    with pytest.raises(ProblemsError, match="not planned"):
        parse_workload({"kind": "Deployment"})
