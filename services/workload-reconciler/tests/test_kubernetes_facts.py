"""What pods on Kubernetes say of themselves, and what follows (modelserving spec 3.10, 3.11)."""

from typing import Any

import pytest
from workload_builders import role, serving
from workload_world import World

from inferbus_workload_reconciler.observed import observe_pod


def pod(status: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "x-0-prefill-0-0", "uid": "1", **metadata},
        "spec": {"readinessGates": [{"conditionType": "example.com/warm"}], "containers": []},
        "status": status,
    }


def conditions(**values: str) -> list[dict[str, Any]]:
    return [{"type": name, "status": value} for name, value in values.items()]


@pytest.mark.parametrize(
    ("phase", "ready", "expected"),
    [
        ("Running", "True", True),
        ("Running", "False", False),
        ("Running", "Unknown", False),
        ("Pending", "True", False),
        ("Succeeded", "True", False),
    ],
)
def test_readiness_is_the_condition_that_counts_gates(
    phase: str, ready: str, expected: bool
) -> None:
    """Containers may be ready while a gate isn't."""
    status = {"phase": phase, "conditions": conditions(ContainersReady="True", Ready=ready)}
    assert observe_pod(pod(status)).ready is expected


@pytest.mark.parametrize("phase", ["Succeeded", "Unknown"])
@pytest.mark.parametrize("policy", ["RoleRecreate", "ServingGroupRecreate", "None"])
def test_a_pod_that_ended_well_or_is_not_heard_of_is_left_alone(phase: str, policy: str) -> None:
    """It isn't available, but its node may come back, and what it said may be an end."""
    world = World(serving(2, recoveryPolicy=policy))
    world.settle()
    world.fail("x-1-prefill-0-0", phase)
    assert world.reconcile().actions == ()
    assert world.counts()[:2] == (2, 1)


@pytest.mark.parametrize(
    ("policy", "replaced"),
    [
        ("RoleRecreate", {"x-0-decode-0-0"}),
        ("ServingGroupRecreate", {"x-0-decode-0-0", "x-0-prefill-0-0"}),
    ],
)
def test_an_evicted_pod_is_a_failed_one(policy: str, replaced: set[str]) -> None:
    """Evicted by its kubelet it stays as an object, phase Failed; by the API it is deleted."""
    document = serving(1, [role("prefill"), role("decode")], recoveryPolicy=policy)
    for by_kubelet in (True, False):
        world = World(document)
        world.settle()
        before = {name: world.uid(name) for name in world.pod_names()}
        if by_kubelet:
            world.fail("x-0-decode-0-0")
            world.pod("x-0-decode-0-0")["status"]["reason"] = "Evicted"
        else:
            world.delete_pod("x-0-decode-0-0")
        world.settle()
        assert {name for name in before if world.uid(name) != before[name]} == replaced


def test_a_drain_of_many_pods_ends_in_the_same_fleet() -> None:
    world = World(serving(3, [role(workers=1)]))
    world.settle()
    for name in world.pod_names():
        if name.endswith("-1"):
            world.delete_pod(name)
    world.settle()
    assert world.counts() == (3, 3, 3, 3)
    assert len(world.pod_names()) == 6


def test_a_node_that_is_lost_and_comes_back_takes_nothing_with_it() -> None:
    """Only pods whose deletion is due are forced; those that run there are not touched."""
    world = World(serving(2))
    world.settle()
    world.lost_nodes = frozenset({"n1"})
    assert world.reconcile().actions == ()
    world.delete_pod("x-1-prefill-0-0")
    deletion = world.reconcile().actions
    assert [one.name for one in deletion] == ["x-1-prefill-0-0"]
    world.lost_nodes = frozenset()
    world.settle()
    assert world.counts() == (2, 2, 2, 2)
