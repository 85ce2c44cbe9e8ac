"""Kubernetes Events about workloads, told beside the work and never in its way.

Invariant: telling neither waits nor fails; what can't be told in time is dropped and counted in the
log, because an Event is for people to read and nothing rests on it.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from inferbus_contracts.errors import ProblemsError
from inferbus_shared.clock import Clock
from inferbus_shared.kube.client import KubeClient
from inferbus_workload_reconciler.actions import WorkloadEvent
from inferbus_workload_reconciler.policy_event_budget import EventBudget
from inferbus_workload_reconciler.workload import WorkloadSpec

log = logging.getLogger("inferbus.workload-reconciler")

COMPONENT: Final = "modelserving-controller"
"""The component that users of the events know (modelserving spec 2.10)."""

MOST_WAITING: Final = 20_000

EVENTS_PER_SECOND: Final = 50.0
"""How fast events are told, so that a fleet that starts isn't slowed by news of it."""


class _Told(NamedTuple):
    about: dict[str, Any]
    event: WorkloadEvent


class EventTeller:
    """Tells one event after the other."""

    def __init__(self, client: KubeClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._waiting: asyncio.Queue[_Told] = asyncio.Queue(MOST_WAITING)
        self._budget = EventBudget()
        self._dropped = 0

    def tell(self, workload: WorkloadSpec, events: Iterable[WorkloadEvent]) -> None:
        """Tell these soon."""
        about = {
            "apiVersion": workload.api_version,
            "kind": workload.key.kind,
            "metadata": {
                "namespace": workload.namespace,
                "name": workload.name,
                "uid": workload.uid,
            },
        }
        for event in events:
            if not self._budget.take(workload.uid, event.reason, self._clock.steady_ms()):
                continue
            try:
                self._waiting.put_nowait(_Told(about, event))
            except asyncio.QueueFull:
                self._dropped += 1

    async def run(self) -> None:
        """Tell what is waiting, for ever."""
        while True:
            about, event = await self._waiting.get()
            try:
                await self._client.record_event(
                    about,
                    event.reason.value,
                    event.message,
                    component=COMPONENT,
                    warning=event.reason.is_warning,
                )
            except ProblemsError as error:
                self._dropped += 1
                log.info("an Event could not be told", extra={"problem": str(error)})
            await self._clock.sleep(1 / EVENTS_PER_SECOND)
            if self._dropped and self._waiting.empty():
                log.warning("Events dropped", extra={"count": self._dropped})
                self._dropped = 0
