"""Whatever happens in between, a fleet ends as it should be (DESIGN section 1, principle 4).

Plans are cut short, carried out late by a second planner, made again without their memory; pods
crash, vanish and are deleted by people; specs change. Then everything calms down.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workload_builders import role, serving
from workload_volcano import NEW
from workload_world import World

from inferbus_contracts.resources.annotations import STARTUP_ORDER
from inferbus_workload_reconciler.actions import Action, ChildKind, Create, Delete
from inferbus_workload_reconciler.core import Plan, is_stale
from inferbus_workload_reconciler.observed import NO_CLUSTER, Observed
from inferbus_workload_reconciler.policy_memory import parse_memory

Spec = dict[str, Any]
Happening = tuple[str, int]

KNOBS = st.fixed_dictionaries(
    {
        "maxUnavailable": st.sampled_from([0, 1, 2, "50%"]),
        "maxSurge": st.sampled_from([0, 1, 2]),
        "partition": st.sampled_from([0, 1, 2, "50%"]),
    }
)


@st.composite
def specs(draw: st.DrawFn, by_role: bool, policy: str) -> Spec:
    """A small ModelServing; image, counts and knobs vary."""
    names = draw(st.sampled_from([["prefill"], ["prefill", "decode"]]))
    fields: Spec = {}
    if by_role:
        fields = {"maxUnavailable": draw(st.sampled_from([None, 1, 2]))}
    roles = [
        role(
            name,
            replicas=draw(st.integers(0 if name == "decode" else 1, 2)),
            workers=draw(st.integers(0, 1)),
            image=draw(st.sampled_from("abc")),
            **fields,
        )
        for name in names
    ]
    rollout = None if by_role else draw(KNOBS)
    groups = draw(st.integers(0, 4))
    order = {STARTUP_ORDER: "entry-first,roles-in-order"}
    annotations = draw(st.sampled_from([{}, order]))
    return serving(
        groups,
        roles,
        rollout=rollout,
        by_role=by_role,
        recoveryPolicy=policy,
        annotations=annotations,
    )


HAPPENINGS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "reconcile",
                "reconcile",
                "cut short",
                "plan for later",
                "carry out late",
                "look",
                "plan an old view",
                "start",
                "start",
                "gone",
                "gone",
                "crash",
                "unready",
                "delete",
                "vanish",
                "fail",
                "service vanishes",
                "pod group vanishes",
                "forget",
                "time passes",
                "apply",
            ]
        ),
        st.integers(0, 10**6),
    ),
    max_size=40,
)


class Story:
    """Lets things happen to a world, some of them chosen by a number."""

    def __init__(self, world: World, changes: list[Spec]) -> None:
        self.world = world
        self.changes = changes
        self.late: Plan | None = None
        self.view: Observed | None = None

    def tell(self, what: str, number: int) -> None:
        """One happening."""
        world = self.world
        names = world.pod_names()
        chosen = names[number % len(names)] if names else None
        simple: dict[str, Callable[[], object]] = {
            "reconcile": world.reconcile,
            "cut short": lambda: world.reconcile(keep=_some(number)),
            "plan for later": self._plan_for_later,
            "carry out late": self._carry_out_late,
            "look": self._look,
            "plan an old view": self._plan_old_view,
            "forget": world.memory.clear,
            "time passes": lambda: self._pass_time(number),
            "apply": self._apply_next,
            "service vanishes": lambda: self._lose(ChildKind.SERVICE, number),
            "pod group vanishes": lambda: self._lose(ChildKind.POD_GROUP, number),
        }
        to_a_pod: dict[str, Callable[[str], object]] = {
            "start": world.start,
            "gone": world.finish_deletions,
            "crash": world.crash,
            "unready": world.unready_pod,
            "delete": world.delete_pod,
            "vanish": world.vanish,
            "fail": world.fail,
        }
        if what in simple:
            simple[what]()
        elif chosen is not None:
            to_a_pod[what](chosen)

    def _plan_for_later(self) -> None:
        self.late = self.world.plan()

    def _carry_out_late(self) -> None:
        for action in self.late.actions if self.late else ():
            self.world.carry_out(action)

    def _look(self) -> None:
        self.view = self.world.observed()

    def _plan_old_view(self) -> None:
        memory = parse_memory(self.world.memory, {})
        if self.view is not None and not is_stale(self.view, memory):
            self.world.reconcile(view=self.view)

    def _pass_time(self, number: int) -> None:
        self.world.now_ms += number

    def _apply_next(self) -> None:
        if self.changes:
            self.world.apply(self.changes.pop())

    def _lose(self, kind: ChildKind, number: int) -> None:
        names = sorted(name for found, name in self.world.objects if found is kind)
        if names:
            del self.world.objects[kind, names[number % len(names)]]


def _some(number: int) -> Callable[[Action], bool]:
    """Lets through the actions whose bit is set."""
    bits = iter(range(10**6))
    return lambda action: bool(number >> (next(bits) % 20) & 1)


def assert_as_wanted(world: World) -> None:
    """The fleet is complete, of one template per unit, and says so."""
    spec = world.document["spec"]
    roles = {one["name"]: one for one in spec["template"]["roles"]}
    groups = world.groups()
    replicas = spec["replicas"]
    assert world.live_names() == world.pod_names()
    assert len(groups) == replicas
    assert world.status["replicas"] == world.status["availableReplicas"] == replicas
    assert set(world.true_conditions()) - {"StartupOrderIgnored"} == {"Available"}
    limit = world.plan().summary.partition
    for group in groups:
        pods = [name for name in world.pod_names() if name.startswith(f"x-{group}-")]
        if group < limit:
            continue
        expected = {
            name: one["replicas"] * (1 + one["workerReplicas"]) for name, one in roles.items()
        }
        found = {name: sum(f"-{name}-" in pod for pod in pods) for name in roles}
        assert found == expected
        assert len(pods) == sum(expected.values())
        for pod in pods:
            assert world.image(pod) == _image(roles[world.label(pod, "role")])
    services = {
        name for name in world.pod_names() if name.endswith("-0") and _has_workers(world, name)
    }
    assert set(world.services()) == services
    assert_gangs_fit(world)


def assert_gangs_fit(world: World) -> None:
    """Each group has its PodGroup, which needs exactly the pods there are."""
    groups = world.groups() if world.cluster.volcano else set()
    assert world.pod_groups() == sorted(f"x-{group}" for group in groups)
    for group in groups:
        pods = [name for name in world.pod_names() if name.startswith(f"x-{group}-")]
        assert world.pod_group(f"x-{group}")["minMember"] == len(pods)
        for name in pods:
            annotations = world.pod(name)["metadata"]["annotations"]
            assert annotations["scheduling.k8s.io/group-name"] == f"x-{group}"


def _image(one: Spec) -> str:
    image: str = one["entryTemplate"]["spec"]["containers"][0]["image"]
    return image


def _has_workers(world: World, entry: str) -> bool:
    env = world.pod(entry)["spec"]["containers"][0]["env"]
    return {"name": "GROUP_SIZE", "value": "2"} in env


@pytest.mark.parametrize("by_role", [False, True], ids=["by group", "by role"])
@pytest.mark.parametrize("policy", ["RoleRecreate", "ServingGroupRecreate", "None"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_story_ends_in_the_wanted_fleet(
    policy: str, by_role: bool, data: st.DataObject
) -> None:
    one_spec = specs(by_role, policy)
    world = World(data.draw(one_spec))
    world.cluster = data.draw(st.sampled_from([NO_CLUSTER, NEW]))
    story = Story(world, data.draw(st.lists(one_spec, max_size=3)))
    for what, number in data.draw(HAPPENINGS):
        if not (what == "fail" and policy == "None"):
            story.tell(what, number)
    world.settle()
    assert_as_wanted(world)
    assert world.plan().actions == ()


@settings(max_examples=100, deadline=None)
@given(
    groups=st.integers(1, 5),
    knobs=KNOBS,
    workers=st.integers(0, 1),
    happenings=st.lists(
        st.tuples(
            st.sampled_from(
                [
                    "reconcile",
                    "cut short",
                    "start",
                    "gone",
                    "plan for later",
                    "carry out late",
                    "look",
                    "plan an old view",
                ]
            ),
            st.integers(0, 10**6),
        ),
        max_size=60,
    ),
)
def test_an_update_of_a_healthy_fleet_keeps_its_promises(
    groups: int, knobs: Spec, workers: int, happenings: list[Happening]
) -> None:
    world = World(serving(groups, [role(workers=workers)], rollout=knobs))
    world.settle()
    protected = _protected(world)
    world.apply(serving(groups, [role(workers=workers, image="b")], rollout=knobs))
    limits = _limits(groups, knobs)
    story = Story(world, [])
    for what, number in happenings:
        story.tell(what, number)
        assert _available(world, workers) >= groups - limits[0]
        assert len(world.groups()) <= groups + limits[1]
    world.settle()
    assert _protected(world) == protected
    assert_as_wanted(world)


def _limits(groups: int, knobs: Spec) -> tuple[int, int]:
    """Unavailable and surging groups allowed, computed here from the rules of the API."""
    surge = knobs["maxSurge"]
    unavailable = groups // 2 if knobs["maxUnavailable"] == "50%" else knobs["maxUnavailable"]
    return (unavailable if unavailable or surge else 1), surge


def _protected(world: World) -> dict[str, str]:
    limit = world.plan().summary.partition
    return {name: world.uid(name) for name in world.pod_names() if int(name.split("-")[1]) < limit}


def _available(world: World, workers: int) -> int:
    """Groups whose pods are all there, not being deleted, and ready."""
    ready: dict[str, int] = {}
    for name in world.live_names():
        conditions = world.pod(name)["status"].get("conditions") or [{}]
        group = name.split("-")[1]
        ready[group] = ready.get(group, 0) + (conditions[0].get("status") == "True")
    return sum(count == 1 + workers for count in ready.values())


@settings(max_examples=60, deadline=None)
@given(
    data=st.data(),
    happenings=HAPPENINGS,
)
def test_a_plan_never_acts_on_what_it_cannot_have_seen(
    data: st.DataObject, happenings: list[Happening]
) -> None:
    one_spec = specs(False, "RoleRecreate")
    world = World(data.draw(one_spec))
    story = Story(world, data.draw(st.lists(one_spec, max_size=3)))
    for what, number in happenings:
        story.tell(what, number)
        view = world.observed()
        planned = world.plan(view)
        assert planned == world.plan(view)
        stored = {
            name: item["metadata"]["uid"]
            for (_, name), item in world.objects.items()
            if item["kind"] == "Pod"
        }
        seen: set[str] = set()
        for action in planned.actions:
            if action.child is not ChildKind.POD:
                continue
            if isinstance(action, Delete):
                assert stored[action.name] == action.uid
            else:
                assert isinstance(action, Create)
                assert action.name not in stored
            assert action.name not in seen
            seen.add(action.name)
            assert action.motive.cause
