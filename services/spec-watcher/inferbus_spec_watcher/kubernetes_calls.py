"""Conditional writes to the API server, and what follows from each: the picture shows its answer.

Invariant: a write that rested on an older state of the object changed nothing and raises
`ContestedError`; `persistently` then looks again and lets it be decided anew, a bounded number of
times.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import DECISION_ID
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.problems import KubeError
from inferbus_shared.kube.resources import resource_of
from inferbus_shared.kube.transport import JSON_PATCH, MERGE_PATCH
from inferbus_shared.objects.picture import is_going
from inferbus_spec_watcher.contention import ATTEMPTS, StaleError, too_contested
from inferbus_spec_watcher.kubernetes_store import KubernetesStore
from inferbus_spec_watcher.policy_cluster_objects import ClusterObject
from inferbus_spec_watcher.policy_field_managers import STATUS_WRITER, field_manager
from inferbus_spec_watcher.policy_objects import SCALE_MANAGER, not_found
from inferbus_spec_watcher.policy_replicas import role_index

ResultT = TypeVar("ResultT")
Manifest = Mapping[str, Any]
Answer = dict[str, Any]


class ContestedError(StaleError):
    """Somebody was first with this object."""

    def __init__(self, key: ObjectKey) -> None:
        super().__init__(str(key))
        self.key = key


class Calls:
    """The writes of one instance."""

    def __init__(self, client: KubeClient, store: KubernetesStore) -> None:
        self._client = client
        self._store = store

    def existing(self, key: ObjectKey) -> ClusterObject:
        """The object; raises `ProblemsError` (NOT_FOUND) without one."""
        stored = self._store.get(key)
        if stored is None:
            raise ProblemsError(not_found(key))
        return stored

    async def persistently(self, attempt: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """What `attempt` gives when nobody else was first; raises CONFLICT when always was."""
        contested: ContestedError | None = None
        for _ in range(ATTEMPTS):
            try:
                return await attempt()
            except ContestedError as error:
                contested = error
                await self._store.refresh(error.key)
        assert contested is not None
        raise too_contested(contested.key)

    async def apply(
        self,
        key: ObjectKey,
        manifest: Manifest,
        manager: str,
        *,
        force: bool = False,
        dry_run: bool = False,
    ) -> Answer:
        """Server-side apply under the field manager that stands for `manager`."""
        call = self._client.apply(
            resource_of(key.kind),
            manifest,
            manager=field_manager(manager),
            force=force,
            dry_run=dry_run,
        )
        answer = await _uncontested(key, call)
        if not dry_run:
            self._store.observe(key, answer)
        return answer

    async def patch_status(
        self, key: ObjectKey, stored: ClusterObject, patch: Mapping[str, Any]
    ) -> Answer:
        """Change the status of the object as it was seen, by a merge patch."""
        seen = {"uid": stored.uid, "resourceVersion": str(stored.revision)}
        call = self._client.patch(
            resource_of(key.kind),
            key.namespace,
            key.name,
            {"metadata": seen, "status": patch},
            content_type=MERGE_PATCH,
            subresource="status",
            manager=STATUS_WRITER,
        )
        return self._seen(key, await _uncontested(key, call))

    async def set_replicas(
        self, target: ObjectKey, stored: ClusterObject, number: int, decision_id: str
    ) -> None:
        """Number and decision in one write; the scale subresource could hold the number alone."""
        place = "/spec"
        metadata = stored.object["metadata"]
        body = [_test("/metadata/resourceVersion", str(stored.revision))]
        if target.role:
            place = f"/spec/template/roles/{role_index(stored.object, target.role)}"
            body.append(_test(f"{place}/name", target.role))
        body.append(_add(f"{place}/replicas", number))
        annotations = {**(metadata.get("annotations") or {}), DECISION_ID: decision_id}
        if metadata.get("annotations"):
            escaped = DECISION_ID.replace("~", "~0").replace("/", "~1")
            body.append(_add(f"/metadata/annotations/{escaped}", decision_id))
        else:
            body.append(_add("/metadata/annotations", annotations))
        call = self._client.patch(
            resource_of(target.kind),
            target.namespace,
            target.name,
            body,
            content_type=JSON_PATCH,
            manager=field_manager(SCALE_MANAGER),
        )
        try:
            self._seen(target.owner, await _uncontested(target.owner, call))
        except KubeError as error:
            # A test that fails is told in the same words as an invalid object.
            await self._store.refresh(target.owner)
            passed = self._store.last_revision(target.owner) != stored.revision
            if error.code is ErrorCode.KUBE_INVALID and passed:
                raise ContestedError(target.owner) from error
            raise

    async def delete(
        self, key: ObjectKey, stored: ClusterObject, grace_period_seconds: int | None = None
    ) -> None:
        """Delete this very object."""
        answer = await self._client.delete(
            resource_of(key.kind),
            key.namespace,
            key.name,
            uid=stored.uid,
            grace_period_seconds=grace_period_seconds,
        )
        if answer is not None and is_going({"metadata": answer.get("metadata") or {}}):
            self._store.observe(key, answer)
        else:
            self._store.forget(key, stored.uid)

    def _seen(self, key: ObjectKey, answer: Answer) -> Answer:
        self._store.observe(key, answer)
        return answer


async def _uncontested(key: ObjectKey, call: Awaitable[Answer]) -> Answer:
    try:
        return await call
    except KubeError as error:
        if error.code is ErrorCode.CONFLICT:
            raise ContestedError(key) from error
        raise


def _test(path: str, value: Any) -> dict[str, Any]:
    return {"op": "test", "path": path, "value": value}


def _add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}
