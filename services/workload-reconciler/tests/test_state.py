"""State is derived, never kept: what failed is tried again, what goes stays going.

Defects MS_D16, MS_D20, MS_D32, MS_D40, MS_D46; T63.
"""

import pytest
from workload_builders import role, serving
from workload_world import World

from inferbus_workload_reconciler.actions import ChildKind, Create, EventReason, stages


@pytest.mark.parametrize("policy", ["RoleRecreate", "ServingGroupRecreate", "None"])
@pytest.mark.parametrize("lost", ["x-0-decode-0-0", "x-0-prefill-0-1", "x-0-prefill-0-0"])
def test_ms_d16_a_pod_that_could_not_be_created_is_tried_again(policy: str, lost: str) -> None:
    world = World(serving(1, [role(workers=1), role("decode")], recoveryPolicy=policy))
    world.reconcile(keep=lambda action: action.name != lost or action.child is not ChildKind.POD)
    assert lost not in world.pod_names()
    (action,) = world.reconcile().actions
    assert (action.child, action.name) == (ChildKind.POD, lost)
    world.settle()
    assert len(world.created) == 3


def test_ms_d20_what_is_being_deleted_never_runs_again() -> None:
    """A pod may report that it is ready while it is on its way out."""
    world = World(serving(2))
    world.settle()
    world.scale(1)
    world.reconcile()
    world.events.clear()
    assert world.pod("x-1-prefill-0-0")["status"]["phase"] == "Running"
    for _ in range(2):
        world.start("x-1-prefill-0-0")
        planned = world.reconcile()
        assert planned.fleet.groups[1].deleting
        assert not planned.fleet.groups[1].running
        assert world.counts()[:2] == (2, 1)
        assert EventReason.RUNNING not in world.events
    world.settle()
    assert world.pod_names() == ["x-0-prefill-0-0"]


def test_ms_d32_all_pods_of_a_plan_may_be_created_at_the_same_time() -> None:
    world = World(serving(2, [role(replicas=2, workers=2)]))
    runs = stages(world.plan().actions)
    pods = [run for run in runs if any(one.child is ChildKind.POD for one in run)]
    assert [len(run) for run in pods] == [12]
    assert all(isinstance(one, Create) for one in pods[0])


def test_ms_d40_ordinals_are_identity_only() -> None:
    """Gaps that a shrink by cost leaves are filled before anything beyond them is added."""
    world = World(serving(4))
    world.settle()
    for ordinal, cost in enumerate((100, 0, 0, 50)):
        world.cost(f"x-{ordinal}-prefill-0-0", cost)
    world.scale(2)
    world.settle()
    assert world.groups() == {0, 3}
    assert world.counts() == (2, 2, 2, 2)
    world.created.clear()
    world.scale(3)
    world.settle()
    assert world.created == ["x-1-prefill-0-0"]


def test_ms_d46_groups_are_recreated_whole_and_updated_by_role() -> None:
    """The pair that the reference's admission refuses."""
    roles = [role("prefill"), role("decode")]
    fields = {"by_role": True, "recoveryPolicy": "ServingGroupRecreate"}
    world = World(serving(1, roles, **fields))
    world.settle()
    before = {name: world.uid(name) for name in world.pod_names()}
    world.apply(serving(1, [role("prefill", image="b"), role("decode")], **fields))
    world.settle()
    assert world.uid("x-0-decode-0-0") == before["x-0-decode-0-0"]
    assert world.uid("x-0-prefill-0-0") != before["x-0-prefill-0-0"]
    world.fail("x-0-prefill-0-0")
    world.settle()
    assert world.uid("x-0-decode-0-0") != before["x-0-decode-0-0"]


def test_ms_t63_a_protected_group_is_rebuilt_as_it_was() -> None:
    """Its snapshot has one replica, the spec two: with MS_D6 mended the spec's number holds."""
    world = World(serving(2, rollout={"partition": 1}))
    world.settle()
    old = world.status["currentRevision"]
    world.apply(serving(2, [role(image="b", replicas=2)], rollout={"partition": 1}))
    world.settle()
    uid = world.uid("x-0-prefill-0-0")
    world.delete_pod("x-0-prefill-0-0")
    world.settle()
    assert world.uid("x-0-prefill-0-0") != uid
    protected = [name for name in world.pod_names() if name.startswith("x-0-")]
    assert protected == ["x-0-prefill-0-0", "x-0-prefill-1-0"]
    assert {world.image(name) for name in protected} == {"a"}
    assert {world.label(name, "revision") for name in protected} == {old}
