"""A group follows the templates it was built from until its turn (spec 3.9; T87)."""

from workload_builders import role, serving
from workload_rollouts import rolled
from workload_world import World


def test_ms_d3_an_old_group_is_not_changed_before_its_turn() -> None:
    """Mutant: `newest_shape` for every group in `TemplateBook.shape`."""
    world = World(serving(2, [role(workers=1)], rollout={"maxUnavailable": 1}))
    world.settle()
    world.unready = lambda pod: pod["spec"]["containers"][0]["image"] == "bad"
    changed = [role(workers=2, image="bad"), role("decode", image="bad")]
    world.apply(serving(2, changed, rollout={"maxUnavailable": 1}))
    world.settle()
    old = [name for name in world.pod_names() if name.startswith("x-0-")]
    assert old == ["x-0-prefill-0-0", "x-0-prefill-0-1"]
    assert {world.image(name) for name in old} == {"a"}
    assert world.counts()[1] == 1


def test_ms_t87_more_workers_reach_a_group_only_when_it_is_replaced() -> None:
    world = World(serving(2, [role(workers=1)], rollout={"maxUnavailable": 1}))
    world.settle()
    world.apply(serving(2, [role(workers=2)], rollout={"maxUnavailable": 1}))
    world.reconcile()
    assert "x-0-prefill-0-2" not in world.pod_names()
    world.settle()
    assert len(world.pod_names()) == 6
    sizes = {
        one["value"]
        for name in world.pod_names()
        for one in world.pod(name)["spec"]["containers"][0]["env"]
        if one["name"] == "GROUP_SIZE"
    }
    assert sizes == {"3"}


def test_ms_d5_old_groups_are_ready_by_their_own_template() -> None:
    world = World(serving(2, [role(workers=1)], rollout={"partition": 1}))
    world.settle()
    grown = [role(workers=2, image="b"), role("decode")]
    world.apply(serving(2, grown, rollout={"partition": 1}))
    world.settle()
    world.memory = {}
    world.settle()
    assert world.counts() == (2, 2, 1, 1)
    assert world.true_conditions() == ["Available"]


def test_an_added_role_makes_every_group_outdated() -> None:
    world = World(serving(2))
    world.settle()
    world.apply(serving(2, [role(), role("decode")]))
    world.reconcile()
    assert world.deleting("x-1-prefill-0-0")
    assert not world.deleting("x-0-prefill-0-0")
    world.settle()
    assert len(world.pod_names()) == 4


def test_roles_in_another_order_restart_nothing() -> None:
    world = World(serving(2, [role(), role("decode")]))
    world.settle()
    uids = {world.uid(name) for name in world.pod_names()}
    world.apply(serving(2, [role("decode"), role()]))
    world.settle()
    assert {world.uid(name) for name in world.pod_names()} == uids
    assert world.counts() == (2, 2, 2, 2)


def test_ms_d9_the_snapshot_of_a_revision_stays_until_its_replacement_is_up() -> None:
    """Mutant: `target` as soon as no group uses `previous` in `settle_current_revision`."""
    world = rolled(1)
    world.finish_deletions()
    world.reconcile()
    assert world.image("x-0-prefill-0-0") == "b"
    assert world.status["currentRevision"] != world.status["updateRevision"]
    world.start()
    world.reconcile()
    assert world.status["currentRevision"] == world.status["updateRevision"]


def test_what_is_not_part_of_the_templates_never_rolls_pods() -> None:
    world = World(serving(2))
    world.settle()
    uids = {world.uid(name) for name in world.pod_names()}
    world.apply(serving(2, grace_seconds=9, recoveryPolicy="None", schedulerName="other"))
    world.settle()
    assert {world.uid(name) for name in world.pod_names()} == uids


def test_f15_a_changed_variable_rolls_the_pods() -> None:
    world = World(serving(1))
    world.settle()
    changed = role()
    changed["entryTemplate"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "1"}]
    uid = world.uid("x-0-prefill-0-0")
    world.apply(serving(1, [changed]))
    world.settle()
    assert world.uid("x-0-prefill-0-0") != uid
