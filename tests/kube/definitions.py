"""A custom kind for tests of API servers, of another group in each test: all share one server."""

import uuid
from typing import Any

from tests.support.eventually import eventually
from tests.support.kube_calls import KubeCalls, path_of

Document = dict[str, Any]
CRDS = path_of("customresourcedefinitions", group="apiextensions.k8s.io")

_SPEC: Document = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer", "default": 1},
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "code": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 4},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "names": {"type": "array", "items": {"type": "string"}},
        "roles": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "replicas": {"type": "integer", "default": 1},
                },
            },
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
_STATUS: Document = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "selector": {"type": "string"},
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["type", "status"],
                "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
            },
        },
    },
}


class Widgets:
    """A custom kind with status and scale, in a group of its own."""

    def __init__(self, calls: KubeCalls, namespace: str) -> None:
        self.calls = calls
        self.group = f"g{uuid.uuid4().hex[:8]}.example.com"
        self.namespace = namespace
        self.api_version = f"{self.group}/v1"

    def definition(self, *, subresources: bool = True) -> Document:
        scale = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        }
        schema = {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}}
        version: Document = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema},
        }
        if subresources:
            version["subresources"] = {"status": {}, "scale": scale}
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"widgets.{self.group}"},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"kind": "Widget", "plural": "widgets", "shortNames": ["wi"]},
                "versions": [version],
            },
        }

    async def install(self, *, subresources: bool = True) -> "Widgets":
        answer = await self.calls.post(CRDS, self.definition(subresources=subresources))
        assert answer.code == 201, answer
        await eventually(self.served, what="the new kind is served")
        return self

    async def served(self) -> bool:
        return (await self.calls.get(self.path())).code == 200

    def path(self, name: str = "", subresource: str = "") -> str:
        return path_of("widgets", self.namespace, name, subresource, group=self.group)

    def widget(self, name: str = "w", **more: Any) -> Document:
        return {
            "apiVersion": self.api_version,
            "kind": "Widget",
            "metadata": {"name": name},
            **more,
        }
