"""Whatever becomes of scheduler, cluster and pods: no pod waits for a gang that never fills.

Volcano holds a pod back until as many pods as its PodGroup's minMember exist that name it.
"""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from workload_builders import role
from workload_volcano import MISSING, NEW, OLD, gang
from workload_world import World

from inferbus_workload_reconciler.actions import GROUP_ANNOTATION, ChildKind

Spec = dict[str, Any]


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    """A ModelServing whose counts, templates, minima and scheduler vary."""
    roles = [
        role(
            "prefill",
            draw(st.integers(1, 3)),
            draw(st.integers(0, 2)),
            image=draw(st.sampled_from("ab")),
            maxUnavailable=draw(st.sampled_from([1, 3])),
            partition=draw(st.sampled_from([None, 1])),
        ),
        role("decode", draw(st.integers(0, 2))),
    ]
    return gang(
        draw(st.integers(0, 3)),
        roles,
        by_role=draw(st.booleans()),
        schedulerName=draw(st.sampled_from(["volcano", "volcano", "default-scheduler"])),
        recoveryPolicy=draw(st.sampled_from(["RoleRecreate", "ServingGroupRecreate", "None"])),
        gangPolicy={"minRoleReplicas": draw(st.sampled_from([{}, {"prefill": 2}]))},
    )


CLUSTERS = st.sampled_from([NEW, NEW, OLD, MISSING])
HAPPENINGS = st.lists(
    st.one_of(
        st.tuples(st.just("cluster"), CLUSTERS),
        st.tuples(st.just("spec"), specs()),
        st.tuples(st.sampled_from(["fail", "delete", "vanish", "reconcile"]), st.integers(0, 99)),
    ),
    max_size=12,
)


def happen(world: World, what: str, value: Any) -> None:
    """One thing that people, kubelets or administrators do."""
    if what == "cluster":
        world.cluster = value
        if not value.volcano:
            for name in world.pod_groups():
                del world.objects[ChildKind.POD_GROUP, name]
    elif what == "spec":
        world.apply(value)
    elif what == "reconcile":
        world.reconcile()
    elif names := world.live_names():
        doing = {"fail": world.fail, "delete": world.delete_pod, "vanish": world.vanish}
        doing[what](names[value % len(names)])


def members(world: World, group: str) -> list[str]:
    """Pods that name a PodGroup."""
    return [
        name
        for name in world.pod_names()
        if world.pod(name)["metadata"]["annotations"].get(GROUP_ANNOTATION) == group
    ]


@settings(max_examples=150, deadline=None)
@given(spec=specs(), cluster=CLUSTERS, happenings=HAPPENINGS)
def test_no_new_pod_waits_for_a_gang_that_never_fills(
    spec: Spec, cluster: Any, happenings: list[tuple[str, Any]]
) -> None:
    world = World(spec)
    world.cluster = cluster
    for what, value in [("reconcile", 0), *happenings]:
        happen(world, what, value)
        if what == "reconcile":
            continue
        world.created.clear()
        world.settle()
        assert world.plan().actions == ()
        for group in world.pod_groups():
            own = members(world, group)
            assert own
            if set(own) & set(world.created):
                assert len(own) >= world.pod_group(group)["minMember"]
        if not world.cluster.volcano:
            assert not world.pod_groups()
