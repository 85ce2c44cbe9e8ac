"""The metrics collector's process: wiring, and nothing else."""

from collections.abc import Sequence

from inferbus_contracts.events.metrics import MetricsAssessed
from inferbus_contracts.services import Service
from inferbus_metrics_collector.adapters_bus import BusAssessments, BusSink
from inferbus_metrics_collector.adapters_pages import HttpPages
from inferbus_metrics_collector.adapters_prometheus import PrometheusQueries
from inferbus_metrics_collector.assessor import Assessor
from inferbus_metrics_collector.core import KINDS_READ, Fleet
from inferbus_metrics_collector.effects import Sampler
from inferbus_metrics_collector.handlers import Collector
from inferbus_metrics_collector.page_memory import PageMemory
from inferbus_metrics_collector.pod_pages import PodPages
from inferbus_metrics_collector.policy_history import Window
from inferbus_metrics_collector.policy_schedule import Timetable
from inferbus_metrics_collector.policy_targets import NamespaceGrants
from inferbus_metrics_collector.settings import MetricsCollectorSettings
from inferbus_metrics_collector.telemetry import SampleMetrics, ScrapeMetrics
from inferbus_shared.bus.membership import Membership
from inferbus_shared.bus.observer import Observer
from inferbus_shared.bus.service import Runtime, run_service


async def serve(runtime: Runtime[MetricsCollectorSettings]) -> None:
    """Wire the collector; it samples from when it has heard all facts at hand."""
    settings, bus = runtime.settings, runtime.bus
    interval_ms = round(settings.interval_seconds * 1000)
    source = HttpPages(PageMemory(settings.most_page_bytes), loopback=settings.loopback)
    queries = PrometheusQueries(settings.timeout_seconds, loopback=settings.loopback)
    pages = PodPages(
        source,
        bus.clock.steady_ms,
        ScrapeMetrics(runtime.registry),
        window=Window(length_ms=round(settings.window_seconds * 1000), interval_ms=interval_ms),
        timeout_seconds=settings.timeout_seconds,
        concurrency=settings.concurrency,
    )
    membership = Membership(bus, bus.connection.settings.instance)
    observer = Observer(bus, MetricsAssessed.event_type)
    assessor = Assessor(BusAssessments(observer))
    collector = Collector(
        fleet=Fleet(grants=NamespaceGrants(pairs=settings.namespace_grants)),
        timetable=Timetable(interval_ms),
        sampler=Sampler(pages, queries, BusSink(bus), bus.clock.now_ms),
        pages=pages,
        membership=membership,
        clock=bus.clock,
        metrics=SampleMetrics(runtime.registry),
        assessor=assessor,
    )
    objects = [bus.follow("spec.changed", kind=kind) for kind in KINDS_READ]
    workloads = bus.follow("workload.observed")
    runtime.background(membership.run(), "membership")
    runtime.background(observer.run(), "told")
    for follower in objects:
        runtime.background(collector.follow_objects(bus, follower), "objects")
    runtime.background(collector.follow_workloads(bus, workloads), "workloads")

    async def sample() -> None:
        for follower in (*objects, workloads):
            await follower.caught_up()
        await membership.ready()
        await observer.ready()
        await collector.run()

    async def close() -> None:
        source.close()
        await queries.close()

    runtime.background(sample(), "samples")
    runtime.background(assessor.run(), "assessments")
    runtime.on_stop(close)


def main(argv: Sequence[str] | None = None) -> int:
    """Run until told to stop; returns the exit code. Takes no arguments (see settings)."""
    del argv
    return run_service(Service.METRICS_COLLECTOR, MetricsCollectorSettings, serve)
