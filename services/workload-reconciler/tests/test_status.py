"""Status and conditions (modelserving spec 3.13; T40 to T42, T80, T85; llmaz spec 4.1)."""

import pytest
from workload_builders import role, serving, workload
from workload_world import World

from inferbus_workload_reconciler.observed import Cluster
from inferbus_workload_reconciler.policy_budget import Limits
from inferbus_workload_reconciler.policy_revisions import (
    RevisionHistory,
    parse_history,
    render_snapshot,
)
from inferbus_workload_reconciler.policy_status import (
    GroupStatus,
    WorkloadStatus,
    representative_ordinal,
    settle_current_revision,
)
from inferbus_workload_reconciler.workload import ReplicaId


def group(ordinal: int, revision: str, running: bool = True, deleting: bool = False) -> GroupStatus:
    return GroupStatus(
        ordinal=ordinal,
        revision=revision,
        updated=revision == "v2",
        running=running and not deleting,
        deleting=deleting,
    )


def history() -> RevisionHistory:
    spec = workload()
    stored = [render_snapshot(spec, f"v{number}", number) for number in range(3)]
    return parse_history(stored, spec)


def current(previous: str, *groups: GroupStatus, wanted: int = 4, partition: int = 0) -> str:
    limits = Limits(wanted=wanted, partition=partition, max_unavailable=1, max_surge=0)
    return settle_current_revision(previous, groups, "v2", limits, history())


def test_ms_t40_without_a_memory_the_most_common_old_revision_is_current() -> None:
    assert current("", group(0, "v1"), group(1, "v1"), group(2, "v0"), group(3, "v2")) == "v1"


def test_of_equally_common_revisions_the_older_one_is_current() -> None:
    assert current("", group(0, "v1"), group(1, "v0")) == "v0"


def test_ms_t41_when_all_groups_are_new_and_run_so_is_the_current_revision() -> None:
    groups = [group(ordinal, "v2") for ordinal in range(4)]
    assert current("v1", *groups) == "v2"


@pytest.mark.parametrize(
    ("groups", "partition", "expected"),
    [
        ([group(0, "v1", deleting=True), *(group(n, "v2") for n in (1, 2, 3))], 0, "v1"),
        ([group(0, "v2", running=False), *(group(n, "v2") for n in (1, 2, 3))], 0, "v1"),
        ([group(1, "v2"), group(2, "v2"), group(3, "v2")], 0, "v1"),
        ([group(0, "v0"), *(group(n, "v2") for n in (1, 2, 3))], 0, "v0"),
        ([], 2, "v1"),
        ([], 0, "v2"),
    ],
    ids=["being deleted", "not up yet", "one missing", "an older one", "protected", "none"],
)
def test_ms_d9_the_current_revision_stays_until_nothing_needs_it(
    groups: list[GroupStatus], partition: int, expected: str
) -> None:
    wanted = 4 if groups else 0
    assert current("v1", *groups, wanted=wanted, partition=partition) == expected


def status(*groups: GroupStatus, wanted: int = 4, partition: int = 0) -> WorkloadStatus:
    return WorkloadStatus(
        generation=1,
        wanted=wanted,
        groups=groups,
        current_revision="v1",
        update_revision="v2",
        label_selector="",
        partition=partition,
    )


def test_ms_t42_an_update_shows_until_its_last_group_is_up() -> None:
    """T42 with the fix of D22: the group that starts is part of the update."""
    running = [group(0, "v1"), group(1, "v1"), group(3, "v2")]
    assert status(*running, group(2, "v2", running=False), partition=2).rolling
    assert not status(*running, group(2, "v2"), partition=2).rolling


def test_ms_d22_a_protected_group_that_fails_is_no_update() -> None:
    groups = [group(0, "v1", running=False), group(1, "v1"), group(2, "v2"), group(3, "v2")]
    assert not status(*groups, partition=2).rolling


@pytest.mark.parametrize("partition", [None, 0, "0%"])
def test_ms_d23_no_partition_and_a_partition_of_zero_are_the_same(partition: object) -> None:
    """Mutant: `rollout.partition is None` decides about currentReplicas."""
    world = World(serving(3, rollout={} if partition is None else {"partition": partition}))
    world.settle()
    assert world.counts() == (3, 3, 3, 3)


def test_ms_t85_a_workload_without_replicas_has_a_full_status() -> None:
    world = World(serving(0))
    world.settle()
    assert world.pod_names() == []
    assert world.counts() == (0, 0, 0, 0)
    assert world.status["observedGeneration"] == 1
    assert world.status["labelSelector"].endswith("role=prefill")
    assert world.true_conditions() == ["Available"]


