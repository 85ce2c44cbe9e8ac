"""A small world to plan in: an object store and a kubelet without clocks, threads or chance.

It behaves as both substrates do: names are unique, a deletion marks a pod first, preconditions on
the uid hold, and creating what exists changes nothing. Everything that happens by itself happens
only when a test calls for it.

The same tests run over an API server too: `world_type` names the world that `World` stands for.
"""

import copy
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Self

from inferbus_workload_reconciler.actions import (
    Action,
    ChildKind,
    Create,
    Delete,
    Update,
    is_held,
    is_required,
    stages,
)
from inferbus_workload_reconciler.core import Plan, plan
from inferbus_workload_reconciler.observed import (
    NO_CLUSTER,
    Observed,
    observe_pod,
    observe_pod_group,
    observe_service,
)
from inferbus_workload_reconciler.policy_memory import memory_document, parse_memory
from inferbus_workload_reconciler.policy_naming import ROLE_ID
from inferbus_workload_reconciler.policy_parsing import parse_workload
from inferbus_workload_reconciler.policy_revisions import parse_history
from inferbus_workload_reconciler.policy_structural import stored_form

START_MS = 1_700_000_000_000
ROUNDS = 400

Manifest = dict[str, Any]

world_type: ContextVar[type["World"] | None] = ContextVar("world_type", default=None)
"""What tests get that ask for a `World`; None: this one."""


