"""What failed comes back (modelserving spec 3.11, 3.12; T33, T43 to T50, T56, T57, T84)."""

from typing import Any

import pytest
from workload_builders import observed_pod, pod_template, role, serving, workload
from workload_world import World

from inferbus_workload_reconciler.actions import ChildKind, Delete, Reason
from inferbus_workload_reconciler.policy_memory import Failing, Memory, Setback
from inferbus_workload_reconciler.policy_recovery import (
    LONGEST_DELAY_MS,
    RECOVERED_AFTER_MS,
    budget_spent,
    delay_ms,
    is_broken,
    review_failures,
)
from inferbus_workload_reconciler.workload import ReplicaId

TWO_ROLES = [role(workers=1), role("decode")]


def settled(policy: str = "RoleRecreate", groups: int = 1, **fields: Any) -> World:
    world = World(serving(groups, TWO_ROLES, recoveryPolicy=policy, **fields))
    world.settle()
    return world


def uids(world: World) -> dict[str, str]:
    return {name: world.uid(name) for name in world.pod_names()}


def replaced(before: dict[str, str], world: World) -> set[str]:
    after = uids(world)
    assert after.keys() == before.keys()
    return {name for name in after if after[name] != before[name]}


PREFILL = {"x-0-prefill-0-0", "x-0-prefill-0-1"}
DECODE = {"x-0-decode-0-0"}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        pytest.param("ServingGroupRecreate", PREFILL | DECODE, id="MS_T43"),
        pytest.param("RoleRecreate", PREFILL, id="MS_T44"),
        pytest.param("None", {"x-0-prefill-0-1"}, id="MS_T84"),
    ],
)
@pytest.mark.parametrize("at_once", [True, False], ids=["vanishes", "is being deleted"])
def test_a_lost_pod_takes_with_it_what_the_policy_names(
    policy: str, expected: set[str], at_once: bool
) -> None:
    world = settled(policy)
    before = uids(world)
    if at_once:
        world.vanish("x-0-prefill-0-1")
    else:
        world.delete_pod("x-0-prefill-0-1")
    world.settle()
    assert replaced(before, world) == expected
    assert world.counts() == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("ServingGroupRecreate", PREFILL | DECODE), ("RoleRecreate", DECODE), ("None", DECODE)],
)
def test_a_lost_role_replica_is_told_from_one_that_never_was(
    policy: str, expected: set[str]
) -> None:
    world = settled(policy)
    before = uids(world)
    world.vanish("x-0-decode-0-0")
    world.settle()
    assert replaced(before, world) == expected


@pytest.mark.parametrize("policy", ["ServingGroupRecreate", "RoleRecreate", "None"])
def test_a_role_that_grows_is_no_loss(policy: str) -> None:
    world = settled(policy)
    before = uids(world)
    grown = [role(workers=1), role("decode", replicas=3)]
    world.apply(serving(1, grown, recoveryPolicy=policy))
    world.reconcile(keep=lambda action: "decode-1" in action.name)
    world.settle()
    assert {name: world.uid(name) for name in before} == before
    assert len(world.pod_names()) == 5


@pytest.mark.parametrize("policy", ["ServingGroupRecreate", "RoleRecreate", "None"])
def test_a_role_that_shrinks_and_grows_again_is_no_loss(policy: str) -> None:
    both = [role(), role("decode", replicas=2, workers=1)]
    world = World(serving(1, both, recoveryPolicy=policy))
    world.settle()
    kept = {name: world.uid(name) for name in world.pod_names() if "decode-1" not in name}
    small = [role(), role("decode", workers=1)]
    world.apply(serving(1, small, recoveryPolicy=policy))
    world.reconcile(keep=lambda action: action.name == "x-0-decode-1-0")
    world.apply(serving(1, both, recoveryPolicy=policy))
    world.settle()
    assert {name: world.uid(name) for name in kept} == kept
    assert len(world.pod_names()) == 5


@pytest.mark.parametrize("policy", ["ServingGroupRecreate", "RoleRecreate"])
def test_a_recreation_that_was_cut_short_is_finished(policy: str) -> None:
    world = settled(policy)
    before = uids(world)
    world.vanish("x-0-prefill-0-1")
    world.reconcile(keep=lambda action: False)
    world.settle()
    assert replaced(before, world) >= PREFILL


def test_nothing_is_lost_when_the_memory_is() -> None:
    world = settled("ServingGroupRecreate")
    before = uids(world)
    world.memory = {}
    world.vanish("x-0-prefill-0-1")
    world.settle()
    assert replaced(before, world) == {"x-0-prefill-0-1"}


