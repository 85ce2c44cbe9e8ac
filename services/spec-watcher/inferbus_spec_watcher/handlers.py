"""The object API: requests in, replies out; the work is the applier's and the store's."""

import logging

from inferbus_contracts.api.objects import (
    ApplyReply,
    ApplyRequest,
    DeleteReply,
    DeleteRequest,
    GetRequest,
    ListReply,
    ListRequest,
    ObjectReply,
    ObjectVerb,
    ScaleReply,
    ScaleRequest,
    StatusReply,
    StatusRequest,
    object_subject,
)
from inferbus_contracts.canonical import canonical_json
from inferbus_contracts.errors import ErrorCode, Problem, ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.bus.service import Runtime
from inferbus_shared.objects.picture import StoredObject, controller_uid, shown
from inferbus_spec_watcher.policy_objects import not_found
from inferbus_spec_watcher.policy_replicas import replicas
from inferbus_spec_watcher.ports import Hand, Objects
from inferbus_spec_watcher.rejections import Rejections
from inferbus_spec_watcher.settings import SpecWatcherSettings

log = logging.getLogger("inferbus.spec-watcher")

MAX_PAGE_BYTES = 700_000


class ObjectApi:
    """Serves every verb."""

    def __init__(self, store: Objects, hand: Hand, rejections: Rejections) -> None:
        self._store = store
        self._hand = hand
        self._rejections = rejections

    def register(self, runtime: Runtime[SpecWatcherSettings]) -> None:
        """Listen for requests."""
        runtime.on_request(object_subject(ObjectVerb.GET), GetRequest, self.get)
        runtime.on_request(object_subject(ObjectVerb.LIST), ListRequest, self.list)
        runtime.on_request(object_subject(ObjectVerb.APPLY), ApplyRequest, self.apply)
        runtime.on_request(object_subject(ObjectVerb.DELETE), DeleteRequest, self.delete)
        runtime.on_request(object_subject(ObjectVerb.SCALE), ScaleRequest, self.scale)
        runtime.on_request(object_subject(ObjectVerb.STATUS), StatusRequest, self.status)

    async def get(self, request: GetRequest) -> ObjectReply:
        """One object."""
        key = parse(request.key)
        stored = self._store.get(key)
        if stored is None:
            return ObjectReply(problems=[self._store.unseen(key) or not_found(key)])
        return ObjectReply(object=shown(stored))

    async def list(self, request: ListRequest) -> ListReply:
        """One page of objects."""
        page: list[dict[str, object]] = []
        size = 0
        last = ""
        after = parse(request.continue_after) if request.continue_after else None
        for key, stored in self._store.items(request.kind):
            if (after and key <= after) or not _wanted(request, key, stored):
                continue
            body = shown(stored)
            size += len(canonical_json(body))
            if page and (len(page) >= request.limit or size > MAX_PAGE_BYTES):
                return ListReply(objects=page, continue_after=last)
            page.append(body)
            last = str(key)
        return ListReply(objects=page)

    async def apply(self, request: ApplyRequest) -> ApplyReply:
        """All documents or none."""
        try:
            results = await self._hand.apply(
                request.documents,
                request.manager,
                force=request.force,
                dry_run=request.dry_run,
            )
        except ProblemsError as error:
            await self._rejections.record(request.manager, error.problems)
            raise
        return ApplyReply(results=results)

    async def delete(self, request: DeleteRequest) -> DeleteReply:
        """Delete an object; what it owns follows."""
        revision = await self._hand.delete(
            parse(request.key),
            request.preconditions,
            grace_period_seconds=request.grace_period_seconds,
            final=request.final,
        )
        return DeleteReply(revision=revision)

    async def scale(self, request: ScaleRequest) -> ScaleReply:
        """Set replicas."""
        key = parse(request.key)
        changed, stored = await self._hand.scale(
            key, request.replicas, request.decision_id, request.preconditions
        )
        return ScaleReply(
            changed=changed,
            replicas=replicas(stored.object, key.role),
            uid=stored.uid,
            generation=stored.generation,
        )

    async def status(self, request: StatusRequest) -> StatusReply:
        """Replace a status."""
        key = parse(request.key)
        stored = await self._hand.set_status(key, request.status, request.preconditions)
        return StatusReply(revision=stored.revision)


def parse(text: str) -> ObjectKey:
    """The key in a request; raises `ProblemsError` when it is none."""
    try:
        return ObjectKey.parse(text)
    except ValueError as error:
        raise ProblemsError(
            Problem(code=ErrorCode.BAD_ARGUMENT, message=str(error), field="key", value=text)
        ) from None


def _wanted(request: ListRequest, key: ObjectKey, stored: StoredObject) -> bool:
    labels = stored.object["metadata"].get("labels", {})
    return (
        request.namespace in (None, key.namespace)
        and all(labels.get(name) == value for name, value in request.label_selector.items())
        and request.owner_uid in (None, controller_uid(stored.object))
    )
