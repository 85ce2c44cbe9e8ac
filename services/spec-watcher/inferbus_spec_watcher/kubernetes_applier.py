"""Changes to objects of a cluster: planned on the picture, conditional on what was seen.

Server-side apply under a field manager for each applier, scale and status through their
subresources. Invariants: whatever is written was computed from the object as the API server held it
(resourceVersion), else it is computed anew; what holds already is not sent. A unit of several
documents is tried whole before any of it is stored, but isn't stored at once: no cluster can.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from inferbus_contracts.api.objects import (
    AppliedDocument,
    AppliedObject,
    Change,
    Preconditions,
)
from inferbus_contracts.canonical import digest
from inferbus_contracts.errors import ErrorCode, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import DECISION_ID
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.problems import KubeError
from inferbus_shared.kube.resources import resource_of
from inferbus_shared.kube.transport import JSON_PATCH, MERGE_PATCH
from inferbus_shared.objects.picture import StoredObject, is_going
from inferbus_spec_watcher.contention import ATTEMPTS, StaleError, too_contested
from inferbus_spec_watcher.kubernetes_store import KubernetesStore
from inferbus_spec_watcher.policies import Policies
from inferbus_spec_watcher.policy_cluster_objects import ClusterObject
from inferbus_spec_watcher.policy_cluster_units import Step, bare, conditional, plan_cluster_unit
from inferbus_spec_watcher.policy_field_managers import (
    STATUS_WRITER,
    field_manager,
    manager_of,
)
from inferbus_spec_watcher.policy_merge import merge_patch
from inferbus_spec_watcher.policy_notices import notices
from inferbus_spec_watcher.policy_objects import (
    HAND_OVER,
    SCALE_MANAGER,
    check,
    not_found,
)
from inferbus_spec_watcher.policy_replicas import replicas_of, role_index
from inferbus_spec_watcher.ports import RenderDocuments, RenderStatus

log = logging.getLogger("inferbus.spec-watcher")

COMPONENT = "inferbus-spec-watcher"
"""Who tells Events."""

ResultT = TypeVar("ResultT")
_OWNER = re.compile(r'conflict with "([^"]+)"')


class KubernetesHand:
    """The hand that writes objects of a cluster."""

    def __init__(self, client: KubeClient, store: KubernetesStore, policies: Policies) -> None:
        self._client = client
        self._store = store
        self._policies = policies
        self._idle: dict[tuple[ObjectKey, str], tuple[str, int]] = {}
        """Manifests of which the API server took nothing over, at which revision."""
        self._ignored: dict[ObjectKey, tuple[str, str]] = {}
        """Statuses of which it kept less than was sent: digests of both."""

    async def apply(
        self,
        documents: Sequence[AppliedDocument],
        manager: str,
        *,
        force: bool = False,
        dry_run: bool = False,
    ) -> list[AppliedObject]:
        """Apply all documents, none of them when the API server refuses any."""
        return await self.apply_rendered(lambda: documents, manager, force=force, dry_run=dry_run)

    async def apply_rendered(
        self,
        render: RenderDocuments,
        manager: str,
        *,
        force: bool = False,
        dry_run: bool = False,
    ) -> list[AppliedObject]:
        """Apply what `render` makes of the objects as they stand when it is written."""

        async def attempt() -> list[AppliedObject]:
            steps = plan_cluster_unit(
                render(),
                manager,
                lookup=self._store.get,
                scaled=self._policies.owned_replicas(),
            )
            needed = [step for step in steps if self._is_needed(step, manager)]
            await self._check_absent(needed)
            tried = {}
            if dry_run or len(needed) > 1:
                tried = {s.key: await self._send(s, manager, force, dry_run=True) for s in needed}
            if not dry_run:
                tried = {s.key: await self._send(s, manager, force) for s in needed}
            return [_result(step, tried.get(step.key)) for step in steps]

        return await self._persistently(attempt)

    async def scale(
        self, key: ObjectKey, number: int, decision_id: str, conditions: Preconditions
    ) -> tuple[bool, StoredObject]:
        """Set the replicas of a target or role; (whether this decision did, the object now)."""

        async def attempt() -> bool:
            stored = self._existing(key.owner)
            already = replicas_of(key, stored.object) == number
            annotations = stored.object["metadata"].get("annotations", {})
            if already and annotations.get(DECISION_ID) == decision_id:
                return True
            check(key.owner, stored, conditions)
            if already:
                return False
            await self._guarded(key.owner, self._set_replicas(key, stored, number, decision_id))
            return True

        changed = await self._persistently(attempt)
        return changed, self._existing(key.owner)

    async def set_status(
        self, key: ObjectKey, status: Mapping[str, Any], conditions: Preconditions
    ) -> StoredObject:
        """Replace the status; the object afterwards."""

        async def attempt() -> None:
            stored = self._existing(key)
            check(key, stored, conditions)
            await self._write_status(key, stored, status)

        await self._persistently(attempt)
        return self._existing(key)

    async def update_status(self, key: ObjectKey, render: RenderStatus) -> None:
        """Give an object the status rendered of it as it stands then; one that is gone, or going,
        needs none."""

        async def attempt() -> None:
            stored = self._store.get(key)
            if stored is None or is_going(stored.object):
                return
            status = render(stored)
            if status is not None:
                await self._write_status(key, stored, status)

        await self._persistently(attempt)

    async def delete(
        self,
        key: ObjectKey,
        conditions: Preconditions,
        *,
        grace_period_seconds: int | None = None,
        final: bool = False,
    ) -> int:
        """Delete an object; its last revision, 0 where there was nothing to delete.

        `final` is for node agents, which a cluster has none of: it asks for no grace.
        """
        await self._store.refresh(key)
        stored = self._store.get(key)
        if stored is None:
            return 0
        check(key, stored, conditions)
        await self._delete(key, stored, 0 if final else grace_period_seconds)
        return stored.revision

    async def delete_if(self, key: ObjectKey, is_unwanted: Callable[[StoredObject], bool]) -> None:
        """Delete an object unless it is wanted as it stands then."""
        stored = self._store.get(key)
        if stored is None or is_going(stored.object) or not is_unwanted(stored):
            return
        await self._store.refresh(key)
        stored = self._store.get(key)
        if stored is not None and is_unwanted(stored):
            await self._delete(key, stored)

    async def stamp(self, key: ObjectKey, manifest: Mapping[str, Any], manager: str) -> None:
        """Make `manager` own exactly these fields of an object that is there."""
        stored = self._existing(key)
        await self._apply(key, conditional(manifest, stored), manager, force=True)

    async def give_up(self, key: ObjectKey, manager: str) -> None:
        """Take back whatever `manager` applied to an object, as far as nobody else did too."""
        await self.stamp(key, bare(self._existing(key).object), manager)

    async def _persistently(self, attempt: Callable[[], Awaitable[ResultT]]) -> ResultT:
        contested: _Contested | None = None
        for _ in range(ATTEMPTS):
            try:
                return await attempt()
            except _Contested as error:
                contested = error
                await self._store.refresh(error.key)
        assert contested is not None
        raise too_contested(contested.key)

    async def _guarded(self, key: ObjectKey, call: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        """The answer of a conditional write, drawn into the picture."""
        try:
            answer = await call
        except KubeError as error:
            if error.code is ErrorCode.CONFLICT:
                raise _Contested(key) from error
            raise
        self._store.observe(key, answer)
        return answer

    def _existing(self, key: ObjectKey) -> ClusterObject:
        stored = self._store.get(key)
        if stored is None:
            raise ProblemsError(not_found(key))
        return stored

    def _is_needed(self, step: Step, manager: str) -> bool:
        if not step.needed or step.stored is None:
            return step.needed
        idle = self._idle.get((step.key, manager))
        return idle != (_content(step.manifest), step.stored.revision)

    async def _check_absent(self, steps: Sequence[Step]) -> None:
        """What is to be created must not belong to somebody whom the picture hasn't seen yet."""
        absent = [step.key for step in steps if step.stored is None]
        await asyncio.gather(*(self._store.refresh(key) for key in absent))
        for key in absent:
            if self._store.get(key) is not None:
                raise _Contested(key)

    async def _send(
        self, step: Step, manager: str, force: bool, *, dry_run: bool = False
    ) -> dict[str, Any]:
        try:
            answer = await self._apply(step.key, step.manifest, manager, force, dry_run=dry_run)
        except KubeError as error:
            if error.code is not ErrorCode.FIELD_OWNED_BY_OTHER or not _is_handed_over(error):
                raise
            answer = await self._apply(step.key, step.manifest, manager, True, dry_run=dry_run)
        revision = int(answer["metadata"]["resourceVersion"])
        if not dry_run and step.stored is not None and revision == step.stored.revision:
            self._idle[step.key, manager] = (_content(step.manifest), revision)
        return answer

    async def _apply(
        self,
        key: ObjectKey,
        manifest: Mapping[str, Any],
        manager: str,
        force: bool,
        *,
        dry_run: bool = False,
    ) -> dict[str, Any]:
        call = self._client.apply(
            resource_of(key.kind),
            manifest,
            manager=field_manager(manager),
            force=force,
            dry_run=dry_run,
        )
        if not dry_run:
            return await self._guarded(key, call)
        try:
            return await call
        except KubeError as error:
            if error.code is ErrorCode.CONFLICT:
                raise _Contested(key) from error
            raise

    async def _set_replicas(
        self, key: ObjectKey, stored: ClusterObject, number: int, decision_id: str
    ) -> dict[str, Any]:
        resource = resource_of(key.kind)
        manager = field_manager(SCALE_MANAGER, decision_id)
        version = str(stored.revision)
        if key.role:
            path = f"/spec/template/roles/{role_index(stored.object, key.role)}"
            body = [
                {"op": "test", "path": "/metadata/resourceVersion", "value": version},
                {"op": "test", "path": f"{path}/name", "value": key.role},
                {"op": "add", "path": f"{path}/replicas", "value": number},
            ]
            return await self._client.patch(
                resource, key.namespace, key.name, body, content_type=JSON_PATCH, manager=manager
            )
        await self._client.set_scale(
            resource, key.namespace, key.name, number, resource_version=version, manager=manager
        )
        scaled = await self._client.get(resource, key.namespace, key.name)
        if scaled is None:
            raise ProblemsError(not_found(key.owner))
        return scaled

    async def _write_status(
        self, key: ObjectKey, stored: ClusterObject, status: Mapping[str, Any]
    ) -> None:
        before = stored.object.get("status") or {}
        patch = merge_patch(before, status)
        if not patch or self._ignored.get(key) == (digest(dict(status)), digest(before)):
            return
        metadata = {"uid": stored.uid, "resourceVersion": str(stored.revision)}
        answer = await self._guarded(
            key,
            self._client.patch(
                resource_of(key.kind),
                key.namespace,
                key.name,
                {"metadata": metadata, "status": patch},
                content_type=MERGE_PATCH,
                subresource="status",
                manager=STATUS_WRITER,
            ),
        )
        after = answer.get("status") or {}
        self._ignored.pop(key, None)
        if merge_patch(after, status):
            self._ignored[key] = (digest(dict(status)), digest(after))
        await self._tell(answer, before, after)

    async def _tell(
        self, document: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]
    ) -> None:
        """Events are a courtesy: what can't be told must not hold up the work."""
        for notice in notices(before, after):
            try:
                await self._client.record_event(
                    document,
                    notice.reason,
                    notice.message,
                    component=COMPONENT,
                    warning=notice.warning,
                )
            except ProblemsError as error:
                log.warning("an event could not be told", extra={"problem": str(error)})

    async def _delete(
        self, key: ObjectKey, stored: ClusterObject, grace_period_seconds: int | None = None
    ) -> None:
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


