"""The reconciler over a Kubernetes API server, one pass at a time and without a bus.

What the service does in a pass (look, plan, act, report) is done here when a test says so; the
memory is kept by the test. A pass is repeated where the shell would repeat it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.services import Service
from inferbus_shared.clock import SystemClock
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.settings import KubeSettings
from inferbus_workload_reconciler.acting import carry_out
from inferbus_workload_reconciler.adapters_kubernetes import KubernetesSubstrate
from inferbus_workload_reconciler.core import Plan, plan
from inferbus_workload_reconciler.policy_memory import memory_document, parse_memory
from inferbus_workload_reconciler.policy_parsing import parse_workload
from inferbus_workload_reconciler.policy_refusals import failure_condition, failure_events
from inferbus_workload_reconciler.policy_revisions import parse_history
from inferbus_workload_reconciler.policy_status import status_document
from inferbus_workload_reconciler.ports import Done
from inferbus_workload_reconciler.settings import WorkloadReconcilerSettings
from tests.support.kube import KubeServer

USER = Service.WORKLOAD_RECONCILER.value
"""The account of a reconciler, with its rights and no others."""


@contextlib.asynccontextmanager
async def kube_substrate(
    server: KubeServer, *namespaces: str, user: str = USER, waits: bool = True, **settings: Any
) -> AsyncIterator[KubernetesSubstrate]:
    """A substrate, of these namespaces alone if any are given; by default it shows what there is.

    Without `waits` it may not have been able to look yet.
    """
    fields = {"namespaces": namespaces, "discovery_poll_seconds": 0.2, **server.settings(user)}
    kube = KubeSettings.model_validate(fields)
    clock = SystemClock()
    async with KubeClient(kube) as client:
        substrate = KubernetesSubstrate(client, WorkloadReconcilerSettings(**settings), clock)
        running = [asyncio.create_task(work, name=name) for work, name in substrate.runs]
        try:
            if waits:
                await substrate.ready()
            yield substrate
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


class Passes:
    """Passes over workloads, with what is remembered of each."""

    def __init__(self, substrate: KubernetesSubstrate) -> None:
        self.substrate = substrate
        self.memory: dict[ObjectKey, Mapping[str, Any]] = {}
        self.clock = SystemClock()
        self.done: tuple[Done, ...] = ()
        """What the last pass did."""

    async def once(self, document: Mapping[str, Any]) -> Plan:
        """One pass over an object as the API server holds it; raises `ProblemsError`."""
        workload = parse_workload(document)
        status = self.substrate.status_of(workload.key)
        memory = parse_memory(self.memory.get(workload.key, {}), status)
        surroundings = await self.substrate.observe(workload)
        history = parse_history(surroundings.revisions, workload)
        now_ms = self.clock.now_ms()
        planned = plan(workload, history, surroundings.observed, memory, status, now_ms)
        if self.substrate.refusal(workload):
            self.done = ()
            return planned
        self.memory[workload.key] = memory_document(planned.memory)
        self.substrate.tell(workload, planned.events)
        self.done = await carry_out(self.substrate, workload, planned.actions)
        self.substrate.tell(workload, failure_events(self.done))
        doubts = (*planned.doubts, *failure_condition(self.done))
        told = status_document(workload, planned.summary, status, doubts, now_ms)
        await self.substrate.report(workload, told)
        return planned
