"""What runs groups of pods on a cluster, looked at again and again.

Invariant: nothing is taken for absent that couldn't be looked at; what was known stays, and
`problem` says why it may be old.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from inferbus_contracts.errors import Problem, ProblemsError
from inferbus_contracts.leader_worker_sets import (
    LEASE,
    LeaderWorkerSets,
    controller_sign,
    is_produced,
)
from inferbus_contracts.resources.kinds import LEADER_WORKER_SET, MODEL_SERVING
from inferbus_shared.clock import real_now_ms
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.leases import LEASE as LEASES
from inferbus_shared.kube.leases import LeaseView, look_at_lease
from inferbus_shared.kube.resources import CUSTOM_RESOURCE_DEFINITION, resource_of
from inferbus_spec_watcher.kubernetes_store import KubernetesStore
from inferbus_spec_watcher.policy_cluster_objects import ClusterObject
from inferbus_spec_watcher.settings import SpecWatcherSettings
from inferbus_spec_watcher.surroundings import Surroundings

log = logging.getLogger("inferbus.spec-watcher")

LOOK_SECONDS: Final = 5.0


class GroupsWatch:
    """Tells expansion of which kind groups are to be."""

    def __init__(
        self,
        client: KubeClient,
        store: KubernetesStore,
        settings: SpecWatcherSettings,
        surroundings: Surroundings,
    ) -> None:
        self._client = client
        self._store = store
        self._setting = settings.leader_worker_sets
        self._namespace = settings.leader_worker_namespace
        self._surroundings = surroundings
        self._seen: LeaseView | None = None
        self.problem: Problem | None = None
        """Why it couldn't be looked at last time."""

    async def run(self) -> None:
        """Look until cancelled."""
        await self._store.ready()
        while True:
            await self.look()
            await self._client.clock.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Look once."""
        try:
            served, holder = await self._is_defined(), await self._holder()
        except ProblemsError as error:
            self.problem = error.problems[0]
            log.warning("LeaderWorkerSets not looked at", extra={"problem": str(error)})
            return
        self.problem = None
        sign = controller_sign(self._setting, holder, self._origins())
        self._surroundings.become(
            replace(
                self._surroundings.settings,
                groups=LEADER_WORKER_SET if is_produced(served, sign) else MODEL_SERVING,
                keeps_groups=self._setting is LeaderWorkerSets.AUTO,
            )
        )

    async def _is_defined(self) -> bool:
        """By its definition: what is served an API server that starts finds out only by and by."""
        resource = resource_of(LEADER_WORKER_SET)
        name = f"{resource.plural}.{resource.group}"
        found = await self._client.get(CUSTOM_RESOURCE_DEFINITION, "", name)
        return found is not None and "deletionTimestamp" not in found["metadata"]

    async def _holder(self) -> str:
        lease = await self._client.get(LEASES, self._namespace, LEASE)
        self._seen, holder = look_at_lease(self._seen, lease, real_now_ms())
        return holder

    def _origins(self) -> Iterator[Mapping[str, Any]]:
        for _, stored in self._store.items(LEADER_WORKER_SET):
            assert isinstance(stored, ClusterObject)
            yield stored.origin
