"""Which substrate a service runs on, opened and kept running.

Invariant: a service on the process substrate imports nothing of Kubernetes.
"""

import asyncio
import gc
from functools import partial
from typing import Final

from inferbus_contracts.services import Service
from inferbus_shared.bus.service import Runtime
from inferbus_shared.objects.client import ObjectClient
from inferbus_shared.objects.picture import ObjectPicture
from inferbus_shared.settings import SubstrateName, load_settings
from inferbus_workload_reconciler.adapters_processes import ProcessSubstrate
from inferbus_workload_reconciler.ports import Substrate
from inferbus_workload_reconciler.settings import WorkloadReconcilerSettings

GARBAGE_THRESHOLDS: Final = (50_000, 50, 100)
"""How many new objects start a collection, and how many of those one of older objects. What is kept
of a cluster is a million objects that are no garbage; with Python's own 700 a third of the CPU of a
start with 10,000 pods goes into looking at them again and again."""


def new_loop(settings: WorkloadReconcilerSettings) -> asyncio.AbstractEventLoop:
    """The event loop for a substrate: on a cluster most of the work is calls, and uvloop's cost a
    third less."""
    if settings.substrate is SubstrateName.KUBERNETES:
        import uvloop

        return uvloop.new_event_loop()
    return asyncio.new_event_loop()


async def open_substrate(runtime: Runtime[WorkloadReconcilerSettings]) -> Substrate:
    """The substrate that the settings name, as soon as it shows what there is."""
    if runtime.settings.substrate is SubstrateName.KUBERNETES:
        return await _kubernetes(runtime)
    return await _processes(runtime)


async def _processes(runtime: Runtime[WorkloadReconcilerSettings]) -> Substrate:
    """Pods that are processes of this machine."""
    picture = ObjectPicture(runtime.bus)
    client = ObjectClient(runtime.bus, manager=Service.WORKLOAD_RECONCILER.value)
    substrate = ProcessSubstrate(picture, client, runtime.settings.node)
    runtime.background(picture.run(), "objects")
    await picture.ready()
    return substrate


async def _kubernetes(runtime: Runtime[WorkloadReconcilerSettings]) -> Substrate:
    """Pods of a cluster; readiness says what is wrong with it."""
    from inferbus_shared.kube.client import KubeClient
    from inferbus_shared.kube.metrics import KubeMetrics
    from inferbus_shared.kube.settings import KubeSettings
    from inferbus_workload_reconciler.adapters_kubernetes import KubernetesSubstrate

    gc.set_threshold(*GARBAGE_THRESHOLDS)
    metrics = KubeMetrics(Service.WORKLOAD_RECONCILER, runtime.registry)
    client = KubeClient(load_settings(KubeSettings), metrics=metrics)
    await client.__aenter__()
    runtime.on_stop(partial(client.__aexit__, None, None, None))
    substrate = KubernetesSubstrate(client, runtime.settings, runtime.bus.clock)
    runtime.requires(substrate.missing)
    for work, name in substrate.runs:
        runtime.background(work, name)
    await substrate.ready()
    return substrate
