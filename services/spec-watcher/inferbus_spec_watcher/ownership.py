"""Which objects are controlled by which, kept beside the picture.

Invariant: `children(uid)` are the keys of all stored objects whose controller has that uid.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import find_kind, kind_of
from inferbus_shared.objects.picture import controller_reference
from inferbus_spec_watcher.ports import Objects


class Owner(NamedTuple):
    """The controller of an object."""

    uid: str
    key: ObjectKey | None
    """None where its kind isn't known."""


class Ownership:
    """Owners and their children; make it before anybody else listens to the store."""

    def __init__(self, store: Objects) -> None:
        self._store = store
        self._owners: dict[ObjectKey, Owner] = {}
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
        before = self._owners.get(key)
        after = owner_of(key, stored.object) if stored else None
        self._move(key, before, after)
        for owner in dict.fromkeys((before, after)):
            if owner is not None and owner.key is not None:
                self._tell(owner.key)

    def _move(self, child: ObjectKey, before: Owner | None, after: Owner | None) -> None:
        if before == after:
            return
        if before is not None:
            del self._owners[child]
            self._children[before.uid].discard(child)
            if not self._children[before.uid]:
                del self._children[before.uid]
        if after is not None:
            self._owners[child] = after
            self._children.setdefault(after.uid, set()).add(child)

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


def owner_of(child: ObjectKey, document: Mapping[str, Any]) -> Owner | None:
    """The controller of a stored object; None without one."""
    reference = controller_reference(document)
    if reference is None:
        return None
    kind = find_kind(str(reference.get("apiVersion")), str(reference.get("kind")))
    key = kind.key(str(reference.get("name")), child.namespace) if kind else None
    return Owner(str(reference["uid"]), key)
