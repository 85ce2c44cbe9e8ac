"""What a cluster offers, which nodes it has lost, and who else works on its objects.

Invariant: what isn't known holds nobody up, unless acting would do harm: no node is lost until the
nodes were listed, and nothing is acted on until it is known that no other controller is there.
"""

import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from typing import Any, Final

from inferbus_contracts.errors import Problem, ProblemsError
from inferbus_contracts.keys import NO_NAMESPACE, ObjectKey
from inferbus_contracts.leader_worker_sets import LEASE as LEADER_WORKER_LEASE
from inferbus_contracts.leader_worker_sets import (
    LeaderWorkerSets,
    controller_sign,
    input_refusal,
)
from inferbus_shared.clock import real_now_ms
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.leases import LEASE, LeaseView, look_at_lease
from inferbus_shared.kube.reflector import Reflector
from inferbus_shared.kube.resources import (
    CUSTOM_RESOURCE_DEFINITION,
    NODE,
    POD,
    POD_GROUP,
)
from inferbus_workload_reconciler.observed import NO_CLUSTER, Cluster, ObservedPod
from inferbus_workload_reconciler.policy_kept import is_out_of_service
from inferbus_workload_reconciler.policy_neighbours import (
    KTHENA_LEASE,
    KTHENA_SELECTOR,
    is_running,
    kthena_refusal,
)
from inferbus_workload_reconciler.policy_structural import spec_schema
from inferbus_workload_reconciler.settings import WorkloadReconcilerSettings

log = logging.getLogger("inferbus.workload-reconciler")

AUTO: Final = LeaderWorkerSets.AUTO
LOOK_SECONDS: Final = 5.0
"""How often leases and definitions are looked at."""


class ClusterView:
    """Facts about the cluster, kept current."""

    def __init__(
        self,
        client: KubeClient,
        changed: Callable[[], None],
        settings: WorkloadReconcilerSettings,
    ) -> None:
        """`changed` is called when what may be done, or how, is another for all workloads."""
        self._client = client
        self._changed = changed
        self._settings = settings
        self._leases = {
            KTHENA_LEASE: settings.kthena_namespace,
            LEADER_WORKER_LEASE: settings.leader_worker_namespace,
        }
        self._written_by_others: dict[ObjectKey, Mapping[str, Any]] = {}
        self._seen: dict[str, LeaseView] = {}
        self._holders: dict[str, str] = {}
        self._looked = False
        self._lost: dict[str, bool] = {}
        self.problem: Problem | None = None
        """Why leases and definitions couldn't be looked at."""
        self.facts = NO_CLUSTER
        self.nodes: Reflector[bool] = Reflector(client, NODE, read=is_out_of_service)
        # Held to some namespaces, one may not look into all.
        held = client.settings.namespaces
        self.controllers: Reflector[bool] = Reflector(
            client,
            POD,
            read=is_running,
            namespaces=(*held, settings.kthena_namespace) if held else (),
            label_selector=KTHENA_SELECTOR,
        )
        self.nodes.on_change(self._node_changed)
        self.controllers.on_change(lambda _: changed())

    @property
    def reflectors(self) -> Iterator[Reflector[Any]]:
        """All of them."""
        return iter((self.nodes, self.controllers))

    @property
    def runs(self) -> Iterator[tuple[Coroutine[Any, Any, None], str]]:
        """What keeps the facts current, with names for logs."""
        yield self.nodes.run(), "nodes"
        yield self.controllers.run(), "other controllers"
        yield self._look_again_and_again(), "leases and definitions"

    async def ready(self) -> None:
        """Wait until it is known who else is there."""
        await self.controllers.ready()
        await self.look()

    def lost_nodes(self, pods: Iterable[ObservedPod]) -> frozenset[str]:
        """The nodes of these pods that are gone or marked out of service."""
        if not self.nodes.synced or self.nodes.problem is not None:
            return frozenset()
        names = {pod.node for pod in pods if pod.node}
        return frozenset(name for name in names if self._is_lost(name))

    def _is_lost(self, name: str) -> bool:
        return self.nodes.get(ObjectKey(NODE.kind, NO_NAMESPACE, name)) in (None, True)

    def leader_worker_refusal(self, origin: Mapping[str, Any]) -> str:
        """Why nothing may be done to a LeaderWorkerSet; empty when it may.

        `origin` is what was kept of it (`leader_worker_sets.rule_fields`).
        """
        sign = self._leader_worker_sign()
        refusal = input_refusal(origin, sign)
        if refusal or self._looked or self._settings.leader_worker_sets is not AUTO:
            return refusal
        return "it isn't known yet whether the controller of LeaderWorkerSets runs"

    def _leader_worker_sign(self) -> str:
        holder = self._holders.get(LEADER_WORKER_LEASE, "")
        setting = self._settings.leader_worker_sets
        return controller_sign(setting, holder, self._written_by_others.values())

    def leader_worker_set_changed(self, key: ObjectKey, origin: Mapping[str, Any] | None) -> None:
        """A LeaderWorkerSet is as given now, or gone: a status that others wrote is a sign."""
        before = self._leader_worker_sign()
        if origin is not None and controller_sign(AUTO, "", (origin,)):
            self._written_by_others[key] = origin
        else:
            self._written_by_others.pop(key, None)
        if bool(before) is not bool(self._leader_worker_sign()):
            self._changed()

    def kthena_refusal(self) -> str:
        """Why nothing may be done to ModelServings; empty when it may."""
        if self._settings.beside_kthena:
            return ""
        if not self._looked or not self.controllers.synced:
            return "it isn't known yet whether Kthena's own controllers run"
        running = (key.name for key, runs in self.controllers.items() if runs)
        return kthena_refusal(running, self._holders.get(KTHENA_LEASE, ""))

    async def _look_again_and_again(self) -> None:
        while True:
            await self._client.clock.sleep(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        """Look at leases and definitions once; what can't be read stays as it was."""
        before = (self.facts, dict(self._holders), self._looked)
        try:
            for name, namespace in self._leases.items():
                await self._look_at(name, namespace)
            self.facts = await self._offers()
        except ProblemsError as error:
            self.problem = error.problems[0]
            log.warning("cluster not looked at", extra={"problem": str(error)})
        else:
            self.problem = None
            self._looked = True
        if before != (self.facts, self._holders, self._looked):
            self._changed()

    async def _look_at(self, name: str, namespace: str) -> None:
        lease = await self._client.get(LEASE, namespace, name)
        self._seen[name], self._holders[name] = look_at_lease(
            self._seen.get(name), lease, real_now_ms()
        )

    async def _offers(self) -> Cluster:
        volcano, schema = await self._client.serves(POD_GROUP), None
        if volcano:
            name = f"{POD_GROUP.plural}.{POD_GROUP.group}"
            definition = await self._client.get(CUSTOM_RESOURCE_DEFINITION, "", name)
            schema = spec_schema(definition or {}, POD_GROUP.version)
        return Cluster(volcano=volcano, pod_group_schema=schema)

    def _node_changed(self, key: ObjectKey) -> None:
        """Heartbeats change nodes all the time; only what is lost, or back, matters."""
        lost = self._is_lost(key.name)
        if self._lost.get(key.name) is not lost:
            self._lost[key.name] = lost
            self._changed()
