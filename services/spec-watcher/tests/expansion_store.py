"""A store for expansion tests: admitted objects, and children expanded until nothing is new."""

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from inferbus_contracts.admission import admit
from inferbus_contracts.admission.schema import json_type
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import key_of
from inferbus_spec_watcher.expansion import Expansion, ExpansionSettings, expand

Document = dict[str, Any]


class Store:
    """Objects as the spec-watcher keeps them; a child gets its parent as owner."""

    def __init__(self, *documents: Mapping[str, Any], **settings: Any) -> None:
        self.settings = ExpansionSettings(**settings)
        self.objects: dict[ObjectKey, Document] = {}
        self.put(*documents)

    def put(self, *documents: Mapping[str, Any], owner: Mapping[str, Any] | None = None) -> None:
        for document in documents:
            admitted = admit(document)
            metadata = {"uid": uid(admitted.key), **admitted.object["metadata"]}
            if owner is not None:
                metadata["ownerReferences"] = [_reference(owner)]
            self.objects[admitted.key] = {**admitted.object, "metadata": metadata}

    def get(self, kind: str, name: str, namespace: str = "default") -> Document:
        return self.objects[ObjectKey(kind, namespace, name)]

    def expand(self, kind: str, name: str, namespace: str = "default") -> Expansion:
        result = expand(self.get(kind, name, namespace), self.objects.get, self.settings)
        assert result is not None, json_type(kind)
        return result

    def settle(self) -> list[Document]:
        """Expand everything and its children; all children, in order."""
        made: list[Document] = []
        waiting = list(self.objects.values())
        for parent in waiting:
            result = expand(parent, self.objects.get, self.settings)
            for child in result.children if result is not None else ():
                self.put(child, owner=parent)
                made.append(child)
                waiting.append(self.objects[key_of(child)])
        return made


def uid(key: ObjectKey) -> str:
    """The same in every run."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, str(key)))


def _reference(owner: Mapping[str, Any]) -> Document:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def child(result: Expansion, kind: str, name: str = "") -> Document:
    """The one child of a kind (its token), or the one of that name."""
    found = [
        one
        for one in result.children
        if key_of(one).kind == kind and name in ("", one["metadata"]["name"])
    ]
    assert len(found) == 1, [str(key_of(one)) for one in result.children]
    return found[0]


def kinds(result: Expansion) -> list[str]:
    """Tokens of the children, in order."""
    return [key_of(one).kind for one in result.children]


def conditions(result: Expansion) -> dict[str, tuple[str, str]]:
    """Status and reason by type."""
    return {one.type: (one.status.value, one.reason) for one in result.conditions}


def read_documents(path: Path) -> list[Document]:
    """The documents of a file; a byte-order mark is no part of them."""
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8-sig")))
