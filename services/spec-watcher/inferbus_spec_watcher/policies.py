"""The scaling policies among the stored objects, and which replicas they own."""

from pydantic import ValidationError

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING
from inferbus_contracts.scaling.intent_reading import read_policy_object
from inferbus_contracts.scaling.intents import PolicyObject
from inferbus_contracts.scaling.settlement import PolicyObjects, Settled, scaled_roles
from inferbus_shared.objects.picture import StoredObject
from inferbus_spec_watcher.ports import Objects

POLICY_KINDS = frozenset({AUTOSCALING_POLICY, AUTOSCALING_POLICY_BINDING})


class Policies:
    """Kept beside the picture: current whenever the picture is."""

    def __init__(self, store: Objects) -> None:
        self._store = store
        self._objects = PolicyObjects()
        self._uids: dict[ObjectKey, str] = {}
        store.on_change(self._changed)

    @property
    def settled(self) -> Settled:
        """Who scales what."""
        return self._objects.settled

    def owned_replicas(self) -> dict[ObjectKey, frozenset[str]]:
        """The roles of each object ("" for itself) whose replicas a policy owns."""
        return scaled_roles(self.settled.owners)

    def _changed(self, key: ObjectKey) -> None:
        if key.kind not in POLICY_KINDS:
            return
        stored = self._store.get(key)
        if stored is not None and self._is_refused_change(key, stored):
            return
        item = _read(key, stored) if stored else None
        if item is None:
            self._uids.pop(key, None)
            self._objects.drop(key)
        else:
            self._uids[key] = item.uid
            self._objects.put(item)

    def _is_refused_change(self, key: ObjectKey, stored: StoredObject) -> bool:
        """What was accepted last goes on scaling, as it does for everybody who reads the bus."""
        return bool(self._store.refusal(key)) and self._uids.get(key) == stored.uid


def _read(key: ObjectKey, stored: StoredObject) -> PolicyObject | None:
    """None for an object that an older release let in: it scales nothing, and its condition
    `Accepted` says why."""
    try:
        return read_policy_object(key, stored.uid, stored.generation, stored.object)
    except ValidationError:
        return None
