"""The scale, binding and eviction subresources: other types, written through to the object."""

from collections.abc import Callable
from typing import Any

from tests.fakes.kubernetes.api import Api, Options, Target
from tests.fakes.kubernetes.catalog import Resource
from tests.fakes.kubernetes.deletion import DeleteOptions, delete
from tests.fakes.kubernetes.metadata import timestamp
from tests.fakes.kubernetes.status import conflict, invalid
from tests.fakes.kubernetes.store import Stored

Document = dict[str, Any]

REPLICAS = "spec.replicas"


def scale_of(resource: Resource, document: Document) -> Document:
    """The autoscaling/v1 Scale of an object."""
    meta = document["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Document = {"replicas": _at(document, resource.scale["statusReplicasPath"]) or 0}
    selector = _at(document, resource.scale.get("labelSelectorPath", "."))
    if selector:
        status["selector"] = selector if isinstance(selector, str) else _selector_text(selector)
    replicas = _at(document, resource.scale["specReplicasPath"])
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in kept if name in meta},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def _selector_text(selector: Document) -> str:
    return ",".join(f"{key}={value}" for key, value in selector.get("matchLabels", {}).items())


def _at(document: Document, path: str) -> Any:
    value: Any = document
    for name in path.strip(".").split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _put(document: Document, path: str, value: Any) -> None:
    *outer, last = path.strip(".").split(".")
    for name in outer:
        document = document.setdefault(name, {})
    document[last] = value


def update_scale(
    api: Api, target: Target, make: Callable[[Document], Document], options: Options
) -> Stored:
    """Set the replicas to what `make` makes of the Scale. Raises 409 when that is stale."""
    resource = target.resource

    def scaled(document: Document) -> Document:
        new = make(scale_of(resource, document))
        sent, meta = new.get("metadata", {}), document["metadata"]
        if sent.get("resourceVersion", meta["resourceVersion"]) != meta["resourceVersion"]:
            raise conflict(resource.group, resource.plural, target.name)
        if sent.get("uid", meta["uid"]) != meta["uid"]:
            because = (
                f"Precondition failed: UID in precondition: {sent['uid']},"
                f" UID in object meta: {meta['uid']}"
            )
            raise conflict(resource.group, resource.plural, target.name, because)
        _put(document, resource.scale["specReplicasPath"], _replicas(new))
        return document

    return api.update(target, scaled, options, whole=False)


def apply_scale(api: Api, target: Target, scale: Document, options: Options) -> Stored:
    """Server-side apply of a Scale: the manager comes to own the replicas."""
    api.get(target)
    config = {
        "apiVersion": target.resource.api_version,
        "kind": target.resource.kind,
        "metadata": scale.get("metadata", {}),
    }
    _put(config, target.resource.scale["specReplicasPath"], _replicas(scale))
    return api.apply(target, config, options)[0]


def _replicas(scale: Document) -> int:
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        because = f"Invalid value: {replicas}: must be greater than or equal to 0"
        name = scale.get("metadata", {}).get("name", "")
        raise invalid("autoscaling", "Scale", name, [("FieldValueInvalid", REPLICAS, because)])
    return replicas


def bind(api: Api, target: Target, binding: Document, options: Options) -> None:
    """Put a pod on a node, once. Raises 409 when it is on one, or is being deleted."""
    node = (binding.get("target") or {}).get("name", "")

    def bound(pod: Document) -> Document:
        on = pod["spec"].get("nodeName")
        if on:
            because = f'pod {target.name} is already assigned to node "{on}"'
            raise conflict("", "pods/binding", target.name, because)
        if "deletionTimestamp" in pod["metadata"]:
            because = f"pod {target.name} is being deleted, cannot be assigned to a host"
            raise conflict("", "pods/binding", target.name, because)
        pod["spec"]["nodeName"] = node
        return pod

    api.update(target, bound, options, whole=False)
    status = Target(target.resource, target.namespace, target.name, "status")
    api.update(status, _scheduled, options, whole=False)


def _scheduled(pod: Document) -> Document:
    others = [c for c in pod["status"].get("conditions", ()) if c["type"] != "PodScheduled"]
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(),
    }
    pod["status"]["conditions"] = [*others, scheduled]
    return pod


def evict(api: Api, target: Target, eviction: Document, options: Options) -> None:
    """Delete a pod as its eviction says; disruption budgets are not asked."""
    wanted = DeleteOptions.read(eviction.get("deleteOptions") or {}, {})
    delete(api, Target(target.resource, target.namespace, target.name), wanted)
