"""The Kubernetes substrate: pods are the cluster's, and the API server keeps all objects.

Invariant: nothing is planned from a view that is older than this instance's own writes, that can't
be kept current, or that belongs to another object than the workload; while the API server is away
nothing is planned at all, because what was seen before may have mended itself.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator, Mapping
from typing import Any, Final

from inferbus_contracts.api.objects import ScaleReply, ScaleRequest
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import LEADER_WORKER_SET, MODEL_SERVING
from inferbus_shared.clock import Clock
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.reflector import Reflector
from inferbus_shared.kube.resources import POD, ApiResource, resource_of
from inferbus_shared.kube.transport import MERGE_PATCH
from inferbus_workload_reconciler.actions import Create, Delete, Update, WorkloadEvent
from inferbus_workload_reconciler.adapters_kubernetes_cluster import ClusterView
from inferbus_workload_reconciler.adapters_kubernetes_events import EventTeller
from inferbus_workload_reconciler.adapters_kubernetes_scale import Scaling
from inferbus_workload_reconciler.adapters_kubernetes_views import Children, ChildViews
from inferbus_workload_reconciler.adapters_kubernetes_writes import MANAGER, Writes
from inferbus_workload_reconciler.observed import (
    Observed,
    ObservedPod,
    controller_of,
    is_owned,
    observe_pod,
)
from inferbus_workload_reconciler.policy_kept import (
    KeptStatus,
    read_leader_worker_set,
    read_status,
    revision_of,
)
from inferbus_workload_reconciler.policy_naming import GROUP_NAME
from inferbus_workload_reconciler.policy_naming import MODEL_SERVING as SERVING_CONVENTION
from inferbus_workload_reconciler.policy_naming_lws import LEADER_WORKER
from inferbus_workload_reconciler.policy_neighbours import bridged_refusal
from inferbus_workload_reconciler.ports import ActionResult, Surroundings
from inferbus_workload_reconciler.settings import WorkloadReconcilerSettings
from inferbus_workload_reconciler.workload import WorkloadSpec

log = logging.getLogger("inferbus.workload-reconciler")

READERS: Final = {MODEL_SERVING: read_status, LEADER_WORKER_SET: read_leader_worker_set}
"""What is kept of the objects of each kind of workload."""

CATCH_UP_SECONDS: Final = 2.0
"""How long a view may lag behind before the API server is asked how far it is itself."""
LOOK_SECONDS: Final = 0.02
CURRENT_SECONDS: Final = 1.0
"""How often it is looked whether views are current again."""


class KubernetesSubstrate:
    """Pods of a cluster."""

    def __init__(
        self, client: KubeClient, settings: WorkloadReconcilerSettings, clock: Clock
    ) -> None:
        self._client = client
        self._clock = clock
        self._changed: asyncio.Queue[ObjectKey | None] = asyncio.Queue()
        self._objects = {
            kind: Reflector(
                client, resource_of(kind), read=read, namespaces=client.settings.namespaces
            )
            for kind, read in READERS.items()
        }
        self._views = {
            MODEL_SERVING: ChildViews(
                client,
                MODEL_SERVING,
                SERVING_CONVENTION.name_label,
                self._notice,
                gangs=True,
                service_label=GROUP_NAME,
            ),
            LEADER_WORKER_SET: ChildViews(
                client, LEADER_WORKER_SET, LEADER_WORKER.name_label, self._notice, gangs=False
            ),
        }
        for reflector in self._objects.values():
            reflector.on_change(self._object_changed)
        self._uids: dict[ObjectKey, str] = {}
        self._cluster = ClusterView(client, lambda: self._notice(None), settings)
        self._writes = Writes(client, self._draw_in)
        self._scaling = Scaling(client)
        self._events = EventTeller(client, clock)

    @property
    def runs(self) -> Iterator[tuple[Coroutine[Any, Any, None], str]]:
        """What must run beside the substrate's use, with names for logs."""
        for kind, reflector in self._objects.items():
            yield reflector.run(), f"objects of kind {kind}"
        for views in self._views.values():
            yield from views.runs
        yield from self._cluster.runs
        yield self._events.run(), "Kubernetes Events"
        yield self._look_whether_current(), "currency of views"

    async def ready(self) -> None:
        """Wait until everything was listed once."""
        for reflector in self._objects.values():
            await reflector.ready()
        for views in self._views.values():
            await views.ready()
        await self._cluster.ready()

    def missing(self) -> dict[str, str]:
        """What keeps the substrate from being used, for readiness."""
        found = {
            f"kubernetes {one.resource.plural}": str(one.problem) if one.problem else "not listed"
            for one in self._reflectors()
            if one.problem or not one.synced
        }
        if self._cluster.problem is not None:
            found["kubernetes cluster"] = str(self._cluster.problem)
        refusal = self._cluster.kthena_refusal()
        return {**found, "other controllers": refusal} if refusal else found

    async def observe(self, workload: WorkloadSpec) -> Surroundings:
        """The workload's children; raises `ProblemsError` while views aren't current."""
        self._require_current(workload)
        children = self._views[workload.key.kind].of(workload.key)
        pods, newest, complete_to = children.pods, children.newest, children.complete_to
        if pods and not _has_snapshot(workload, children):
            pods, newest, complete_to = await self._whole_pods(workload)
        return Surroundings(
            observed=Observed(
                revision=newest,
                complete_to=complete_to,
                pods=pods,
                services=children.services,
                pod_groups=children.pod_groups,
                lost_nodes=self._cluster.lost_nodes(pods),
                cluster=self._cluster.facts,
            ),
            revisions=children.revisions,
        )

    async def _whole_pods(self, workload: WorkloadSpec) -> tuple[tuple[ObservedPod, ...], int, int]:
        """Pods with all of their content, the newest change of one, and how far the list goes.

        Without snapshots only their content tells what pods were built from (defect MS_D1).
        """
        selector = f"{workload.convention.name_label}={workload.name}"
        listing = await self._client.list(POD, workload.namespace, selector)
        documents = sorted(listing.items, key=lambda one: str(one["metadata"]["name"]))
        newest = max(map(revision_of, documents), default=0)
        return tuple(map(observe_pod, documents)), newest, int(listing.revision)

    def _require_current(self, workload: WorkloadSpec) -> None:
        kind = workload.key.kind
        objects, views = self._objects[kind], self._views[kind]
        problem = objects.problem or views.problem
        if problem is not None:
            raise ProblemsError(problem)
        kept = objects.get(workload.key)
        if kept is None or kept.uid != workload.uid:
            raise ProblemsError(_other_object(workload, kept))

    async def changes(self) -> AsyncIterator[ObjectKey | None]:
        """Keys of workloads whose children or status changed; None stands for all."""
        while True:
            yield await self._changed.get()

    def refusal(self, workload: WorkloadSpec) -> str:
        """Why nothing may be done: another controller does it."""
        if workload.key.kind == MODEL_SERVING:
            return self._cluster.kthena_refusal()
        kept = self._objects[LEADER_WORKER_SET].get(workload.key)
        if kept is None:
            return "it is gone"
        made = self._objects[MODEL_SERVING].get(workload.key._replace(kind=MODEL_SERVING))
        bridged = bridged_refusal(kept.uid, made.owner_uid if made else "")
        return bridged or self._cluster.leader_worker_refusal(kept.origin)

    async def apply(self, action: Create) -> ActionResult:
        """Create a child."""
        return await self._writes.create(action)

    async def update(self, workload: WorkloadSpec, action: Update) -> ActionResult:
        """Change a child that is still as it was seen."""
        return await self._writes.update(workload, action)

    async def delete(self, workload: WorkloadSpec, action: Delete) -> ActionResult:
        """Request the deletion of a child."""
        return await self._writes.delete(workload, action)

    def status_of(self, key: ObjectKey) -> Mapping[str, Any]:
        """The status that a workload object has now; empty without one."""
        kept = self._objects[key.kind].get(key)
        return kept.status if kept else {}

    async def report(self, workload: WorkloadSpec, status: Mapping[str, Any]) -> None:
        """Write what differs of the status; fields of other writers stay."""
        known = self.status_of(workload.key)
        differs = {name: value for name, value in status.items() if known.get(name) != value}
        if not differs:
            return
        resource = resource_of(workload.key.kind)
        written = await self._client.patch(
            resource,
            workload.namespace,
            workload.name,
            {"metadata": {"uid": workload.uid}, "status": differs},
            content_type=MERGE_PATCH,
            subresource="status",
            manager=MANAGER,
        )
        self._objects[workload.key.kind].observe(written)

    def tell(self, workload: WorkloadSpec, events: Iterable[WorkloadEvent]) -> None:
        """Kubernetes Events on the workload object."""
        self._events.tell(workload, events)

    async def caught_up(self, workload: WorkloadSpec, revision: int) -> bool:
        """Wait until every change of a pod up to a revision is shown; False when the API server
        itself isn't that far: then it was restored from a backup."""
        pods = self._views[workload.key.kind].pods
        deadline = asyncio.get_running_loop().time() + CATCH_UP_SECONDS
        while pods.revision_in(workload.namespace) < revision:
            if asyncio.get_running_loop().time() > deadline:
                return await self._server_revision(workload) >= revision
            await asyncio.sleep(LOOK_SECONDS)
        return True

    async def _server_revision(self, workload: WorkloadSpec) -> int:
        async for page in self._client.pages(POD, workload.namespace, limit=1):
            return int(page.revision)
        raise AssertionError("a list has at least one page")

    async def target(self, key: ObjectKey) -> Mapping[str, Any] | None:
        """The object behind a target as the API server has it now."""
        return await self._scaling.target(key)

    async def scale(self, request: ScaleRequest) -> ScaleReply:
        """Set the replicas of a target."""
        return await self._scaling.scale(request)

    def _draw_in(self, resource: ApiResource, document: Mapping[str, Any]) -> None:
        for views in self._views.values():
            views.draw_in(resource, document)

    def _notice(self, workload: ObjectKey | None) -> None:
        self._changed.put_nowait(workload)

    def _object_changed(self, key: ObjectKey) -> None:
        """An object came, or came anew; its status is our own doing."""
        kept = self._objects[key.kind].get(key)
        if key.kind == LEADER_WORKER_SET:
            self._cluster.leader_worker_set_changed(key, kept.origin if kept else None)
        uid = kept.uid if kept else ""
        if self._uids.get(key, "") == uid:
            return
        if kept is None:
            self._uids.pop(key, None)
            self._views[key.kind].forget(key)
        else:
            self._uids[key] = uid
        self._notice(key)

    def _reflectors(self) -> Iterator[Reflector[Any]]:
        yield from self._objects.values()
        for views in self._views.values():
            yield from views.reflectors
        yield from self._cluster.reflectors

    async def _look_whether_current(self) -> None:
        """Once views are current again everything is looked at: what was due meanwhile waits."""
        was_current = True
        while True:
            current = not any(one.problem for one in self._reflectors())
            if current and not was_current:
                self._notice(None)
            was_current = current
            await self._clock.sleep(CURRENT_SECONDS)


def _has_snapshot(workload: WorkloadSpec, children: Children) -> bool:
    owners = (controller_of(revision["metadata"]) for revision in children.revisions)
    return any(is_owned(owner, workload) for owner in owners)


def _other_object(workload: WorkloadSpec, kept: KeptStatus | None) -> Problem:
    seen = f"has uid {kept.uid}" if kept else "isn't there"
    return Problem(
        code=ErrorCode.NOT_FOUND,
        message=f"the object {seen}; what is known of its spec is of uid {workload.uid}",
        object=str(workload.key),
        remedy="nothing to do: it is looked at again when either is heard of anew",
    )
