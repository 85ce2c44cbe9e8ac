"""Publishing: what the facts add up to against what is on the bus.

One publication is under way at a time; what changes meanwhile goes with the next. Invariant: only
the active instance publishes, and it has read what is published before; whatever goes wrong,
it reads that again and compares everything.
"""

import asyncio
import logging
import time
from collections.abc import Iterable

from inferbus_contracts.base import EventData
from inferbus_contracts.errors import ProblemsError
from inferbus_contracts.keys import ObjectKey
from inferbus_router_config_publisher.core import Join
from inferbus_router_config_publisher.effects import RoutesLog
from inferbus_router_config_publisher.policy_parts import PublishedTable
from inferbus_router_config_publisher.resolution import Resolver
from inferbus_router_config_publisher.routers import Routers
from inferbus_router_config_publisher.telemetry import TableMetrics
from inferbus_shared.bus.membership import Membership
from inferbus_shared.bus.messages import Received
from inferbus_shared.bus.store import WrongSequenceError

log = logging.getLogger("inferbus.router-config-publisher")

RETRY_SECONDS = 0.5
CHECK_SECONDS = 5.0
"""How often the log is looked at while there is nothing to publish, real time."""

Causes = dict[ObjectKey, Received[EventData]]


class Publisher:
    """Keeps the parts on the bus equal to what the facts add up to."""

    def __init__(
        self,
        *,
        join: Join,
        routes: RoutesLog,
        membership: Membership,
        resolver: Resolver,
        routers: Routers,
        metrics: TableMetrics,
        coalesce_ms: float,
    ) -> None:
        """Changes wait for `coalesce_ms` of real time for others to go with."""
        self._join = join
        self._routes = routes
        self._membership = membership
        self._resolver = resolver
        self._routers = routers
        self._metrics = metrics
        self._coalesce_seconds = coalesce_ms / 1000
        self._published: PublishedTable | None = None
        self._pending: Causes = {}
        self._since = time.perf_counter()
        self._news = asyncio.Event()
        self._urgent = asyncio.Event()
        membership.on_change(self._news.set)

    def changed(
        self, keys: Iterable[ObjectKey], cause: Received[EventData], *, urgent: bool
    ) -> None:
        """These parts may differ from what is published; an urgent change doesn't wait."""
        changed = dict.fromkeys(keys, cause)
        if not changed:
            return
        if not self._pending:
            self._since = time.perf_counter()
        self._pending |= changed
        self._news.set()
        if urgent:
            self._urgent.set()

    async def run(self) -> None:
        """Publish for ever; the facts at hand must have been folded."""
        self._news.set()
        while True:
            await self._wait_for_news()
            await self._coalesce()
            self._news.clear()
            self._urgent.clear()
            if self._membership.is_active:
                await self._try_to_publish()
            else:
                self._published = None
                self._pending.clear()

    async def _wait_for_news(self) -> None:
        """A log that isn't as it was left (emptied, or made anew) is news."""
        while not self._news.is_set():
            try:
                async with asyncio.timeout(CHECK_SECONDS):
                    await self._news.wait()
            except TimeoutError:
                await self._check()

    async def _check(self) -> None:
        table = self._published
        if table is None:
            return
        try:
            is_intact = await self._routes.is_as(table)
        except ProblemsError as error:
            log.warning("the log of routes isn't looked at", extra={"problem": str(error)})
            return
        if not is_intact:
            log.warning("the log of routes isn't as it was left; reading it again")
            self._published = None
            self._news.set()

    async def _coalesce(self) -> None:
        """A comparison of everything has been waited for long enough."""
        if self._published is None:
            return
        try:
            async with asyncio.timeout(self._coalesce_seconds):
                await self._urgent.wait()
        except TimeoutError:
            return

    async def _try_to_publish(self) -> None:
        causes, self._pending = self._pending, {}
        try:
            await self._publish(causes)
        except WrongSequenceError:
            self._metrics.lost.inc()
            log.info("another instance published first; reading what it did")
            self._again(causes, 0)
        except ProblemsError as error:
            self._metrics.failed.inc()
            log.warning("not published yet", extra={"problem": str(error)})
            self._again(causes, RETRY_SECONDS)

    def _again(self, causes: Causes, seconds: float) -> None:
        self._published = None
        self._pending = causes | self._pending
        asyncio.get_running_loop().call_later(seconds, self._news.set)

    async def _publish(self, causes: Causes) -> None:
        since = self._since
        table, keys = await self._to_compare(causes)
        settled = [key for key in keys if self._join.is_settled(key)]
        wanted = {key: self._join.part(key) for key in settled}
        changes = table.changes(wanted) or table.retelling(wanted)
        for batch in table.batches(changes):
            await self._routes.store(batch, causes)
            table = self._published = batch.table
            self._metrics.stored.inc()
            self._metrics.published.inc(len(batch.messages))
        if changes:
            self._metrics.seconds.observe(time.perf_counter() - since)
            self._tell(table)

    async def _to_compare(self, causes: Causes) -> tuple[PublishedTable, Iterable[ObjectKey]]:
        """What is published, and the keys to compare: those that changed, at first all."""
        if self._published is not None:
            return self._published, causes
        table = self._published = await self._routes.load()
        self._tell(table)
        self._resolver.changed(self._join.keys())
        return table, self._join.keys() | set(table.keys())

    def _tell(self, table: PublishedTable) -> None:
        self._metrics.parts.set(table.parts)
        self._metrics.revision.set(table.revision)
        self._routers.published(table.revision, table.table_digest)
