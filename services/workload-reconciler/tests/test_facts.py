"""What the bus is told about a workload, and what is read from pod objects."""

from typing import Any

import pytest
from workload_builders import leader_worker_set, pod_template, role, serving
from workload_world import START_MS, World

from inferbus_contracts.events.workload import WorkloadObserved
from inferbus_workload_reconciler.observed import Cluster, observe_pod, observe_service
from inferbus_workload_reconciler.policy_facts import observed_facts
from inferbus_workload_reconciler.policy_parsing import parse_workload


def facts(world: World, **options: Any) -> WorkloadObserved:
    return observed_facts(parse_workload(world.document), world.plan(), **options)


def test_a_settled_workload() -> None:
    world = World(serving(2, [role(replicas=2, workers=1), role("decode")]))
    world.settle()
    told = facts(world)
    assert (told.uid, told.generation, told.desired) == ("ms-1", 1, 2)
    assert (told.replicas, told.ready, told.updated) == (2, 2, 2)
    assert told.current_revision == told.update_revision == world.status["updateRevision"]
    assert told.label_selector == world.status["labelSelector"]
    assert [(one.name, one.ordinal, one.ready) for one in told.groups] == [
        ("x-0", 0, True),
        ("x-1", 1, True),
    ]
    assert [(one.name, one.desired, one.ready) for one in told.roles] == [
        ("prefill", 2, 4),
        ("decode", 1, 2),
    ]
    assert len(told.pods) == 10
    assert told.problem == ""


def test_one_pod() -> None:
    template = pod_template("a", annotations={"inferbus.dev/port": "8000", "other": "1"})
    ports = [{"containerPort": 8100}, {"containerPort": 8000}]
    template["spec"]["containers"][0]["ports"] = ports
    world = World(serving(1, [role(entryTemplate=template)]))
    world.settle()
    world.now_ms += 5000
    world.pod("x-0-prefill-0-0")["status"]["podIP"] = "127.3.0.9"
    uid = world.uid("x-0-prefill-0-0")
    (pod,) = facts(world, models={uid: ["llama", "adapter"]}).pods
    assert (pod.name, pod.uid, pod.phase, pod.ready) == ("x-0-prefill-0-0", uid, "Running", True)
    assert (pod.address, pod.ports, pod.node) == ("127.3.0.9", [8000, 8100], "n1")
    assert (pod.role, pod.role_id, pod.group, pod.entry) == ("prefill", "prefill-0", "x-0", True)
    assert pod.annotations == {"inferbus.dev/port": "8000"}
    assert pod.labels["modelserving.volcano.sh/role"] == "prefill"
    assert pod.models == ["llama", "adapter"]
    assert (pod.starting_since_ms, pod.ready_since_ms) == (START_MS, START_MS)
    assert not pod.failed


def test_facts_speak_of_what_is_there_and_not_of_what_is_planned() -> None:
    world = World(serving(3))
    assert facts(world).replicas == 0
    world.settle()
    world.scale(1)
    told = facts(world)
    assert (told.desired, told.replicas, told.ready) == (1, 3, 3)
    assert not any(group.deleting for group in told.groups)
    world.reconcile()
    told = facts(world)
    assert [group.deleting for group in told.groups] == [False, True, True]
    assert [pod.deleting for pod in told.pods] == [False, True, True]


def test_a_failing_pod_and_what_keeps_the_workload_back() -> None:
    world = World(serving(1, grace_seconds=60))
    world.cluster = Cluster(volcano=False)
    world.settle()
    world.crash("x-0-prefill-0-0")
    world.reconcile()
    told = facts(world, frozen=True)
    assert (told.pods[0].failed, told.pods[0].restarts) == (True, 1)
    assert "volcano" in told.problem
    assert told.frozen


