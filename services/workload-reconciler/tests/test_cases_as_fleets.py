"""Cases whose rule is stated by itself elsewhere, here as whole fleets (modelserving spec 6).

Their worlds may be on an API server (`workload_world.world_type`): there the rule has to come true.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
from workload_builders import role, serving
from workload_rollouts import happens, picture, rolled
from workload_world import World, fleet

from inferbus_workload_reconciler.actions import ChildKind


@dataclass(frozen=True)
class Shrink:
    """Groups of which some must go."""

    costs: dict[int, int]
    """Cost of deletion by ordinal: these are the groups."""
    wanted: int
    kept: set[int]
    unready: set[int] = field(default_factory=set)
    deleting: set[int] = field(default_factory=set)
    partition: int = 0


def free(*ordinals: int) -> dict[int, int]:
    return dict.fromkeys(ordinals, 0)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Shrink(free(0, 1, 2, 3), 2, {0, 1}), id="MS_T12"),
        pytest.param(Shrink(free(0, 2, 5, 8), 2, {0, 2}), id="MS_T13"),
        pytest.param(Shrink(free(0, 1, 2, 3), 2, {0, 1}, unready={2}), id="MS_T14"),
        pytest.param(Shrink({0: 100, 1: 50, 2: 0, 3: 75}, 2, {0, 3}), id="MS_T15"),
        pytest.param(Shrink({0: 10, 1: 1000, 2: 20, 3: 30}, 2, {2, 3}, unready={1}), id="MS_T16"),
        pytest.param(Shrink({0: 100, 1: -100, 2: 50, 3: 75}, 2, {0, 3}), id="MS_T17"),
        pytest.param(
            Shrink({0: 100, 1: 0, 2: 50, 3: 0, 4: 200}, 2, {0, 4}, unready={1}, deleting={3}),
            id="MS_T18",
        ),
        pytest.param(
            Shrink({0: 100, 1: 50, 2: 0, 3: 200, 4: 150}, 2, {0, 1}, partition=3), id="MS_T25"
        ),
        pytest.param(Shrink({0: 100, 1: 50, 2: 0, 3: 200}, 2, {0, 3}, partition=5), id="MS_T26"),
        pytest.param(
            Shrink(free(0, 1, 2, 3, 4), 3, {0, 1, 2}, unready={1}, partition=3), id="MS_T27"
        ),
    ],
)
def test_the_groups_that_stay(case: Shrink) -> None:
    world = fleet(serving(1, rollout={"partition": case.partition}), case.costs)
    for ordinal, cost in case.costs.items():
        world.cost(pod_of(ordinal), cost)
    for ordinal in case.unready:
        world.unready_pod(pod_of(ordinal))
    for ordinal in case.deleting:
        world.delete_pod(pod_of(ordinal))
    world.unready = lambda pod: pod["metadata"]["name"] in map(pod_of, case.unready)
    world.scale(case.wanted)
    world.settle()
    assert world.groups() == case.kept


def pod_of(ordinal: int) -> str:
    return f"x-{ordinal}-prefill-0-0"


def test_ms_t17_role_replicas_go_by_the_same_rules() -> None:
    world = World(serving(1, [role(replicas=4)]))
    world.settle()
    for ordinal, cost in enumerate((100, -100, 50, 75)):
        world.cost(f"x-0-prefill-{ordinal}-0", cost)
    world.apply(serving(1, [role(replicas=2)]))
    world.settle()
    assert world.replica_ids() == {"prefill-0", "prefill-3"}


def test_ms_t10_a_huge_number_costs_no_more_than_what_is_made_of_it() -> None:
    world = World(serving(2))
    world.settle()
    world.scale(2**31 - 1)
    created = [one for one in world.plan().actions if one.child is ChildKind.POD]
    assert [one.name for one in created[:2]] == [pod_of(2), pod_of(3)]
    assert len(created) < 1000


def test_ms_t30_what_does_not_run_is_replaced_first() -> None:
    world = World(serving(4, rollout={"maxUnavailable": 2}))
    world.unready = lambda pod: pod["metadata"]["name"] in map(pod_of, (0, 1, 2))
    world.settle()
    document = serving(4, [role(image="b")], rollout={"maxUnavailable": 2})
    world.apply(document)
    world.reconcile()
    gone = {name for name in world.pod_names() if world.deleting(name)}
    assert pod_of(3) not in gone
    assert {pod_of(2), pod_of(1)} <= gone


@pytest.mark.parametrize(
    ("partition", "groups", "old"),
    [
        pytest.param("50%", 3, 2, id="MS_T38-50%"),
        pytest.param("1%", 10, 1, id="MS_T38-1%"),
        pytest.param("100%", 5, 5, id="MS_T38-100%"),
    ],
)
def test_a_share_of_groups_stays_old(partition: str, groups: int, old: int) -> None:
    world = rolled(groups, partition=partition, maxUnavailable=groups)
    world.settle()
    assert picture(world, groups) == " ".join(["AR"] * old + ["BR"] * (groups - old))


@pytest.mark.parametrize(
    ("limit", "groups", "gone"),
    [
        pytest.param("50%", 9, 4, id="MS_T39-50%"),
        pytest.param("20%", 10, 2, id="MS_T39-20%"),
        pytest.param("100%", 3, 3, id="MS_T39-100%"),
    ],
)
def test_a_share_of_groups_goes_at_once(limit: str, groups: int, gone: int) -> None:
    world = rolled(groups, maxUnavailable=limit)
    assert sum(world.deleting(name) for name in world.pod_names()) == gone


def test_ms_t40_a_status_that_was_lost_is_derived_from_what_stands() -> None:
    world = rolled(4, partition=3)
    world.settle()
    old, new = world.status["currentRevision"], world.status["updateRevision"]
    world.memory, world.status = {}, {}
    world.settle()
    assert (world.status["currentRevision"], world.status["updateRevision"]) == (old, new)


def test_ms_t41_an_outdated_status_is_brought_up() -> None:
    world = rolled(3)
    old = world.status["currentRevision"]
    world.settle()
    world.status = {**world.status, "currentRevision": old}
    world.settle()
    assert world.status["currentRevision"] == world.status["updateRevision"] != old
    assert world.counts() == (3, 3, 3, 3)


def test_ms_t42_the_last_group_of_an_update_still_is_part_of_it() -> None:
    """With MS_D22 mended it shows as an update until that group runs."""
    world = rolled(4, partition=2, maxUnavailable=2)
    for event in ("g3 gone", "g2 gone", "g3 ready"):
        happens(world, event)
    assert picture(world, 4) == "AR AR BC BR"
    assert world.true_conditions() == ["UpdateInProgress"]
    happens(world, "g2 ready")
    assert world.true_conditions() == ["Available"]


def test_ms_t65_two_aliases_of_one_address_reach_the_pod() -> None:
    aliases = [{"ip": "10.0.0.1", "hostnames": ["a"]}, {"ip": "10.0.0.1", "hostnames": ["b"]}]
    world = World(serving(1, [role(entryTemplate=with_spec(hostAliases=aliases))]))
    world.settle()
    assert world.pod(pod_of(0))["spec"]["hostAliases"] == aliases
    assert world.counts() == (1, 1, 1, 1)


def with_spec(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "engine", "image": "a"}]
    return {"metadata": {}, "spec": {"containers": containers, **spec}}


def test_ms_t73_plugins_reach_the_pods_they_are_for() -> None:
    plugins = [
        {"name": "demo-pod-tweaks", "type": "BuiltIn", "config": annotated("all")},
        {
            "name": "demo-pod-tweaks",
            "type": "BuiltIn",
            "config": annotated("workers"),
            "scope": {"target": "Worker"},
        },
    ]
    world = World(serving(1, [role(workers=1)], plugins=plugins))
    world.settle()
    entry, worker = (world.pod(name)["metadata"]["annotations"] for name in world.pod_names())
    assert ("all" in entry, "workers" in entry) == (True, False)
    assert ("all" in worker, "workers" in worker) == (True, True)


def annotated(name: str) -> dict[str, Any]:
    return {"annotations": {name: "1"}}


def test_ms_t79_replicas_make_no_revision_and_everything_else_does() -> None:
    world = World(serving(1, [role(workers=1), role("decode")]))
    world.settle()
    first = world.status["updateRevision"]
    others = [
        ([role(replicas=2, workers=1), role("decode")], True),
        ([role(workers=2), role("decode")], False),
        ([role("decode"), role(workers=1)], False),
        ([role(workers=1)], False),
        ([role(workers=1), role("decode")], True),
    ]
    for roles, same in others:
        world.apply(serving(1, roles))
        world.settle()
        assert (world.status["updateRevision"] == first) is same


@pytest.mark.parametrize("groups", [0, 2])
def test_ms_t80_the_selector_for_scaling_is_told(groups: int) -> None:
    world = World(serving(groups))
    world.settle()
    domain = "modelserving.volcano.sh"
    assert world.status["labelSelector"] == (
        f"{domain}/entry=true,{domain}/name=x,{domain}/role-id=prefill-0,{domain}/role=prefill"
    )


def test_ms_t83_the_last_phase_of_a_partitioned_update() -> None:
    """With MS_D22 mended the whole update shows as one."""
    world = rolled(4, partition=2, maxUnavailable=1)
    seen = [picture(world, 4)]
    for event in ("g3 gone", "g3 ready", "g2 gone", "g2 ready"):
        assert world.true_conditions() == ["UpdateInProgress"]
        happens(world, event)
        seen.append(picture(world, 4))
    assert seen == [
        "AR AR AR AD",
        "AR AR AR BC",
        "AR AR AD BR",
        "AR AR BC BR",
        "AR AR BR BR",
    ]
    assert world.true_conditions() == ["Available"]
    assert world.counts() == (4, 4, 2, 2)


def test_ms_d35_reserved_labels_hold_against_the_template() -> None:
    template = with_spec()
    template["metadata"] = {"labels": {"modelserving.volcano.sh/name": "other", "mine": "1"}}
    world = World(serving(1, [role(entryTemplate=template)]))
    world.settle()
    labels = world.pod(pod_of(0))["metadata"]["labels"]
    assert (labels["modelserving.volcano.sh/name"], labels["mine"]) == ("x", "1")
