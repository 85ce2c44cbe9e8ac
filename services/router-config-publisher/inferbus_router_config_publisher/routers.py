"""The routers behind the table: what they acknowledge, counted, and told when one stays behind.

Invariant: this only watches; nothing that routers are sent depends on it.
"""

import logging
from collections.abc import Callable

from inferbus_contracts.base import EventData
from inferbus_contracts.events.route import RouteAcknowledged
from inferbus_contracts.keys import ObjectKey
from inferbus_router_config_publisher.policy_acknowledgements import Acknowledgements
from inferbus_router_config_publisher.settings import RouterConfigPublisherSettings
from inferbus_router_config_publisher.telemetry import RouterMetrics
from inferbus_shared.bus.messages import Received
from inferbus_shared.clock import Clock

log = logging.getLogger("inferbus.router-config-publisher")

_CHECKS_PER_LIMIT = 3

Credentials = dict[ObjectKey, frozenset[ObjectKey]]
"""The providers whose credential can't be read, by router."""


class Routers:
    """Follows the acknowledgements."""

    def __init__(
        self,
        settings: RouterConfigPublisherSettings,
        clock: Clock,
        metrics: RouterMetrics,
        on_credentials: Callable[[Credentials], None],
    ) -> None:
        """`on_credentials` is told what each router lacks, whenever that is another."""
        self._on_credentials = on_credentials
        self._credentials: Credentials = {}
        self._clock = clock
        self._metrics = metrics
        self._acknowledgements = Acknowledgements()
        self._lagging_ms = round(settings.lagging_seconds * 1000)
        self._gone_ms = round(settings.gone_seconds * 1000)
        self._check_seconds = settings.lagging_seconds / _CHECKS_PER_LIMIT
        self._behind: frozenset[ObjectKey] = frozenset()

    def take(self, event: Received[EventData]) -> None:
        """A router acknowledged a revision."""
        assert isinstance(event.data, RouteAcknowledged)
        self._acknowledgements.take(event.key, event.data, event.time_ms)
        self._metrics.lag.observe(event.data.lag_ms / 1000)
        self._measure()
        self._tell_credentials()

    def published(self, revision: int, table_digest: str) -> None:
        """This is what routers should serve from now on."""
        self._acknowledgements.published(revision, table_digest, self._clock.now_ms())
        self._measure()

    async def run(self) -> None:
        """Look for routers that stay behind, for ever."""
        while True:
            await self._clock.sleep(self._check_seconds)
            self._check()

    def _check(self) -> None:
        known, now_ms = self._acknowledgements, self._clock.now_ms()
        gone = known.behind(now_ms, self._gone_ms)
        for router in sorted(gone):
            log.info("a router is taken for gone", extra={"router": router})
        known.forget(gone)
        self._tell_credentials()
        behind = known.behind(now_ms, self._lagging_ms)
        for router in sorted(behind - self._behind):
            revision = known.revision_of(router)
            log.warning("a router stays behind", extra={"router": router, "revision": revision})
        for router in sorted(self._behind - behind - gone):
            log.info("a router has caught up", extra={"router": router})
        self._behind = behind
        self._measure()

    def _tell_credentials(self) -> None:
        credentials = self._acknowledgements.without_credential
        if credentials != self._credentials:
            self._credentials = credentials
            self._on_credentials(credentials)

    def _measure(self) -> None:
        self._metrics.routers.set(self._acknowledgements.routers)
        self._metrics.oldest.set(self._acknowledgements.oldest_revision)
        self._metrics.behind.set(len(self._behind))
