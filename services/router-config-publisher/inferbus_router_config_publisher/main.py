"""Wires the publisher: facts, the join, and those who publish what follows."""

from collections.abc import Sequence

from inferbus_contracts.events.route import RouteAcknowledged, RoutesResolved
from inferbus_contracts.services import Service
from inferbus_router_config_publisher.core import Join
from inferbus_router_config_publisher.effects import RoutesLog
from inferbus_router_config_publisher.handlers import FOLDED, FactHandler
from inferbus_router_config_publisher.publication import Publisher
from inferbus_router_config_publisher.resolution import Resolver
from inferbus_router_config_publisher.routers import Credentials, Routers
from inferbus_router_config_publisher.settings import RouterConfigPublisherSettings
from inferbus_router_config_publisher.telemetry import RouterMetrics, TableMetrics
from inferbus_shared.bus.folding import fold
from inferbus_shared.bus.membership import Membership
from inferbus_shared.bus.observer import Observer
from inferbus_shared.bus.service import Runtime, run_service


def main(argv: Sequence[str] | None = None) -> int:
    """Run the service; it takes no arguments (see settings)."""
    del argv
    return run_service(Service.ROUTER_CONFIG_PUBLISHER, RouterConfigPublisherSettings, serve)


async def serve(runtime: Runtime[RouterConfigPublisherSettings]) -> None:
    """Fold the facts that stand on the bus, and only then publish."""
    bus, settings = runtime.bus, runtime.settings
    join = Join()
    membership = Membership(bus, bus.connection.settings.instance)
    observer = Observer(bus, RoutesResolved.event_type)
    resolver = Resolver(join, observer, membership)

    def credentials_reported(missing: Credentials) -> None:
        resolver.changed(join.report_credentials(missing))

    routers = Routers(settings, bus.clock, RouterMetrics(runtime.registry), credentials_reported)
    publisher = Publisher(
        join=join,
        routes=RoutesLog(bus),
        membership=membership,
        resolver=resolver,
        routers=routers,
        metrics=TableMetrics(runtime.registry),
        coalesce_ms=settings.coalesce_ms,
    )
    handler = FactHandler(join, publisher, resolver)

    async def publish() -> None:
        await fold(runtime, FOLDED, handler.take)
        await fold(runtime, (RouteAcknowledged.event_type,), routers.take)
        await membership.ready()
        runtime.background(resolver.run(), "conditions")
        runtime.background(routers.run(), "routers")
        await publisher.run()

    runtime.background(membership.run(), "membership")
    runtime.background(observer.run(), "observer")
    runtime.background(publish(), "publication")
