"""Which resources the server serves, and the discovery documents that say so.

Built-in resources are a table; custom resources come and go with their CustomResourceDefinitions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.kubernetes.shapes import BUILT_IN, SchemaShape, Shape

Document = dict[str, Any]

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_METADATA_FIELDS = frozenset({"metadata.name", "metadata.namespace"})


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One resource in one served version.

    `scale` holds the dotted paths of the scale subresource (`specReplicasPath`, ...); `fields`
    those that field selectors may name; `immutable` the fields that no update may change.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    status: bool = False
    scale: Mapping[str, str] = field(default_factory=dict)
    custom: bool = False
    generation: bool = False
    schema: Mapping[str, Any] = field(default_factory=dict)
    shape: Shape = BUILT_IN
    fields: frozenset[str] = frozenset()
    immutable: tuple[str, ...] = ()
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def subresources(self) -> tuple[str, ...]:
        own = (("status",) if self.status else ()) + (("scale",) if self.scale else ())
        return own + self.others

    @property
    def selectable(self) -> frozenset[str]:
        return self.fields | _METADATA_FIELDS

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def prefix(self) -> bytes:
        """What an object's JSON begins with: the stored rest is the same in every version."""
        return f'{{"apiVersion":"{self.api_version}","kind":"{self.kind}",'.encode()

    @property
    def item_prefix(self) -> bytes:
        """Items of lists of built-in types carry neither apiVersion nor kind; custom ones do."""
        return self.prefix if self.custom else b"{"


_REPLICAS = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".spec.selector",
}
_POD_FIELDS = frozenset(
    {
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
    }
)
_EVENT_FIELDS = frozenset(
    {
        "involvedObject.kind",
        "involvedObject.name",
        "involvedObject.namespace",
        "involvedObject.uid",
        "reason",
        "type",
    }
)


def _core(plural: str, kind: str, **more: Any) -> Resource:
    return Resource("", "v1", plural, kind, **more)


def _apps(plural: str, kind: str, **more: Any) -> Resource:
    return Resource("apps", "v1", plural, kind, generation=True, status=True, **more)


BUILT_INS: tuple[Resource, ...] = (
    _core(
        "pods",
        "Pod",
        status=True,
        generation=True,
        fields=_POD_FIELDS,
        short_names=("po",),
        categories=("all",),
        others=("binding", "eviction"),
    ),
    _core("services", "Service", status=True, short_names=("svc",), categories=("all",)),
    _core("configmaps", "ConfigMap", short_names=("cm",)),
    _core("secrets", "Secret", fields=frozenset({"type"})),
    _core("serviceaccounts", "ServiceAccount", short_names=("sa",)),
    _core("endpoints", "Endpoints", short_names=("ep",)),
    _core("persistentvolumeclaims", "PersistentVolumeClaim", status=True, short_names=("pvc",)),
    _core("events", "Event", fields=_EVENT_FIELDS, short_names=("ev",)),
    _core(
        "nodes",
        "Node",
        namespaced=False,
        status=True,
        fields=frozenset({"spec.unschedulable"}),
        short_names=("no",),
    ),
    _core(
        "namespaces",
        "Namespace",
        namespaced=False,
        status=True,
        fields=frozenset({"status.phase"}),
        short_names=("ns",),
    ),
    _apps("deployments", "Deployment", scale=_REPLICAS, short_names=("deploy",)),
    _apps("replicasets", "ReplicaSet", scale=_REPLICAS, short_names=("rs",)),
    _apps("statefulsets", "StatefulSet", scale=_REPLICAS, short_names=("sts",)),
    Resource("apps", "v1", "controllerrevisions", "ControllerRevision", immutable=("data",)),
    Resource(
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        status=True,
        short_names=("hpa",),
    ),
    Resource("coordination.k8s.io", "v1", "leases", "Lease"),
    Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", generation=True),
    Resource(
        "policy",
        "v1",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        status=True,
        generation=True,
        short_names=("pdb",),
    ),
    Resource("rbac.authorization.k8s.io", "v1", "roles", "Role"),
    Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
    Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False),
    Resource(
        "rbac.authorization.k8s.io",
        "v1",
        "clusterrolebindings",
        "ClusterRoleBinding",
        namespaced=False,
    ),
    Resource(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        namespaced=False,
        status=True,
        generation=True,
        short_names=("crd", "crds"),
    ),
)


