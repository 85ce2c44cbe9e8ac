"""The full expansion of a small object (modelserving spec 2.12), without its PodGroups."""

from typing import Any

from workload_builders import pod_template, role, serving
from workload_world import World

DOMAIN = "modelserving.volcano.sh"


def small_object() -> dict[str, Any]:
    prefill = role("prefill", workers=1)
    decode = role("decode", replicas=2)
    return serving(2, [prefill, decode], name="m")


def env(world: World, name: str) -> dict[str, str]:
    container = world.pod(name)["spec"]["containers"][0]
    return {one["name"]: one["value"] for one in container["env"]}


def test_objects_and_their_order() -> None:
    world = World(small_object())
    planned = world.plan()
    revision = planned.summary.update_revision
    assert [action.name for action in planned.actions] == [
        f"m-{revision}",
        *(
            f"m-{group}-{rest}"
            for group in (0, 1)
            for rest in ("prefill-0-0", "prefill-0-1", "decode-0-0", "decode-1-0")
        ),
        "m-0-prefill-0-0",
        "m-1-prefill-0-0",
    ]
    assert [action.child for action in planned.actions[-2:]] == ["CoreService", "CoreService"]


def test_labels_and_environment_of_every_kind_of_pod() -> None:
    world = World(small_object())
    world.settle()
    revision = world.status["updateRevision"]
    entry = world.pod("m-0-prefill-0-0")["metadata"]["labels"]
    assert entry | {f"{DOMAIN}/role-template-hash": "hp"} == {
        f"{DOMAIN}/name": "m",
        f"{DOMAIN}/group-name": "m-0",
        f"{DOMAIN}/role": "prefill",
        f"{DOMAIN}/role-id": "prefill-0",
        f"{DOMAIN}/revision": revision,
        f"{DOMAIN}/role-template-hash": "hp",
        f"{DOMAIN}/entry": "true",
    }
    assert f"{DOMAIN}/entry" not in world.pod("m-0-prefill-0-1")["metadata"]["labels"]
    assert world.label("m-1-decode-1-0", "role-id") == "decode-1"
    assert world.label("m-1-decode-1-0", "entry") == "true"
    shared = {"GROUP_SIZE": "2", "ENTRY_ADDRESS": "m-0-prefill-0-0.default"}
    assert env(world, "m-0-prefill-0-0") == shared | {"WORKER_INDEX": "0"}
    assert env(world, "m-0-prefill-0-1") == shared | {"WORKER_INDEX": "1"}
    assert env(world, "m-0-decode-1-0") == {
        "GROUP_SIZE": "1",
        "ENTRY_ADDRESS": "m-0-decode-1-0.default",
        "WORKER_INDEX": "0",
    }


def test_status_events_and_services_when_ready() -> None:
    world = World(small_object())
    world.settle()
    assert world.services() == ["m-0-prefill-0-0", "m-1-prefill-0-0"]
    assert world.counts() == (2, 2, 2, 2)
    assert world.status["currentRevision"] == world.status["updateRevision"]
    assert world.true_conditions() == ["Available"]
    assert world.status["labelSelector"] == (
        f"{DOMAIN}/entry=true,{DOMAIN}/name=m,{DOMAIN}/role-id=prefill-0,{DOMAIN}/role=prefill"
    )
    assert world.events == ["RoleCreating"] * 6 + ["RoleRunning"] * 6


def test_ms_t66_a_new_object_tells_when_its_roles_are_created_and_running() -> None:
    world = World(serving(1))
    world.settle()
    assert world.events == ["RoleCreating", "RoleRunning"]


def test_a_settled_fleet_is_left_alone() -> None:
    world = World(small_object())
    world.settle()
    planned = world.plan()
    assert planned.actions == ()
    assert planned.events == ()
    assert planned.next_check_ms is None
    assert dict(planned.status) == world.status


def test_the_owner_shows_in_every_child() -> None:
    world = World(serving(1, [role(workers=1, workerTemplate=pod_template("w"))]))
    world.settle()
    owners = [item["metadata"]["ownerReferences"] for item in world.objects.values()]
    assert len(owners) == 4
    assert all(len(one) == 1 and one[0]["uid"] == "ms-1" for one in owners)
