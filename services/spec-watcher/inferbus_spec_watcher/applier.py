"""Changes to objects: plan on the picture, write conditionally, plan anew when somebody was first.

Every way to change an object ends here: the object API, the folder, the expander, the writer of
statuses, the collector of garbage. Writes of one instance are made one after the other. Invariant:
what is written was computed from the objects as they stood when it was written, so that whoever
gives a function instead of a document never overwrites what came in between.
"""

import asyncio
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from inferbus_contracts.api.objects import (
    AppliedDocument,
    AppliedObject,
    Change,
    Preconditions,
)
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import DECISION_ID
from inferbus_contracts.resources.kinds import POD
from inferbus_shared.clock import Clock
from inferbus_shared.objects.picture import StoredObject
from inferbus_spec_watcher.contention import ATTEMPTS, StaleError, too_contested
from inferbus_spec_watcher.object_store import ObjectStore
from inferbus_spec_watcher.policies import Policies
from inferbus_spec_watcher.policy_objects import (
    Written,
    check,
    mark_deleted,
    not_found,
    scale,
    set_status,
)
from inferbus_spec_watcher.policy_replicas import replicas_of
from inferbus_spec_watcher.policy_units import PlannedObject, plan_unit, writes
from inferbus_spec_watcher.ports import RenderDocuments, RenderStatus

DEFAULT_GRACE_SECONDS = 30

PlanT = TypeVar("PlanT")
Changes = dict[ObjectKey, dict[str, Any] | None]


class Applier:
    """The one hand that writes objects."""

    def __init__(self, store: ObjectStore, policies: Policies, clock: Clock) -> None:
        self._store = store
        self._policies = policies
        self._clock = clock
        self._writing = asyncio.Lock()

    async def apply(
        self,
        documents: Sequence[AppliedDocument],
        manager: str,
        *,
        force: bool = False,
        dry_run: bool = False,
    ) -> list[AppliedObject]:
        """Apply all documents or none; raises `ProblemsError` with everything that is wrong."""
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

        def plan() -> tuple[list[PlannedObject], Changes]:
            planned = plan_unit(
                render(),
                manager,
                lookup=self._store.get,
                scaled=self._policies.owned_replicas(),
                uids=_uids(),
                now_ms=self._clock.now_ms(),
                force=force,
            )
            return planned, {} if dry_run else writes(planned)

        planned = await self._change(plan)
        return [self._result(item) for item in planned]

    async def scale(
        self, key: ObjectKey, number: int, decision_id: str, conditions: Preconditions
    ) -> tuple[bool, StoredObject]:
        """Set the replicas of a target or role; (whether this decision did, the object now)."""

        def plan() -> tuple[bool, Changes]:
            stored = self._existing(key)
            already = replicas_of(key, stored.object) == number
            if already and _is_of_decision(stored, decision_id):
                return True, {}
            check(key.owner, stored, conditions)
            if already:
                return False, {}
            return True, {key.owner: scale(stored, key.role, number, decision_id).object}

        changed = await self._change(plan)
        return changed, self._existing(key)

    async def set_status(
        self, key: ObjectKey, status: Mapping[str, Any], conditions: Preconditions
    ) -> StoredObject:
        """Replace the status; the object afterwards."""

        def plan() -> tuple[None, Changes]:
            stored = self._existing(key)
            check(key, stored, conditions)
            return None, _needed(key, set_status(stored, status))

        await self._change(plan)
        return self._existing(key)

    async def update_status(self, key: ObjectKey, render: RenderStatus) -> None:
        """Give an object the status rendered of it as it stands then; one that is gone needs
        none."""

        def plan() -> tuple[None, Changes]:
            stored = self._store.get(key)
            status = render(stored) if stored is not None else None
            if stored is None or status is None:
                return None, {}
            return None, _needed(key, set_status(stored, status))

        await self._change(plan)

    async def delete(
        self,
        key: ObjectKey,
        conditions: Preconditions,
        *,
        grace_period_seconds: int | None = None,
        final: bool = False,
    ) -> int:
        """Delete an object; a pod is only marked until `final`.

        The revision of that, 0 where there was nothing to delete.
        """

        def plan() -> tuple[bool, Changes]:
            stored = self._store.get(key)
            if stored is None:
                return False, {}
            check(key, stored, conditions)
            if final:
                return True, {key: None}
            return True, self._deletion(key, stored, grace_period_seconds)

        existed = await self._change(plan)
        return self._store.last_revision(key) if existed else 0

    async def delete_if(self, key: ObjectKey, is_unwanted: Callable[[StoredObject], bool]) -> None:
        """Delete an object unless it is wanted as it stands then; a pod is only marked."""

        def plan() -> tuple[None, Changes]:
            stored = self._store.get(key)
            if stored is None or not is_unwanted(stored):
                return None, {}
            return None, self._deletion(key, stored)

        await self._change(plan)

    def _deletion(
        self, key: ObjectKey, stored: StoredObject, grace_period_seconds: int | None = None
    ) -> Changes:
        if key.kind != POD:
            return {key: None}
        grace = _grace_seconds(stored) if grace_period_seconds is None else grace_period_seconds
        return _needed(key, mark_deleted(stored, self._clock.now_ms(), grace))

    async def _change(self, plan: Callable[[], tuple[PlanT, Changes]]) -> PlanT:
        contested: Changes = {}
        async with self._writing:
            for _ in range(ATTEMPTS):
                result, changes = plan()
                if not changes:
                    return result
                try:
                    await self._store.write(changes)
                except StaleError:
                    contested = changes
                else:
                    return result
        raise too_contested(next(iter(contested)))

    def _existing(self, key: ObjectKey) -> StoredObject:
        stored = self._store.get(key.owner)
        if stored is None:
            raise ProblemsError(not_found(key.owner))
        return stored

    def _result(self, item: PlannedObject) -> AppliedObject:
        metadata = item.written.object["metadata"]
        return AppliedObject(
            key=str(item.key),
            change=item.written.change,
            uid=metadata["uid"],
            generation=metadata["generation"],
            revision=self._store.last_revision(item.key),
            warnings=list(item.warnings),
        )


def _needed(key: ObjectKey, written: Written) -> Changes:
    return {} if written.change is Change.UNCHANGED else {key: written.object}


def _is_of_decision(stored: StoredObject, decision_id: str) -> bool:
    annotations = stored.object["metadata"].get("annotations", {})
    return bool(annotations.get(DECISION_ID) == decision_id)


def _grace_seconds(pod: StoredObject) -> int:
    """A pod that says no number must be able to go too."""
    own = pod.object.get("spec", {}).get("terminationGracePeriodSeconds")
    return own if isinstance(own, int) else DEFAULT_GRACE_SECONDS


def _uids() -> Iterator[str]:
    while True:
        yield str(uuid.uuid4())