def resources_of_definition(definition: Mapping[str, Any]) -> tuple[Resource, ...]:
    """The resources that a CustomResourceDefinition makes served, one per served version."""
    spec = definition["spec"]
    names = spec["names"]
    return tuple(
        _custom(spec, names, version) for version in spec["versions"] if version.get("served")
    )


def _custom(
    spec: Mapping[str, Any], names: Mapping[str, Any], version: Mapping[str, Any]
) -> Resource:
    schema = version.get("schema", {}).get("openAPIV3Schema", {})
    subresources = version.get("subresources") or {}
    selectable = version.get("selectableFields", ())
    return Resource(
        group=spec["group"],
        version=version["name"],
        plural=names["plural"],
        kind=names["kind"],
        namespaced=spec.get("scope", "Namespaced") == "Namespaced",
        status="status" in subresources,
        scale=subresources.get("scale") or {},
        custom=True,
        generation=True,
        schema=schema,
        shape=SchemaShape(schema, root=True),
        fields=frozenset(each["jsonPath"].lstrip(".") for each in selectable),
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
    )


class Catalog:
    """The served resources by (group, version, plural)."""

    def __init__(self, resources: Iterable[Resource] = BUILT_INS) -> None:
        self._served = {(r.group, r.version, r.plural): r for r in resources}

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._served.get((group, version, plural))

    def namespaced(self) -> list[Resource]:
        return [resource for resource in self._served.values() if resource.namespaced]

    def serve(self, resources: Iterable[Resource]) -> None:
        for resource in resources:
            self._served[resource.group, resource.version, resource.plural] = resource

    def remove(self, group: str, plural: str) -> None:
        self._served = {
            key: resource
            for key, resource in self._served.items()
            if (resource.group, resource.plural) != (group, plural)
        }

    def discovery(self, path: str) -> Document | None:
        """The document at a discovery path, or None where there is none."""
        parts = path.strip("/").split("/")
        if parts == ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        if parts == ["apis"]:
            groups = dict.fromkeys(group for group, _, _ in self._served if group)
            return {
                "kind": "APIGroupList",
                "apiVersion": "v1",
                "groups": [self._group(group) for group in groups],
            }
        if parts[0] == "apis" and len(parts) == 2 and self._versions(parts[1]):
            return {"kind": "APIGroup", "apiVersion": "v1", **self._group(parts[1])}
        if parts[0] == "apis" and len(parts) == 3:
            return self._resource_list(parts[1], parts[2])
        if parts == ["api", "v1"]:
            return self._resource_list("", "v1")
        return None

    def built_in(self, path: str) -> bool:
        """Whether a path lies in a group and version that the server has of itself."""
        parts = path.strip("/").split("/")
        place = ("", parts[1]) if parts[0] == "api" and len(parts) > 1 else tuple(parts[1:3])
        return any((each.group, each.version) == place for each in BUILT_INS)

    def _versions(self, group: str) -> list[str]:
        return list(dict.fromkeys(v for g, v, _ in self._served if g == group))

    def _group(self, group: str) -> Document:
        versions = [
            {"groupVersion": f"{group}/{version}", "version": version}
            for version in self._versions(group)
        ]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _resource_list(self, group: str, version: str) -> Document | None:
        served = [r for (g, v, _), r in self._served.items() if (g, v) == (group, version)]
        if not served:
            return None
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": served[0].api_version,
            "resources": [entry for resource in served for entry in _entries(resource)],
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
