"""Asking the spec-watcher for objects and changes to them.

Every call raises `ProblemsError` with what was refused, or that nobody answered.
"""

from collections.abc import Sequence
from typing import Any

from inferbus_contracts.api.objects import (
    AppliedDocument,
    AppliedObject,
    ApplyReply,
    ApplyRequest,
    DeleteReply,
    DeleteRequest,
    GetRequest,
    ListReply,
    ListRequest,
    ObjectReply,
    ObjectVerb,
    Preconditions,
    ScaleReply,
    ScaleRequest,
    StatusReply,
    StatusRequest,
    object_subject,
)
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.bus import Bus

ANY = Preconditions()


class ObjectClient:
    """The object API for one caller."""

    def __init__(self, bus: Bus, manager: str) -> None:
        """`manager` is the field manager of what is applied."""
        self._bus = bus
        self._manager = manager

    async def get(self, key: ObjectKey) -> dict[str, Any]:
        """One object with its status."""
        request = GetRequest(key=str(key))
        reply = await self._bus.ask(object_subject(ObjectVerb.GET), request, ObjectReply)
        assert reply.object is not None
        return reply.object

    async def find(
        self, kind: str, namespace: str | None = None, owner_uid: str | None = None
    ) -> list[dict[str, Any]]:
        """All objects of a kind, page by page, in key order."""
        found: list[dict[str, Any]] = []
        after = ""
        while True:
            request = ListRequest(
                kind=kind, namespace=namespace, owner_uid=owner_uid, continue_after=after
            )
            reply = await self._bus.ask(object_subject(ObjectVerb.LIST), request, ListReply)
            found += reply.objects
            after = reply.continue_after
            if not after:
                return found

    async def apply(
        self, documents: Sequence[AppliedDocument], *, force: bool = False, dry_run: bool = False
    ) -> list[AppliedObject]:
        """Store all documents or none."""
        request = ApplyRequest(
            documents=list(documents), manager=self._manager, force=force, dry_run=dry_run
        )
        reply = await self._bus.ask(object_subject(ObjectVerb.APPLY), request, ApplyReply)
        return reply.results

    async def create(self, document: dict[str, Any]) -> AppliedObject:
        """Store an object that must not exist yet (ALREADY_EXISTS otherwise)."""
        absent = Preconditions(absent=True)
        (result,) = await self.apply([AppliedDocument(object=document, preconditions=absent)])
        return result

    async def delete(
        self,
        key: ObjectKey,
        conditions: Preconditions = ANY,
        *,
        grace_period_seconds: int | None = None,
        final: bool = False,
    ) -> int:
        """Delete an object and what it owns; a pod ends first, `final` says it has.

        The revision of that; 0 where the object was gone already.
        """
        request = DeleteRequest(
            key=str(key),
            preconditions=conditions,
            grace_period_seconds=grace_period_seconds,
            final=final,
            manager=self._manager,
        )
        reply = await self._bus.ask(object_subject(ObjectVerb.DELETE), request, DeleteReply)
        return reply.revision

    async def scale(self, request: ScaleRequest) -> ScaleReply:
        """Set the replicas of a target."""
        return await self._bus.ask(object_subject(ObjectVerb.SCALE), request, ScaleReply)

    async def set_status(
        self, key: ObjectKey, status: dict[str, Any], conditions: Preconditions = ANY
    ) -> int:
        """Replace the status of an object; the revision afterwards."""
        request = StatusRequest(key=str(key), status=status, preconditions=conditions)
        reply = await self._bus.ask(object_subject(ObjectVerb.STATUS), request, StatusReply)
        return reply.revision
