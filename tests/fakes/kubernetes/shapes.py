"""How a value of an API type is merged: what is atomic, what is a list of keyed items, what a set.

Server-side apply and strategic merge patches ask these questions, the managed fields answer with
them. Built-in types are known by the names of their fields (the `listType` and `structType`
markers of k8s.io/api); custom resources say it in their schema, where lists are atomic by default.
"""

from collections.abc import Mapping
from typing import Any, Protocol


class Shape(Protocol):
    """`keys` names what identifies a list's items; `is_set` holds for lists of distinct scalars."""

    atomic: bool
    keys: tuple[str, ...]
    is_set: bool

    def child(self, name: str) -> "Shape":
        """The shape of a map's field."""

    def item(self) -> "Shape":
        """The shape of a keyed list's item."""


_KEYED: dict[str, tuple[str, ...]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "podIPs": ("ip",),
    "hostIPs": ("ip",),
    "addresses": ("type",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "ownerReferences": ("uid",),
    "resourceClaims": ("name",),
    "claims": ("name",),
    "secrets": ("name",),
}
_PORTS = {"spec": ("port", "protocol"), "containers": ("containerPort", "protocol")}
_SETS = frozenset({"finalizers"})
_ATOMIC = frozenset(
    {
        "selector",
        "nodeSelector",
        "labelSelector",
        "podSelector",
        "namespaceSelector",
        "fieldRef",
        "secretKeyRef",
        "configMapKeyRef",
        "resourceFieldRef",
        "involvedObject",
    }
)
_ATOMIC_ITEMS = frozenset({"ownerReferences", "imagePullSecrets"})
KEY_DEFAULTS = {"protocol": "TCP"}


class BuiltInShape:
    """By field name; made once per place in a type, for every write walks over them."""

    __slots__ = ("_children", "_item", "atomic", "is_set", "keys", "name")

    def __init__(self, name: str = "", parent: str = "", *, is_item: bool = False) -> None:
        self.name = name
        self.atomic = name in _ATOMIC_ITEMS if is_item else name in _ATOMIC
        self.is_set = name in _SETS
        ports = _PORTS.get(parent.removeprefix("init"), ()) if name == "ports" else ()
        self.keys: tuple[str, ...] = () if is_item else ports or _KEYED.get(name, ())
        self._children: dict[str, BuiltInShape] = {}
        self._item: BuiltInShape | None = None

    def child(self, name: str) -> "BuiltInShape":
        shape = self._children.get(name)
        if shape is None:
            shape = BuiltInShape(name, self.name)
            if len(self._children) < 200:  # label keys are many; field names are few
                self._children[name] = shape
        return shape

    def item(self) -> "BuiltInShape":
        if self._item is None:
            self._item = BuiltInShape(self.name, is_item=True)
        return self._item


BUILT_IN = BuiltInShape()


class SchemaShape:
    """As a custom resource's structural schema says; beneath unknown fields, lists are atomic."""

    __slots__ = ("_children", "_item", "_schema", "atomic", "is_set", "keys")

    def __init__(self, schema: Mapping[str, Any], *, root: bool = False) -> None:
        self._schema = schema
        self.atomic = schema.get("x-kubernetes-map-type") == "atomic"
        self.is_set = schema.get("x-kubernetes-list-type") == "set"
        self.keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
        self._children: dict[str, Shape] = {"metadata": BUILT_IN.child("metadata")} if root else {}
        self._item: Shape | None = None

    def child(self, name: str) -> Shape:
        shape = self._children.get(name)
        if shape is None:
            schema = self._schema.get("properties", {}).get(name)
            if schema is None:
                more = self._schema.get("additionalProperties")
                schema = more if isinstance(more, dict) else {}
                return SchemaShape(schema)
            shape = self._children[name] = SchemaShape(schema)
        return shape

    def item(self) -> Shape:
        if self._item is None:
            self._item = SchemaShape(self._schema.get("items", {}))
        return self._item
