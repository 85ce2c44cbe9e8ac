"""Changes to objects: plan on the picture, write conditionally, plan anew when somebody was first.

Every way to change an object ends here: the object API, the folder, the expander, the collector of
garbage. Writes of one instance are made one after the other.
"""

import asyncio
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from inferbus_contracts.api.objects import (
    AppliedDocument,
    AppliedObject,
    Change,
    Preconditions,
)
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_contracts.resources.annotations import DECISION_ID
from inferbus_contracts.resources.kinds import POD
from inferbus_shared.clock import Clock
from inferbus_shared.objects.picture import StoredObject
from inferbus_spec_watcher.object_store import ObjectStore, StaleError, too_contested
from inferbus_spec_watcher.policies import Policies
from inferbus_spec_watcher.policy_objects import (
    Written,
    check,
    mark_deleted,
    not_found,
    scale,
    set_status,
)
from inferbus_spec_watcher.policy_replicas import replicas
from inferbus_spec_watcher.policy_units import PlannedObject, plan_unit, writes

ATTEMPTS = 8
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

        def plan() -> tuple[list[PlannedObject], Changes]:
            planned = plan_unit(
                documents,
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
            if _decided(stored, decision_id, key.role, number):
                return True, {}
            check(key.owner, stored, conditions)
            if replicas(stored.object, key.role) == number:
                return False, {}
            return True, {key.owner: scale(stored, key.role, number, decision_id).object}

        try:
            changed = await self._change(plan)
        except KeyError:
            raise ProblemsError(_no_role(key)) from None
        return changed, self._existing(key)

    async def set_status(
        self, key: ObjectKey, status: dict[str, Any], conditions: Preconditions
    ) -> StoredObject:
        """Replace the status; the object afterwards."""

        def plan() -> tuple[None, Changes]:
            stored = self._existing(key)
            check(key, stored, conditions)
            return None, _needed(key, set_status(stored, status))

        await self._change(plan)
        return self._existing(key)

    async def delete(
        self,
        key: ObjectKey,
        conditions: Preconditions,
        *,
        grace_period_seconds: int | None = None,
        final: bool = False,
    ) -> int:
        """Delete an object; a pod is only marked until `final`. The revision of that."""

        def plan() -> tuple[None, Changes]:
            stored = self._store.get(key)
            if stored is None:
                return None, {}
            check(key, stored, conditions)
            if key.kind != POD or final:
                return None, {key: None}
            spec = stored.object.get("spec", {})
            own = spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
            grace = own if grace_period_seconds is None else grace_period_seconds
            return None, _needed(key, mark_deleted(stored, self._clock.now_ms(), grace))

        await self._change(plan)
        return self._store.last_revision(key)

    async def _change(self, plan: Callable[[], tuple[PlanT, Changes]]) -> PlanT:
        last = ObjectKey("", "", "")
        async with self._writing:
            for _ in range(ATTEMPTS):
                result, changes = plan()
                if not changes:
                    return result
                try:
                    await self._store.write(changes)
                except StaleError:
                    last = next(iter(changes))
                else:
                    return result
        raise too_contested(last)

    def _existing(self, key: ObjectKey) -> StoredObject:
        stored = self._store.get(key.owner)
        if stored is None:
            raise ProblemsError(not_found(key.owner))
        return stored

    def _result(self, item: PlannedObject) -> AppliedObject:
        stored = self._store.get(item.key) or StoredObject(item.written.object, 0)
        metadata = item.written.object["metadata"]
        return AppliedObject(
            key=str(item.key),
            change=item.written.change,
            uid=metadata["uid"],
            generation=metadata["generation"],
            revision=stored.revision,
            warnings=list(item.warnings),
        )


def _needed(key: ObjectKey, written: Written) -> Changes:
    return {} if written.change is Change.UNCHANGED else {key: written.object}


def _decided(stored: StoredObject, decision_id: str, role: str, number: int) -> bool:
    annotations = stored.object["metadata"].get("annotations", {})
    same = annotations.get(DECISION_ID) == decision_id
    return same and replicas(stored.object, role) == number


def _uids() -> Iterator[str]:
    while True:
        yield str(uuid.uuid4())


def _no_role(key: ObjectKey) -> Problem:
    return Problem(
        code=ErrorCode.NOT_FOUND,
        message=f"the object has no role {key.role!r}",
        object=str(key.owner),
        field="spec.template.roles",
        value=key.role,
        remedy="correct the policy's role name",
    )
