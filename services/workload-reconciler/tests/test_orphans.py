"""Pods of earlier objects, of others, and on lost nodes (spec 3.6, 3.11; T56)."""

from workload_builders import pod_template, role, serving
from workload_recoveries import settled
from workload_world import World

from inferbus_workload_reconciler.actions import ChildKind, Delete, Reason


def test_ms_t56_a_pod_of_an_earlier_object_makes_way() -> None:
    roles = [role(workerTemplate=pod_template("w"))]
    world = World(serving(1, roles, uid="old", schedulerName="other"))
    world.settle()
    service = world.objects[ChildKind.SERVICE, "x-0-prefill-0-0"]["metadata"]["uid"]
    old = world.uid("x-0-prefill-0-0")
    world.document["metadata"]["uid"] = "new"
    world.memory, world.status = {}, {}
    planned = world.reconcile()
    assert planned.next_check_ms == world.now_ms + 1000
    assert [
        (one.name, one.motive.reason) for one in planned.actions if isinstance(one, Delete)
    ] == [
        (f"x-{planned.summary.update_revision}", Reason.ORPHANED),
        ("x-0-prefill-0-0", Reason.ORPHANED),
        ("x-0-prefill-0-0", Reason.ORPHANED),
    ]
    world.settle()
    assert world.uid("x-0-prefill-0-0") != old
    assert world.objects[ChildKind.SERVICE, "x-0-prefill-0-0"]["metadata"]["uid"] != service
    assert world.counts() == (1, 1, 1, 1)


def test_ms_d18_pods_of_others_never_count_and_are_never_deleted() -> None:
    """Mutant: drop the owner's test in `place_pods`."""
    world = World(serving(1, uid="old", schedulerName="other"))
    world.settle()
    world.document["metadata"]["uid"] = "new"
    (pod,) = world.pod_names()
    owner = {"kind": "ReplicaSet", "name": "x", "uid": "other", "controller": True}
    world.pod(pod)["metadata"]["ownerReferences"] = [owner]
    world.memory, world.status = {}, {}
    planned = world.reconcile()
    assert not world.deleting(pod)
    assert planned.summary.available == 0
    assert world.condition("NameTaken")["status"] == "True"
    assert pod in world.condition("NameTaken")["message"]
    world.vanish(pod)
    world.settle()
    assert world.condition("NameTaken")["status"] == "False"
    assert world.counts() == (1, 1, 1, 1)


def test_ms_d19_pods_on_a_lost_node_make_way() -> None:
    """Mutant: no forced deletions in `_pod_deletions`."""
    world = settled()
    world.delete_pod("x-0-decode-0-0")
    world.now_ms += 1000
    assert world.reconcile().actions == ()
    world.lost_nodes = frozenset({"n1"})
    (forced,) = world.reconcile().actions
    assert isinstance(forced, Delete)
    assert (forced.grace_period_seconds, forced.motive.reason) == (0, Reason.NODE_LOST)
    world.settle()
    assert world.counts() == (1, 1, 1, 1)


def test_a_pod_on_a_lost_node_gets_its_grace_period_first() -> None:
    world = settled(groups=2)
    world.scale(1)
    world.lost_nodes = frozenset({"n1"})
    world.reconcile()
    planned = world.reconcile()
    assert planned.actions == ()
    assert planned.next_check_ms == world.now_ms + 30_000
