"""PodGroups: what they hold, when they come, change and go (modelserving spec 4).

T55, T69 to T72, T86, and defects MS_D26, MS_D29 to MS_D31, MS_D34, MS_D45, MS_D47.
"""

import copy
from typing import Any

import pytest
from workload_builders import pod_template, role
from workload_volcano import MISSING, MIXED, NEW, OLD, gang, on_volcano
from workload_world import World

from inferbus_workload_reconciler.actions import (
    ChildKind,
    Create,
    Reason,
    Update,
    is_held,
    stages,
)
from inferbus_workload_reconciler.observed import NO_CLUSTER, Cluster

QUEUE = "scheduling.volcano.sh/queue-name"
GROUP = "scheduling.k8s.io/group-name"
LABEL = "modelserving.volcano.sh"


def template(cpu: str, memory: str) -> dict[str, Any]:
    built = pod_template("a")
    built["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu, "memory": memory}}
    return built


def vector_roles(prefill_workers: int = 3, decode_workers: int = 2) -> list[dict[str, Any]]:
    return [
        role(
            "prefill",
            2,
            prefill_workers,
            entryTemplate=template("1", "2Gi"),
            workerTemplate=template("2", "4Gi"),
        ),
        role(
            "decode",
            1,
            decode_workers,
            entryTemplate=template("1", "1Gi"),
            workerTemplate=template("1", "2Gi"),
        ),
    ]


@pytest.mark.parametrize(
    ("roles", "least", "expected"),
    [
        (vector_roles(), None, (11, "17", "33Gi")),
        (vector_roles(), {"prefill": 1, "decode": 1}, (7, "10", "19Gi")),
        (vector_roles(decode_workers=0), None, (9, "15", "29Gi")),
        (vector_roles(prefill_workers=0), None, (5, "5", "9Gi")),
    ],
)
def test_a_gang_needs_its_pods_and_what_they_ask_for(
    roles: list[dict[str, Any]], least: dict[str, int] | None, expected: tuple[int, str, str]
) -> None:
    """The worked vector of modelserving spec 4.2."""
    policy = {} if least is None else {"gangPolicy": {"minRoleReplicas": least}}
    spec = on_volcano(gang(1, roles, **policy)).pod_group("x-0")
    resources = spec["minResources"]
    assert (spec["minMember"], resources["cpu"], resources["memory"]) == expected


def test_a_whole_pod_group() -> None:
    """Modelserving spec 2.12 and 2.9: its owner reference blocks nothing."""
    world = on_volcano(gang(2, MIXED, name="m", gangPolicy={"minRoleReplicas": {"decode": 1}}))
    assert world.pod_groups() == ["m-0", "m-1"]
    stored = world.objects[ChildKind.POD_GROUP, "m-0"]
    assert stored["apiVersion"] == "scheduling.volcano.sh/v1beta1"
    metadata = stored["metadata"]
    assert metadata["labels"] == {f"{LABEL}/name": "m", f"{LABEL}/group-name": "m-0"}
    assert metadata["annotations"] == {GROUP: "m-0"}
    (owner,) = metadata["ownerReferences"]
    assert owner["controller"] is True
    assert "blockOwnerDeletion" not in owner
    assert stored["spec"]["minMember"] == 3
    assert [
        (one["name"], one["subGroupSize"], one["minSubGroups"])
        for one in stored["spec"]["subGroupPolicy"]
    ] == [("prefill", 2, 1), ("decode", 1, 1)]
    first = stored["spec"]["subGroupPolicy"][0]
    assert first["labelSelector"] == {
        "matchLabels": {f"{LABEL}/name": "m", f"{LABEL}/role": "prefill"}
    }
    assert first["matchLabelKeys"] == [f"{LABEL}/role-id"]


def test_pods_name_their_pod_group() -> None:
    world = on_volcano(gang(1, MIXED))
    annotations = world.pod("x-0-decode-1-0")["metadata"]["annotations"]
    assert annotations[GROUP] == "x-0"
    assert annotations["volcano.sh/task-spec"] == "decode-1"


def test_ms_t69_each_group_has_a_pod_group_before_its_pods() -> None:
    world = on_volcano(gang(2, MIXED))
    world.scale(3)
    kinds = [
        [action.child for action in stage if isinstance(action, Create)]
        for stage in stages(world.plan().actions)
    ]
    assert kinds[0] == [ChildKind.POD_GROUP]
    assert set(kinds[1]) == {ChildKind.POD}
    world.settle()
    assert world.pod_groups() == ["x-0", "x-1", "x-2"]
    assert {world.pod_group(name)["minMember"] for name in world.pod_groups()} == {4}


def test_pods_wait_for_a_pod_group_that_could_not_be_created() -> None:
    world = World(gang(2, MIXED))
    world.cluster = NEW
    actions = world.plan().actions
    failed = [one for one in actions if one.child is ChildKind.POD_GROUP and one.name == "x-0"]
    held = {one.name for one in actions if is_held(one, failed)}
    assert held == {
        one.name for one in actions if one.child is ChildKind.POD and one.name.startswith("x-0-")
    }


def test_ms_t70_the_queue_follows_the_annotation() -> None:
    """MS_D45: the annotation alone is changed, not the spec."""
    world = on_volcano(gang())
    assert world.pod_group("x-0")["queue"] == "default"
    seen = []
    for queue in ("blue", "red", None):
        annotations = {} if queue is None else {QUEUE: queue}
        world.document["metadata"]["annotations"] = annotations
        world.reconcile()
        seen.append(world.pod_group("x-0")["queue"])
        assert world.plan().actions == ()
    assert seen == ["blue", "red", "default"]


def test_ms_d45_a_queue_is_noticed_without_a_change_of_the_spec() -> None:
    world = on_volcano(gang())
    world.document["metadata"]["annotations"] = {QUEUE: "blue"}
    (action,) = world.plan().actions
    assert isinstance(action, Update)
    assert action.changes == {"spec": {"queue": "blue"}}


def test_ms_t71_the_network_topology_follows_the_spec() -> None:
    world = on_volcano(gang())
    assert "networkTopology" not in world.pod_group("x-0")
    level = {"mode": "soft", "highestTierAllowed": 2}
    world.apply(gang(networkTopology={"groupPolicy": level}))
    world.reconcile()
    assert world.pod_group("x-0")["networkTopology"] == level
    world.apply(gang(networkTopology={"groupPolicy": {"mode": "hard", "highestTierAllowed": 3}}))
    world.reconcile()
    changed = {"mode": "hard", "highestTierAllowed": 3}
    assert world.pod_group("x-0")["networkTopology"] == changed
    world.apply(gang())
    world.settle()
    assert "networkTopology" not in world.pod_group("x-0")
    assert world.created == ["x-0-prefill-0-0"]


@pytest.mark.parametrize(
    "flat", [{}, {"mode": "soft"}, {"highestTierAllowed": 3}, {"mode": "hard"}]
)
def test_the_first_shape_of_a_topology_is_the_policy_of_groups(flat: dict[str, Any]) -> None:
    """Ruling "networkTopology"; the tier of v0.1.0 is 1 by default."""
    world = on_volcano(gang(networkTopology=flat))
    expected = {"mode": "hard", "highestTierAllowed": 1, **flat} if flat else None
    assert world.pod_group("x-0").get("networkTopology") == expected


def test_a_topology_of_roles_holds_for_each_of_them() -> None:
    level = {"mode": "hard", "highestTierAllowed": 1}
    world = on_volcano(gang(1, MIXED, networkTopology={"rolePolicy": level}))
    policies = world.pod_group("x-0")["subGroupPolicy"]
    assert [one["networkTopology"] for one in policies] == [level, level]


def test_ms_d34_a_role_may_have_a_topology_of_its_own() -> None:
    own = {"mode": "soft", "highestTierAllowed": 2}
    roles = [role("prefill"), role("decode", networkTopology=own), role("proxy")]
    level = {"mode": "hard", "highestTierAllowed": 1}
    world = on_volcano(gang(1, roles, networkTopology={"rolePolicy": level}))
    policies = world.pod_group("x-0")["subGroupPolicy"]
    assert [one["networkTopology"] for one in policies] == [level, own, level]


def test_ms_t72_without_the_kind_nothing_of_it_is_done() -> None:
    world = on_volcano(gang(2))
    for name in world.pod_groups():
        del world.objects[ChildKind.POD_GROUP, name]
    world.cluster = MISSING
    assert world.plan().actions == ()
    world.scale(3)
    world.settle()
    assert world.pod_groups() == []
    assert GROUP not in world.pod("x-2-prefill-0-0")["metadata"]["annotations"]


def test_ms_t55_a_deleted_pod_group_comes_back() -> None:
    world = on_volcano(gang(2))
    del world.objects[ChildKind.POD_GROUP, "x-1"]
    (action,) = world.plan().actions
    assert (action.child, action.name) == (ChildKind.POD_GROUP, "x-1")
    world.settle()
    assert len(world.created) == 2


@pytest.mark.parametrize("cluster", [MISSING, NEW, NO_CLUSTER])
def test_ms_t86_another_scheduler_has_no_pod_groups(cluster: Any) -> None:
    document = gang(schedulerName="default-scheduler", gangPolicy={"minRoleReplicas": {}})
    world = on_volcano(document, cluster)
    assert world.pod_groups() == []
    assert GROUP not in world.pod("x-0-prefill-0-0")["metadata"]["annotations"]
    assert world.counts()[:2] == (1, 1)


def test_pod_groups_go_with_their_groups() -> None:
    world = on_volcano(gang(3))
    world.scale(1)
    deleted = {one.name: one.child for one in world.reconcile().actions}
    assert deleted["x-2"] is deleted["x-1"] is ChildKind.POD_GROUP
    world.settle()
    assert world.pod_groups() == ["x-0"]


def test_a_group_that_is_recreated_gets_a_new_pod_group() -> None:
    world = on_volcano(gang(1, MIXED, recoveryPolicy="ServingGroupRecreate"))
    uid = world.objects[ChildKind.POD_GROUP, "x-0"]["metadata"]["uid"]
    world.fail("x-0-decode-0-0")
    world.reconcile()
    assert world.pod_groups() == []
    world.settle()
    assert world.objects[ChildKind.POD_GROUP, "x-0"]["metadata"]["uid"] != uid


def test_a_group_whose_pods_come_back_keeps_its_pod_group() -> None:
    world = on_volcano(gang(2))
    uid = world.objects[ChildKind.POD_GROUP, "x-0"]["metadata"]["uid"]
    world.fail("x-0-prefill-0-0")
    world.settle()
    assert world.created[-1] == "x-0-prefill-0-0"
    assert world.objects[ChildKind.POD_GROUP, "x-0"]["metadata"]["uid"] == uid
    world.delete_pod("x-1-prefill-0-0")
    world.scale(1)
    world.settle()
    assert world.pod_groups() == ["x-0"]


def test_ms_d26_a_role_shrinks_below_its_minimum() -> None:
    policy = {"minRoleReplicas": {"decode": 3}}
    world = on_volcano(gang(1, [role("decode", 4)], gangPolicy=policy))
    assert world.pod_group("x-0")["minMember"] == 3
    world.apply(gang(1, [role("decode", 2)], gangPolicy=policy))
    world.settle()
    assert world.pod_group("x-0")["minMember"] == 2
    assert world.pod_group("x-0")["subGroupPolicy"][0]["minSubGroups"] == 2


def test_ms_d29_an_old_group_is_counted_by_its_own_templates() -> None:
    """The newest spec has more pods; a group that waits for its turn doesn't get them."""
    knobs = {"partition": 1}
    world = on_volcano(gang(2, [role(workers=1)], rollout=knobs))
    world.apply(gang(2, [role(workers=3), role("decode")], rollout=knobs))
    world.settle()
    sizes = [world.pod_group(name)["minMember"] for name in world.pod_groups()]
    assert sizes == [2, 5]
    assert len([name for name in world.pod_names() if name.startswith("x-0-")]) == 2


def test_ms_d29_replicas_of_two_sizes_are_not_overcounted() -> None:
    roles = [role(replicas=2, workers=1, partition=1, maxUnavailable=2)]
    world = on_volcano(gang(1, roles, by_role=True))
    bigger = [role(replicas=2, workers=2, partition=1, maxUnavailable=2)]
    world.apply(gang(1, bigger, by_role=True))
    world.settle()
    assert len(world.pod_names()) == 5
    assert world.pod_group("x-0")["minMember"] == 4


def test_ms_d30_limits_and_init_containers_count() -> None:
    built = template("1", "1Gi")
    engine = built["spec"]["containers"][0]
    engine["resources"]["limits"] = {"nvidia.com/gpu": "4", "cpu": "8"}
    loader = {"name": "load", "image": "l", "resources": {"requests": {"memory": "6Gi"}}}
    sidecar = {"name": "log", "image": "s", "resources": {"requests": {"cpu": "0.5"}}}
    sidecar["restartPolicy"] = "Always"
    built["spec"]["initContainers"] = [sidecar, loader]
    world = on_volcano(gang(1, [role(replicas=2, entryTemplate=built)]))
    assert world.pod_group("x-0")["minResources"] == {
        "cpu": "3",
        "memory": "12Gi",
        "nvidia.com/gpu": "8",
    }


def test_what_the_sandbox_of_a_pod_takes_counts() -> None:
    built = template("1", "1Gi")
    built["spec"]["overhead"] = {"memory": "1Mi"}
    world = on_volcano(gang(1, [role(replicas=2, entryTemplate=built)]))
    assert world.pod_group("x-0")["minResources"]["memory"] == "2050Mi"


def normalised(spec: dict[str, Any]) -> dict[str, Any]:
    """The same in other words: other units, empty fields left out, a default filled in."""
    other = copy.deepcopy(spec)
    other["minResources"] = {"cpu": "1000m", "memory": "2097152Ki"}
    other["queue"] = "default"
    other["priorityClassName"] = "high"
    for policy in other["subGroupPolicy"]:
        if policy["minSubGroups"] == 0:
            del policy["minSubGroups"]
    return other


@pytest.mark.parametrize("cluster", [NEW, Cluster(volcano=True)], ids=["schema", "no schema"])
def test_ms_d31_what_a_server_says_in_other_words_is_no_difference(cluster: Cluster) -> None:
    roles = [role("prefill", entryTemplate=template("1", "2Gi")), role("decode", 0)]
    world = on_volcano(gang(1, roles), cluster)
    stored = world.objects[ChildKind.POD_GROUP, "x-0"]
    stored["spec"] = normalised(stored["spec"])
    assert world.plan().actions == ()
    stored["spec"]["minResources"]["cpu"] = "1001m"
    (action,) = world.plan().actions
    assert isinstance(action, Update)
    assert action.changes["spec"]["minResources"]["cpu"] == "1"


@pytest.mark.parametrize("cluster", [OLD, NEW])
def test_ms_d31_a_resync_of_what_was_pruned_and_defaulted_does_nothing(cluster: Any) -> None:
    document = gang(
        2,
        MIXED,
        gangPolicy={"minRoleReplicas": {"decode": 1}},
        networkTopology={"groupPolicy": {"mode": "soft"}, "rolePolicy": {"highestTierName": "z"}},
    )
    world = on_volcano(document, cluster)
    assert world.plan().actions == ()


def test_an_update_holds_only_for_what_was_seen() -> None:
    world = on_volcano(gang())
    world.document["metadata"]["annotations"] = {QUEUE: "blue"}
    (action,) = world.plan().actions
    assert isinstance(action, Update)
    seen = world.objects[ChildKind.POD_GROUP, "x-0"]["metadata"]
    assert action.patch["metadata"] == {
        "uid": seen["uid"],
        "resourceVersion": seen["resourceVersion"],
    }
    seen["resourceVersion"] = "later"
    world.carry_out(action)
    assert world.pod_group("x-0")["queue"] == "default"


def take_over(world: World, name: str, kind: str, uid: str) -> None:
    """Give a PodGroup to another owner."""
    owner = world.objects[ChildKind.POD_GROUP, name]["metadata"]["ownerReferences"][0]
    owner |= {"kind": kind, "uid": uid}


def test_a_foreign_pod_group_is_waited_for_and_told() -> None:
    world = on_volcano(gang(2))
    take_over(world, "x-1", "Job", "job-1")
    for name in world.pod_names():
        if name.startswith("x-1-"):
            world.vanish(name)
    world.events.clear()
    planned = world.reconcile()
    assert planned.actions == ()
    assert planned.next_check_ms == world.now_ms + 1_000
    assert world.events == []
    assert world.condition("NameTaken")["reason"] == "ForeignPodGroup"
    assert "x-1" in world.condition("NameTaken")["message"]
    del world.objects[ChildKind.POD_GROUP, "x-1"]
    world.settle()
    assert world.pod_groups() == ["x-0", "x-1"]
    assert "NameTaken" not in world.true_conditions()


def test_a_pod_group_of_an_earlier_object_goes_first() -> None:
    world = on_volcano(gang(1))
    take_over(world, "x-0", "ModelServing", "before")
    world.vanish("x-0-prefill-0-0")
    (action,) = world.reconcile().actions
    assert (action.child, action.motive.reason) == (ChildKind.POD_GROUP, Reason.ORPHANED)
    world.settle()
    assert world.pod_groups() == ["x-0"]
    assert len(world.pod_names()) == 1


def test_ms_d47_only_what_this_object_owns_is_deleted() -> None:
    """A pod with all the group's labels that belongs to something else outlives the group."""
    world = on_volcano(gang(2))
    stranger = copy.deepcopy(world.pod("x-1-prefill-0-0"))
    job = {"kind": "Job", "name": "x", "uid": "job-1", "controller": True}
    other = {"uid": "other", "ownerReferences": [job]}
    stranger["metadata"] |= {"name": "x-1-prefill-9-0", **other}
    world.objects[ChildKind.POD, "x-1-prefill-9-0"] = stranger
    foreign = copy.deepcopy(world.objects[ChildKind.POD_GROUP, "x-1"])
    foreign["metadata"] |= {"name": "x-7", **other}
    world.objects[ChildKind.POD_GROUP, "x-7"] = foreign
    world.scale(0)
    world.settle()
    assert world.pod_names() == ["x-1-prefill-9-0"]
    assert world.pod_groups() == ["x-7"]