class _Contested(StaleError):
    """Somebody was first with this object."""

    def __init__(self, key: ObjectKey) -> None:
        super().__init__(str(key))
        self.key = key


def _content(manifest: Mapping[str, Any]) -> str:
    """What a manifest says, whatever state of the object it is conditional on."""
    metadata = {
        name: value
        for name, value in manifest["metadata"].items()
        if name not in ("uid", "resourceVersion")
    }
    return digest({**manifest, "metadata": metadata})


def _is_handed_over(error: ProblemsError) -> bool:
    """Whether all contested fields are such as the platform itself sets for people to change."""
    owners = [_OWNER.search(problem.message) for problem in error.problems]
    return all(found and manager_of(found[1]) in HAND_OVER for found in owners)


def _result(step: Step, answer: Mapping[str, Any] | None) -> AppliedObject:
    found = step.stored.object if answer is None and step.stored is not None else answer
    assert found is not None, "what isn't stored yet is always sent"
    metadata = found["metadata"]
    revision = step.stored.revision if answer is None and step.stored else _revision(metadata)
    unchanged = step.stored is not None and revision == step.stored.revision
    change = Change.UNCHANGED if unchanged else Change.CONFIGURED
    return AppliedObject(
        key=str(step.key),
        change=Change.CREATED if step.stored is None else change,
        uid=metadata["uid"],
        generation=metadata.get("generation", 1),
        revision=revision,
        warnings=list(step.warnings),
    )


def _revision(metadata: Mapping[str, Any]) -> int:
    return int(metadata.get("resourceVersion") or 0)
