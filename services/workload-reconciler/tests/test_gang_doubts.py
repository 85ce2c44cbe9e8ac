"""What is told of scheduling: gangs that aren't enforced, pods that were built before a change.

Defects MS_D28 and MS_D33 (modelserving spec 4.4).
"""

import copy
from typing import Any

import pytest
from workload_builders import pod_template, role
from workload_volcano import MISSING, MIXED, NEW, OLD, gang, on_volcano

from inferbus_workload_reconciler.observed import NO_CLUSTER

GROUP = "scheduling.k8s.io/group-name"


@pytest.mark.parametrize(
    ("cluster", "fields", "reason"),
    [
        (OLD, {"gangPolicy": {"minRoleReplicas": {"prefill": 1}}}, "VolcanoTooOld"),
        (OLD, {"networkTopology": {"mode": "hard"}}, "VolcanoTooOld"),
        (OLD, {"networkTopology": {"rolePolicy": {}}}, "VolcanoTooOld"),
        (OLD, {}, None),
        (NEW, {"gangPolicy": {"minRoleReplicas": {"prefill": 1}}}, None),
        (MISSING, {"networkTopology": {"mode": "hard"}}, "VolcanoMissing"),
        (MISSING, {}, None),
        (
            NEW,
            {"gangPolicy": {"minRoleReplicas": {}}, "schedulerName": "default-scheduler"},
            "OtherScheduler",
        ),
        (NEW, {"schedulerName": "default-scheduler"}, None),
        (NO_CLUSTER, {"gangPolicy": {"minRoleReplicas": {"prefill": 1}}}, None),
    ],
)
def test_ms_d28_what_of_a_gang_is_not_enforced_is_told(
    cluster: Any, fields: dict[str, Any], reason: str | None
) -> None:
    world = on_volcano(gang(**fields), cluster)
    told = [one for one in world.status["conditions"] if one["type"] == "GangPolicyLimited"]
    assert [one["reason"] for one in told] == ([] if reason is None else [reason])
    assert world.counts()[:2] == (1, 1)


def test_volcano_that_comes_later_does_not_strand_pods_of_running_groups() -> None:
    """A pod in a PodGroup that its group's other pods never joined would wait for ever."""
    world = on_volcano(gang(1, MIXED), MISSING)
    world.cluster = NEW
    world.fail("x-0-decode-0-0")
    world.settle()
    assert world.pod_groups() == []
    assert GROUP not in world.pod("x-0-decode-0-0")["metadata"]["annotations"]
    assert world.condition("SchedulingDrift")["status"] == "True"
    world.scale(2)
    world.settle()
    assert world.pod_groups() == ["x-1"]


def test_a_pod_group_stays_while_pods_that_stay_name_it() -> None:
    world = on_volcano(gang(1, MIXED))
    world.apply(gang(1, MIXED, schedulerName="default-scheduler"))
    world.settle()
    assert world.pod_groups() == ["x-0"]
    rolled = copy.deepcopy(MIXED)
    for one in rolled:
        one["entryTemplate"] = pod_template("b")
    world.apply(gang(1, rolled, schedulerName="default-scheduler"))
    world.settle()
    assert world.pod_groups() == []
    assert "SchedulingDrift" not in world.true_conditions()


@pytest.mark.parametrize(
    "change",
    [
        {"schedulerName": "default-scheduler"},
        {"networkTopology": {"groupPolicy": {"mode": "soft"}}},
        {"plugins": [{"name": "demo-pod-tweaks", "config": {"annotations": {"a": "b"}}}]},
        {
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
            ]
        },
    ],
)
def test_ms_d33_what_never_reaches_running_pods_is_told(change: dict[str, Any]) -> None:
    world = on_volcano(gang(2))
    assert "SchedulingDrift" not in world.true_conditions()
    world.apply(gang(2, **change))
    world.settle()
    assert len(world.created) == 2
    assert world.condition("SchedulingDrift")["reason"] == "BuiltBefore"
    assert "x-0-prefill-0-0" in world.condition("SchedulingDrift")["message"]
    world.apply(gang(2, [role(image="b")], **change))
    world.settle()
    assert world.condition("SchedulingDrift")["status"] == "False"


def test_ms_d33_pods_of_the_scheduler_that_stood_in_are_told() -> None:
    world = on_volcano(gang(), MISSING)
    world.cluster = NEW
    world.settle()
    assert "default-scheduler, not volcano" in world.condition("SchedulingDrift")["message"]
