"""The process substrate: pods are objects in the bucket, and the node agent runs them.

Invariant: a view is never older than this instance's own changes: every change waits until the
picture shows it.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from inferbus_contracts.api.objects import Preconditions, ScaleReply, ScaleRequest
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.events.workload import Outcome
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.kinds import CONTROLLER_REVISION, CORE_SERVICE, POD
from inferbus_shared.objects.client import ObjectClient
from inferbus_shared.objects.picture import ObjectPicture, shown
from inferbus_workload_reconciler.actions import ChildKind, Create, Delete, Update, WorkloadEvent
from inferbus_workload_reconciler.observed import (
    Observed,
    controller_of,
    observe_pod,
    observe_service,
)
from inferbus_workload_reconciler.policy_parsing import PLANNED_KINDS
from inferbus_workload_reconciler.ports import ActionResult, Surroundings
from inferbus_workload_reconciler.workload import WorkloadSpec

_CHILDREN = frozenset({POD, CORE_SERVICE, CONTROLLER_REVISION})


class ProcessSubstrate:
    """Pods on one machine."""

    def __init__(self, picture: ObjectPicture, client: ObjectClient, node: str) -> None:
        self._picture = picture
        self._client = client
        self._node = node
        self._changed: asyncio.Queue[ObjectKey] = asyncio.Queue()
        self._owners: dict[ObjectKey, ObjectKey] = {}
        picture.on_change(self._notice)

    async def observe(self, workload: WorkloadSpec) -> Surroundings:
        """The workload's children as the picture shows them."""
        label = workload.convention.name_label
        children: dict[str, list[dict[str, Any]]] = {kind: [] for kind in _CHILDREN}
        for key, stored in self._picture.items():
            if key.kind not in _CHILDREN or key.namespace != workload.key.namespace:
                continue
            labels = stored.object["metadata"].get("labels", {})
            if labels.get(label) == workload.name:
                children[key.kind].append(shown(stored))
        return Surroundings(
            observed=Observed(
                revision=self._picture.revision,
                pods=tuple(observe_pod(pod) for pod in children[POD]),
                services=tuple(observe_service(one) for one in children[CORE_SERVICE]),
            ),
            revisions=tuple(children[CONTROLLER_REVISION]),
        )

    async def changes(self) -> AsyncIterator[ObjectKey | None]:
        """Keys of workloads whose children changed."""
        while True:
            yield await self._changed.get()

    def refusal(self, workload: WorkloadSpec) -> str:
        """Nothing: no other controller works on these objects."""
        del workload
        return ""

    async def apply(self, action: Create) -> ActionResult:
        """Create a child; one that is there already is as good."""
        manifest = dict(action.manifest)
        if action.child is ChildKind.POD:
            manifest["spec"] = {**manifest["spec"], "nodeName": self._node}
        try:
            created = await self._client.create(manifest)
        except ProblemsError as error:
            if error.problems[0].code is ErrorCode.ALREADY_EXISTS:
                return ActionResult(outcome=Outcome.ALREADY)
            return ActionResult(outcome=Outcome.FAILED, error=str(error))
        await self._picture.reached(created.revision)
        return ActionResult(outcome=Outcome.DONE)

    async def update(self, workload: WorkloadSpec, action: Update) -> ActionResult:
        """Refuse: no child that this substrate keeps is ever changed in place."""
        error = f"{action.child} {action.name} can't be changed on this substrate"
        return ActionResult(outcome=Outcome.FAILED, error=error)

    async def delete(self, workload: WorkloadSpec, action: Delete) -> ActionResult:
        """Request a deletion; what is gone already is as good."""
        key = ObjectKey(action.child.value, workload.key.namespace, action.name)
        try:
            revision = await self._client.delete(
                key,
                Preconditions(uid=action.uid),
                grace_period_seconds=action.grace_period_seconds,
            )
        except ProblemsError as error:
            codes = {problem.code for problem in error.problems}
            if codes == {ErrorCode.NOT_FOUND}:
                return ActionResult(outcome=Outcome.ALREADY)
            conflict = codes == {ErrorCode.CONFLICT}
            outcome = Outcome.CONFLICT if conflict else Outcome.FAILED
            return ActionResult(outcome=outcome, error=str(error))
        await self._picture.reached(revision)
        return ActionResult(outcome=Outcome.DONE if revision else Outcome.ALREADY)

    def status_of(self, key: ObjectKey) -> Mapping[str, Any]:
        """The status that a workload object has now; empty without one."""
        stored = self._picture.get(key)
        status: Mapping[str, Any] = stored.object.get("status", {}) if stored else {}
        return status

    async def report(self, workload: WorkloadSpec, status: Mapping[str, Any]) -> None:
        """Write the object's status where it differs."""
        if dict(self.status_of(workload.key)) == dict(status):
            return
        conditions = Preconditions(uid=workload.uid)
        revision = await self._client.set_status(workload.key, dict(status), conditions)
        await self._picture.reached(revision)

    def tell(self, workload: WorkloadSpec, events: Iterable[WorkloadEvent]) -> None:
        """Nothing: `workload.acted` on the bus says the same."""

    async def caught_up(self, workload: WorkloadSpec, revision: int) -> bool:
        """Wait until views show a revision that was seen before."""
        await self._picture.reached(revision)
        return True

    async def target(self, key: ObjectKey) -> Mapping[str, Any] | None:
        """The object behind a target as the spec-watcher has it."""
        try:
            return await self._client.get(key.owner)
        except ProblemsError as error:
            if error.problems[0].code is ErrorCode.NOT_FOUND:
                return None
            raise

    async def scale(self, request: ScaleRequest) -> ScaleReply:
        """Ask for other replicas."""
        try:
            return await self._client.scale(request)
        except ProblemsError as error:
            return ScaleReply(problems=list(error.problems))

    def _notice(self, key: ObjectKey) -> None:
        if key.kind not in _CHILDREN:
            return
        stored = self._picture.get(key)
        if stored is None:
            workload = self._owners.pop(key, None)
        else:
            workload = _workload_of(key, stored.object)
        if workload is not None:
            if stored is not None:
                self._owners[key] = workload
            self._changed.put_nowait(workload)


def _workload_of(key: ObjectKey, document: Mapping[str, Any]) -> ObjectKey | None:
    owner = controller_of(document["metadata"])
    if owner is None or owner.kind not in PLANNED_KINDS:
        return None
    return ObjectKey(owner.kind, key.namespace, owner.name)
