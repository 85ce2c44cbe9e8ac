"""Following a resource in one namespace or in all: list, watch, go on, list again.

Invariant: nothing ends it but cancellation, and no failure makes it try again without a delay that
grows. A 410 alone is answered at once, because a new list mends it; the second in a row isn't.
(client-go, `Reflector.ListAndWatch`)
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol

from inferbus_contracts.errors import ErrorCode, Problem
from inferbus_contracts.keys import ObjectKey
from inferbus_shared.kube.client import KubeClient
from inferbus_shared.kube.outage import Outage
from inferbus_shared.kube.pacing import back_off_seconds, spread
from inferbus_shared.kube.problems import GONE, KubeError, unreachable
from inferbus_shared.kube.resources import ApiResource
from inferbus_shared.kube.view import MalformedError, Relist, T, View, identify
from inferbus_shared.kube.watch_lines import EventType, WatchEvent, parse

log = logging.getLogger("inferbus.kube")

SHORT_WATCH_MS = 1000
"""A watch that ends so soon without a word isn't the API server's doing (client-go, the same)."""

THROTTLED = 429

EVENTS_AT_ONCE = 200
"""So many events are taken in before others get their turn."""


class Audience(Protocol):
    """Whom the follow tells what it did to the view."""

    def tell(self, keys: list[ObjectKey]) -> None:
        """These objects changed."""
        ...

    def unreadable(self, error: MalformedError) -> None:
        """This object can't be read."""
        ...

    def synced_once(self) -> None:
        """The follow is complete."""
        ...


