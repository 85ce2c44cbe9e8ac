"""Headless services (modelserving spec 2.6, 3.3; T51 to T54)."""

from workload_builders import role, serving
from workload_world import World

from inferbus_workload_reconciler.actions import ChildKind, Reason

WITH_WORKERS = [role(workers=1)]


def settled(groups: int = 1) -> World:
    world = World(serving(groups, WITH_WORKERS))
    world.settle()
    return world


def test_a_service_is_headless_and_publishes_pods_that_are_not_ready() -> None:
    world = settled()
    service = world.objects[ChildKind.SERVICE, "x-0-prefill-0-0"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert "ports" not in service["spec"]
    assert service["metadata"]["labels"]["modelserving.volcano.sh/name"] == "x"


def test_ms_t51_services_go_with_their_groups() -> None:
    world = settled(3)
    assert len(world.services()) == 3
    world.scale(1)
    world.settle()
    assert world.services() == ["x-0-prefill-0-0"]


def test_services_go_with_their_role_replicas() -> None:
    world = World(serving(1, [role(replicas=2, workers=1)]))
    world.settle()
    world.apply(serving(1, WITH_WORKERS))
    world.settle()
    assert world.services() == ["x-0-prefill-0-0"]


def test_ms_t52_a_deleted_service_comes_back_and_the_workload_stays_ready() -> None:
    world = settled()
    uid = world.objects[ChildKind.SERVICE, "x-0-prefill-0-0"]["metadata"]["uid"]
    del world.objects[ChildKind.SERVICE, "x-0-prefill-0-0"]
    planned = world.reconcile()
    assert [one.motive.reason for one in planned.actions] == [Reason.SERVICE_MISSING]
    assert world.true_conditions() == ["Available"]
    assert world.objects[ChildKind.SERVICE, "x-0-prefill-0-0"]["metadata"]["uid"] != uid


def test_ms_t53_nothing_on_its_way_out_gets_a_service() -> None:
    world = settled(2)
    world.scale(1)
    world.reconcile()
    world.reconcile()
    assert world.services() == ["x-0-prefill-0-0"]
    world.delete_pod("x-0-prefill-0-0")
    world.delete_pod("x-0-prefill-0-1")
    del world.objects[ChildKind.SERVICE, "x-0-prefill-0-0"]
    world.reconcile()
    assert world.services() == []


def test_ms_t54_a_service_that_could_not_be_created_is_tried_again() -> None:
    world = World(serving(1, WITH_WORKERS))
    world.reconcile(keep=lambda action: action.child is not ChildKind.SERVICE)
    world.start()
    world.reconcile()
    assert world.services() == ["x-0-prefill-0-0"]


def test_a_service_survives_the_recovery_of_its_pods() -> None:
    world = settled()
    uid = world.objects[ChildKind.SERVICE, "x-0-prefill-0-0"]["metadata"]["uid"]
    world.crash("x-0-prefill-0-1")
    world.settle()
    assert world.objects[ChildKind.SERVICE, "x-0-prefill-0-0"]["metadata"]["uid"] == uid


def test_services_of_others_are_left_alone() -> None:
    world = settled()
    service = world.objects[ChildKind.SERVICE, "x-0-prefill-0-0"]
    for name, owner in (
        ("x-9-prefill-0-0", {"kind": "Other", "uid": "other"}),
        ("x-lb", {"uid": "ms-1"}),
        ("x-old-lb", {"uid": "old"}),
    ):
        metadata = {**service["metadata"], "name": name, "uid": name}
        metadata["ownerReferences"] = [{**metadata["ownerReferences"][0], **owner}]
        world.objects[ChildKind.SERVICE, name] = {**service, "metadata": metadata}
    world.settle()
    assert world.services() == ["x-0-prefill-0-0", "x-9-prefill-0-0", "x-lb", "x-old-lb"]


def test_a_service_that_outlived_its_group_is_removed() -> None:
    world = settled(2)
    world.scale(1)
    world.reconcile(keep=lambda action: action.child is ChildKind.POD)
    world.finish_deletions()
    assert len(world.services()) == 2
    world.settle()
    assert world.services() == ["x-0-prefill-0-0"]


def test_a_service_goes_when_its_role_has_no_workers_any_more() -> None:
    world = World(serving(1, WITH_WORKERS))
    world.settle()
    world.apply(serving(1, [role()]))
    world.settle()
    assert world.services() == []
