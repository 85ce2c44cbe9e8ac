"""The planner's small world on an API server: the same tests, the same acts, real objects.

`objects`, `document` and `status` are a working copy. What a test or a pretended kubelet changes
in it is written to the server before anything is looked at (`kube_copy`), and read back after each
pass of the reconciler. A pass is that of the service: the substrate's views, the planner, the
actions carried out over HTTP, the status reported.

The world's clock stands still unless a test moves it; what the server stamps counts as of the
moment on that clock at which it was first seen.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from workload_volcano import NEW_SCHEMA
from workload_world import Manifest, World, world_type

from inferbus_contracts.events.workload import Outcome
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import MODEL_SERVING
from inferbus_workload_reconciler.acting import carry_out
from inferbus_workload_reconciler.actions import Action, ChildKind, Create, Delete, Update
from inferbus_workload_reconciler.adapters_kubernetes_writes import RESOURCES
from inferbus_workload_reconciler.core import Plan, is_stale, plan
from inferbus_workload_reconciler.observed import Observed, ObservedPod, timestamp_ms
from inferbus_workload_reconciler.policy_memory import memory_document, parse_memory
from inferbus_workload_reconciler.policy_naming import GROUP_NAME
from inferbus_workload_reconciler.policy_parsing import parse_workload
from inferbus_workload_reconciler.policy_refusals import failure_condition
from inferbus_workload_reconciler.policy_revisions import parse_history
from inferbus_workload_reconciler.policy_status import status_document
from inferbus_workload_reconciler.ports import ActionResult, Done, Surroundings
from inferbus_workload_reconciler.workload import WorkloadSpec
from tests.support.kube_copy import ChildrenCopy, ObjectCopy
from tests.support.kube_stage import KubeStage, ShownSubstrate

stage: ContextVar[KubeStage] = ContextVar("stage")
"""Where worlds are made."""

Keep = Callable[[Action], bool]


@contextmanager
def worlds_on(where: KubeStage) -> Iterator[None]:
    """Whoever asks for a `World` gets one there."""
    tokens = stage.set(where), world_type.set(KubernetesWorld)
    try:
        yield
    finally:
        stage.reset(tokens[0])
        world_type.reset(tokens[1])


class KubernetesWorld(World):
    """Objects of one namespace of an API server, and one workload in it."""

    def __init__(self, document: Manifest) -> None:
        super().__init__(document)
        self._stage = stage.get()
        namespace = self._stage.namespace()
        self.document["metadata"]["namespace"] = namespace
        self._object = ObjectCopy(self._stage.calls, namespace, document["kind"])
        self._children = ChildrenCopy(self._stage.calls, namespace)
        self._seen_ms: dict[str, int] = {}
        self._due_ms: dict[str, int] = {}

    def apply(self, document: Manifest) -> None:
        """Replace the object's spec; it stays the same object."""
        known = self.document["metadata"]
        super().apply(document)
        asked = self.document["metadata"]
        self.document["metadata"] = {**known, "annotations": asked.get("annotations") or {}}

    def observed(self) -> Observed:
        return self._stage.run(self._look()).observed

    def plan(self, observed: Observed | None = None) -> Plan:
        return self._stage.run(self._plan(observed))[1]

    def carry_out(self, action: Action) -> None:
        async def act() -> None:
            await self._look()
            await self._act(parse_workload(self.document), (action,), lambda _: True)

        self._stage.run(act())

    def reconcile(self, keep: Keep = lambda action: True, view: Observed | None = None) -> Plan:
        return self._stage.run(self._pass(keep, view))

    async def _pass(self, keep: Keep, view: Observed | None) -> Plan:
        workload, planned = await self._plan(view)
        before = self.status
        self.memory = memory_document(planned.memory)
        done = await self._act(workload, planned.actions, keep)
        doubts = (*planned.doubts, *failure_condition(done))
        status = status_document(workload, planned.summary, before, doubts, self.now_ms)
        await self._substrate.report(workload, status)
        await self._read()
        self.events += [event.reason for event in planned.events]
        summary = planned.summary
        counts = (summary.replicas, summary.available, summary.updated, summary.current)
        self.history.append(counts)
        return planned

    async def _plan(self, view: Observed | None) -> tuple[WorkloadSpec, Plan]:
        surroundings = await self._look()
        workload = parse_workload(self.document)
        memory = parse_memory(self.memory, self.status)
        while is_stale(surroundings.observed, memory):
            assert await self._substrate.caught_up(workload, memory.view)
            surroundings = await self._observe(workload)
        history = parse_history(surroundings.revisions, workload)
        observed = view or surroundings.observed
        return workload, plan(workload, history, observed, memory, self.status, self.now_ms)

    async def _act(
        self, workload: WorkloadSpec, actions: tuple[Action, ...], keep: Keep
    ) -> tuple[Done, ...]:
        done = await carry_out(_Kept(self._substrate, keep), workload, actions)  # type: ignore[arg-type]
        self.created += [
            action.name
            for action, result in done
            if isinstance(action, Create)
            and action.child is ChildKind.POD
            and result.outcome is Outcome.DONE
        ]
        await self._read()
        return done

    async def _look(self) -> Surroundings:
        """Write what changed in the working copy, and look once all of it is shown."""
        cluster = self.cluster
        served = cluster.pod_group_schema or NEW_SCHEMA if cluster.volcano is not False else None
        await self._stage.arrange(served, self.lost_nodes)
        self._note_own_deletions()
        self.document = await self._object.write(self.document, self.status)
        await self._children.write(self.objects)
        await self._read()
        return await self._observe(parse_workload(self.document))

    async def _read(self) -> None:
        """Read everything back."""
        self.document, self.status = await self._object.read()
        self.objects = await self._children.read(self.objects)
        for (kind, _), item in self.objects.items():
            if kind is ChildKind.POD:
                self._note_times(item["metadata"])

    async def _observe(self, workload: WorkloadSpec) -> Surroundings:
        """What the substrate shows, in the world's time."""
        await self._until_shown(workload)
        found = await self._substrate.observe(workload)
        pods = tuple(map(self._in_world_time, found.observed.pods))
        return replace(found, observed=replace(found.observed, pods=pods))

    async def _until_shown(self, workload: WorkloadSpec) -> None:
        expected = {
            ObjectKey(RESOURCES[kind].kind, self.namespace, name): int(meta["resourceVersion"])
            for (kind, name), meta in ((key, one["metadata"]) for key, one in self.objects.items())
            if _selector(kind, workload) in (meta.get("labels") or {})
        }
        revision = int(self.document["metadata"]["resourceVersion"])
        substrate = self._substrate

        def is_shown() -> bool:
            children = substrate.shown(workload.key.kind, self.namespace)
            return children == expected and substrate.shows_object(workload.key, revision)

        await self._stage.until(is_shown, f"{workload.key} with {expected}")

    def _note_own_deletions(self) -> None:
        """When a test says that a pod is being deleted, it says until when."""
        for (kind, _), item in self.objects.items():
            due = item["metadata"].get("deletionTimestamp")
            if kind is ChildKind.POD and due and item["metadata"]["uid"] in self._seen_ms:
                self._due_ms.setdefault(item["metadata"]["uid"], timestamp_ms(due) or 0)

    def _note_times(self, metadata: Manifest) -> None:
        self._seen_ms.setdefault(metadata["uid"], self.now_ms)
        if "deletionTimestamp" in metadata:
            grace_ms = 1000 * metadata.get("deletionGracePeriodSeconds", 0)
            self._due_ms.setdefault(metadata["uid"], self.now_ms + grace_ms)

    def _in_world_time(self, pod: ObservedPod) -> ObservedPod:
        due_ms = None if pod.deletion_due_ms is None else self._due_ms[pod.uid]
        created_ms = self._seen_ms[pod.uid]
        waits = pod.unplaced_since_ms
        since_ms = created_ms if waits is not None and waits == pod.created_ms else waits
        return replace(
            pod, created_ms=created_ms, deletion_due_ms=due_ms, unplaced_since_ms=since_ms
        )

    @property
    def _substrate(self) -> ShownSubstrate:
        return self._stage.substrate


def _selector(kind: ChildKind, workload: WorkloadSpec) -> str:
    """The label by which children of a kind are found; ModelServing v0.1 named no Service's."""
    if kind is ChildKind.SERVICE and workload.key.kind == MODEL_SERVING:
        return GROUP_NAME
    return workload.convention.name_label


class _Kept:
    """Carries out what a test lets through; the rest fails, as a call that is lost does."""

    def __init__(self, substrate: ShownSubstrate, keep: Keep) -> None:
        self._substrate = substrate
        self._keep = keep

    async def apply(self, action: Create) -> ActionResult:
        return await self._substrate.apply(action) if self._keep(action) else _LOST

    async def update(self, workload: WorkloadSpec, action: Update) -> ActionResult:
        return await self._substrate.update(workload, action) if self._keep(action) else _LOST

    async def delete(self, workload: WorkloadSpec, action: Delete) -> ActionResult:
        return await self._substrate.delete(workload, action) if self._keep(action) else _LOST


_LOST = ActionResult(outcome=Outcome.FAILED, error="the call is lost")
