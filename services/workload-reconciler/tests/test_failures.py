"""Which pods are given up, and when (modelserving spec 3.11, 3.12; T47 to T49)."""

from typing import Any

import pytest
from workload_builders import observed_pod, serving, workload
from workload_recoveries import DECODE, PREFILL, TWO_ROLES, replaced, settled, uids
from workload_world import World

from inferbus_workload_reconciler.actions import Delete, Reason
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
