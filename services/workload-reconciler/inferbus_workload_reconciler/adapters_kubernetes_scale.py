"""Decisions on a cluster: replicas through the scale subresource, role counts by JSON patch.

The number of groups goes through the subresource, which can't hold an annotation; the id of the
decision is therefore written first, and the number only onto that very revision of the object. A
crash in between leaves an id whose number never came: the decision is delivered again and sets it,
and until then nothing reads the id but to tell whose number it is. Role counts and ids are one
JSON patch.

Invariant: no number is written unless uid and generation are those that were asked for.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from inferbus_contracts.api.objects import ScaleReply, ScaleRequest
from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import DECISION_ID
from inferbus_contracts.resources.kinds import KINDS, LEADER_WORKER_SET
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.problems import KubeError
from inferbus_shared.kube.resources import resource_of
from inferbus_shared.kube.transport import JSON_PATCH, MERGE_PATCH
from inferbus_workload_reconciler.policy_scaling import ScaleTarget, read_target

SCALE_MANAGER: Final = "scale"
"""Field manager of replicas that a decision set; who reads it: `spec.changed` (`changed_by`)."""

TRIES: Final = 4
"""How often a write is tried that loses against a change which doesn't matter, e.g. of a status."""

Document = Mapping[str, Any]


class Scaling:
    """Targets of decisions, read and scaled."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def target(self, key: ObjectKey) -> dict[str, Any] | None:
        """The object as the API server has it now; raises `KubeError`."""
        return await self._client.get(resource_of(key.kind), key.namespace, key.name)

    async def scale(self, request: ScaleRequest) -> ScaleReply:
        """Set the replicas if uid and generation hold; the object afterwards, or why not."""
        key = ObjectKey.parse(request.key)
        refused: list[Problem] = []
        for _ in range(TRIES):
            try:
                return await self._try(key, request)
            except KubeError as error:
                refused = list(error.problems)
                if error.code not in (ErrorCode.CONFLICT, ErrorCode.KUBE_INVALID):
                    break
        return ScaleReply(problems=refused)

    async def _try(self, key: ObjectKey, request: ScaleRequest) -> ScaleReply:
        document = await self.target(key)
        if document is None:
            return ScaleReply(problems=[_gone(key)])
        target = read_target(document, key)
        same = target.replicas == request.replicas
        if same and target.decision_id == request.decision_id:
            return _reply(target, request.replicas, changed=True)
        unmet = request.preconditions.unmet(key, uid=target.uid, generation=target.generation)
        if unmet:
            return ScaleReply(problems=unmet)
        if same:
            return _reply(target, request.replicas, changed=False)
        if key.role or not _has_scale(key.kind):
            await self._patch(key, document, request)
        else:
            await self._set(key, document, request)
        after = replace(target, generation=target.generation + 1)
        return _reply(after, request.replicas, changed=True)

    async def _set(self, key: ObjectKey, document: Document, request: ScaleRequest) -> None:
        """The id onto the object, then the number onto that revision of it."""
        resource = resource_of(key.kind)
        metadata = document["metadata"]
        if (metadata.get("annotations") or {}).get(DECISION_ID) != request.decision_id:
            noted = {
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
                "annotations": {DECISION_ID: request.decision_id},
            }
            marked = await self._client.patch(
                resource,
                key.namespace,
                key.name,
                {"metadata": noted},
                content_type=MERGE_PATCH,
                manager=SCALE_MANAGER,
            )
            metadata = marked["metadata"]
        await self._client.set_scale(
            resource,
            key.namespace,
            key.name,
            request.replicas,
            resource_version=metadata["resourceVersion"],
            manager=SCALE_MANAGER,
        )

    async def _patch(self, key: ObjectKey, document: Document, request: ScaleRequest) -> None:
        """Number and id in one write, on condition that everything it rests on still holds."""
        await self._client.patch(
            resource_of(key.kind),
            key.namespace,
            key.name,
            scale_patch(document, key.role, request.replicas, request.decision_id),
            content_type=JSON_PATCH,
            manager=SCALE_MANAGER,
        )


def scale_patch(
    document: Document, role: str, replicas: int, decision_id: str
) -> list[dict[str, Any]]:
    """The JSON patch (RFC 6902) that sets the replicas of an object, or of one role of it.

    It fails unless uid and generation are those of `document`, and the role still has its place.
    Raises `StopIteration` when the object has no such role.
    """
    metadata = document["metadata"]
    patch = [
        _test("/metadata/uid", metadata["uid"]),
        _test("/metadata/generation", metadata["generation"]),
    ]
    place = "/spec"
    if role:
        roles = document["spec"]["template"]["roles"]
        index = next(index for index, one in enumerate(roles) if one.get("name") == role)
        place = f"/spec/template/roles/{index}"
        patch.append(_test(f"{place}/name", role))
    patch.append({"op": "add", "path": f"{place}/replicas", "value": replicas})
    if not metadata.get("annotations"):
        patch.insert(0, _test("/metadata/resourceVersion", metadata["resourceVersion"]))
        patch.append({"op": "add", "path": "/metadata/annotations", "value": {}})
    escaped = DECISION_ID.replace("~", "~0").replace("/", "~1")
    path = f"/metadata/annotations/{escaped}"
    return [*patch, {"op": "add", "path": path, "value": decision_id}]


def _test(path: str, value: Any) -> dict[str, Any]:
    return {"op": "test", "path": path, "value": value}


def _has_scale(kind: str) -> bool:
    return kind == LEADER_WORKER_SET or KINDS[kind].scale is not None


def _reply(target: ScaleTarget, replicas: int, *, changed: bool) -> ScaleReply:
    return ScaleReply(
        changed=changed, replicas=replicas, uid=target.uid, generation=target.generation
    )


def _gone(key: ObjectKey) -> Problem:
    return Problem(
        code=ErrorCode.NOT_FOUND,
        message="there is no such object",
        object=str(key),
        remedy="check the name and the namespace",
    )