def test_ms_t48_a_restarted_pod_that_is_not_ready_is_deleted_at_once() -> None:
    world = settled()
    world.crash("x-0-prefill-0-1")
    uid = world.uid("x-0-prefill-0-1")
    planned = world.reconcile()
    deletion = next(one for one in planned.actions if one.name == "x-0-prefill-0-1")
    assert isinstance(deletion, Delete)
    assert (deletion.uid, deletion.motive.reason) == (uid, Reason.POD_FAILED)
    assert "1 restarts" in deletion.motive.cause
    assert world.status["availableReplicas"] == 0


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("ServingGroupRecreate", PREFILL | DECODE), ("RoleRecreate", PREFILL), ("None", set())],
)
def test_a_failed_pod_takes_with_it_what_the_policy_names(policy: str, expected: set[str]) -> None:
    world = settled(policy)
    before = uids(world)
    world.crash("x-0-prefill-0-0")
    world.reconcile()
    world.finish_deletions()
    world.reconcile()
    assert replaced(before, world) == expected


def test_ms_d2_with_policy_none_a_broken_pod_is_left_to_the_kubelet() -> None:
    world = settled("None")
    world.fail("x-0-decode-0-0")
    world.crash("x-0-prefill-0-0")
    planned = world.reconcile()
    assert planned.actions == ()
    assert world.status["availableReplicas"] == 0


def test_ms_d2_with_policy_none_an_absent_pod_is_refilled_alone() -> None:
    """Mutant: recreate whatever the policy in `decide_members`."""
    world = settled("None")
    before = uids(world)
    world.vanish("x-0-prefill-0-1")
    world.settle()
    assert replaced(before, world) == {"x-0-prefill-0-1"}


def test_a_restarted_pod_that_is_ready_again_is_no_failure() -> None:
    world = settled()
    world.crash("x-0-prefill-0-1")
    world.start("x-0-prefill-0-1")
    assert world.reconcile().actions == ()


@pytest.mark.parametrize("phase", ["Succeeded", "Unknown", "Pending"])
def test_phases_that_are_no_failure(phase: str) -> None:
    world = settled()
    world.fail("x-0-prefill-0-1", phase)
    assert world.reconcile().actions == ()
    assert world.status["availableReplicas"] == 0


def test_ms_t49_pods_that_failed_before_the_start_are_handled() -> None:
    world = World(serving(2, TWO_ROLES))
    world.reconcile()
    world.start()
    world.fail("x-0-decode-0-0")
    world.crash("x-1-decode-0-0")
    before = uids(world)
    world.memory = {}
    world.settle()
    assert replaced(before, world) == {"x-0-decode-0-0", "x-1-decode-0-0"}


def test_ms_t47_the_grace_period_ends_for_the_pod_that_failed_and_no_other() -> None:
    world = settled(grace_seconds=60)
    world.fail("x-0-decode-0-0")
    planned = world.reconcile()
    assert planned.actions == ()
    assert planned.next_check_ms == world.now_ms + 60_000
    world.vanish("x-0-decode-0-0")
    world.settle()
    replacement = world.uid("x-0-decode-0-0")
    world.now_ms += 60_000
    world.settle()
    assert world.uid("x-0-decode-0-0") == replacement


def test_a_pod_that_recovers_within_the_grace_period_stays() -> None:
    world = settled(grace_seconds=60)
    world.crash("x-0-decode-0-0")
    world.reconcile()
    world.now_ms += 30_000
    world.start("x-0-decode-0-0")
    world.reconcile()
    world.now_ms += 60_000
    assert world.reconcile().actions == ()


def test_further_restarts_do_not_prolong_the_grace_period() -> None:
    world = settled(grace_seconds=60)
    world.crash("x-0-decode-0-0")
    world.reconcile()
    world.now_ms += 59_000
    world.crash("x-0-decode-0-0")
    world.apply(serving(1, TWO_ROLES, grace_seconds=600))
    assert world.reconcile().actions == ()
    world.now_ms += 1_000
    assert [one.name for one in world.reconcile().actions] == ["x-0-decode-0-0"]


def test_ms_d13_a_pod_that_once_restarted_may_turn_unready_later() -> None:
    """Mutant: `forgiven_restarts` always 0 in `is_broken`."""
    world = settled()
    world.crash("x-0-prefill-0-1")
    world.start("x-0-prefill-0-1")
    world.reconcile()
    world.unready_pod("x-0-prefill-0-1")
    assert world.reconcile().actions == ()
    world.crash("x-0-prefill-0-1")
    assert world.reconcile().actions != ()


def test_ms_d14_each_further_failure_waits_longer() -> None:
    """Mutant: 0 for every setback in `delay_ms`."""
    world = settled()
    waits = []
    for _ in range(4):
        world.crash("x-0-decode-0-0")
        planned = world.reconcile()
        due_ms = planned.next_check_ms
        waits.append(0 if planned.actions else (due_ms or 0) - world.now_ms)
        world.now_ms = max(world.now_ms, due_ms or 0)
        world.reconcile()
        world.finish_deletions()
        world.reconcile()
    assert waits == [0, 10_000, 20_000, 40_000]
    world.crash("x-0-decode-0-0")
    world.reconcile()
    condition = world.condition("RecoveryBackOff")
    assert (condition["status"], condition["reason"]) == ("True", "BackOff")
    assert "0/decode/0 was recreated 4 times" in condition["message"]


