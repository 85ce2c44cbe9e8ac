"""Which objects are controlled by which, kept beside the picture.

Invariant: `children(uid)` are the keys of all stored objects whose controller has that uid.
"""

from collections.abc import Callable, Mapping
from typing import Any

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import find_kind, kind_of
from inferbus_shared.objects.picture import controller_reference
from inferbus_spec_watcher.object_store import ObjectStore


class Ownership:
    """Owners and their children; make it before anybody else listens to the store."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._owner_of: dict[ObjectKey, tuple[str, ObjectKey | None]] = {}
        self._children: dict[str, set[ObjectKey]] = {}
        self._listeners: list[Callable[[ObjectKey], None]] = []
        store.on_change(self._changed)

    def children(self, uid: str) -> tuple[ObjectKey, ...]:
        """The keys of what an owner controls, in order."""
        return tuple(sorted(self._children.get(uid, ())))

    def on_child_change(self, listener: Callable[[ObjectKey], None]) -> None:
        """Call back with an owner's key when something it controls, or did, changed or went."""
        self._listeners.append(listener)

    def _changed(self, key: ObjectKey) -> None:
        stored = self._store.get(key)
        before = self._owner_of.pop(key, None)
        after = _owner(key, stored.object) if stored else None
        if before is not None:
            self._children[before[0]].discard(key)
        if after is not None:
            self._owner_of[key] = after
            self._children.setdefault(after[0], set()).add(key)
        for owner in dict.fromkeys(one[1] for one in (before, after) if one is not None):
            if owner is not None:
                self._tell(owner)

    def _tell(self, owner: ObjectKey) -> None:
        for listener in self._listeners:
            listener(owner)


def owner_reference(owner: Mapping[str, Any]) -> dict[str, Any]:
    """The reference that makes a stored object the controller of another."""
    metadata = owner["metadata"]
    return {
        "apiVersion": kind_of(owner).api_version,
        "kind": kind_of(owner).kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _owner(child: ObjectKey, document: Mapping[str, Any]) -> tuple[str, ObjectKey | None] | None:
    """(uid, key) of the controller; the key is None where its kind isn't known."""
    reference = controller_reference(document)
    if reference is None:
        return None
    kind = find_kind(str(reference.get("apiVersion")), str(reference.get("kind")))
    key = kind.key(str(reference.get("name")), child.namespace) if kind else None
    return str(reference["uid"]), key
