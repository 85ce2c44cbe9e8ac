"""Fleets as Kthena's own controllers leave them (modelserving spec 2, 3.15)."""

import copy
from typing import Any

from workload_world import World

from inferbus_workload_reconciler.actions import ChildKind

LABEL = "modelserving.volcano.sh"
REVISION = f"{LABEL}/revision"
ROLE_HASH = f"{LABEL}/role-template-hash"
SETTINGS = "inferbus.dev/pod-settings"
DEFAULT_TOLERATION = {
    "key": "node.kubernetes.io/not-ready",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 300,
}


def of_first_version(world: World) -> World:
    """Turn a settled fleet into one of v0.1: no snapshots, other labels, selectors and gangs."""
    for (kind, name), item in list(world.objects.items()):
        labels = item["metadata"].get("labels", {})
        if kind is ChildKind.REVISION:
            del world.objects[kind, name]
        elif kind is ChildKind.POD:
            _relabel(item, "5b9c8d7f")
            del labels[ROLE_HASH]
            if f"{LABEL}/entry" not in labels:
                item["spec"]["schedulerName"] = "default-scheduler"
        elif kind is ChildKind.POD_GROUP:
            spec = item["spec"]
            item["spec"] = {
                "minMember": spec["minMember"],
                "minResources": spec["minResources"],
                "minTaskMember": {"prefill-0": 2, "decode-0": 1},
                "queue": "default",
            }
    for (kind, name), item in world.objects.items():
        if kind is ChildKind.SERVICE:
            del item["metadata"]["labels"][f"{LABEL}/name"]
            item["spec"]["selector"] = dict(world.pod(name)["metadata"]["labels"])
    world.status = {"observedGeneration": 1, "replicas": 2, "availableReplicas": 2}
    return _left(world)


def of_newest_version(world: World, revision: str = "67b8d4b8c7") -> World:
    """Turn a settled fleet into one of the newest version: hashes and snapshots of its own."""
    (snapshot,) = world.revisions()
    del world.objects[ChildKind.REVISION, snapshot["metadata"]["name"]]
    for (kind, _), item in world.objects.items():
        if kind is ChildKind.POD:
            _relabel(item, revision)
            item["metadata"]["labels"][ROLE_HASH] = "b4d8c6"
    add_snapshot(world, revision, world.document["spec"]["template"]["roles"])
    world.status |= {"currentRevision": revision, "updateRevision": revision}
    return _left(world)


def add_snapshot(world: World, revision: str, roles: list[dict[str, Any]]) -> None:
    """A ControllerRevision as a program that reads into types writes it."""
    document = world.document
    name = f"{document['metadata']['name']}-{revision}"
    owner = next(iter(world.objects.values()))["metadata"]["ownerReferences"][0]
    world.objects[ChildKind.REVISION, name] = {
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "uid": f"uid-{revision}",
            "labels": {f"{LABEL}/name": document["metadata"]["name"], REVISION: revision},
            "ownerReferences": [owner],
        },
        "revision": 1,
        "data": {"data": [_typed(one) for one in copy.deepcopy(roles)]},
    }


def _typed(role: dict[str, Any]) -> dict[str, Any]:
    for part in ("entryTemplate", "workerTemplate"):
        if part in role:
            role[part]["metadata"] = {"creationTimestamp": None, **role[part]["metadata"]}
            for container in role[part]["spec"]["containers"]:
                container.setdefault("resources", {})
                for amounts in container["resources"].values():
                    amounts.update({key: _rewritten(value) for key, value in amounts.items()})
                for variable in container.get("env", []):
                    if variable.get("value") == "":
                        del variable["value"]
    role["maxUnavailable"] = 1
    return role


def _rewritten(quantity: str) -> str:
    return {"1000m": "1", "2048Mi": "2Gi"}.get(quantity, quantity)


def _relabel(pod: dict[str, Any], revision: str) -> None:
    pod["metadata"]["labels"][REVISION] = revision
    pod["metadata"]["annotations"].pop(SETTINGS, None)
    spec = pod["spec"]
    spec["tolerations"] = [*spec.get("tolerations", []), DEFAULT_TOLERATION]
    spec["terminationGracePeriodSeconds"] = 30
    spec["volumes"] = [*spec.get("volumes", []), {"name": "token", "emptyDir": {}}]
    for container in spec["containers"]:
        mounts = [*container.get("volumeMounts", []), {"name": "token", "mountPath": "/token"}]
        container |= {"imagePullPolicy": "IfNotPresent", "volumeMounts": mounts}
        amounts = container.get("resources", {}).get("requests", {})
        amounts.update({key: _rewritten(value) for key, value in amounts.items()})


def _left(world: World) -> World:
    world.memory = {}
    world.observed()
    world.created.clear()
    return world
