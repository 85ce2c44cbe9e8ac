"""Groups that start in steps (defect MS_D41; LeaderWorkerSet's startupPolicy)."""

import pytest
from workload_builders import leader_worker_set, role, serving
from workload_volcano import NEW
from workload_world import World

from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.resources.annotations import STARTUP_ORDER
from inferbus_workload_reconciler.policy_parsing import parse_workload

ROLES = [role("prefill", 2, workers=1), role("decode")]


def ordered(order: str, replicas: int = 1, scheduler: str = "other") -> World:
    annotations = {STARTUP_ORDER: order}
    return World(serving(replicas, ROLES, annotations=annotations, schedulerName=scheduler))


def test_ms_d41_workers_wait_for_their_entry_to_be_ready() -> None:
    world = ordered("entry-first")
    world.reconcile()
    entries = ["x-0-decode-0-0", "x-0-prefill-0-0", "x-0-prefill-1-0"]
    assert world.pod_names() == entries
    world.reconcile()
    assert world.pod_names() == entries
    world.start("x-0-prefill-1-0")
    world.reconcile()
    assert world.pod_names() == [*entries, "x-0-prefill-1-1"]
    world.settle()
    assert world.counts() == (1, 1, 1, 1)
    assert len(world.created) == 5


def test_ms_d41_a_role_waits_for_those_before_it_to_run() -> None:
    world = ordered("roles-in-order")
    world.reconcile()
    assert [name for name in world.pod_names() if "decode" in name] == []
    assert len(world.pod_names()) == 4
    world.start("x-0-prefill-0-0", "x-0-prefill-0-1", "x-0-prefill-1-0")
    world.reconcile()
    assert [name for name in world.pod_names() if "decode" in name] == []
    world.start("x-0-prefill-1-1")
    world.reconcile()
    assert "x-0-decode-0-0" in world.pod_names()


def test_both_orders_together() -> None:
    world = ordered("entry-first, roles-in-order")
    world.reconcile()
    assert world.pod_names() == ["x-0-prefill-0-0", "x-0-prefill-1-0"]
    world.settle()
    assert len(world.created) == 5


def test_without_an_order_everything_starts_at_once() -> None:
    world = World(serving(1, ROLES))
    world.reconcile()
    assert len(world.pod_names()) == 5


def test_what_runs_stays_whatever_becomes_of_what_it_waited_for() -> None:
    world = ordered("entry-first,roles-in-order")
    world.settle()
    world.fail("x-0-prefill-0-0")
    world.reconcile()
    assert not world.deleting("x-0-decode-0-0")
    assert not world.deleting("x-0-prefill-1-1")
    world.settle()
    assert world.counts() == (1, 1, 1, 1)


def test_groups_do_not_wait_for_each_other() -> None:
    world = ordered("entry-first", replicas=2)
    world.reconcile()
    world.start("x-1-prefill-0-0")
    world.reconcile()
    assert "x-1-prefill-0-1" in world.pod_names()
    assert "x-0-prefill-0-1" not in world.pod_names()


def test_a_gang_starts_at_once_and_says_so() -> None:
    """None of it would be scheduled before all of it exists."""
    world = ordered("entry-first,roles-in-order", scheduler="volcano")
    world.cluster = NEW
    world.reconcile()
    assert len(world.pod_names()) == 5
    assert world.condition("StartupOrderIgnored")["status"] == "True"


@pytest.mark.parametrize(("policy", "first"), [("LeaderReady", 1), ("LeaderCreated", 3)])
def test_the_startup_policy_of_a_leader_worker_set(policy: str, first: int) -> None:
    document = leader_worker_set(1, size=3)
    document["spec"]["startupPolicy"] = policy
    world = World(document)
    world.reconcile()
    assert len(world.pod_names()) == first
    world.settle()
    assert len(world.pod_names()) == 3


def test_an_unknown_order_is_refused_with_its_field() -> None:
    with pytest.raises(ProblemsError) as caught:
        parse_workload(serving(annotations={STARTUP_ORDER: "last-first"}))
    assert caught.value.problems[0].field == f"metadata.annotations.{STARTUP_ORDER}"
