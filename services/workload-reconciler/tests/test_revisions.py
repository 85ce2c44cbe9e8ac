"""Revisions, their snapshots, and what adopts which (modelserving spec 2.7, 2.8)."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workload_builders import pod_template, role, serving, workload
from workload_world import World

from inferbus_workload_reconciler.actions import ChildKind
from inferbus_workload_reconciler.policy_revisions import (
    HISTORY_LIMIT,
    revision_hash,
    role_template,
    same_content,
)


def hash_of(*roles: dict[str, Any]) -> str:
    return revision_hash([role_template(one) for one in roles])


def test_ms_t79_replicas_are_no_part_of_a_revision() -> None:
    one = role(replicas=1, maxUnavailable=1, partition=0)
    assert hash_of(one) == hash_of(role(replicas=5, maxUnavailable="50%"))


@pytest.mark.parametrize(
    "other",
    [
        [role(workers=2), role("decode")],
        [role("other", workers=1), role("decode")],
        [role("decode"), role(workers=1)],
        [role(workers=1)],
        [role(workers=1), role("decode", image="b")],
    ],
    ids=["worker count", "name", "order", "count of roles", "template"],
)
def test_ms_t79_everything_else_of_a_role_is(other: list[dict[str, Any]]) -> None:
    assert hash_of(role(workers=1), role("decode")) != hash_of(*other)


def test_ms_t79_hashing_leaves_its_input_alone() -> None:
    one = role(workers=1, maxUnavailable=1)
    before = copy.deepcopy(one)
    hash_of(one)
    assert one == before


def test_ms_d1_absent_and_null_fields_and_fields_of_a_later_schema_hash_alike() -> None:
    """Mutant: hash the whole role instead of its listed fields."""
    newer = role(networkTopology={"mode": "hard"})
    newer["entryTemplate"]["metadata"]["annotations"] = None
    assert hash_of(newer) == hash_of(role())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_a_hash_is_stable_and_a_valid_label_in_a_valid_name(spec: dict[str, Any]) -> None:
    one = role(entryTemplate={"spec": spec})
    shuffled = role(entryTemplate={"spec": dict(reversed(spec.items()))})
    assert hash_of(one) == hash_of(shuffled)
    assert hash_of(one).isalpha()
    assert hash_of(one).islower()
    assert len(hash_of(one)) == 10


def test_a_snapshot_holds_all_roles_and_stands_before_the_first_pod() -> None:
    world = World(serving(2, [role(workers=1), role("decode", replicas=2)]))
    planned = world.plan()
    assert planned.actions[0].child is ChildKind.REVISION
    world.reconcile()
    (snapshot,) = world.revisions()
    assert snapshot["metadata"]["name"] == f"x-{planned.summary.update_revision}"
    assert snapshot["revision"] == 1
    assert [(one["name"], one["replicas"]) for one in snapshot["data"]["data"]] == [
        ("prefill", 1),
        ("decode", 2),
    ]


def test_ms_t37_a_failed_snapshot_is_retried_and_stands_first_again() -> None:
    world = World(serving(1))
    world.reconcile(keep=lambda action: False)
    assert world.pod_names() == []
    assert world.plan().actions[0].child is ChildKind.REVISION


def test_ms_d7_a_snapshot_is_written_even_where_nothing_is_built_from_it_yet() -> None:
    """Mutant: write the snapshot only with the first group of its revision."""
    world = World(serving(2, rollout={"partition": 5}))
    world.settle()
    world.apply(serving(2, [role(image="b")], rollout={"partition": 5}))
    world.settle()
    assert len(world.revisions()) == 2
    assert {world.image(name) for name in world.pod_names()} == {"a"}


def test_ms_d7_a_revision_reached_by_role_updates_has_a_snapshot() -> None:
    world = World(serving(1, by_role=True))
    world.settle()
    world.apply(serving(1, [role(image="b")], by_role=True))
    world.settle()
    assert {
        one["data"]["data"][0]["entryTemplate"]["spec"]["containers"][0]["image"]
        for one in world.revisions()
    } == {"a", "b"}


def test_ms_d8_snapshots_are_numbered_and_never_changed() -> None:
    world = World(serving(1))
    world.settle()
    first = copy.deepcopy(world.revisions()[0])
    for image in ("b", "c", "a"):
        world.apply(serving(1, [role(image=image, replicas=2)]))
        world.settle()
    assert [one["revision"] for one in world.revisions()] == [1, 2, 3]
    assert world.revisions()[0] == first
    assert world.status["updateRevision"] == first["metadata"]["name"].removeprefix("x-")


def test_ms_d8_history_is_limited_but_keeps_what_is_in_use() -> None:
    """Mutant: drop the `referenced` exception of `surplus_snapshots`."""
    world = World(serving(2, rollout={"partition": 1}))
    world.settle()
    protected = world.label("x-0-prefill-0-0", "revision")
    for number in range(HISTORY_LIMIT + 3):
        world.apply(serving(2, [role(image=f"v{number}")], rollout={"partition": 1}))
        world.settle()
    kept = [
        one["metadata"]["labels"]["modelserving.volcano.sh/revision"] for one in world.revisions()
    ]
    assert protected in kept
    assert len(kept) == HISTORY_LIMIT + 2
    world.vanish("x-0-prefill-0-0")
    world.settle()
    assert world.image("x-0-prefill-0-0") == "a"


def foreign_fleet(label: str = "67b8d4b8c7") -> World:
    """A fleet of another controller: its labels, its snapshot shape."""
    world = World(serving(2))
    world.settle()
    own = world.status["updateRevision"]
    for (kind, name), item in list(world.objects.items()):
        labels = item["metadata"]["labels"]
        labels["modelserving.volcano.sh/revision"] = label
        labels.pop("modelserving.volcano.sh/role-template-hash", None)
        if kind is ChildKind.REVISION:
            del world.objects[kind, name]
            item["metadata"]["name"] = name = name.replace(own, label)
            stored = item["data"]["data"][0]
            stored["entryTemplate"]["metadata"] = {"creationTimestamp": None}
            stored["entryTemplate"]["spec"]["containers"][0]["resources"] = {}
            world.objects[kind, name] = item
    world.memory = {}
    world.status = {"currentRevision": label}
    return world


def test_ms_d1_a_snapshot_of_equal_content_gives_its_label_to_the_newest_revision() -> None:
    """Mutant: `own` instead of the label of an equal snapshot in `target_revision`."""
    world = foreign_fleet()
    uids = {name: world.uid(name) for name in world.pod_names()}
    planned = world.settle()
    assert {name: world.uid(name) for name in world.pod_names()} == uids
    assert planned.summary.update_revision == "67b8d4b8c7"
    assert world.counts() == (2, 2, 2, 2)


def test_ms_d1_pods_from_before_snapshots_are_adopted_by_what_they_run() -> None:
    world = foreign_fleet()
    for key in [key for key in world.objects if key[0] is ChildKind.REVISION]:
        del world.objects[key]
    for name in world.pod_names():
        spec = world.pod(name)["spec"]
        spec["dnsPolicy"] = "ClusterFirst"
        spec["containers"].append({"name": "injected-proxy", "image": "proxy"})
    world.observed()
    uids = {name: world.uid(name) for name in world.pod_names()}
    world.settle()
    assert {name: world.uid(name) for name in world.pod_names()} == uids
    assert [one["metadata"]["name"] for one in world.revisions()] == ["x-67b8d4b8c7"]


def test_ms_d1_pods_that_run_something_else_are_not_adopted() -> None:
    world = foreign_fleet()
    for key in [key for key in world.objects if key[0] is ChildKind.REVISION]:
        del world.objects[key]
    world.pod("x-1-prefill-0-0")["spec"]["containers"][0]["image"] = "other"
    assert world.plan().summary.update_revision != "67b8d4b8c7"


@pytest.mark.parametrize(
    ("stored", "equal"),
    [("1", True), ("1000m", True), ("1.0", True), ("2", False), ("1k", False)],
)
def test_quantities_are_compared_by_what_they_mean(stored: str, equal: bool) -> None:
    container = {"name": "engine", "image": "a", "resources": {"limits": {"cpu": "1"}}}
    world = World(serving(1, [role(entryTemplate={"spec": {"containers": [container]}})]))
    world.settle()
    (pod,) = world.pod_names()
    world.pod(pod)["metadata"]["labels"]["modelserving.volcano.sh/revision"] = "old"
    world.pod(pod)["metadata"]["labels"]["modelserving.volcano.sh/role-template-hash"] = "old"
    world.pod(pod)["spec"]["containers"][0]["resources"] = {"limits": {"cpu": stored}}
    for key in [key for key in world.objects if key[0] is ChildKind.REVISION]:
        del world.objects[key]
    assert (world.plan().summary.update_revision == "old") is equal


def test_snapshots_of_other_owners_and_shapes_are_no_history() -> None:
    world = World(serving(1))
    world.settle()
    stored = copy.deepcopy(world.revisions()[0])
    stored["metadata"]["ownerReferences"][0]["uid"] = "other"
    world.objects = {(ChildKind.REVISION, "x-other"): stored}
    assert world.plan().actions[0].child is ChildKind.REVISION


def test_content_is_the_same_whether_empty_fields_are_written_or_not() -> None:
    bare = [role_template({"name": "a", "workerReplicas": 0, "entryTemplate": {"spec": {}}})]
    full = {"metadata": {}, "spec": {"volumes": [], "nodeSelector": {}}}
    assert same_content(bare, [role_template({"name": "a", "entryTemplate": full})])
    assert not same_content(bare, [role_template({"name": "b"})])


def test_the_parsed_template_is_what_the_hash_covers() -> None:
    template = workload(1, [role(entryTemplate=pod_template("a", labels={"a": "1"}))]).roles[0]
    assert template.template.content["entryTemplate"]["metadata"] == {"labels": {"a": "1"}}
    assert template.template.entry.labels == {"a": "1"}