def test_ms_d15_a_fleet_can_be_scaled_to_nothing_and_back() -> None:
    world = World(serving(2))
    world.settle()
    for replicas in (0, 2):
        world.scale(replicas)
        world.settle()
        assert world.counts() == (replicas,) * 4


def test_ms_d11_availability_follows_the_pods() -> None:
    """Mutant: keep `running` from the memory in `ReplicaView.running`."""
    world = World(serving(2))
    world.settle()
    for name, change in (
        ("x-0-prefill-0-0", world.unready_pod),
        ("x-1-prefill-0-0", lambda name: world.fail(name, "Succeeded")),
    ):
        before = world.status["availableReplicas"]
        change(name)
        world.reconcile()
        assert world.status["availableReplicas"] == before - 1


def test_ms_d21_the_generation_is_the_one_that_was_planned() -> None:
    world = World(serving(1))
    world.reconcile()
    for generation, replicas in ((2, 3), (3, 4)):
        world.scale(replicas)
        assert world.status["observedGeneration"] == generation - 1
        world.reconcile()
        assert world.status["observedGeneration"] == generation
        assert {one["observedGeneration"] for one in world.status["conditions"]} == {generation}


def test_ms_d22_exactly_one_phase_is_true_at_any_time() -> None:
    world = World(serving(3, rollout={"partition": 1}))
    for image in ("a", "b", "c"):
        world.apply(serving(3, [role(image=image)], rollout={"partition": 1}))
        for _ in range(12):
            world.reconcile()
            assert len(world.true_conditions()) == 1
            world.finish_deletions()
            world.start()


def test_ms_d22_a_condition_tells_which_groups_by_ordinal() -> None:
    world = World(serving(4))
    world.unready = lambda pod: pod["metadata"]["name"].startswith("x-2-")
    world.settle()
    assert world.condition("Available")["message"] == "3 of 4 groups are ready; not ready: 2"
    assert world.condition("Available")["reason"] == "GroupProgressing"


def test_ms_d22_a_transition_time_changes_with_the_status_alone() -> None:
    world = World(serving(2))
    world.reconcile()
    began = world.condition("Available")["lastTransitionTime"]
    world.now_ms += 5000
    world.start("x-0-prefill-0-0")
    world.reconcile()
    assert world.condition("Available")["lastTransitionTime"] == began
    assert "1 of 2" in world.condition("Available")["message"]
    world.start("x-1-prefill-0-0")
    world.reconcile()
    assert world.condition("Available")["lastTransitionTime"] > began


@pytest.mark.parametrize(("volcano", "expected"), [(False, True), (True, False), (None, False)])
def test_ms_d27_a_missing_volcano_is_told(volcano: bool | None, expected: bool) -> None:
    """Mutant: `scheduler_name` unchanged in `effective_scheduler`."""
    world = World(serving(1))
    world.cluster = Cluster(volcano=volcano)
    world.settle()
    assert ("SchedulerFallback" in world.true_conditions()) is expected
    named = world.pod("x-0-prefill-0-0")["spec"].get("schedulerName") == "volcano"
    assert named is not expected
    world.cluster = Cluster(volcano=True)
    world.settle()
    assert "SchedulerFallback" not in world.true_conditions()


def test_ms_d38_the_scale_selector_names_a_replica_that_exists() -> None:
    """Mutant: ordinal 0 always in the selector."""
    world = World(serving(2, [role(replicas=3)]))
    world.settle()
    for name in world.pod_names():
        world.cost(name, 100 if "-prefill-2-" in name else 0)
    world.apply(serving(2))
    world.settle()
    assert "role-id=prefill-2," in world.status["labelSelector"]


def test_the_representative_is_what_most_groups_have() -> None:
    ids = [ReplicaId(group, "a", ordinal) for group, ordinal in ((0, 0), (1, 1), (2, 1), (2, 0))]
    assert representative_ordinal(ids, "a") == 0
    assert representative_ordinal([*ids, ReplicaId(3, "a", 1)], "a") == 1
    assert representative_ordinal([], "a") == 0


def test_a_lost_snapshot_is_told_and_nothing_is_guessed() -> None:
    world = World(serving(2, [role(workers=1)], rollout={"partition": 2}))
    world.settle()
    world.apply(serving(2, [role(workers=1, image="b")], rollout={"partition": 2}))
    world.settle()
    old = world.status["currentRevision"]
    del world.objects[next(key for key in world.objects if key[1] == f"x-{old}")]
    world.vanish("x-0-prefill-0-1")
    world.settle()
    assert "x-0-prefill-0-1" not in world.pod_names()
    assert old in world.condition("RevisionSnapshotLost")["message"]
    assert world.image("x-1-prefill-0-1") == "a"
