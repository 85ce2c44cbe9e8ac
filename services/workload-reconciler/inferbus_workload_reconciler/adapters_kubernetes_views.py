"""The children of workloads as a cluster shows them, found by workload.

Invariant: what `of` returns is one moment of each kind, never older than this instance's own
writes; what a deletion ended at once is the exception, it stays until the watch tells, and deleting
it again is answered as done. It costs what the workload has, not what the cluster has.
"""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, NamedTuple

from inferbus_contracts.errors import Problem
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.reflector import Reflector
from inferbus_shared.kube.resources import CONTROLLER_REVISION, POD, POD_GROUP, SERVICE, ApiResource
from inferbus_workload_reconciler.observed import ObservedPod, ObservedPodGroup, ObservedService
from inferbus_workload_reconciler.policy_kept import Child, Reader, workload_name

Changed = Callable[[ObjectKey], None]


class Children(NamedTuple):
    """The children with one workload's name label, each kind in the order of names."""

    pods: tuple[ObservedPod, ...]
    services: tuple[ObservedService, ...]
    revisions: tuple[Mapping[str, Any], ...]
    pod_groups: tuple[ObservedPodGroup, ...]
    newest: int
    """The newest change of a pod that is shown."""
    complete_to: int
    """Every change of a pod up to this revision is shown."""


class ChildViews:
    """The children of all workloads whose children bear the same name label."""

    def __init__(
        self,
        client: KubeClient,
        kind: str,
        name_label: str,
        changed: Changed,
        *,
        gangs: bool,
        service_label: str = "",
    ) -> None:
        """`kind` is that of the workloads; `gangs` says whether they have PodGroups;
        `service_label` is what their services bear where that isn't the name label."""
        self._client = client
        self._kind = kind
        self._label = name_label
        self._changed = changed
        self._workloads: dict[ObjectKey, ObjectKey] = {}
        self._lost_pod: set[ObjectKey] = set()
        self._newest_loss: dict[ObjectKey, int] = {}
        reader = Reader(name_label)
        self._selectors: dict[ApiResource, str] = {}
        self.pods = self._follow(POD, reader.pod)
        self.services = self._follow(SERVICE, reader.service, service_label)
        self.revisions = self._follow(CONTROLLER_REVISION, reader.revision)
        self.pod_groups = self._follow(POD_GROUP, reader.pod_group) if gangs else None

    def _follow(
        self, resource: ApiResource, read: Callable[[Any], Child[Any]], label: str = ""
    ) -> Reflector[Any]:
        self._selectors[resource] = label or self._label
        reflector = Reflector(
            self._client,
            resource,
            read=read,
            index=self._index,
            namespaces=self._client.settings.namespaces,
            label_selector=self._selectors[resource],
        )
        reflector.on_change(lambda key: self._notice(reflector, key))
        return reflector

    def _index(self, document: Mapping[str, Any]) -> tuple[str, str]:
        metadata = document["metadata"]
        return metadata["namespace"], workload_name(metadata, self._label)

    def _notice(self, reflector: Reflector[Child[Any]], key: ObjectKey) -> None:
        child = reflector.get(key)
        before = self._workloads.get(key)
        if child is None:
            workload = self._workloads.pop(key, None)
            if workload is not None and reflector is self.pods:
                self._lost_pod.add(workload)
        else:
            workload = ObjectKey(self._kind, key.namespace, child.workload)
            self._workloads[key] = workload
        for one in dict.fromkeys((before, workload)):
            if one is not None:
                self._changed(one)

    @property
    def reflectors(self) -> Iterator[Reflector[Any]]:
        """All of them."""
        found = (self.pods, self.services, self.revisions, self.pod_groups)
        return (one for one in found if one is not None)

    @property
    def runs(self) -> Iterator[tuple[Coroutine[Any, Any, None], str]]:
        """What keeps the views current, with names for logs."""
        for reflector in self.reflectors:
            yield reflector.run(), f"{reflector.resource.plural} with {self._label}"

    @property
    def problem(self) -> Problem | None:
        """Why the views aren't current."""
        return next((one.problem for one in self.reflectors if one.problem), None)

    async def ready(self) -> None:
        """Wait until everything was listed once."""
        for reflector in self.reflectors:
            await reflector.ready()

    def of(self, workload: ObjectKey) -> Children:
        """The children of a workload."""
        at = (workload.namespace, workload.name)
        pods = [child for _, child in self.pods.by_index(at)]
        groups = self.pod_groups.by_index(at) if self.pod_groups else ()
        complete_to = self.pods.revision_in(workload.namespace)
        newest = max((child.revision for child in pods), default=0)
        return Children(
            pods=tuple(child.value for child in pods),
            services=tuple(child.value for _, child in self.services.by_index(at)),
            revisions=tuple(child.value for _, child in self.revisions.by_index(at)),
            pod_groups=tuple(child.value for _, child in groups),
            newest=max(newest, self._loss(workload, complete_to)),
            complete_to=complete_to,
        )

    def draw_in(self, resource: ApiResource, document: Mapping[str, Any]) -> None:
        """Draw the answer to an own write in."""
        labels = document["metadata"].get("labels") or {}
        for reflector in self.reflectors:
            if reflector.resource is resource and self._selectors[resource] in labels:
                reflector.observe(document)

    def forget(self, workload: ObjectKey) -> None:
        """The workload is gone."""
        self._newest_loss.pop(workload, None)
        self._lost_pod.discard(workload)

    def _loss(self, workload: ObjectKey, complete_to: int) -> int:
        """The revision by which the last pod that went is known to have gone; 0 without one."""
        if workload in self._lost_pod:
            self._lost_pod.discard(workload)
            self._newest_loss[workload] = complete_to
        return self._newest_loss.get(workload, 0)
