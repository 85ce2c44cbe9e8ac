"""Wires the spec-watcher: store, object API, announcements, garbage, expansion, status, folder."""

from collections.abc import Sequence

from inferbus_contracts.services import Service
from inferbus_shared.bus.folding import fold
from inferbus_shared.bus.membership import Membership
from inferbus_shared.bus.observer import Observer
from inferbus_shared.bus.service import Runtime, run_service
from inferbus_spec_watcher.announcer import Announcer
from inferbus_spec_watcher.applier import Applier
from inferbus_spec_watcher.builtin.installer import BuiltInInstaller
from inferbus_spec_watcher.collector import GarbageCollector
from inferbus_spec_watcher.expander import Expander
from inferbus_spec_watcher.folder import Folder
from inferbus_spec_watcher.handlers import ObjectApi
from inferbus_spec_watcher.object_store import ObjectStore
from inferbus_spec_watcher.ownership import Ownership
from inferbus_spec_watcher.policies import Policies
from inferbus_spec_watcher.rejections import Rejections
from inferbus_spec_watcher.settings import SpecWatcherSettings
from inferbus_spec_watcher.status_writer import FACTS as STATUS_FACTS
from inferbus_spec_watcher.status_writer import StatusWriter


def main(argv: Sequence[str] | None = None) -> int:
    """Run the service; it takes no arguments."""
    del argv
    return run_service(Service.SPEC_WATCHER, SpecWatcherSettings, serve)


async def serve(runtime: Runtime[SpecWatcherSettings]) -> None:
    """Register everything that runs while the service does."""
    bus, settings = runtime.bus, runtime.settings
    store = ObjectStore(bus)
    ownership = Ownership(store)
    policies = Policies(store)
    applier = Applier(store, policies, bus.clock)
    membership = Membership(bus, bus.connection.settings.instance)
    observer = Observer(bus, "spec.changed")
    rejections = Rejections(bus)
    expander = Expander(store, applier, ownership, membership, settings.expansion)
    statuses = StatusWriter(store, applier, ownership, policies, expander, membership, bus.clock)
    announcer = Announcer(store, observer, membership)
    garbage = GarbageCollector(store, applier, membership)
    built_in = BuiltInInstaller(store, applier, membership)
    runtime.background(store.run(), "objects")
    runtime.background(membership.run(), "membership")
    runtime.background(observer.run(), "facts")
    await store.ready()
    await membership.ready()
    ObjectApi(store, applier, rejections).register(runtime)
    await fold(runtime, STATUS_FACTS, statuses.take)
    runtime.background(announcer.run(), "announcer")
    runtime.background(garbage.run(), "garbage")
    runtime.background(built_in.run(), "built-in")
    runtime.background(expander.run(), "expander")
    runtime.background(statuses.run(), "status")
    if settings.folder is not None:
        folder = Folder(settings.folder, settings, store, applier, rejections, membership)
        runtime.background(folder.run(), "folder")