def rfc3339(time_ms: int) -> str:
    """A time as Kubernetes writes it."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat()


class World:
    """Objects of one namespace, and one workload in it."""

    def __new__(cls, document: Manifest) -> Self:
        """A world of the type that is chosen."""
        chosen = world_type.get() if cls is World else None
        return super().__new__(chosen or cls)  # type: ignore[arg-type]

    def __init__(self, document: Manifest) -> None:
        self.document = copy.deepcopy(document)
        self.objects: dict[tuple[ChildKind, str], Manifest] = {}
        self.memory: Manifest = {}
        self.status: Manifest = {}
        self.now_ms = START_MS
        self.lost_nodes: frozenset[str] = frozenset()
        self.cluster = NO_CLUSTER
        self.unready: Callable[[Manifest], bool] = lambda pod: False
        """Pods that never become ready."""
        self.events: list[str] = []
        self.created: list[str] = []
        self.history: list[tuple[int, int, int, int]] = []
        """Replicas, available, updated, current after every plan."""
        self._uids = 0
        self._views = 0

    @property
    def namespace(self) -> str:
        """The namespace of everything here."""
        namespace: str = self.document["metadata"]["namespace"]
        return namespace

    # What people and programs ask for

    def apply(self, document: Manifest) -> None:
        """Replace the object's spec; the generation grows."""
        generation = self.document["metadata"]["generation"] + 1
        self.document = copy.deepcopy(document)
        self.document["metadata"]["generation"] = generation

    def scale(self, replicas: int) -> None:
        """Set the number of groups."""
        document = copy.deepcopy(self.document)
        document["spec"]["replicas"] = replicas
        self.apply(document)

    def delete_pod(self, name: str) -> None:
        """Somebody deletes a pod."""
        self.pod(name)["metadata"]["deletionTimestamp"] = rfc3339(self.now_ms)

    def vanish(self, name: str) -> None:
        """A pod is gone at once."""
        del self.objects[ChildKind.POD, name]

    def annotate(self, name: str, **annotations: str) -> None:
        """Somebody annotates a pod."""
        self.pod(name)["metadata"]["annotations"].update(annotations)

    def cost(self, name: str, cost: int) -> None:
        """Somebody sets a pod's deletion cost."""
        key = "controller.kubernetes.io/pod-deletion-cost"
        self.pod(name)["metadata"]["annotations"][key] = str(cost)

    # What kubelets do

    def start(self, *names: str) -> None:
        """These pods run and are ready; without names all that can be."""
        for name in names or self.pod_names():
            pod = self.pod(name)
            if names or not (self.unready(pod) or "deletionTimestamp" in pod["metadata"]):
                self._run(pod, ready=True)

    def crash(self, name: str, restarts: int = 1) -> None:
        """A container of the pod restarts, and the pod isn't ready."""
        pod = self.pod(name)
        before = (pod["status"].get("containerStatuses") or [{"restartCount": 0}])[0]
        self._run(pod, ready=False)
        count = before["restartCount"] + restarts
        pod["status"]["containerStatuses"] = [{"name": "engine", "restartCount": count}]

    def unready_pod(self, name: str) -> None:
        """The pod turns unready without a restart."""
        self._run(self.pod(name), ready=False)

    def fail(self, name: str, phase: str = "Failed") -> None:
        """The pod ends."""
        self.pod(name)["status"] = {"phase": phase, "message": "evicted"}

    def finish_deletions(self, *names: str) -> None:
        """Deleted pods and services are gone; without names all of them."""
        for key, item in list(self.objects.items()):
            deleting = "deletionTimestamp" in item["metadata"]
            if deleting and (not names or key[1] in names):
                del self.objects[key]

    # What the reconciler does

    def observed(self) -> Observed:
        """Everything as the substrate would report it now; each view is newer than the last."""
        self._views += 1
        return Observed(
            revision=self._views,
            pods=tuple(observe_pod(pod) for pod in self._all(ChildKind.POD)),
            services=tuple(observe_service(one) for one in self._all(ChildKind.SERVICE)),
            pod_groups=tuple(observe_pod_group(one) for one in self._all(ChildKind.POD_GROUP)),
            lost_nodes=self.lost_nodes,
            cluster=self.cluster,
        )

    def plan(self, observed: Observed | None = None) -> Plan:
        """A plan for what is observed, or for an older view of it."""
        workload = parse_workload(self.document)
        return plan(
            workload,
            parse_history(self._all(ChildKind.REVISION), workload),
            observed or self.observed(),
            parse_memory(self.memory, self.status),
            self.status,
            self.now_ms,
        )

    def carry_out(self, action: Action) -> None:
        """Do what an action says."""
        if isinstance(action, Create):
            self._create(action.child, dict(action.manifest))
        elif isinstance(action, Update):
            self._update(action)
        else:
            self._delete(action)

    def reconcile(
        self,
        keep: Callable[[Action], bool] = lambda action: True,
        view: Observed | None = None,
    ) -> Plan:
        """Plan, store the memory, carry out what `keep` lets through, write the status.

        As the shell does it: nothing follows a snapshot that couldn't be written, and pods wait
        for their PodGroup.
        """
        planned = self.plan(view)
        self.memory = memory_document(planned.memory)
        failed: list[Action] = []
        for action in chain.from_iterable(stages(planned.actions)):
            if keep(action) and not is_held(action, failed) and not self._is_taken(action):
                self.carry_out(action)
            else:
                failed.append(action)
            if any(map(is_required, failed)):
                break
        self.status = dict(planned.status)
        self.events += [event.reason for event in planned.events]
        summary = planned.summary
        counts = (summary.replicas, summary.available, summary.updated, summary.current)
        self.history.append(counts)
        return planned

    def settle(self) -> Plan:
        """Let everything happen until nothing does any more."""
        for _ in range(ROUNDS):
            planned = self.reconcile()
            before = copy.deepcopy(self.objects)
            self.finish_deletions()
            self.start()
            if not planned.actions and before == self.objects:
                return self.reconcile()
            if not planned.actions and planned.next_check_ms is not None:
                self.now_ms = max(self.now_ms, planned.next_check_ms)
        raise AssertionError(f"not settled after {ROUNDS} rounds: {self.plan().actions}")

    # What tests ask

    def pod(self, name: str) -> Manifest:
        """A pod by name."""
        return self.objects[ChildKind.POD, name]

    def pod_names(self) -> list[str]:
        """All pods, those being deleted too."""
        return sorted(name for kind, name in self.objects if kind is ChildKind.POD)

    def live_names(self) -> list[str]:
        """Pods that aren't being deleted."""
        return [name for name in self.pod_names() if not self.deleting(name)]

    def services(self) -> list[str]:
        """All services by name."""
        return sorted(name for kind, name in self.objects if kind is ChildKind.SERVICE)

    def pod_groups(self) -> list[str]:
        """All PodGroups by name."""
        return sorted(name for kind, name in self.objects if kind is ChildKind.POD_GROUP)

    def pod_group(self, name: str) -> Manifest:
        """The spec of a PodGroup."""
        spec: Manifest = self.objects[ChildKind.POD_GROUP, name]["spec"]
        return spec

    def revisions(self) -> list[Manifest]:
        """All snapshots."""
        return list(self._all(ChildKind.REVISION))

    def deleting(self, name: str) -> bool:
        """Whether a pod's deletion was requested."""
        return "deletionTimestamp" in self.pod(name)["metadata"]

    def uid(self, name: str) -> str:
        """A pod's uid."""
        uid: str = self.pod(name)["metadata"]["uid"]
        return uid

    def image(self, name: str) -> str:
        """What a pod runs."""
        image: str = self.pod(name)["spec"]["containers"][0]["image"]
        return image

    def label(self, name: str, suffix: str) -> str:
        """A label by the last part of its key."""
        labels = self.pod(name)["metadata"]["labels"]
        return next(value for key, value in labels.items() if key.endswith(f"/{suffix}"))

    def groups(self) -> set[int]:
        """Ordinals of groups that have a live pod."""
        prefix = len(self.document["metadata"]["name"]) + 1
        return {int(name[prefix:].split("-")[0]) for name in self.live_names()}

    def replica_ids(self) -> set[str]:
        """Role ids that have a live pod."""
        return {self.pod(name)["metadata"]["labels"][ROLE_ID] for name in self.live_names()}

    def counts(self) -> tuple[int, int, int, int]:
        """Replicas, available, updated, current of the status."""
        names = ("replicas", "availableReplicas", "updatedReplicas", "currentReplicas")
        return tuple(self.status[name] for name in names)  # type: ignore[return-value]

    def true_conditions(self) -> list[str]:
        """Types of conditions that are True."""
        return [one["type"] for one in self.status["conditions"] if one["status"] == "True"]

    def condition(self, type_: str) -> Manifest:
        """A condition by type."""
        return next(one for one in self.status["conditions"] if one["type"] == type_)

    def _all(self, kind: ChildKind) -> Iterable[Manifest]:
        return [item for (found, _), item in self.objects.items() if found is kind]

    def _is_taken(self, action: Action) -> bool:
        """Whether something of another owner has the name that is wanted."""
        held = self.objects.get((action.child, action.name))
        if held is None or not isinstance(action, Create):
            return False
        return _owner_uid(held) != _owner_uid(action.manifest)

    def _create(self, kind: ChildKind, manifest: Manifest) -> None:
        name = manifest["metadata"]["name"]
        if (kind, name) in self.objects:
            return
        self._uids += 1
        stored = copy.deepcopy(manifest)
        stored["metadata"]["uid"] = f"{kind}-{self._uids}"
        stored["metadata"]["creationTimestamp"] = rfc3339(self.now_ms)
        stored["metadata"]["resourceVersion"] = str(self._uids)
        if kind is ChildKind.POD_GROUP:
            stored["spec"] = stored_form(stored["spec"], self.cluster.pod_group_schema)
        if kind is ChildKind.POD:
            stored["status"] = {"phase": "Pending"}
            stored["spec"]["nodeName"] = "n1"
            self.created.append(name)
        self.objects[kind, name] = stored

    def _update(self, action: Update) -> None:
        stored = self.objects.get((action.child, action.name))
        before = stored["metadata"] if stored else {}
        seen = {"uid": action.uid, "resourceVersion": action.resource_version}
        if stored is None or any(before[key] != value for key, value in seen.items()):
            return
        merge(stored, dict(action.changes))
        self._uids += 1
        stored["metadata"]["resourceVersion"] = str(self._uids)
        if action.child is ChildKind.POD_GROUP:
            stored["spec"] = stored_form(stored["spec"], self.cluster.pod_group_schema)

    def _delete(self, action: Delete) -> None:
        stored = self.objects.get((action.child, action.name))
        if stored is None or stored["metadata"]["uid"] != action.uid:
            return
        if action.child is ChildKind.POD and action.grace_period_seconds != 0:
            stored["metadata"].setdefault("deletionTimestamp", rfc3339(self.now_ms + 30_000))
        else:
            del self.objects[action.child, action.name]

    def _run(self, pod: Manifest, *, ready: bool) -> None:
        status = "True" if ready else "False"
        conditions = pod["status"].get("conditions") or []
        known = next((one for one in conditions if one["type"] == "Ready"), None)
        if known is None or known["status"] != status:
            when = rfc3339(self.now_ms)
            ready_now = {"type": "Ready", "status": status, "lastTransitionTime": when}
            conditions = [ready_now, *(one for one in conditions if one is not known)]
        pod["status"] = {**pod["status"], "phase": "Running", "conditions": conditions}


