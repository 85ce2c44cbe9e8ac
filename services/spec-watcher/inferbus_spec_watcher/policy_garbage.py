"""What goes when its owner went (Kubernetes' background cascade)."""

from collections.abc import Iterable

from inferbus_contracts.keys import ObjectKey
from inferbus_shared.objects.picture import StoredObject, controller_uid


def orphans(objects: Iterable[tuple[ObjectKey, StoredObject]]) -> list[ObjectKey]:
    """The keys of objects whose controlling owner is gone; by uid, so a namesake doesn't count."""
    known = list(objects)
    living = {stored.uid for _, stored in known}
    return [
        key
        for key, stored in known
        if (owner := controller_uid(stored.object)) and owner not in living
    ]
