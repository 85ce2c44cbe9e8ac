"""A running fleet of Kthena's own controllers is taken over (modelserving spec 2, 7; MS_D1).

Nothing is deleted, nothing restarts, and what comes later works as ever.
"""

from typing import Any

import pytest
from workload_builders import pod_template, role
from workload_kthena import LABEL, REVISION, add_snapshot, of_first_version, of_newest_version
from workload_volcano import NEW, NEW_SCHEMA, OLD, gang, on_volcano
from workload_world import World

from inferbus_workload_reconciler.actions import ChildKind, Update
from inferbus_workload_reconciler.observed import Cluster


def template(image: str = "a") -> dict[str, Any]:
    """What a user writes: quantities of his own, empty fields, mounts and tolerations."""
    built = pod_template(image, labels={"team": "blue"})
    engine = built["spec"]["containers"][0]
    engine["resources"] = {"requests": {"cpu": "1000m", "memory": "2048Mi"}}
    engine["env"] = [
        {"name": "EMPTY", "value": ""},
        {"name": "ONE", "value": "1"},
        {"name": "GROUP_SIZE", "value": "set by the platform"},
    ]
    engine["args"] = ["--port", "80"]
    mount = {"name": "model", "readOnly": False}
    engine["volumeMounts"] = [{**mount, "mountPath": "/a"}, {**mount, "mountPath": "/b"}]
    built["spec"] |= {
        "volumes": [{"name": "model", "emptyDir": {}}],
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "hostNetwork": False,
        "nodeSelector": {},
    }
    return built


def roles(image: str = "a") -> list[dict[str, Any]]:
    one = template(image)
    return [
        role("prefill", 1, 1, entryTemplate=one, workerTemplate=one),
        role("decode", 1, entryTemplate=one),
    ]


def uids(world: World) -> dict[str, str]:
    return {name: world.uid(name) for name in world.pod_names()}


FIRST_GANG = {"gangPolicy": {"minRoleReplicas": {"prefill": 1}}}


@pytest.mark.parametrize("cluster", [OLD, NEW, Cluster(volcano=True), Cluster(volcano=False)])
def test_ms_d1_a_fleet_of_the_first_version_is_taken_over(cluster: Cluster) -> None:
    world = of_first_version(on_volcano(gang(2, roles(), **FIRST_GANG), cluster))
    before = uids(world)
    world.settle()
    assert uids(world) == before
    assert world.created == []
    assert world.counts() == (2, 2, 2, 2)
    assert world.status["updateRevision"] == "5b9c8d7f"
    assert [one["metadata"]["name"] for one in world.revisions()] == ["x-5b9c8d7f"]
    for name in world.pod_groups():
        assert "minTaskMember" not in world.pod_group(name)
        has_subgroups = "subGroupPolicy" in world.pod_group(name)
        assert has_subgroups == (cluster.pod_group_schema in (None, NEW_SCHEMA))


def test_services_of_the_first_version_select_what_they_should() -> None:
    """They selected by revision too, and would lose the pod at the next change."""
    world = of_first_version(on_volcano(gang(1, roles())))
    world.settle()
    stored = world.objects[ChildKind.SERVICE, "x-0-prefill-0-0"]
    assert stored["spec"]["selector"] == {
        f"{LABEL}/group-name": "x-0",
        f"{LABEL}/role": "prefill",
        f"{LABEL}/role-id": "prefill-0",
        f"{LABEL}/entry": "true",
    }
    assert stored["metadata"]["labels"][f"{LABEL}/name"] == "x"
    assert stored["spec"]["clusterIP"] == "None"


@pytest.mark.parametrize("cluster", [NEW, Cluster(volcano=True), Cluster(volcano=False)])
def test_ms_d1_a_fleet_of_the_newest_version_is_taken_over(cluster: Cluster) -> None:
    world = of_newest_version(on_volcano(gang(2, roles()), cluster))
    before = uids(world)
    assert world.plan().actions == ()
    world.settle()
    assert uids(world) == before
    assert world.counts() == (2, 2, 2, 2)
    revisions = (world.status["currentRevision"], world.status["updateRevision"])
    assert revisions == ("67b8d4b8c7", "67b8d4b8c7")


def test_ms_d1_roles_of_several_revisions_are_taken_over() -> None:
    """RoleRollingUpdate leaves roles behind whose templates didn't change."""
    knobs: dict[str, Any] = {"by_role": True}
    world = of_newest_version(on_volcano(gang(1, roles(), **knobs)))
    older = roles()
    older[0]["entryTemplate"] = template("z")
    add_snapshot(world, "9f8d7c", older)
    world.pod("x-0-decode-0-0")["metadata"]["labels"][REVISION] = "9f8d7c"
    before = uids(world)
    world.settle()
    assert uids(world) == before
    assert world.counts() == (1, 1, 1, 1)


@pytest.mark.parametrize("convert", [of_first_version, of_newest_version])
def test_a_fleet_that_was_taken_over_rolls_when_its_templates_change(convert: Any) -> None:
    world = convert(on_volcano(gang(2, roles())))
    world.settle()
    world.apply(gang(2, roles("b")))
    world.settle()
    assert {world.image(name) for name in world.pod_names()} == {"b"}
    assert world.status["currentRevision"] == world.status["updateRevision"] != "67b8d4b8c7"


@pytest.mark.parametrize("convert", [of_first_version, of_newest_version])
def test_a_fleet_that_was_taken_over_refills_what_is_lost(convert: Any) -> None:
    world = convert(on_volcano(gang(1, roles())))
    world.settle()
    world.fail("x-0-prefill-0-1")
    world.settle()
    assert sorted(world.created) == ["x-0-prefill-0-0", "x-0-prefill-0-1"]
    assert world.counts() == (1, 1, 1, 1)


@pytest.mark.parametrize("change", ["image", "label", "args", "missing variable"])
def test_a_pod_of_other_content_is_not_adopted(change: str) -> None:
    world = of_first_version(on_volcano(gang(1, roles())))
    pod = world.pod("x-0-decode-0-0")
    engine = pod["spec"]["containers"][0]
    if change == "image":
        engine["image"] = "b"
    elif change == "label":
        pod["metadata"]["labels"]["team"] = "red"
    elif change == "args":
        engine["args"] = ["--port", "81"]
    else:
        engine["env"] = [one for one in engine["env"] if one["name"] != "ONE"]
    world.settle()
    assert world.status["updateRevision"] != "5b9c8d7f"
    assert "x-0-decode-0-0" in world.created


def test_a_value_that_looks_like_a_quantity_is_none() -> None:
    """`1000m` is `1` among resources; as an argument it is another word."""
    world = on_volcano(gang(1, [role(entryTemplate=template())]))
    changed = template()
    changed["spec"]["containers"][0]["env"][1]["value"] = "1000m"
    world.apply(gang(1, [role(entryTemplate=changed)]))
    world.settle()
    assert len(world.created) == 2
    amounts = template()
    amounts["spec"]["containers"][0]["env"][1]["value"] = "1000m"
    amounts["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    world.apply(gang(1, [role(entryTemplate=amounts)]))
    world.settle()
    assert len(world.created) == 2


def test_an_update_of_a_service_names_only_what_differs() -> None:
    world = of_first_version(on_volcano(gang(1, roles())))
    (action,) = [one for one in world.plan().actions if one.child is ChildKind.SERVICE]
    assert isinstance(action, Update)
    selector = action.changes["spec"]["selector"]
    assert selector[REVISION] is selector["team"] is selector[f"{LABEL}/name"] is None
    assert f"{LABEL}/role" not in selector
