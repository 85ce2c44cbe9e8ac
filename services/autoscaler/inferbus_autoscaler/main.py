"""Wires the autoscaler: facts beside the inbox, the core behind the decider shell."""

from collections.abc import Sequence

from inferbus_autoscaler.fact_fold import FactFold
from inferbus_autoscaler.handlers import AutoscalerHandlers
from inferbus_autoscaler.refusals import Refusals
from inferbus_autoscaler.settings import AutoscalerSettings
from inferbus_autoscaler.state import SCHEMA
from inferbus_autoscaler.telemetry import DecisionMetrics
from inferbus_contracts.base import EventData
from inferbus_contracts.services import Service
from inferbus_shared.bus.decider import Decider
from inferbus_shared.bus.folding import fold
from inferbus_shared.bus.messages import Received
from inferbus_shared.bus.service import Runtime, run_service

FOLDED = ("spec.changed", "workload.observed", "control.frozen", "control.thawed")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the service; it takes no arguments."""
    del argv
    return run_service(Service.AUTOSCALER, AutoscalerSettings, serve)


async def serve(runtime: Runtime[AutoscalerSettings]) -> None:
    """Fold the facts that stand on the bus, then decide."""
    facts = FactFold(runtime.settings.decider)
    metrics = DecisionMetrics(runtime.registry, runtime.bus.clock.now_ms)
    refusals = Refusals(runtime.bus, facts, metrics)

    def take(event: Received[EventData]) -> None:
        facts.take(event.key, event.data, event.time_ms)
        refusals.take(event)

    await fold(runtime, FOLDED, take)
    runtime.background(refusals.follow(), "what was refused")
    await refusals.ready()
    runtime.background(refusals.run(), "refusals")
    handlers = AutoscalerHandlers(facts)
    decider = Decider(
        runtime.bus,
        SCHEMA,
        handlers.decide,
        handlers.state_key,
        runtime.registry,
        metrics.committed,
    )
    runtime.on_inbox(decider.handle)