def _owner_uid(manifest: Mapping[str, Any]) -> str:
    owners = manifest["metadata"].get("ownerReferences") or ()
    return next((one["uid"] for one in owners if one.get("controller")), "")


def merge(stored: Manifest, patch: Manifest) -> None:
    """Apply a JSON merge patch (RFC 7386) in place."""
    for key, value in patch.items():
        if value is None:
            stored.pop(key, None)
        elif isinstance(value, dict) and isinstance(stored.get(key), dict):
            merge(stored[key], value)
        else:
            stored[key] = copy.deepcopy(value)


def fleet(document: Manifest, ordinals: Iterable[int]) -> World:
    """A settled fleet whose groups have exactly these ordinals."""
    kept = set(ordinals)
    grown = copy.deepcopy(document)
    grown["spec"]["replicas"] = max(kept) + 1
    world = World(grown)
    world.settle()
    for ordinal in set(range(max(kept) + 1)) - kept:
        prefix = f"{document['metadata']['name']}-{ordinal}-"
        for key in [key for key in world.objects if key[1].startswith(prefix)]:
            if key[0] is not ChildKind.REVISION:
                del world.objects[key]
    world.memory = {}
    world.document["spec"]["replicas"] = len(kept)
    world.settle()
    world.created.clear()
    return world
