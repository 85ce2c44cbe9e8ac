"""Changes to objects of a cluster: planned on the picture, conditional on what was seen.

Each applier has a field manager of its own and applies on the server. Invariants: whatever is
written was computed from the object as the API server held it, else it is computed anew; what holds
already is not sent. A unit of several documents is tried whole (dry run) before any of it is
stored, but isn't stored at once: no cluster can.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
from inferbus_shared.objects.picture import StoredObject, is_going
from inferbus_spec_watcher.kubernetes_calls import Calls, ContestedError
from inferbus_spec_watcher.kubernetes_status import Statuses
from inferbus_spec_watcher.kubernetes_store import KubernetesStore
from inferbus_spec_watcher.policies import Policies
from inferbus_spec_watcher.policy_cluster_objects import ClusterObject
from inferbus_spec_watcher.policy_cluster_units import (
    Step,
    conditional,
    offers,
    plan_cluster_unit,
)
from inferbus_spec_watcher.policy_field_managers import manager_of
from inferbus_spec_watcher.policy_objects import HAND_OVER, check
from inferbus_spec_watcher.policy_replicas import replicas_of
from inferbus_spec_watcher.ports import RenderDocuments, RenderStatus

RenderOwn = Callable[[ClusterObject], dict[str, Any] | None]
"""The fields that are to be owned; None leaves everything as it is."""

_OWNER = re.compile(r'conflict with "([^"]+)"')
"""How the API server names who owns a field."""


class KubernetesHand:
    """The hand that writes objects of a cluster."""

    def __init__(self, client: KubeClient, store: KubernetesStore, policies: Policies) -> None:
        self._store = store
        self._policies = policies
        self._calls = Calls(client, store)
        self._statuses = Statuses(client, self._calls)
        self._idle: dict[tuple[ObjectKey, str], tuple[str, int]] = {}
        """Manifests that changed nothing on the API server, and at which revision."""

    async def apply(
        self,
        documents: Sequence[AppliedDocument],
        manager: str,
        *,
        force: bool = False,
        dry_run: bool = False,
    ) -> list[AppliedObject]:
        """Apply all documents, or none of them when the API server refuses any."""
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
            self._store.must_see(step.key for step in steps)
            needed = [step for step in steps if self._is_needed(step, manager)]
            await self._check_absent(needed)
            answers = {}
            if dry_run or len(needed) > 1:
                answers = {s.key: await self._send(s, manager, force, True) for s in needed}
            if not dry_run:
                answers = {s.key: await self._send(s, manager, force, False) for s in needed}
            return [_result(step, answers.get(step.key)) for step in steps]

        return await self._calls.persistently(attempt)

    async def scale(
        self, key: ObjectKey, number: int, decision_id: str, conditions: Preconditions
    ) -> tuple[bool, StoredObject]:
        """Set the replicas of a target or role; (whether this decision did, the object now)."""

        async def attempt() -> bool:
            stored = self._calls.existing(key.owner)
            already = replicas_of(key, stored.object) == number
            annotations = stored.object["metadata"].get("annotations", {})
            if already and annotations.get(DECISION_ID) == decision_id:
                return True
            check(key.owner, stored, conditions)
            if not already:
                await self._calls.set_replicas(key, stored, number, decision_id)
            return not already

        changed = await self._calls.persistently(attempt)
        return changed, self._calls.existing(key.owner)

    async def set_status(
        self, key: ObjectKey, status: Mapping[str, Any], conditions: Preconditions
    ) -> StoredObject:
        """Replace the status; the object afterwards."""

        async def attempt() -> None:
            stored = self._calls.existing(key)
            check(key, stored, conditions)
            await self._statuses.write(key, stored, status)

        await self._calls.persistently(attempt)
        return self._calls.existing(key)

    async def update_status(self, key: ObjectKey, render: RenderStatus) -> None:
        """Give an object the status rendered of it as it stands then; one that is gone, or going,
        needs none."""

        async def attempt() -> None:
            stored = self._store.get(key)
            status = None if stored is None or is_going(stored.object) else render(stored)
            if stored is not None and status is not None:
                await self._statuses.write(key, stored, status)

        await self._calls.persistently(attempt)

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
        self._store.must_see([key])
        await self._store.refresh(key)
        stored = self._store.get(key)
        if stored is None:
            return 0
        check(key, stored, conditions)
        await self._calls.delete(key, stored, 0 if final else grace_period_seconds)
        return stored.revision

    async def delete_if(self, key: ObjectKey, is_unwanted: Callable[[StoredObject], bool]) -> None:
        """Delete an object unless it is wanted as it stands then."""
        stored = self._store.get(key)
        if stored is None or is_going(stored.object) or not is_unwanted(stored):
            return
        await self._store.refresh(key)
        stored = self._store.get(key)
        if stored is not None and is_unwanted(stored):
            await self._calls.delete(key, stored)

    async def own(self, key: ObjectKey, render: RenderOwn, manager: str) -> None:
        """Make `manager` own exactly what `render` makes of an object as it stands then."""

        async def attempt() -> None:
            stored = self._store.get(key)
            manifest = None if stored is None or is_going(stored.object) else render(stored)
            if stored is not None and manifest is not None:
                wanted = conditional(manifest, stored)
                await self._calls.apply(key, wanted, manager, force=True)

        await self._calls.persistently(attempt)

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
                raise ContestedError(key)

    async def _send(self, step: Step, manager: str, force: bool, dry_run: bool) -> dict[str, Any]:
        apply = self._calls.apply
        key, manifest = step.key, step.manifest
        try:
            answer = await apply(key, manifest, manager, force=force, dry_run=dry_run)
        except KubeError as error:
            if error.code is not ErrorCode.FIELD_OWNED_BY_OTHER or not _is_offered(key, error):
                raise
            answer = await apply(key, manifest, manager, force=True, dry_run=dry_run)
        revision = int(answer["metadata"].get("resourceVersion") or 0)
        if not dry_run and step.stored is not None and revision == step.stored.revision:
            self._idle[key, manager] = (_content(manifest), revision)
        return answer


def _content(manifest: Mapping[str, Any]) -> str:
    """What a manifest says, whatever state of the object it is conditional on."""
    metadata = {
        name: value
        for name, value in manifest["metadata"].items()
        if name not in ("uid", "resourceVersion")
    }
    return digest({**manifest, "metadata": metadata})


def _is_offered(key: ObjectKey, error: ProblemsError) -> bool:
    """Whether all contested fields are such as the platform sets for people to change."""
    yielding = HAND_OVER | offers(key)
    owners = [_OWNER.search(problem.message) for problem in error.problems]
    return all(found and manager_of(found[1]) in yielding for found in owners)


def _result(step: Step, answer: Mapping[str, Any] | None) -> AppliedObject:
    found = step.stored.object if answer is None and step.stored is not None else answer
    assert found is not None, "what isn't stored yet is always sent"
    metadata = found["metadata"]
    revision = int(metadata.get("resourceVersion") or 0)
    if answer is None and step.stored is not None:
        revision = step.stored.revision
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
