"""Wires the spec-watcher: objects of a substrate, their API, facts, expansion, status, folder."""

from collections.abc import Sequence

from inferbus_contracts.services import Service
from inferbus_shared.bus.folding import fold
from inferbus_shared.bus.membership import Membership
from inferbus_shared.bus.observer import Observer
from inferbus_shared.bus.service import Runtime, run_service
from inferbus_shared.kube.settings import KubeSettings
from inferbus_shared.settings import SubstrateName, load_settings
from inferbus_spec_watcher.announcer import Announcer
from inferbus_spec_watcher.builtin.installer import BuiltInInstaller
from inferbus_spec_watcher.expander import Expander
from inferbus_spec_watcher.folder import Folder
from inferbus_spec_watcher.handlers import ObjectApi
from inferbus_spec_watcher.parts import Parts
from inferbus_spec_watcher.processes import on_processes
from inferbus_spec_watcher.rejections import Rejections
from inferbus_spec_watcher.settings import SpecWatcherSettings
from inferbus_spec_watcher.status_writer import FACTS as STATUS_FACTS
from inferbus_spec_watcher.status_writer import StatusWriter


def main(argv: Sequence[str] | None = None) -> int:
    """Run the service; it takes no arguments."""
    del argv
    return run_service(Service.SPEC_WATCHER, SpecWatcherSettings, serve)


async def serve(runtime: Runtime[SpecWatcherSettings], kube: KubeSettings | None = None) -> None:
    """Register everything that runs while the service does.

    `kube` is the way to the cluster, where there is one; its settings unless given.
    """
    bus, settings = runtime.bus, runtime.settings
    membership = Membership(bus, bus.connection.settings.instance)
    observer = Observer(bus, "spec.changed")
    rejections = Rejections(bus)
    parts = await _parts(runtime, kube, rejections, membership)
    store, hand = parts.store, parts.hand
    expander = Expander(store, hand, parts.ownership, membership, parts.surroundings)
    statuses = StatusWriter(
        store, hand, parts.ownership, parts.policies, expander, membership, bus.clock
    )
    announcer = Announcer(store, observer, membership)
    built_in = BuiltInInstaller(store, hand, membership)
    runtime.background(store.run(), "objects")
    runtime.background(membership.run(), "membership")
    runtime.background(observer.run(), "facts")
    await store.ready()
    await membership.ready()
    ObjectApi(store, hand, rejections).register(runtime)
    await fold(runtime, STATUS_FACTS, statuses.take)
    runtime.background(announcer.run(), "announcer")
    runtime.background(built_in.run(), "built-in")
    runtime.background(expander.run(), "expander")
    runtime.background(statuses.run(), "status")
    for name, companion in parts.companions.items():
        runtime.background(companion(), name)
    if settings.folder is not None:
        folder = Folder(settings.folder, settings, store, hand, rejections, membership)
        runtime.background(folder.run(), "folder")


async def _parts(
    runtime: Runtime[SpecWatcherSettings],
    kube: KubeSettings | None,
    rejections: Rejections,
    membership: Membership,
) -> Parts:
    if runtime.settings.substrate is SubstrateName.PROCESSES:
        return on_processes(runtime.bus, membership, runtime.settings)
    # Imported where it is needed: processes without a cluster don't pay for its client.
    from inferbus_spec_watcher.kubernetes import on_kubernetes

    kube = kube or load_settings(KubeSettings)
    return await on_kubernetes(runtime, kube, rejections, membership)
