"""What is kept in memory of the objects of a cluster: what the planner and the facts read, no more.

A role replica's pods are alike, and so are those of its neighbours: what is equal is kept once.

Invariant: reading a pod from here or as it is (`observe_pod`) gives the same plan, with one
exception: the content of its spec is not kept, so a fleet that has no snapshots is read anew and
whole before anything is decided about it (`policy_adoption`).
"""

import sys
from collections.abc import Hashable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from inferbus_contracts.leader_worker_sets import rule_fields
from inferbus_contracts.resources.annotations import PREFIX
from inferbus_workload_reconciler.actions import GROUP_ANNOTATION
from inferbus_workload_reconciler.observed import (
    ObservedPod,
    ObservedPodGroup,
    ObservedService,
    Owner,
    controller_of,
    observe_pod,
    observe_pod_group,
    observe_service,
)

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""Taint of a node whose pods have stopped for certain (Kubernetes, non-graceful node shutdown)."""

MOST_SHARED = 50_000
"""How many parts are remembered as shared; past that sharing begins anew."""

NOTHING: Mapping[str, Any] = MappingProxyType({})

ChildT = TypeVar("ChildT")


class Child(NamedTuple, Generic[ChildT]):
    """A child object, and what the views know it by."""

    workload: str
    """The workload's name, as `workload_name` reads it."""
    revision: int
    """Its resourceVersion. API servers before 1.35 call it opaque, yet it is the number of etcd's
    revision there too, and from 1.35 on it may be compared (KEP-5504)."""
    value: ChildT


class KeptStatus(NamedTuple):
    """What is kept of a workload object."""

    uid: str
    revision: int
    status: Mapping[str, Any]
    owner_uid: str = ""
    """The uid of its controller."""
    origin: Mapping[str, Any] = NOTHING
    """Of a LeaderWorkerSet, what says who runs it (`leader_worker_sets`)."""


class Reader:
    """Reads objects with the name label that one convention uses."""

    def __init__(self, name_label: str) -> None:
        self._name_label = name_label
        self._shared: dict[Hashable, Any] = {}

    def pod(self, document: Mapping[str, Any]) -> Child[ObservedPod]:
        """A pod without the content of its spec."""
        pod = observe_pod(document)
        kept = replace(
            pod,
            owner=self._once(pod.owner) if pod.owner else None,
            labels=_interned(pod.labels),
            annotations=_interned(_ours(pod.annotations)),
            phase=sys.intern(pod.phase),
            node=sys.intern(pod.node),
            message=sys.intern(pod.message),
            spec=self._spec(pod.spec),
        )
        return self._child(document, kept)

    def service(self, document: Mapping[str, Any]) -> Child[ObservedService]:
        """A service."""
        service = observe_service(document)
        owner = self._once(service.owner) if service.owner else None
        return self._child(document, replace(service, owner=owner))

    def revision(self, document: Mapping[str, Any]) -> Child[Mapping[str, Any]]:
        """A ControllerRevision, without what other writers noted in it."""
        metadata = {
            name: value for name, value in document["metadata"].items() if name != "managedFields"
        }
        return self._child(document, {**document, "metadata": metadata})

    def pod_group(self, document: Mapping[str, Any]) -> Child[ObservedPodGroup]:
        """A PodGroup."""
        return self._child(document, observe_pod_group(document))

    def _child(self, document: Mapping[str, Any], value: ChildT) -> Child[ChildT]:
        workload = workload_name(document["metadata"], self._name_label)
        return Child(sys.intern(workload), revision_of(document), value)

    def _spec(self, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """The scheduler, and the containers' ports, which facts name."""
        scheduler = spec.get("schedulerName", "")
        ports = tuple(
            tuple(port["containerPort"] for port in container.get("ports") or ())
            for container in spec.get("containers") or ()
        )
        kept: Mapping[str, Any] | None = self._shared.get((scheduler, ports))
        if kept is None:
            containers = [{"ports": [{"containerPort": one} for one in each]} for each in ports]
            kept = {"schedulerName": scheduler, "containers": containers}
            self._remember((scheduler, ports), kept)
        return kept

    def _once(self, owner: Owner) -> Owner:
        kept = self._shared.get(owner)
        if kept is None:
            self._remember(owner, owner)
            return owner
        assert isinstance(kept, Owner)
        return kept

    def _remember(self, key: Hashable, value: Any) -> None:
        if len(self._shared) >= MOST_SHARED:
            self._shared.clear()
        self._shared[key] = value


def read_status(document: Mapping[str, Any]) -> KeptStatus:
    """What is kept of a workload object."""
    metadata = document["metadata"]
    owner = controller_of(metadata)
    return KeptStatus(
        metadata["uid"],
        revision_of(document),
        document.get("status") or {},
        owner.uid if owner else "",
    )


def read_leader_worker_set(document: Mapping[str, Any]) -> KeptStatus:
    """What is kept of a LeaderWorkerSet, which another controller may run."""
    return read_status(document)._replace(origin=rule_fields(document))


def workload_name(metadata: Mapping[str, Any], name_label: str) -> str:
    """Which workload a child belongs to: by its label, else by its controller.

    Services of ModelServing v0.1 have no name label (modelserving spec 2.2).
    """
    named: str | None = (metadata.get("labels") or {}).get(name_label)
    owner = controller_of(metadata)
    return named or (owner.name if owner else "")


def is_out_of_service(node: Mapping[str, Any]) -> bool:
    """Whether what ran on a node has stopped for certain."""
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(taint.get("key") == OUT_OF_SERVICE for taint in taints)


def revision_of(document: Mapping[str, Any]) -> int:
    """The object's resourceVersion as a number; raises `ValueError` where it is none."""
    return int(document["metadata"]["resourceVersion"])


def _ours(annotations: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in annotations.items()
        if name.startswith(PREFIX) or name == GROUP_ANNOTATION
    }


def _interned(texts: Mapping[str, str]) -> dict[str, str]:
    return {sys.intern(name): sys.intern(value) for name, value in texts.items()}
