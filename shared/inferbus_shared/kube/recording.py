"""Telling an event about an object to the API server.

Invariant: the same event about the same object is one Event object, counted up, whichever instance
tells it and after any restart; two that tell it at once may count it once.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from inferbus_contracts.errors import ErrorCode
from inferbus_shared.kube.events import about_of, event_name, first_event, next_event
from inferbus_shared.kube.problems import KubeError
from inferbus_shared.kube.resources import EVENT, ApiResource
from inferbus_shared.kube.transport import MERGE_PATCH

Document = dict[str, Any]


class Calls(Protocol):
    """What it needs of the client."""

    async def get(self, resource: ApiResource, namespace: str, name: str) -> Document | None:
        """One object; None without it."""
        ...

    async def create(self, resource: ApiResource, manifest: Mapping[str, Any]) -> Document:
        """Create an object."""
        ...

    async def patch(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        body: Mapping[str, Any],
        *,
        content_type: str,
    ) -> Document:
        """Patch an object."""
        ...


async def record(
    calls: Calls,
    document: Mapping[str, Any],
    reason: str,
    message: str,
    component: str,
    warning: bool,
    now_ms: int,
) -> Document:
    """The Event as it stands afterwards; raises `KubeError`."""
    about = about_of(document)
    event = first_event(about, reason, message, component, warning=warning, now_ms=now_ms)
    namespace = event["metadata"]["namespace"]
    name = event_name(about, reason, message, component)
    try:
        return await calls.create(EVENT, event)
    except KubeError as error:
        if error.code is not ErrorCode.ALREADY_EXISTS:
            raise
    known = await calls.get(EVENT, namespace, name) or event
    body = next_event(known, now_ms)
    return await calls.patch(EVENT, namespace, name, body, content_type=MERGE_PATCH)
