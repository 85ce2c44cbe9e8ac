"""What each service may do in a cluster: one table, from which the RBAC manifests are made.

Invariant: a right stands here because a service uses it. No service reads Secrets, deletes
collections, or changes objects that are neither the platform's kinds nor made by it. A service
that lacks a verb gets it here, with the reason beside it. (modelserving spec 3.17)
"""

from collections.abc import Mapping
from dataclasses import dataclass

from inferbus_contracts.leader_worker_sets import LEASE as LEADER_WORKER_LEASE
from inferbus_contracts.resources import kinds
from inferbus_contracts.resources.kinds import KINDS
from inferbus_contracts.services import Service

READ = ("get", "list", "watch")
WRITE = ("create", "patch", "delete")
"""Server-side apply is a patch, and a creation where the object isn't there yet."""

EVENTS_GROUP = ""
VOLCANO_GROUP = "scheduling.volcano.sh"
LEASES_GROUP = "coordination.k8s.io"
KTHENA_NAMESPACE = "kthena-system"
DEFINITIONS_GROUP = "apiextensions.k8s.io"


@dataclass(frozen=True, kw_only=True)
class Right:
    """Verbs on resources of one API group."""

    group: str
    """Empty for core."""
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str
    names: tuple[str, ...] = ()
    """The only objects it is about; empty means all. Lists and watches have to select by name."""
    everywhere: bool = False
    """Also outside of the namespaces that a service may be held to."""
    places: tuple[str, ...] = ()
    """Where a service that is held to namespaces has it too; one that isn't has it anyway."""


def _rights(
    tokens: tuple[str, ...], verbs: tuple[str, ...], why: str, subresource: str = ""
) -> tuple[Right, ...]:
    """The same verbs on several kinds: one right for each API group and scope."""
    places = dict.fromkeys((KINDS[token].group, KINDS[token].namespaced) for token in tokens)
    tail = f"/{subresource}" if subresource else ""
    return tuple(
        Right(
            group=group,
            resources=tuple(
                f"{KINDS[token].plural}{tail}"
                for token in tokens
                if (KINDS[token].group, KINDS[token].namespaced) == (group, namespaced)
            ),
            verbs=verbs,
            why=why,
            everywhere=not namespaced,
        )
        for group, namespaced in places
    )


_OWN = tuple(kind.token for kind in KINDS.values() if not kind.supporting)
_SCALED = tuple(kind.token for kind in KINDS.values() if not kind.supporting and kind.scale)
_OWNERS = (kinds.MODEL_BOOSTER, kinds.PLAYGROUND, kinds.INFERENCE_SERVICE)
_RENDERED = (kinds.CORE_SERVICE, kinds.HORIZONTAL_POD_AUTOSCALER, kinds.LEADER_WORKER_SET)
_WORKLOADS = (kinds.MODEL_SERVING, kinds.LEADER_WORKER_SET)
_PARTS = (kinds.POD, kinds.CORE_SERVICE, kinds.CONTROLLER_REVISION)

_TELLS = Right(
    group=EVENTS_GROUP,
    resources=("events",),
    verbs=("get", "create", "patch"),
    why="events are counted up; those of cluster-scoped objects are in the namespace default",
    everywhere=True,
)
_SEES_KINDS = Right(
    group=DEFINITIONS_GROUP,
    resources=("customresourcedefinitions",),
    verbs=READ,
    why="kinds may be installed later, and in other versions",
    everywhere=True,
)

RIGHTS: Mapping[Service, tuple[Right, ...]] = {
    Service.SPEC_WATCHER: (
        *_rights(_OWN, (*READ, *WRITE), "reads them all, makes and removes the derived ones"),
        *_rights(_OWN, ("get", "patch"), "conditions and what is observed", "status"),
        *_rights(_SCALED, ("get", "patch", "update"), "scales for who asks on the bus", "scale"),
        *_rights(_OWNERS, ("update",), "owner references that hold up a deletion", "finalizers"),
        *_rights(_RENDERED, (*READ, *WRITE), "what llmaz's kinds become"),
        *_rights(kinds.INGRESS_KINDS, READ, "how requests come in, where a cluster has Gateways"),
        *_rights(
            (kinds.LEADER_WORKER_SET,), ("get", "patch", "update"), "scales those too", "scale"
        ),
        Right(
            group="",
            resources=("configmaps",),
            verbs=READ,
            names=("model-booster-controller-config", "llmaz-global-config"),
            why="the reference systems' own configuration, and no other ConfigMap",
            everywhere=True,
        ),
        Right(
            group=LEASES_GROUP,
            resources=("leases",),
            verbs=("get",),
            names=(LEADER_WORKER_LEASE,),
            why="whether LeaderWorkerSets are run by their own controller",
            everywhere=True,
        ),
        _TELLS,
        _SEES_KINDS,
    ),
    Service.WORKLOAD_RECONCILER: (
        *_rights(
            _WORKLOADS,
            (*READ, "patch"),
            "what is to run; as targets of decisions: the decision's id, the replicas of a role",
        ),
        *_rights(_WORKLOADS, ("get", "patch"), "how the groups stand", "status"),
        *_rights(
            (kinds.PLAYGROUND, kinds.INFERENCE_SERVICE), ("get", "patch"), "targets of decisions"
        ),
        *_rights(
            (*_SCALED, kinds.LEADER_WORKER_SET),
            ("get", "patch", "update"),
            "the replicas of a target",
            "scale",
        ),
        *_rights(_WORKLOADS, ("update",), "owner references that hold up a deletion", "finalizers"),
        *_rights(_PARTS, (*READ, *WRITE), "what a workload is made of"),
        Right(
            group="",
            resources=("pods",),
            verbs=("list", "watch"),
            why="whether Kthena's own controllers run: they bear a label",
            places=(KTHENA_NAMESPACE,),
        ),
        Right(
            group=VOLCANO_GROUP,
            resources=("podgroups",),
            verbs=(*READ, *WRITE),
            why="groups that are scheduled together",
        ),
        Right(
            group="",
            resources=("nodes",),
            verbs=READ,
            why="pods of a lost node are made anew elsewhere",
            everywhere=True,
        ),
        Right(
            group=LEASES_GROUP,
            resources=("leases",),
            verbs=("get",),
            names=("lease.kthena.controller-manager", LEADER_WORKER_LEASE),
            why="whether another controller works on the same objects",
            everywhere=True,
        ),
        _TELLS,
        _SEES_KINDS,
    ),
}
"""By service; whoever isn't named has no account in the cluster."""
