"""Wires the spec-watcher: store, object API, announcements, garbage, expansion, status, folder."""

from collections.abc import Sequence

from inferbus_contracts.services import Service
from inferbus_shared.bus.membership import Membership
from inferbus_shared.bus.observer import Observer
from inferbus_shared.bus.service import Runtime, run_service
from inferbus_spec_watcher.announcer import Announcer
from inferbus_spec_watcher.applier import Applier
from inferbus_spec_watcher.collector import GarbageCollector
from inferbus_spec_watcher.handlers import ObjectApi
from inferbus_spec_watcher.object_store import ObjectStore
from inferbus_spec_watcher.rejections import Rejections
from inferbus_spec_watcher.settings import SpecWatcherSettings


def main(argv: Sequence[str] | None = None) -> int:
    """Run the service; it takes no arguments."""
    del argv
    return run_service(Service.SPEC_WATCHER, SpecWatcherSettings, serve)


async def serve(runtime: Runtime[SpecWatcherSettings]) -> None:
    """Register everything that runs while the service does."""
    bus = runtime.bus
    store = ObjectStore(bus)
    applier = Applier(store, bus.clock)
    membership = Membership(bus, bus.connection.settings.instance)
    observer = Observer(bus, "spec.changed")
    rejections = Rejections(bus)
    runtime.background(store.run(), "objects")
    runtime.background(membership.run(), "membership")
    runtime.background(observer.run(), "facts")
    await store.ready()
    await membership.ready()
    ObjectApi(store, applier, rejections).register(runtime)
    runtime.background(Announcer(store, observer, membership).run(), "announcer")
    runtime.background(GarbageCollector(store, applier, membership).run(), "garbage")
