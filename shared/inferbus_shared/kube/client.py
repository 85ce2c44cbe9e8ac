"""The calls to the Kubernetes API that services make, on dicts.

Invariant: an answer is what the API server holds after the call. Every method raises `KubeError`
(a `ProblemsError`) with what was refused and why; only `get` and `delete` take "it isn't there" for
an answer.
"""

import builtins
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self

from inferbus_contracts.errors import ErrorCode
from inferbus_shared.clock import Clock, SystemClock
from inferbus_shared.kube import discovery
from inferbus_shared.kube.access import Access, open_access
from inferbus_shared.kube.deletion import delete_options
from inferbus_shared.kube.listing import Listing, Page, pages_of, selection
from inferbus_shared.kube.metrics import KubeMetrics
from inferbus_shared.kube.problems import KubeError, PathNotFoundError
from inferbus_shared.kube.recording import record
from inferbus_shared.kube.resources import ApiResource
from inferbus_shared.kube.settings import KubeSettings
from inferbus_shared.kube.transport import APPLY_PATCH, JSON, MERGE_PATCH, Transport
from inferbus_shared.kube.watch_lines import watch_query

Document = dict[str, Any]


class KubeClient:
    """Calls under one identity; an async context manager."""

    def __init__(
        self,
        settings: KubeSettings,
        *,
        clock: Clock | None = None,
        metrics: KubeMetrics | None = None,
    ) -> None:
        """`clock` paces retries; `metrics` counts calls."""
        self.settings = settings
        self.clock: Clock = clock or SystemClock()
        self.metrics = metrics or KubeMetrics()
        self._stack = AsyncExitStack()
        self._opened: Transport | None = None

    async def __aenter__(self) -> Self:
        """Raises `ProblemsError` (BAD_SETTING) where the settings name no way in."""
        return await self.open(await open_access(self.settings))

    async def open(self, access: Access) -> Self:
        """Begin with a way in that is known already."""
        transport = Transport(access, self.settings, self.clock, self.metrics)
        self._opened = await self._stack.enter_async_context(transport)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    @property
    def _transport(self) -> Transport:
        assert self._opened is not None, "use the client as an async context manager"
        return self._opened

    async def get(self, resource: ApiResource, namespace: str, name: str) -> Document | None:
        """One object; None when there is none of that name, or its kind isn't served."""
        try:
            return await self._call("GET", resource, namespace, name)
        except KubeError as error:
            if await self._says_absent(resource, error):
                return None
            raise

    async def _says_absent(self, resource: ApiResource, error: KubeError) -> bool:
        """Whether it is the API server that knows no such object."""
        if isinstance(error, PathNotFoundError):
            return not await self.serves(resource)
        return error.code is ErrorCode.NOT_FOUND

    async def list(
        self,
        resource: ApiResource,
        namespace: str = "",
        label_selector: str = "",
        limit: int | None = None,
    ) -> Listing:
        """All objects, read in pages of `limit` (the settings' size unless given)."""
        items: builtins.list[Document] = []
        revision = ""
        async for page in self.pages(resource, namespace, label_selector, limit):
            if page.begins:
                items.clear()
            items += page.items
            revision = page.revision
        return Listing(items, revision)

    def pages(
        self,
        resource: ApiResource,
        namespace: str = "",
        label_selector: str = "",
        limit: int | None = None,
        name: str = "",
    ) -> AsyncIterator[Page]:
        """All objects, or that of `name`, by pages; one that `begins` voids those before it."""
        size = self.settings.page_size if limit is None else limit

        async def fetch(query: Mapping[str, str]) -> Document:
            return await self._call("GET", resource, namespace, query=query)

        return pages_of(fetch, resource, selection(label_selector, name), size)

    async def create(self, resource: ApiResource, manifest: Mapping[str, Any]) -> Document:
        """Create an object; ALREADY_EXISTS when its name is taken."""
        namespace = manifest["metadata"].get("namespace", "")
        return await self._call("POST", resource, namespace, body=manifest)

    async def delete(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        grace_period_seconds: int | None = None,
        propagation: str = "Background",
    ) -> Document | None:
        """Delete an object, only the one of that uid if given; None when it was gone.

        The answer is the object as it ends, or a `Status` when it has ended.
        """
        options = delete_options(uid, grace_period_seconds, propagation)
        try:
            return await self._call("DELETE", resource, namespace, name, body=options)
        except KubeError as error:
            if await self._says_absent(resource, error):
                return None
            if not uid or error.code is not ErrorCode.CONFLICT:
                raise
            if await self._is(resource, namespace, name, uid):
                raise
            return None

    async def _is(self, resource: ApiResource, namespace: str, name: str, uid: str) -> bool:
        found = await self.get(resource, namespace, name)
        return found is not None and found["metadata"].get("uid") == uid

    async def apply(
        self,
        resource: ApiResource,
        manifest: Mapping[str, Any],
        *,
        manager: str,
        force: bool = False,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Document:
        """Server-side apply: `manager` owns exactly the fields of `manifest` afterwards.

        Raises FIELD_OWNED_BY_OTHER, one problem per field with the other manager's name, unless
        `force`; CONFLICT where `metadata.resourceVersion` is given and passed.
        """
        metadata = manifest["metadata"]
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        if dry_run:
            query["dryRun"] = "All"
        return await self._call(
            "PATCH",
            resource,
            metadata.get("namespace", ""),
            metadata["name"],
            subresource,
            query=query,
            body=manifest,
            content_type=APPLY_PATCH,
        )

    async def patch(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        content_type: str,
        subresource: str = "",
        manager: str = "",
    ) -> Document:
        """A JSON patch (a list, `JSON_PATCH`) or a merge patch (a dict, `MERGE_PATCH`).

        A `test` of a JSON patch that fails raises KUBE_INVALID; a passed
        `metadata.resourceVersion` in a merge patch raises CONFLICT.
        """
        query = {"fieldManager": manager} if manager else {}
        return await self._call(
            "PATCH",
            resource,
            namespace,
            name,
            subresource,
            query=query,
            body=body,
            content_type=content_type,
        )

    async def scale(self, resource: ApiResource, namespace: str, name: str) -> Document:
        """The autoscaling/v1 Scale of an object; NOT_FOUND without one."""
        return await self._call("GET", resource, namespace, name, "scale")

    async def set_scale(
        self,
        resource: ApiResource,
        namespace: str,
        name: str,
        replicas: int,
        *,
        resource_version: str = "",
        manager: str = "",
    ) -> Document:
        """Set the replicas; CONFLICT when the object isn't at `resource_version` any more."""
        body: Document = {"spec": {"replicas": replicas}}
        if resource_version:
            body["metadata"] = {"resourceVersion": resource_version}
        return await self.patch(
            resource,
            namespace,
            name,
            body,
            content_type=MERGE_PATCH,
            subresource="scale",
            manager=manager,
        )

    async def record_event(
        self,
        document: Mapping[str, Any],
        reason: str,
        message: str,
        *,
        component: str,
        warning: bool = False,
    ) -> Document:
        """Tell an event about an object, for `kubectl describe`.

        The same event about the same object is counted up, after a restart too.
        """
        now_ms = self.clock.now_ms()
        return await record(self, document, reason, message, component, warning, now_ms)

    async def served(self) -> frozenset[discovery.Served]:
        """What the API server serves: (group, version, plural) of every resource."""
        return await discovery.served(self._fetch)

    async def serves(self, resource: ApiResource) -> bool:
        """Whether the API server serves a resource; cheaper than `served`."""
        return await discovery.serves(self._fetch, resource)

    @asynccontextmanager
    async def watch(
        self,
        resource: ApiResource,
        namespace: str,
        label_selector: str,
        revision: str,
        timeout_seconds: int,
        name: str = "",
    ) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The lines of a watch from `revision` on, which the server ends after so long."""
        query = watch_query(selection(label_selector, name), revision, timeout_seconds)
        silence = timeout_seconds + self.settings.watch_margin_seconds
        path = resource.path(namespace)
        async with self._transport.watch(path, query, silence, resource.kind) as lines:
            yield lines

    async def _fetch(self, path: str) -> Document:
        return await self._transport.call("GET", path)

    async def _call(
        self,
        method: str,
        resource: ApiResource,
        namespace: str = "",
        name: str = "",
        subresource: str = "",
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        content_type: str = JSON,
    ) -> Document:
        return await self._transport.call(
            method,
            resource.path(namespace, name, subresource),
            query=query or {},
            body=body,
            content_type=content_type,
            resource=resource,
            about=str(resource.key(namespace, name)) if name else "",
        )
