"""What the API server calls each resource, and where it lives.

Invariant: `kind` is the project's own token of a kind, as in `ObjectKey`; `api_kind` is what the
API calls it. The two differ for core/v1 Service alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from inferbus_contracts.keys import NO_NAMESPACE, ObjectKey
from inferbus_contracts.resources import kinds


@dataclass(frozen=True, slots=True)
class ApiResource:
    """One resource of the API server."""

    group: str
    """Empty for core."""
    version: str
    plural: str
    kind: str
    """The project's token (contracts, `resources.kinds`)."""
    namespaced: bool = True
    api_kind: str = ""
    """What the API calls it; the token unless given."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "api_kind", self.api_kind or self.kind)

    @property
    def api_version(self) -> str:
        """`<group>/<version>`, or the version alone for core."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_path(self) -> str:
        """Where the API server serves this group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of an object, or without a name of the collection.

        Without a namespace it is the collection of all namespaces. `_` is no namespace, as in keys.
        """
        parts = [self.group_path]
        if self.namespaced and namespace and namespace != NO_NAMESPACE:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        parts += [quote(part, safe="") for part in (name, subresource) if part]
        return "/".join(parts)

    def key(self, namespace: str, name: str) -> ObjectKey:
        """The key of an object; the namespace of a cluster-scoped one is `_`."""
        return ObjectKey(self.kind, namespace if self.namespaced else NO_NAMESPACE, name)

    def key_of(self, document: Mapping[str, Any]) -> ObjectKey:
        """The key of an object as the API server shows it; raises `KeyError` without a name."""
        metadata = document["metadata"]
        return self.key(metadata.get("namespace", ""), metadata["name"])


def resource_of(kind: str) -> ApiResource:
    """The resource of a kind's token; raises `KeyError` for a kind the registry doesn't know."""
    row = kinds.KINDS[kind]
    return ApiResource(
        row.group, row.version, row.plural, row.token, row.namespaced, api_kind=row.kind
    )


POD = resource_of(kinds.POD)
SERVICE = resource_of(kinds.CORE_SERVICE)
CONFIG_MAP = resource_of(kinds.CONFIG_MAP)
SECRET = resource_of(kinds.SECRET)
CONTROLLER_REVISION = resource_of(kinds.CONTROLLER_REVISION)
HORIZONTAL_POD_AUTOSCALER = resource_of(kinds.HORIZONTAL_POD_AUTOSCALER)
LEADER_WORKER_SET = resource_of(kinds.LEADER_WORKER_SET)
NODE = ApiResource("", "v1", "nodes", "Node", namespaced=False)
NAMESPACE = ApiResource("", "v1", "namespaces", "Namespace", namespaced=False)
EVENT = ApiResource("", "v1", "events", "Event")
POD_GROUP = ApiResource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
CUSTOM_RESOURCE_DEFINITION = ApiResource(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
