"""What is kept of a cluster's objects."""

from typing import Any

from workload_builders import pod_template, serving
from workload_world import World

from inferbus_contracts.leader_worker_sets import LeaderWorkerSets, controller_sign
from inferbus_workload_reconciler.actions import ChildKind
from inferbus_workload_reconciler.core import plan
from inferbus_workload_reconciler.observed import Observed, ObservedPod, observe_pod
from inferbus_workload_reconciler.policy_facts import observed_facts
from inferbus_workload_reconciler.policy_kept import (
    Reader,
    is_out_of_service,
    read_leader_worker_set,
    read_status,
)
from inferbus_workload_reconciler.policy_memory import parse_memory
from inferbus_workload_reconciler.policy_parsing import parse_workload
from inferbus_workload_reconciler.policy_revisions import parse_history

NAME = "modelserving.volcano.sh/name"


def settled_world() -> World:
    template = pod_template("a")
    template["spec"]["containers"][0]["ports"] = [{"containerPort": 8000}]
    role = {"name": "prefill", "replicas": 2, "workerReplicas": 0, "entryTemplate": template}
    world = World(serving(2, [role]))
    world.settle()
    for number, (kind, name) in enumerate(world.objects):
        if kind is ChildKind.POD:
            world.pod(name)["metadata"]["resourceVersion"] = str(number + 1)
    return world


def pods_of(world: World) -> list[dict[str, Any]]:
    return [world.pod(name) for name in world.pod_names()]


def test_a_plan_and_its_facts_are_the_same_from_what_is_kept() -> None:
    world = settled_world()
    world.fail(world.pod_names()[0])
    workload = parse_workload(world.document)

    def planned(pods: tuple[ObservedPod, ...]) -> tuple[Any, Any]:
        made = plan(
            workload,
            parse_history(world.revisions(), workload),
            Observed(revision=9, pods=pods),
            parse_memory(world.memory, world.status),
            world.status,
            world.now_ms,
        )
        return made.actions, observed_facts(workload, made)

    whole = tuple(map(observe_pod, pods_of(world)))
    reader = Reader(NAME)
    kept = tuple(reader.pod(pod).value for pod in pods_of(world))
    assert planned(kept) == planned(whole)
    assert planned(whole)[0], "something is done about the failed pod"


def test_what_is_alike_is_kept_once() -> None:
    reader = Reader(NAME)
    one, other = (reader.pod(pod).value for pod in pods_of(settled_world())[:2])
    assert one.spec is other.spec
    assert one.owner is other.owner
    key = "modelserving.volcano.sh/revision"
    assert one.labels[key] is other.labels[key]


def test_a_child_is_known_by_its_workload_and_revision() -> None:
    child = Reader(NAME).pod(pods_of(settled_world())[0])
    assert child.workload == "x"
    assert child.revision >= 1


def test_only_the_platform_s_annotations_are_kept() -> None:
    pod = pods_of(settled_world())[0]
    pod["metadata"]["annotations"] = {
        "inferbus.dev/engine-port": "8000",
        "controller.kubernetes.io/pod-deletion-cost": "7",
        "cni.example/status": "x" * 1000,
    }
    kept = Reader(NAME).pod(pod).value
    assert kept.annotations == {"inferbus.dev/engine-port": "8000"}
    assert kept.deletion_cost == 7


def test_a_node_is_lost_when_it_is_marked_so() -> None:
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    assert is_out_of_service({"spec": {"taints": [taint]}})
    assert not is_out_of_service({"spec": {"taints": [{"key": "other"}]}})
    assert not is_out_of_service({})


def test_of_an_object_its_status_is_kept() -> None:
    metadata = {"uid": "u", "resourceVersion": "5"}
    kept = read_status({"metadata": metadata, "status": {"replicas": 1}})
    assert (kept.uid, kept.revision, kept.status) == ("u", 5, {"replicas": 1})
    assert (kept.owner_uid, kept.origin) == ("", {})
    owner = {"kind": "LeaderWorkerSet", "name": "p", "uid": "o", "controller": True}
    assert read_status({"metadata": {**metadata, "ownerReferences": [owner]}}).owner_uid == "o"


def test_of_a_leader_worker_set_it_is_kept_who_runs_it() -> None:
    managed = [
        {"manager": "lws", "subresource": "status", "fieldsV1": {"f:status": {}}},
        {"manager": "kubectl", "fieldsV1": {"f:spec": {}}},
    ]
    metadata = {"name": "p", "uid": "u", "resourceVersion": "5", "managedFields": managed}
    kept = read_leader_worker_set({"metadata": metadata, "spec": {"replicas": 1}})
    assert controller_sign(LeaderWorkerSets.AUTO, "", [kept.origin]) == "lws writes the status of p"
    assert "spec" not in kept.origin
    assert "fieldsV1" not in str(kept.origin)
