"""Which resources the server serves.

Built-in resources are a table; custom resources come and go with their CustomResourceDefinitions.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.kubernetes.shapes import BUILT_IN, SchemaShape, Shape

Document = dict[str, Any]

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

    def built_in(self, path: str) -> bool:
        """Whether a path lies in a group and version that the server has of itself."""
        parts = path.strip("/").split("/")
        place = ("", parts[1]) if parts[0] == "api" and len(parts) > 1 else tuple(parts[1:3])
        return any((each.group, each.version) == place for each in BUILT_INS)

    def served(self) -> list[Resource]:
        return list(self._served.values())
