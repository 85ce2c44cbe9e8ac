"""Role replicas inside groups (modelserving spec 3.5, 3.6; T5, T6, T11, T20, T23, T63)."""

from workload_builders import role, serving
from workload_world import World

from inferbus_workload_reconciler.policy_groups import missing_ordinals


def test_ms_t05_a_role_grows_beside_what_runs() -> None:
    world = World(serving(1))
    world.settle()
    uid = world.uid("x-0-prefill-0-0")
    world.apply(serving(1, [role(replicas=3)]))
    world.settle()
    assert world.replica_ids() == {"prefill-0", "prefill-1", "prefill-2"}
    assert len({world.label(name, "revision") for name in world.pod_names()}) == 1
    assert world.uid("x-0-prefill-0-0") == uid


def test_ms_t06_a_role_shrinks_from_the_top() -> None:
    world = World(serving(1, [role(replicas=3)]))
    world.settle()
    world.apply(serving(1, [role(replicas=1)]))
    world.settle()
    assert world.pod_names() == ["x-0-prefill-0-0"]


def test_ms_t11_a_replica_on_its_way_out_keeps_its_ordinal() -> None:
    assert missing_ordinals({0, 1}, 3) == [2]
    world = World(serving(1, [role(replicas=2)]))
    world.settle()
    world.apply(serving(1, [role(replicas=1)]))
    world.reconcile()
    world.apply(serving(1, [role(replicas=3)]))
    world.reconcile()
    assert world.live_names() == ["x-0-prefill-0-0", "x-0-prefill-2-0"]


def test_ms_t20_the_replica_that_is_dear_to_delete_survives() -> None:
    world = World(serving(1, [role(replicas=4)]))
    world.settle()
    for ordinal in range(4):
        world.cost(f"x-0-prefill-{ordinal}-0", 100 * ordinal)
    world.apply(serving(1))
    world.settle()
    assert world.replica_ids() == {"prefill-3"}


def test_ms_t23_the_replica_that_never_became_ready_goes_first() -> None:
    world = World(serving(1, [role(replicas=4)]))
    world.unready = lambda pod: pod["metadata"]["name"] == "x-0-prefill-1-0"
    world.settle()
    assert world.events.count("RoleRunning") == 3
    world.apply(serving(1, [role(replicas=3)]))
    world.settle()
    assert world.replica_ids() == {"prefill-0", "prefill-2", "prefill-3"}


def test_all_groups_are_scaled_at_once() -> None:
    world = World(serving(3))
    world.settle()
    world.apply(serving(3, [role(replicas=2)]))
    world.reconcile()
    assert len(world.pod_names()) == 6


def test_a_group_is_not_available_while_its_roles_are_short() -> None:
    world = World(serving(1))
    world.settle()
    world.apply(serving(1, [role(replicas=2)]))
    world.reconcile()
    assert world.counts() == (1, 0, 1, 0)
    world.settle()
    assert world.counts() == (1, 1, 1, 1)


def test_a_role_may_have_no_replicas() -> None:
    world = World(serving(1, [role(), role("decode", replicas=0)]))
    world.settle()
    assert world.replica_ids() == {"prefill-0"}
    assert world.counts() == (1, 1, 1, 1)


def test_ms_d6_protected_groups_follow_the_replicas_of_their_roles() -> None:
    """T63 with the fix: the count follows, image and label stay. Mutant: take the snapshot's."""
    world = World(serving(2, rollout={"partition": 1}))
    world.settle()
    old = world.status["currentRevision"]
    world.apply(serving(2, [role(image="b", replicas=2)], rollout={"partition": 1}))
    world.settle()
    assert {world.image(f"x-0-prefill-{ordinal}-0") for ordinal in (0, 1)} == {"a"}
    assert {world.label(f"x-0-prefill-{ordinal}-0", "revision") for ordinal in (0, 1)} == {old}
    assert world.counts() == (2, 2, 1, 1)


def test_a_role_that_the_spec_dropped_stays_in_protected_groups() -> None:
    both = [role(), role("decode", replicas=2)]
    world = World(serving(2, both, rollout={"partition": 1}))
    world.settle()
    world.apply(serving(2, [role(image="b")], rollout={"partition": 1}))
    world.settle()
    assert world.pod_names() == [
        "x-0-decode-0-0",
        "x-0-decode-1-0",
        "x-0-prefill-0-0",
        "x-1-prefill-0-0",
    ]
    world.vanish("x-0-decode-1-0")
    world.settle()
    assert "x-0-decode-1-0" in world.pod_names()


def test_missing_pods_of_a_replica_that_was_never_complete_are_filled_in() -> None:
    world = World(serving(1, [role(workers=2)]))
    world.reconcile(keep=lambda action: not action.name.endswith("-2"))
    uid = world.uid("x-0-prefill-0-0")
    world.settle()
    assert len(world.pod_names()) == 3
    assert world.uid("x-0-prefill-0-0") == uid


def test_pods_beyond_the_template_are_removed() -> None:
    world = World(serving(1, [role(workers=1)]))
    world.settle()
    stray = {**world.pod("x-0-prefill-0-1")}
    stray["metadata"] = {**stray["metadata"], "name": "x-0-prefill-0-5", "uid": "stray"}
    key = next(key for key in world.objects if key[1] == "x-0-prefill-0-1")
    world.objects[key[0], "x-0-prefill-0-5"] = stray
    assert world.plan().summary.available == 0
    world.settle()
    assert world.pod_names() == ["x-0-prefill-0-0", "x-0-prefill-0-1"]