class Follow(Generic[T]):
    """One list and watch."""

    def __init__(
        self,
        client: KubeClient,
        resource: ApiResource,
        namespace: str,
        label_selector: str,
        view: View[T],
        audience: Audience,
        chance: Callable[[], float],
        name: str = "",
    ) -> None:
        """`namespace` is empty for all, `name` for every object of it."""
        self._client = client
        self._clock = client.clock
        self._metrics = client.metrics
        self._events = {
            type_: client.metrics.events.labels(resource.kind, type_.value) for type_ in EventType
        }
        self._resource = resource
        self._namespace = namespace
        self._label_selector = label_selector
        self._name = name
        self._view = view
        self._audience = audience
        self._chance = chance
        self._place = f"{resource.plural}.{resource.group}".rstrip(".")
        self._place += f" in {namespace}" if namespace else ""
        self._outage = Outage(f"the watch of {self._place}", client.clock)
        self._failures = 0
        self._listed = False
        """Whether a watch can go on from `revision`."""
        self.revision = 0
        """How far the view has come."""
        self.synced = False
        self.served = True
        self.problem: Problem | None = None

    async def run(self) -> None:
        """For ever."""
        while True:
            try:
                if not self._listed:
                    await self._list()
                await self._watch()
            except KubeError as error:
                await self._failed(error)

    async def _list(self) -> None:
        relist = Relist(self._view, self._resource, self._namespace)
        revision = ""
        pages = self._client.pages(
            self._resource, self._namespace, self._label_selector, name=self._name
        )
        async for page in pages:
            if page.begins:
                relist.begin()
            for document in page.items:
                try:
                    relist.add(document)
                except MalformedError as error:
                    self._audience.unreadable(error)
            revision = page.revision
            await asyncio.sleep(0)
        reached = int(revision)
        changed = relist.finish(reached, went_back=reached < self.revision)
        self.revision = reached
        self._listed = True
        self.synced = True
        self._metrics.lists.labels(self._resource.kind).inc()
        self._audience.tell(changed)
        self._audience.synced_once()

    async def _watch(self) -> None:
        """One watch to its end by the server; raises `KubeError` for any other end."""
        began_ms = self._clock.steady_ms()
        seconds = round(spread(self._client.settings.watch_timeout_seconds, self._chance()))
        events = 0
        async with self._client.watch(
            self._resource,
            self._namespace,
            self._label_selector,
            str(self.revision),
            seconds,
            self._name,
        ) as lines:
            with self._proving():
                async for line in lines:
                    self._take(self._parsed(line))
                    events += 1
                    if events == 1:
                        self._works()
                    if not self._listed:
                        return
                    if events % EVENTS_AT_ONCE == 0:
                        await asyncio.sleep(0)
        if not events and self._clock.steady_ms() - began_ms < SHORT_WATCH_MS:
            raise self._broke(unreachable("a watch ended as soon as it began", self._place))
        self._lasts()

    @contextmanager
    def _proving(self) -> Iterator[None]:
        """A watch that is open works after a moment, though it may have nothing to say."""
        loop = asyncio.get_running_loop()
        timer = loop.call_later(SHORT_WATCH_MS / 1000, self._lasts)
        try:
            yield
        finally:
            timer.cancel()

    def _parsed(self, line: bytes) -> WatchEvent:
        try:
            return parse(line, self._resource.kind)
        except KubeError as error:
            raise self._broke(error) from None

    def _broke(self, error: KubeError) -> KubeError:
        """What the watch itself shows isn't told by the transport."""
        if error.status != GONE:
            self._outage.failed(error.problems[0])
        return error

    def _take(self, event: WatchEvent) -> None:
        self._events[event.type].inc()
        if event.type is not EventType.BOOKMARK:
            self._draw_in(event)
        self.revision = max(self.revision, event.revision)

    def _draw_in(self, event: WatchEvent) -> None:
        try:
            identity = identify(self._resource, event.object)
            if event.type is EventType.DELETED:
                changed = self._view.remove(identity.key, identity.revision)
            else:
                kept = self._view.keep(identity, event.object)
                changed = self._view.put(identity.key, kept)
        except MalformedError as error:
            self._audience.unreadable(error)
            # Which object went can't be told: only a list shows what is left.
            self._listed = self._listed and event.type is not EventType.DELETED
            return
        if changed:
            self._audience.tell([identity.key])

    def _lasts(self) -> None:
        self._failures = 0
        self._works()

    def _works(self) -> None:
        self.problem = None
        self._outage.worked()

    async def _failed(self, error: KubeError) -> None:
        self._metrics.failures.labels(self._resource.kind, error.code.value).inc()
        if error.code in _MAYBE_ABSENT and not await self._is_served():
            await self._absent()
            return
        self._failures += 1
        if error.status == GONE and self._failures == 1:
            self._listed = False
            return
        if error.status and error.status != THROTTLED:
            # The server may never take this revision: after a restore it lies in its future.
            self._listed = self._listed and self._failures == 1
        self.problem = error.problems[0]
        if error.status:
            # Without a status nobody answered: the transport tells that once for all watches.
            self._outage.failed(error.problems[0])
        delay = back_off_seconds(self._failures, self._chance())
        await self._clock.sleep(max(delay, error.retry_after_seconds or 0.0))

    async def _is_served(self) -> bool:
        try:
            return await self._client.serves(self._resource)
        except KubeError:
            return True  # nobody says otherwise; what the list was refused with is told

    async def _absent(self) -> None:
        """Be empty until the resource is served."""
        log.info("resource not served", extra={"resource": self._place})
        self.served = False
        self._listed = False
        self.problem = None
        self._failures = 0
        self.synced = True
        self._audience.tell(self._view.clear(self._namespace))
        self._audience.synced_once()
        while True:
            poll = self._client.settings.discovery_poll_seconds
            await self._clock.sleep(spread(poll, self._chance()))
            try:
                if await self._client.serves(self._resource):
                    break
            except KubeError as error:
                self._metrics.failures.labels(self._resource.kind, error.code.value).inc()
        log.info("resource served", extra={"resource": self._place})
        self.served = True


_MAYBE_ABSENT = (ErrorCode.NOT_FOUND, ErrorCode.KUBE_REFUSED)
"""RBAC refuses what isn't served as well, before anybody looks whether it is."""
