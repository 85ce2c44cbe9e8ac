"""What failed comes back (modelserving spec 3.11, 3.12; T33, T43 to T50, T56, T57, T84)."""

import pytest
from workload_builders import role, serving
from workload_recoveries import DECODE, PREFILL, replaced, settled, uids
from workload_world import World


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


def test_ms_d2_with_policy_none_an_absent_pod_is_refilled_alone() -> None:
    """Mutant: recreate whatever the policy in `decide_members`."""
    world = settled("None")
    before = uids(world)
    world.vanish("x-0-prefill-0-1")
    world.settle()
    assert replaced(before, world) == {"x-0-prefill-0-1"}


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


def test_ms_t57_a_deletion_that_failed_is_tried_again() -> None:
    world = settled(groups=2)
    world.scale(1)
    first = world.reconcile(keep=lambda action: False)
    assert world.plan().actions == first.actions
