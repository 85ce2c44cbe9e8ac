"""The process substrate: objects in the bucket, which has no garbage collector but ours."""

from inferbus_shared.bus.bus import Bus
from inferbus_shared.bus.membership import Membership
from inferbus_spec_watcher.applier import Applier
from inferbus_spec_watcher.collector import GarbageCollector
from inferbus_spec_watcher.object_store import ObjectStore
from inferbus_spec_watcher.ownership import Ownership
from inferbus_spec_watcher.parts import Parts
from inferbus_spec_watcher.policies import Policies
from inferbus_spec_watcher.settings import SpecWatcherSettings
from inferbus_spec_watcher.surroundings import Surroundings


def on_processes(bus: Bus, membership: Membership, settings: SpecWatcherSettings) -> Parts:
    """The parts over the bucket `objects`."""
    store = ObjectStore(bus)
    ownership = Ownership(store)
    policies = Policies(store)
    applier = Applier(store, policies, bus.clock)
    garbage = GarbageCollector(store, applier, membership)
    surroundings = Surroundings(settings.expansion)
    return Parts(store, ownership, policies, applier, surroundings, {"garbage": garbage.run})
