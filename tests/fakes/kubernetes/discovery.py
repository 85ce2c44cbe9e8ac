"""Discovery: the documents that say which groups, versions and resources are served."""

from collections.abc import Sequence
from typing import Any

from tests.fakes.kubernetes.catalog import Resource

Document = dict[str, Any]

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def discovery(served: Sequence[Resource], path: str) -> Document | None:
    """The document at a discovery path, or None where there is none."""
    parts = path.strip("/").split("/")
    groups = _groups(served)
    match parts:
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["apis"]:
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": list(groups.values())}
        case ["apis", group] if group in groups:
            return {"kind": "APIGroup", "apiVersion": "v1", **groups[group]}
        case ["apis", group, version]:
            return _resource_list([r for r in served if (r.group, r.version) == (group, version)])
        case ["api", "v1"]:
            return _resource_list([r for r in served if not r.group])
    return None


def _groups(served: Sequence[Resource]) -> dict[str, Document]:
    """The entry of each named group; the version served first is the preferred one."""
    groups: dict[str, Document] = {}
    for resource in served:
        if not resource.group:
            continue
        version = {"groupVersion": resource.api_version, "version": resource.version}
        first = {"name": resource.group, "versions": [], "preferredVersion": version}
        versions = groups.setdefault(resource.group, first)["versions"]
        if version not in versions:
            versions.append(version)
    return groups


def _resource_list(resources: Sequence[Resource]) -> Document | None:
    if not resources:
        return None
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": resources[0].api_version,
        "resources": [entry for resource in resources for entry in _entries(resource)],
    }


def _entries(resource: Resource) -> list[Document]:
    own: Document = {
        "name": resource.plural,
        "singularName": resource.kind.lower(),
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(_VERBS),
    }
    if resource.short_names:
        own["shortNames"] = list(resource.short_names)
    if resource.categories:
        own["categories"] = list(resource.categories)
    return [own, *(_subresource(resource, name) for name in resource.subresources)]


_SUBRESOURCE_KINDS = {
    "scale": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
    "binding": {"kind": "Binding"},
    "eviction": {"group": "policy", "version": "v1", "kind": "Eviction"},
}


def _subresource(resource: Resource, name: str) -> Document:
    creates = name in ("binding", "eviction")
    return {
        "name": f"{resource.plural}/{name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": ["create"] if creates else ["get", "patch", "update"],
        **_SUBRESOURCE_KINDS.get(name, {}),
    }