def test_a_unit_that_ran_well_for_long_starts_again_without_delay() -> None:
    world = settled()
    world.crash("x-0-decode-0-0")
    world.settle()
    assert world.memory["setbacks"]
    planned = world.reconcile()
    assert planned.next_check_ms == world.now_ms + RECOVERED_AFTER_MS
    world.now_ms += RECOVERED_AFTER_MS
    assert world.reconcile().next_check_ms is None
    assert "setbacks" not in world.memory


def test_back_off_grows_to_five_minutes() -> None:
    delays = [delay_ms(Setback(failures, 0)) for failures in range(8)]
    assert delays == [0, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]
    assert delay_ms(Setback(10_000, 0)) == LONGEST_DELAY_MS
    assert budget_spent(Setback(6, 0))
    assert not budget_spent(Setback(5, 0))


def test_a_crash_between_plan_and_deletion_counts_a_failure_once() -> None:
    world = settled()
    world.crash("x-0-decode-0-0")
    for _ in range(3):
        world.reconcile(keep=lambda action: False)
    assert world.memory["setbacks"]["0/decode/0"]["failures"] == 1


def test_several_pods_of_one_unit_that_fail_together_are_one_failure() -> None:
    world = settled("ServingGroupRecreate")
    for name in world.pod_names():
        world.crash(name)
    world.reconcile()
    assert {unit: one["failures"] for unit, one in world.memory["setbacks"].items()} == {"0": 1}


def test_ms_t45_a_replica_runs_when_all_its_pods_are_ready() -> None:
    world = World(serving(1, [role(workers=2)]))
    world.reconcile()
    world.start("x-0-prefill-0-0", "x-0-prefill-0-1")
    world.reconcile()
    assert "RoleRunning" not in world.events
    world.start("x-0-prefill-0-2")
    world.reconcile()
    world.reconcile()
    assert world.events.count("RoleRunning") == 1


def test_ms_t46_a_replica_on_its_way_out_never_runs_again() -> None:
    world = settled(groups=2)
    world.scale(1)
    world.reconcile()
    world.start(*[name for name in world.pod_names() if world.deleting(name)])
    world.reconcile()
    assert world.counts()[:2] == (2, 1)
    assert world.events.count("RoleRunning") == 4


def test_ms_t50_an_interrupted_creation_ends_with_every_pod_once() -> None:
    roles = [role(workers=2), role("decode", workers=1)]
    world = World(serving(5, roles))
    calls = iter(range(1000))
    world.reconcile(keep=lambda action: next(calls) < 11)
    world.memory = {}
    world.settle()
    assert len(world.pod_names()) == 25
    assert len(world.created) == 25


def test_ms_t56_a_pod_of_an_earlier_object_makes_way() -> None:
    world = World(serving(1, [role(workerTemplate=pod_template("w"))], uid="old"))
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
    world = World(serving(1, uid="old"))
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


def test_ms_t57_a_deletion_that_failed_is_tried_again() -> None:
    world = settled(groups=2)
    world.scale(1)
    first = world.reconcile(keep=lambda action: False)
    assert world.plan().actions == first.actions


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


@pytest.mark.parametrize(
    ("fields", "forgiven", "broken"),
    [
        ({"ready": False, "restarts": 1}, 0, True),
        ({"ready": False, "restarts": 1}, 1, False),
        ({"ready": False, "restarts": 2}, 1, True),
        ({"ready": True, "restarts": 5}, 0, False),
        ({"ready": False, "restarts": 0}, 0, False),
        ({"ready": False, "restarts": 1, "phase": "Pending"}, 0, True),
        ({"ready": False, "restarts": 1, "phase": "Succeeded"}, 0, False),
        ({"ready": False, "phase": "Failed"}, 9, True),
        ({"ready": False, "phase": "Failed", "deletion_due_ms": 1}, 0, False),
    ],
)
def test_what_counts_as_broken(fields: dict[str, Any], forgiven: int, broken: bool) -> None:
    assert is_broken(observed_pod(**fields), forgiven) is broken


def test_what_is_remembered_of_pods_that_are_gone_is_dropped() -> None:
    memory = Memory(failing={"gone": Failing(5)}, forgiven_restarts={"gone": 3})
    pod = observed_pod(restarts=2)
    review = review_failures(workload(), [(ReplicaId(0, "prefill", 0), pod)], memory, 10)
    assert review.failing == {}
    assert review.due == frozenset()
    assert review.forgiven_restarts == {pod.uid: 2}
