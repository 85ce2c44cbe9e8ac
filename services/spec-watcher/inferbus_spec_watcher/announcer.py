"""spec.changed for every object that people or the expander own, and a tombstone when it goes.

Pods, Services, revisions and Secrets are not announced: the first three are the reconciler's own
doing (workload.observed tells of them), and nothing of a Secret belongs on the bus.

Invariant: of an object that was refused the last fact stays what others see, until it is put right
or goes; so it does where the picture can't show whether an object is there. One that is going can't
come back, and counts as gone.
"""

from collections.abc import Mapping
from typing import Any

from inferbus_contracts.canonical import digest
from inferbus_contracts.events.spec import SpecChanged
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import DECISION_ID
from inferbus_shared.bus.membership import Membership
from inferbus_shared.bus.observer import Observer
from inferbus_shared.objects.picture import StoredObject, is_going
from inferbus_shared.worklist import Worklist
from inferbus_spec_watcher.policy_objects import (
    SCALE_MANAGER,
    last_manager,
)
from inferbus_spec_watcher.ports import Objects

UNANNOUNCED = frozenset({"Pod", "CoreService", "ControllerRevision", "Secret", "ConfigMap"})

AT_ONCE = 32
"""Facts on their way to the bus at a time: each waits for a disk, and those of one object for each
other."""

_SERVER_ONLY = ("managedFields", "resourceVersion")


class Announcer:
    """Keeps the facts on the bus equal to the stored objects."""

    def __init__(self, store: Objects, observer: Observer, membership: Membership) -> None:
        self._store = store
        self._observer = observer
        self._membership = membership
        self._dirty = Worklist[ObjectKey]("announcements")
        store.on_change(self._changed)
        membership.on_change(self._everything)

    async def run(self) -> None:
        """Announce until cancelled."""
        await self._store.ready()
        await self._observer.ready()
        self._everything()
        await self._dirty.run(self._announce, AT_ONCE)

    def _changed(self, key: ObjectKey) -> None:
        if key.kind not in UNANNOUNCED:
            self._dirty.add(key)

    def _everything(self) -> None:
        """A new active instance announces what the last one didn't get to."""
        for key in (*self._store.keys(), *self._observer.keys()):
            self._changed(key)

    async def _announce(self, key: ObjectKey) -> None:
        if not self._membership.is_active:
            return
        fact = self._fact(key)
        if fact is not None:
            await self._observer.observe(key, fact.uid, fact, causation_id=decision_of(fact))

    def _fact(self, key: ObjectKey) -> SpecChanged | None:
        """What is to be told of a key now; None where what was told stands."""
        stored = self._store.get(key)
        last = self._observer.last(key)
        told = last if isinstance(last, SpecChanged) and not last.deleted else None
        if stored is not None and not is_going(stored.object):
            if not self._store.refusal(key):
                return announcement(stored)
            if told is not None and told.uid == stored.uid:
                return None
        return tombstone(told) if told is not None and not self._store.unseen(key) else None


def announcement(stored: StoredObject) -> SpecChanged:
    """The fact about a stored object."""
    body = normalised(stored.object)
    return SpecChanged(
        uid=stored.uid,
        generation=stored.generation,
        digest=digest(body),
        object=body,
        changed_by=last_manager(stored.object),
    )


def tombstone(last: SpecChanged) -> SpecChanged:
    """The fact that an object is gone, after its last one."""
    names = ("name", "namespace", "uid", "generation")
    metadata = last.object.get("metadata", {})
    identity = {
        "apiVersion": last.object.get("apiVersion"),
        "kind": last.object.get("kind"),
        "metadata": {name: metadata[name] for name in names if name in metadata},
    }
    return SpecChanged(
        uid=last.uid,
        generation=last.generation,
        digest=digest(identity),
        deleted=True,
        object=identity,
    )


def normalised(document: Mapping[str, Any]) -> dict[str, Any]:
    """An object without its status and what only the store needs."""
    body = {name: value for name, value in document.items() if name != "status"}
    body["metadata"] = {
        name: value for name, value in document["metadata"].items() if name not in _SERVER_ONLY
    }
    return body


def decision_of(fact: SpecChanged) -> str:
    """The decision that a change of replicas follows from; empty for other changes."""
    annotations = fact.object.get("metadata", {}).get("annotations", {})
    by_decision = fact.changed_by == SCALE_MANAGER
    return str(annotations.get(DECISION_ID, "")) if by_decision else ""
