"""Creating, changing and deleting children through the API server.

Invariant: every write is conditional on what it means to touch: a creation on the name being free,
an update on uid and resourceVersion, a deletion on the uid. Its answer is drawn into the views.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.events.workload import Outcome
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.problems import KubeError
from inferbus_shared.kube.resources import CONTROLLER_REVISION, POD, POD_GROUP, SERVICE, ApiResource
from inferbus_shared.kube.transport import MERGE_PATCH
from inferbus_workload_reconciler.actions import ChildKind, Create, Delete, Update
from inferbus_workload_reconciler.observed import controller_of
from inferbus_workload_reconciler.ports import ActionResult
from inferbus_workload_reconciler.workload import WorkloadSpec

MANAGER = "inferbus-workload-reconciler"

RESOURCES: Final[Mapping[ChildKind, ApiResource]] = {
    ChildKind.POD: POD,
    ChildKind.SERVICE: SERVICE,
    ChildKind.REVISION: CONTROLLER_REVISION,
    ChildKind.POD_GROUP: POD_GROUP,
}

_DONE = ActionResult(outcome=Outcome.DONE)
_ALREADY = ActionResult(outcome=Outcome.ALREADY)

DrawIn = Callable[[ApiResource, Mapping[str, Any]], None]


class Writes:
    """The writes to children."""

    def __init__(self, client: KubeClient, draw_in: DrawIn) -> None:
        self._client = client
        self._draw_in = draw_in

    async def create(self, action: Create) -> ActionResult:
        """Create a child; one of the same owner that is there already is as good."""
        resource = RESOURCES[action.child]
        try:
            created = await self._client.create(resource, action.manifest)
        except KubeError as error:
            if error.code is ErrorCode.ALREADY_EXISTS:
                return await self._held(resource, action)
            return _failed(error)
        self._draw_in(resource, created)
        return _DONE

    async def update(self, workload: WorkloadSpec, action: Update) -> ActionResult:
        """Change a child that is still as it was seen."""
        resource = RESOURCES[action.child]
        try:
            changed = await self._client.patch(
                resource,
                workload.namespace,
                action.name,
                action.patch,
                content_type=MERGE_PATCH,
                manager=MANAGER,
            )
        except KubeError as error:
            return _failed(error, conflicts=(ErrorCode.CONFLICT, ErrorCode.NOT_FOUND))
        self._draw_in(resource, changed)
        return _DONE

    async def delete(self, workload: WorkloadSpec, action: Delete) -> ActionResult:
        """Request a deletion; what is gone already, or another object by now, is as good."""
        resource = RESOURCES[action.child]
        try:
            answer = await self._client.delete(
                resource,
                workload.namespace,
                action.name,
                uid=action.uid,
                grace_period_seconds=action.grace_period_seconds,
            )
        except KubeError as error:
            return _failed(error, conflicts=(ErrorCode.CONFLICT,))
        if answer is None:
            return _ALREADY
        if _is_ending(answer):
            self._draw_in(resource, answer)
        return _DONE

    async def _held(self, resource: ApiResource, action: Create) -> ActionResult:
        """The name is taken: by what was wanted, or by something else."""
        wanted = controller_of(action.manifest["metadata"])
        namespace = action.manifest["metadata"].get("namespace", "")
        try:
            existing = await self._client.get(resource, namespace, action.name)
        except KubeError as error:
            return _failed(error)
        if existing is None:
            return _conflict("an object of this name has only just gone")
        owner = controller_of(existing["metadata"])
        if owner is not None and wanted is not None and owner.uid == wanted.uid:
            self._draw_in(resource, existing)
            return _ALREADY
        if owner is None:
            return _conflict("the name is held by an object that nothing owns")
        return _conflict(f"the name is held by one of {owner.kind} {owner.name}, uid {owner.uid}")


def _is_ending(answer: Mapping[str, Any]) -> bool:
    """Whether the object is still there, and will be for a while."""
    metadata = answer.get("metadata") or {}
    if not metadata.get("deletionTimestamp"):
        return False
    return bool(metadata.get("deletionGracePeriodSeconds") or metadata.get("finalizers"))


def _conflict(error: str) -> ActionResult:
    return ActionResult(outcome=Outcome.CONFLICT, error=error)


def _failed(error: KubeError, conflicts: tuple[ErrorCode, ...] = ()) -> ActionResult:
    outcome = Outcome.CONFLICT if error.code in conflicts else Outcome.FAILED
    return ActionResult(outcome=outcome, error=said(error))


def said(error: ProblemsError) -> str:
    """What was wrong, in the server's words, without what to do about it."""
    return "; ".join(problem.message for problem in error.problems)
