"""What goes when its owner went (Kubernetes' background cascade)."""

from collections.abc import Iterable

from inferbus_contracts.keys import ObjectKey
from inferbus_spec_watcher.object_store import controller_uid
from inferbus_spec_watcher.policy_objects import Stored


def orphans(objects: Iterable[tuple[ObjectKey, Stored]]) -> list[ObjectKey]:
    """The keys of objects whose controlling owner is gone; by uid, so a namesake doesn't count."""
    known = list(objects)
    living = {stored.uid for _, stored in known}
    return [
        key
        for key, stored in known
        if (owner := controller_uid(stored.object)) and owner not in living
    ]