def test_groups_of_a_leader_worker_set_have_no_roles() -> None:
    world = World(leader_worker_set(2, size=2))
    world.settle()
    told = facts(world)
    assert told.roles == []
    assert [(pod.name, pod.role, pod.entry) for pod in told.pods] == [
        ("p-0", "", True),
        ("p-0-1", "", False),
        ("p-1", "", True),
        ("p-1-1", "", False),
    ]
    assert told.label_selector == (
        "leaderworkerset.sigs.k8s.io/name=p,leaderworkerset.sigs.k8s.io/worker-index=0"
    )


def pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "uid": "1"}, "spec": {}, "status": status}


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}, True),
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}, False),
        ({"phase": "Running"}, False),
        ({"phase": "Failed", "conditions": [{"type": "Ready", "status": "True"}]}, False),
        ({}, False),
    ],
)
def test_a_pod_is_ready_when_it_runs_and_says_so(status: dict[str, Any], ready: bool) -> None:
    assert observe_pod(pod(**status)).ready is ready


def test_ms_d13_restarts_of_sidecars_do_not_count() -> None:
    """Mutant: no sidecars in `_restarts`."""
    observed = pod(
        containerStatuses=[{"name": "engine", "restartCount": 2}],
        initContainerStatuses=[
            {"name": "download", "restartCount": 1},
            {"name": "proxy", "restartCount": 9},
        ],
    )
    init = [{"name": "download"}, {"name": "proxy", "restartPolicy": "Always"}]
    observed["spec"] = {"initContainers": init}
    assert observe_pod(observed).restarts == 3


@pytest.mark.parametrize(
    ("text", "cost"), [("100", 100), ("-100", -100), ("much", 0), ("", 0), ("1.5", 0)]
)
def test_deletion_costs(text: str, cost: int) -> None:
    observed = pod()
    key = "controller.kubernetes.io/pod-deletion-cost"
    observed["metadata"]["annotations"] = {key: text}
    assert observe_pod(observed).deletion_cost == cost


def test_only_the_controlling_owner_counts() -> None:
    observed = pod()
    references = [
        {"kind": "Other", "name": "o", "uid": "2"},
        {"kind": "ModelServing", "name": "x", "uid": "1", "controller": True},
    ]
    observed["metadata"]["ownerReferences"] = references
    owner = observe_service(observed).owner
    assert owner is not None
    assert (owner.kind, owner.name, owner.uid) == ("ModelServing", "x", "1")


CREATED = "2026-01-01T00:00:00Z"
CREATED_MS = 1_767_225_600_000
LATER = "2026-01-01T00:00:07Z"


def pending(status: dict[str, Any], node: str = "n1") -> int | None:
    metadata = {"name": "x", "uid": "u", "creationTimestamp": CREATED}
    spec = {"nodeName": node} if node else {}
    return observe_pod({"metadata": metadata, "spec": spec, "status": status}).unplaced_since_ms


def waiting(reason: str, **fields: Any) -> dict[str, Any]:
    container = {"name": "c", "state": {"waiting": {"reason": reason}}, **fields}
    return {"phase": "Pending", "containerStatuses": [container]}


@pytest.mark.parametrize(
    ("status", "node", "since_ms"),
    [
        ({}, "", CREATED_MS),
        ({}, "n1", None),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False"}]},
            "",
            CREATED_MS,
        ),
        (
            {
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "lastTransitionTime": LATER}
                ]
            },
            "",
            CREATED_MS + 7000,
        ),
        ({"phase": "Pending", "reason": "NoAddress"}, "n1", CREATED_MS),
        (waiting("ContainerCreating"), "n1", None),
        (waiting("PodInitializing"), "n1", None),
        (waiting("CreateContainerError"), "n1", CREATED_MS),
        (waiting("CrashLoopBackOff", restartCount=2), "n1", None),
        ({"phase": "Running"}, "n1", None),
    ],
    ids=[
        "no node",
        "with a node",
        "not scheduled",
        "not scheduled since",
        "not prepared",
        "image on its way",
        "model on its way",
        "cannot start",
        "ran before",
        "runs",
    ],
)
def test_since_when_no_node_takes_a_pod_up(
    status: dict[str, Any], node: str, since_ms: int | None
) -> None:
    assert pending(status, node) == since_ms
